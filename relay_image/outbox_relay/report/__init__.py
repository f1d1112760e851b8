"""What the relay tells about itself: collected on a board, written as a report."""

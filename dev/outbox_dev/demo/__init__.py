"""The demo: an order service commits, a relay moves, and what arrives is shown and judged."""

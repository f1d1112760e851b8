"""What the operator tells about a relay: pure functions from what was seen to conditions, status and events."""

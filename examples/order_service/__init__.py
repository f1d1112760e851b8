"""A small order service: each transaction changes an order and writes the events that tell of it to the outbox."""

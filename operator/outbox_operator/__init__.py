"""The operator: reconciles OutboxRelay resources into relays."""

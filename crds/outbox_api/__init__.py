"""The contract of the OutboxRelay resource: models of spec, status, relay configuration, checkpoint and report."""

"""The relay: moves committed outbox events from MongoDB to Kafka."""

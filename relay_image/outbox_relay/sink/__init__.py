"""Kafka: batches a partition, in order, through every failure that heals."""

"""Where an event goes: topic, partition, key and headers by template, and whether Kafka can take it."""

"""Who leads a shard, and until when."""

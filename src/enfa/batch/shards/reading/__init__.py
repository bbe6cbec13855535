"""How shards are read: in which order, which of them are in memory, and side by side in one table."""

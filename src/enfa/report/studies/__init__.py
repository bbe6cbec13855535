"""What a dataset's bags cost before any training: what `enfa inspect` and `enfa storage` count and draw."""

"""Batches of few shapes, for captured steps: padded to buckets and packed into blocks of bytes by worker processes."""

"""Datasets in many files: compiled shard by shard, in a folder or an object store."""

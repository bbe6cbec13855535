"""Batches put together from runs of rows that one graph, or it and its mate, use; much is known of them ahead."""

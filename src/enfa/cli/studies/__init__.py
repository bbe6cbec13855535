"""Commands that measure and compare, without training a model of one's own."""

"""Commands that make datasets ready."""

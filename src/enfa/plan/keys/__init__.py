"""Tables of distinct keys: what a row is computed from, looked up and numbered."""

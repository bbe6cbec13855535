"""Which rows are distinct: keys of rows, looked up step by step over many graphs."""

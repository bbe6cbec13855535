"""The training loop as Lightning runs it. Importing these files needs Lightning (the extra ``enfa[train]``)."""

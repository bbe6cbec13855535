"""How large bags are if they are written out: only reports count that."""

"""What models read of a plan beside its arrays: maps in both orders, lists, identities; made ahead and kept."""

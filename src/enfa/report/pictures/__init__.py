"""What pictures of bags share: where nodes are drawn, which rows are the same, and how a bag is drawn."""

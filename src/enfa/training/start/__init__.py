"""What comes before the first step of a run, and refuses what would make it pointless."""

"""Sessions as pages to look at: one file each, which asks nothing of a network and runs nothing of what it shows."""

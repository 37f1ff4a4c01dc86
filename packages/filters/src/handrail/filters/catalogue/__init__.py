"""The catalogue: one filter a file."""

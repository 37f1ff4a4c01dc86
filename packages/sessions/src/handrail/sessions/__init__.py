"""Runs as files that can be written down, read back, verified and replayed."""

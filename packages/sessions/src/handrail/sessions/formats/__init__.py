"""Foreign transcript formats, one a module."""

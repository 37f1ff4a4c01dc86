"""One topic a file; each enters its rows into the registry when it is imported."""

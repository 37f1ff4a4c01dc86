"""The command line of Handrail."""

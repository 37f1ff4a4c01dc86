"""The subcommands of `handrail`, one a file."""

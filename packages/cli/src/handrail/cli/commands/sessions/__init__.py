"""The subcommands of `handrail sessions`, one idea a file."""

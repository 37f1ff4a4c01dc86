"""The command line of Handrail: `handrail demo`, `run`, `filter`, `import`, `export`, `verify` and `stats`."""

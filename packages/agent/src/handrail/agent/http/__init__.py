"""What every provider needs that speaks HTTP: one client a loop, timeouts, retries, errors with a type, hidden keys."""

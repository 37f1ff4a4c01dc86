"""Messages, and the filters that decide which of them cross from one agent to another."""

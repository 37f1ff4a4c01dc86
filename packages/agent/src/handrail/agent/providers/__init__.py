"""Models of services, one a room; each is loaded when it is first asked for."""

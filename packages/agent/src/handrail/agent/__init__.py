"""Agents that hand off to each other or wrap each other as tools."""

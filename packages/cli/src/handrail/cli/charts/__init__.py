"""Agents and what leads from one to another, drawn."""

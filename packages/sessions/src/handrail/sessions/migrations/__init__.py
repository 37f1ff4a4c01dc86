"""Steps from older versions of the session format to today's: how to register one, and how to migrate a file."""

from handrail.sessions.upgrades import Migrated, migrate
from handrail.sessions.versions import Step, readable_versions, register_migration

__all__ = ["Migrated", "Step", "migrate", "readable_versions", "register_migration"]

"""`export_archive` by its short name."""

from memory.management.commands.export_archive import Command

__all__ = ["Command"]

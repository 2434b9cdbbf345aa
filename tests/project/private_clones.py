"""Clones that the user of the servers cannot enter, such as one that root made in a folder of `mktemp -d`."""

import os
from pathlib import Path

from memory_project.embedded.paths import PROJECT
from memory_project.embedded.users import user_for


def is_private_clone() -> bool:
    """Return True if root runs the tests and `nobody` cannot enter the project: parts stay with root there."""
    return os.geteuid() == 0 and not user_for(Path("/no such data")).can_enter(PROJECT)

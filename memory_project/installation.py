"""The form in which the service is here, as a clone or as an installed wheel, and its folders, which follow from it."""

import os
import tomllib
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
"""The folder of the packages: that of the clone, or `site-packages`."""
IS_CLONE = (PROJECT / "pyproject.toml").is_file() and (PROJECT / "manage.py").is_file()
DISTRIBUTION = "agent-memory-service"
TEMPLATES_DIR = PROJECT / ("templates" if IS_CLONE else "memory_project/templates")
MANAGE = "manage.py" if IS_CLONE else "agent-memory manage"
"""The command that people run Django's commands by."""


def read_version() -> str:
    """Return the version of the service."""
    if IS_CLONE:
        found: str = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
        return found
    return version(DISTRIBUTION)


def default_data_folder() -> Path:
    """Return the folder of data where MEMORY_DATA_DIR names none: that of a wheel may be replaced with the wheel."""
    if IS_CLONE:
        return PROJECT / ".data"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "agent-memory"

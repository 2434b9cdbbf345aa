"""Commands that load questions, run as people run them, and what they leave."""

import io
import json
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command

from memory_project import redis

OF_EVERYONE = {"ContentType", "Group", "Permission", "EncryptionCanary"}
"""Tables that are full from the beginning, or from the first start."""


def run(command: str, path: Path, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, str(path), stdout=out)
    return out.getvalue()


def run_json(command: str, path: Path, *arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run(command, path, "--json", *arguments))
    return report


def nothing_is_left() -> bool:
    full = {model.__name__ for model in apps.get_models() if model._default_manager.exists()}
    keys = [key for key in redis.client().scan_iter() if redis.client().type(key) != "stream"]
    # entries of the audit log are never deleted, not even those of a deleted account
    return full <= OF_EVERYONE | {"AuditEntry"} and all("cache:" in key for key in map(str, keys))

"""The web server's start: what it refuses to start with, in a sentence."""

import os
import subprocess
from pathlib import Path

import pytest

from memory_project.supervisor.parts import Address, parts_at


@pytest.mark.parametrize(
    ("keys", "reason"),
    [("", "MEMORY_ENCRYPTION_KEYS is empty"), ("not-a-key", "MEMORY_ENCRYPTION_KEYS holds what is no Fernet key")],
)
def test_without_usable_encryption_keys_the_web_server_does_not_start(tmp_path: Path, keys: str, reason: str) -> None:
    [web] = [part for part in parts_at(Address(host="127.0.0.1", port=0)) if part.name == "web"]
    environ = os.environ | {"MEMORY_ENCRYPTION_KEYS": keys, "MEMORY_DATA_DIR": str(tmp_path)}

    ended = subprocess.run(web.command, env=environ, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode != 0
    assert f"The web server does not start: {reason}" in ended.stderr
    assert "Traceback" not in ended.stderr

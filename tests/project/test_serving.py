"""The start of web server and worker: which keys they refuse, in a sentence."""

import os
import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from memory.services.operations.canary import check_keys
from memory_project.supervisor.parts import Address, node_part, web_part, worker_part
from tests.web_server import database_url

STARTED = [
    ("web", "The web server"),
    pytest.param("worker", "Celery", marks=pytest.mark.slow),
    pytest.param("node", "The web server", marks=pytest.mark.slow),
]


def start(name: str, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Start a part that is to refuse, and wait for its end."""
    address = Address(host="127.0.0.1", port=0)
    parts = {"web": web_part(address), "worker": worker_part(has_beat=True), "node": node_part(address)}
    part = parts[name]
    return subprocess.run(
        part.command, env=os.environ | environ, capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.parametrize(("name", "subject"), STARTED)
def test_no_part_of_the_service_starts_without_encryption_keys(tmp_path: Path, name: str, subject: str) -> None:
    ended = start(name, {"MEMORY_ENCRYPTION_KEYS": "", "MEMORY_DATA_DIR": str(tmp_path)})

    assert ended.returncode != 0
    assert f"{subject} does not start: MEMORY_ENCRYPTION_KEYS is empty" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("MEMORY_ENCRYPTION_KEYS", "not-a-key", "MEMORY_ENCRYPTION_KEYS holds what is no Fernet key"),
        pytest.param("MEMORY_TOMBSTONE_KEY", "", "MEMORY_TOMBSTONE_KEY is empty", marks=pytest.mark.slow),
    ],
)
def test_the_web_server_does_not_start_without_usable_keys(tmp_path: Path, key: str, value: str, reason: str) -> None:
    ended = start("web", {key: value, "MEMORY_DATA_DIR": str(tmp_path), "MEMORY_WEB_WORKERS": "1"})

    assert ended.returncode != 0
    assert f"The web server does not start: {reason}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "subject"), STARTED)
def test_no_part_of_the_service_starts_with_keys_of_another_database(tmp_path: Path, name: str, subject: str) -> None:
    check_keys()
    other = {"MEMORY_ENCRYPTION_KEYS": Fernet.generate_key().decode(), "DATABASE_URL": database_url()}

    ended = start(name, other | {"MEMORY_DATA_DIR": str(tmp_path), "MEMORY_WEB_WORKERS": "1"})

    assert ended.returncode != 0
    assert f"{subject} does not start: no key in MEMORY_ENCRYPTION_KEYS decrypts" in ended.stderr
    assert "Traceback" not in ended.stderr

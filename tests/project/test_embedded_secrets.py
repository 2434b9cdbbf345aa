"""The secrets of a node are made once, kept private, and shared by nodes of one folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from memory_project.embedded.environment import acquire_servers, provide_secrets
from memory_project.embedded.errors import EmbeddedServerError
from tests.project.test_embedded import data as data

ELSEWHERE = {"DATABASE_URL": "postgres://elsewhere/memory", "REDIS_URL": "redis://elsewhere"}


def test_secrets_are_not_invented_where_other_machines_may_use_the_database(data: Path) -> None:
    environ = ELSEWHERE | {"MEMORY_DATA_DIR": str(data), "MEMORY_TOMBSTONE_KEY": "given"}

    with pytest.raises(EmbeddedServerError, match="set MEMORY_SECRET_KEY, MEMORY_ENCRYPTION_KEYS, or") as raised:
        acquire_servers(environ)

    assert "make_secrets FOLDER" in str(raised.value)
    assert list(data.iterdir()) == []


@pytest.mark.slow
def test_nodes_share_the_secrets_of_a_folder(data: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    command = [sys.executable, "-m", "memory_project.make_secrets", str(shared)]
    first, again = (subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2))

    assert acquire_servers(ELSEWHERE | {"MEMORY_DATA_DIR": str(data), "MEMORY_SECRETS_DIR": str(shared)}) is None

    assert list(data.iterdir()) == []
    assert sorted(path.name for path in shared.iterdir()) == ["encryption_keys", "secret_key", "tombstone_key"]
    assert (first.count("made"), again.count("exists")) == (3, 3)


def test_the_secret_key_is_made_once_and_kept_private(data: Path) -> None:
    for _ in range(2):
        provide_secrets({"MEMORY_DATA_DIR": str(data)}, may_make=True)
        kept = (data / "secret_key").read_text()

    assert (data / "secret_key").read_text() == kept
    assert len(kept) >= 50
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_of_secrets_is_made_for_their_owner_alone(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "secrets"

    provide_secrets({"MEMORY_DATA_DIR": str(data), "MEMORY_SECRETS_DIR": str(folder)}, may_make=True)

    assert (folder / "secret_key").exists()
    assert folder.stat().st_mode & 0o777 == 0o700

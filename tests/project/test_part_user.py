"""The user of the parts under root."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from memory_project.embedded.environment import SECRETS
from memory_project.embedded.paths import PROJECT, make_data_folder
from memory_project.files import scratch_file
from memory_project.supervisor.part_user import CannotSwitchError, find_part_user
from tests.project.private_clones import is_private_clone

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")

in_open_clone = pytest.mark.skipif(is_private_clone(), reason="nobody but root can enter the folder of this clone")

NOBODY = 65534


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder of root's that others can enter, with secrets that they cannot read."""
    folder = Path(mkdtemp(prefix="agent-memory-parts-", dir="/tmp")) / "data"
    folder.parent.chmod(0o755)
    make_data_folder(folder)
    for secret in SECRETS:
        (folder / secret.file_name).touch(mode=0o600)
    yield folder
    for root, folders, files in os.walk(folder.parent, topdown=False):
        for name in files:
            (Path(root) / name).unlink()
        for name in folders:
            (Path(root) / name).rmdir()
    folder.parent.rmdir()


def environ(data: Path) -> dict[str, str]:
    """The environment of a start that has its secrets from the files."""
    given = {secret.variable for secret in SECRETS}
    kept = {name: value for name, value in os.environ.items() if name not in given}
    return kept | {"MEMORY_DATA_DIR": str(data), "MEMORY_SECRETS_DIR": str(data)}


@in_open_clone
def test_the_parts_get_the_secrets_and_the_folders_that_they_write_to(data: Path) -> None:
    user = find_part_user(environ(data), (8002, None))

    assert user is not None
    assert user.uid == NOBODY
    given = ("secret_key", "encryption_keys", "tombstone_key", "metrics", "models", "home")
    assert {(data / name).stat().st_uid for name in given} == {user.uid}
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600


@in_open_clone
def test_a_secret_that_root_replaces_stays_readable_for_the_parts(data: Path) -> None:
    find_part_user(environ(data), (8002,))

    with scratch_file(data / "encryption_keys", b"another") as scratch:
        scratch.replace(data / "encryption_keys")

    assert (data / "encryption_keys").stat().st_uid == NOBODY


def test_the_parts_stay_with_root_for_a_port_below_1024(data: Path) -> None:
    with pytest.raises(CannotSwitchError, match="ports below 1024"):
        find_part_user(environ(data), (80, None))


def test_the_parts_stay_with_root_where_the_data_cannot_be_entered(data: Path) -> None:
    data.chmod(0o700)

    with pytest.raises(CannotSwitchError, match="cannot enter"):
        find_part_user(environ(data), (8002,))


@in_open_clone
def test_the_parts_stay_with_root_where_the_secrets_lie_elsewhere_and_cannot_be_read(data: Path) -> None:
    secrets = data.parent / "secrets"
    secrets.mkdir(mode=0o700)

    with pytest.raises(CannotSwitchError, match="cannot load the service: PermissionError"):
        find_part_user(environ(data) | {"MEMORY_SECRETS_DIR": str(secrets)}, (8002,))


@pytest.mark.skipif(not is_private_clone(), reason="others can enter the folder of this clone")
def test_the_parts_stay_with_root_in_a_clone_that_only_root_can_enter(data: Path) -> None:
    with pytest.raises(CannotSwitchError, match=rf"user \d+ cannot enter {PROJECT}"):
        find_part_user(environ(data), (8002,))

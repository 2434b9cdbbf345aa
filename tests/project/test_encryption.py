"""Encryption at rest: every key unseals, the first key seals, and the key file may change while processes run."""

import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memory_project import encryption
from memory_project.encryption import SealBroken, add_encryption_key, is_current, seal, seal_anew, unseal

PLAIN = b'{"password": "hunter2"}'


def make_key() -> str:
    return Fernet.generate_key().decode()


@pytest.fixture
def keys_in_file(settings: Settings, tmp_path: Path) -> Path:
    """Configure one key in a file next to the data, and none in the environment."""
    settings.ENCRYPTION_KEYS = []
    settings.ENCRYPTION_KEYS_FILE = tmp_path / "encryption_keys"
    settings.ENCRYPTION_KEYS_FILE.write_text(make_key())
    return tmp_path / "encryption_keys"


@pytest.fixture(autouse=True)
def _no_keys_of_other_tests() -> Iterator[None]:
    encryption.read_keys.cache_clear()
    yield
    encryption.read_keys.cache_clear()


def test_sealed_data_is_unreadable_and_can_be_unsealed() -> None:
    sealed = seal(PLAIN)

    assert unseal(sealed) == PLAIN
    assert b"hunter2" not in sealed
    assert seal(PLAIN) != sealed


def test_data_sealed_with_an_older_key_can_be_unsealed(settings: Settings) -> None:
    old, new = make_key(), make_key()
    settings.ENCRYPTION_KEYS = [old]
    sealed = seal(PLAIN)

    settings.ENCRYPTION_KEYS = [new, old]

    assert unseal(sealed) == PLAIN
    assert not is_current(sealed)


def test_resealed_data_no_longer_needs_the_old_key(settings: Settings) -> None:
    old, new = make_key(), make_key()
    settings.ENCRYPTION_KEYS = [old]
    sealed = seal(PLAIN)
    settings.ENCRYPTION_KEYS = [new, old]

    resealed = seal_anew(sealed)

    settings.ENCRYPTION_KEYS = [new]
    assert unseal(resealed) == PLAIN
    assert is_current(resealed)


@pytest.mark.parametrize("act", [unseal, seal_anew])
def test_data_that_no_key_can_unseal_raises_an_error_that_does_not_quote_it(settings: Settings, act: object) -> None:
    sealed = seal(PLAIN)
    settings.ENCRYPTION_KEYS = [make_key()]

    with pytest.raises(SealBroken) as raised:
        act(sealed)  # type: ignore[operator]

    assert "hunter2" not in str(raised.value)


def test_unsealing_tampered_data_raises_an_error() -> None:
    sealed = bytearray(seal(PLAIN))
    sealed[40] ^= 1

    with pytest.raises(SealBroken):
        unseal(bytes(sealed))


def test_sealing_without_a_key_raises_an_error(settings: Settings, tmp_path: Path) -> None:
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEYS_FILE = [], tmp_path / "none"

    with pytest.raises(ImproperlyConfigured, match="MEMORY_ENCRYPTION_KEYS is empty"):
        seal(PLAIN)


def test_the_error_about_an_invalid_key_does_not_quote_it(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = ["nonsense"]

    with pytest.raises(ImproperlyConfigured, match="no Fernet key") as raised:
        seal(PLAIN)

    assert "nonsense" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_keys_in_the_environment_take_precedence_over_the_key_file(settings: Settings, keys_in_file: Path) -> None:
    given = make_key()

    settings.ENCRYPTION_KEYS = [given]

    assert encryption.current_keys() == (given,)


def test_an_added_key_seals_new_data_without_a_restart(keys_in_file: Path) -> None:
    sealed = seal(PLAIN)

    assert add_encryption_key() == keys_in_file

    assert unseal(sealed) == PLAIN
    assert not is_current(sealed)
    assert is_current(seal(PLAIN))


def test_the_key_file_is_accessible_only_to_its_owner(keys_in_file: Path) -> None:
    keys_in_file.chmod(0o644)

    add_encryption_key()

    assert stat.S_IMODE(keys_in_file.stat().st_mode) == 0o600
    assert list(keys_in_file.parent.iterdir()) == [keys_in_file]


def test_no_key_is_lost_when_several_are_added_simultaneously(keys_in_file: Path) -> None:
    first = keys_in_file.read_text()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: add_encryption_key(), range(8)))

    keys = keys_in_file.read_text().split(",")
    assert len(set(keys)) == 9
    assert keys[-1] == first


def test_no_key_is_added_to_an_invalid_key_file(keys_in_file: Path) -> None:
    keys_in_file.write_text("nonsense")

    with pytest.raises(ImproperlyConfigured):
        add_encryption_key()

    assert keys_in_file.read_text() == "nonsense"


def test_a_key_cannot_be_added_to_keys_in_the_environment(settings: Settings) -> None:
    with pytest.raises(ImproperlyConfigured, match="put the new one in front there"):
        add_encryption_key()

"""The keys of an installation in its backup, encrypted under a passphrase: scrypt makes a Fernet key of it."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.conf import settings

from memory.services.backup.manifest import BackupError
from memory_project.embedded.environment import SECRETS
from memory_project.encryption import current_keys, split_keys
from memory_project.files import scratch_file

MIN_PASSPHRASE = 12
# 64 MB and a quarter of a second for each try
COST, BLOCK_SIZE, PARALLEL = 2**16, 8, 1
MAX_COST = 2**20
ENCRYPTION_VARIABLE = "MEMORY_ENCRYPTION_KEYS"


def present_keys() -> dict[str, str]:
    """Return the keys of this installation by the variable of each."""
    return {
        "MEMORY_SECRET_KEY": settings.SECRET_KEY,
        ENCRYPTION_VARIABLE: ",".join(current_keys()),
        "MEMORY_TOMBSTONE_KEY": settings.TOMBSTONE_KEY,
    }


def fingerprint_keys(keys: Mapping[str, str]) -> list[str]:
    """Return a short digest of each encryption key: 256 random bits cannot be guessed from it."""
    return [hashlib.sha256(key.encode()).hexdigest()[:16] for key in split_keys(keys[ENCRYPTION_VARIABLE])]


def seal_keys(keys: Mapping[str, str], passphrase: str) -> str:
    """Return the keys as JSON that only the passphrase opens. Raises BackupError for a passphrase that is too short."""
    if len(passphrase) < MIN_PASSPHRASE:
        raise BackupError(f"The passphrase needs at least {MIN_PASSPHRASE} characters.")
    salt = os.urandom(16)
    sealed = Fernet(derive_key(passphrase, salt, COST)).encrypt(json.dumps(dict(keys)).encode())
    return json.dumps({"kdf": "scrypt", "n": COST, "salt": salt.hex(), "sealed": sealed.decode()})


def open_keys(text: str, passphrase: str) -> dict[str, str]:
    """Return the keys that `seal_keys` sealed. Raises BackupError for another passphrase."""
    try:
        sealed = json.loads(text)
        cost, salt = int(sealed["n"]), bytes.fromhex(sealed["salt"])
        if not 1 < cost <= MAX_COST:
            raise ValueError(cost)
        plain = Fernet(derive_key(passphrase, salt, cost)).decrypt(sealed["sealed"])
    except InvalidToken:
        raise BackupError("The passphrase does not open the keys of the backup. Nothing was changed.") from None
    except (KeyError, TypeError, ValueError) as err:
        raise BackupError("The file of keys is damaged.") from err
    keys: dict[str, str] = json.loads(plain)
    return keys


def derive_key(passphrase: str, salt: bytes, cost: int) -> bytes:
    raw = Scrypt(salt=salt, length=32, n=cost, r=BLOCK_SIZE, p=PARALLEL).derive(passphrase.encode())
    return base64.urlsafe_b64encode(raw)


def check_environment(keys: Mapping[str, str]) -> None:
    """Check that the environment gives no keys other than the backup's: nothing here could change them.

    Raises BackupError.
    """
    for variable, value in keys.items():
        given = os.environ.get(variable)
        is_same = given == value
        if given and variable == ENCRYPTION_VARIABLE:
            is_same = set(split_keys(value)) <= set(split_keys(given))
        if given and not is_same:
            raise BackupError(
                f"{variable} in the environment is not the backup's. Unset it, so that the key of the backup is put "
                "next to the data, or give --without-keys to leave all keys as they are."
            )


def store_keys(keys: Mapping[str, str]) -> None:
    """Put keys that the environment does not give into the folder of secrets. Former ones stay as `….before`."""
    for secret in SECRETS:
        value, path = keys.get(secret.variable, ""), settings.SECRETS_DIR / secret.file_name
        if not value or os.environ.get(secret.variable):
            continue
        if path.exists() and path.read_text().strip() != value:
            path.replace(free_name(path))
        with scratch_file(path, value.encode()) as scratch:
            if os.geteuid() == 0:
                # root may restore for a service that runs as another user
                folder = path.parent.stat()
                os.chown(scratch, folder.st_uid, folder.st_gid)
            scratch.replace(path)


def free_name(path: Path) -> Path:
    """Return the name under which a former key stays: `….before`, or the next free one after it."""
    names = (path.with_name(f"{path.name}.before{number or ''}") for number in count())
    return next(name for name in names if not name.exists())


def check_folder() -> None:
    """Check that keys can be put into the folder of secrets. Raises BackupError."""
    if not os.access(settings.SECRETS_DIR, os.W_OK):
        raise BackupError(f"{settings.SECRETS_DIR} cannot be written to, so the keys of the backup have no place.")

"""The canary: keys that are not the database's are reported at start and by readiness, not when something is read.

It is encrypted, which shows whether the encryption keys are those of the database, and its value is the fingerprints of
the other keys: SHA-256 of the name and the key, shortened to 64 bits.
"""

import logging
from hashlib import sha256

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, transaction

from memory.models import EncryptionCanary
from memory.models.statements import fetch_rows
from memory.services.facts.tombstones import tombstone_key
from memory.services.operations.reseal import (
    SealedTable,
    describe_table,
    filled_condition,
    find_sealed_tables,
    quote_name,
)
from memory_project.encryption import SealBroken, check_encryption_keys, name_key_source, unseal

logger = logging.getLogger(__name__)

FINGERPRINTED = {
    "MEMORY_SECRET_KEY": "log-ins of one node do not hold on another",
    "MEMORY_TOMBSTONE_KEY": "rejected facts and erased users are not recognized",
}
"""Keys that all nodes share besides those of encryption, and what happens under another one."""


def require_keys() -> None:
    """Check that the keys that every process needs are there and the database's; the first start stores the canary.

    Raises ImproperlyConfigured as `compare_keys` does, and DatabaseError.
    """
    tombstone_key()
    if not compare_keys():
        store_fingerprints()
        # a process with other keys may have stored its own at the same time
        compare_keys()


def check_keys() -> None:
    """Check the keys as `require_keys` does. Where the database is down or not migrated yet, the next start checks."""
    try:
        require_keys()
    except Error as err:
        logger.warning("the keys were not compared with the database's: %s", type(err).__name__)


def store_fingerprints() -> None:
    """Store the canary, or the fingerprints in one of an earlier version, unless another process was first."""
    EncryptionCanary.objects.bulk_create([EncryptionCanary(value=fingerprints())], ignore_conflicts=True)
    compare_encryption_keys()
    with transaction.atomic():
        canary = EncryptionCanary.objects.select_for_update().get()
        if not isinstance(canary.value, dict):
            canary.value = fingerprints()
            canary.save(update_fields=["value"])


def compare_keys() -> bool:
    """Return whether the database has a canary with fingerprints, once all configured keys have matched it.

    Raises ImproperlyConfigured for keys that are missing, malformed, or not of this database.
    """
    if not compare_encryption_keys():
        return False
    stored = EncryptionCanary.objects.values_list("value", flat=True).get()
    # those of earlier versions hold a text
    known: dict[str, str] = stored if isinstance(stored, dict) else {}
    found = fingerprints()
    for name, consequence in FINGERPRINTED.items():
        if known.get(name, found[name]) != found[name]:
            raise ImproperlyConfigured(
                f"{name} is not the one that this database is used with, so {consequence}: give every node the same "
                "one, or, if it was changed on purpose, run `manage.py rotate_encryption_keys --accept-loss`"
            )
    return bool(known)


def fingerprints() -> dict[str, str]:
    """Return the fingerprints of the configured keys by the names of their settings, in 16 hexadecimal digits."""
    keys = {"MEMORY_SECRET_KEY": settings.SECRET_KEY, "MEMORY_TOMBSTONE_KEY": settings.TOMBSTONE_KEY}
    return {name: sha256(f"{name}:{key}".encode()).hexdigest()[:16] for name, key in keys.items()}


def compare_encryption_keys() -> bool:
    """Return whether there is a canary, once a configured key has decrypted it.

    A database without one is new or of an earlier version: there the newest encrypted value of each table is tried.
    Raises ImproperlyConfigured for keys that are missing, malformed, or not of this database.
    """
    check_encryption_keys()
    with transaction.atomic():
        canary = find_newest_value(describe_table(EncryptionCanary))
        stored = [canary] if canary else [find_newest_value(table) for table in find_sealed_tables()]
    values = [value for value in stored if value is not None]
    if values and not any(map(is_readable, values)):
        raise ImproperlyConfigured(
            f"no key in {name_key_source()} decrypts what this database holds: put the former key behind the others, "
            "or, if it is lost, run `manage.py rotate_encryption_keys --accept-loss`"
        )
    return canary is not None


def replace_canary() -> None:
    """Accept that values of a lost key stay unreadable: from now on the present keys are those of the database."""
    with transaction.atomic():
        EncryptionCanary.objects.all().delete()
        EncryptionCanary.objects.create(value=fingerprints())


def find_newest_value(table: SealedTable) -> bytes | None:
    """Return an encrypted value of the row with the greatest key; None for a table without any."""
    columns = ", ".join(map(quote_name, table.columns))
    statement = (
        f"SELECT coalesce({columns}) FROM {quote_name(table.name)} "  # noqa: S608 - names from the models
        f"WHERE {filled_condition(table)} ORDER BY {quote_name(table.key)} DESC LIMIT 1"
    )
    found = fetch_rows(statement)
    return bytes(found[0][0]) if found else None


def is_readable(sealed: bytes) -> bool:
    try:
        unseal(sealed)
    except SealBroken:
        return False
    return True

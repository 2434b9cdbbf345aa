"""The encryption canary: other keys than the database's are reported at start, not when something is first read."""

import logging

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection, transaction

from memory.models import EncryptionCanary
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

PLAIN = "canary"
"""The value of the canary. Any text will do, since only its decryption is tried."""


def check_keys() -> None:
    """Check the keys that every process needs: that of tombstones is there, those of encryption are the database's.

    Raises ImproperlyConfigured.
    """
    tombstone_key()
    check_encryption_canary()


def check_encryption_canary() -> None:
    """Check that the configured keys are those of the database, and write the canary if there is none yet.

    Raises ImproperlyConfigured as `compare_encryption_keys` does. Where the database is down or not migrated yet, the
    next start checks.
    """
    try:
        if not compare_encryption_keys():
            EncryptionCanary.objects.bulk_create([EncryptionCanary(value=PLAIN)], ignore_conflicts=True)
            # a process with other keys may have written it at the same time
            compare_encryption_keys()
    except Error as err:
        logger.warning("the encryption keys were not compared with the database's: %s", type(err).__name__)


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


def replace_encryption_canary() -> None:
    """Accept that values of a lost key stay unreadable: from now on the present keys are those of the database."""
    with transaction.atomic():
        EncryptionCanary.objects.all().delete()
        EncryptionCanary.objects.create(value=PLAIN)


def find_newest_value(table: SealedTable) -> bytes | None:
    """Return an encrypted value of the row with the greatest key; None for a table without any."""
    columns = ", ".join(map(quote_name, table.columns))
    statement = (
        f"SELECT coalesce({columns}) FROM {quote_name(table.name)} "  # noqa: S608 - names from the models
        f"WHERE {filled_condition(table)} ORDER BY {quote_name(table.key)} DESC LIMIT 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchone()
    return bytes(found[0]) if found else None


def is_readable(sealed: bytes) -> bool:
    try:
        unseal(sealed)
    except SealBroken:
        return False
    return True

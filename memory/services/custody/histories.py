"""Erasing from the history of the admin: names of rows, and the reasons that staff gave.

Its entries do not say an account. One that names a user counts as one of the account that erases the user, unless
another account has the row that it is about.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError

from memory.models.statements import fetch_rows
from memory.services.custody.naming import ERASED, Naming
from memory_project.batches import batched

SCANNED_ENTRIES = 5_000
CHUNK = 500

# the name of a turn or participant ends with the id of its conversation
FIND_NAMED = """
WITH page AS MATERIALIZED (
    SELECT id, object_repr, change_message FROM django_admin_log WHERE id > %(after)s ORDER BY id LIMIT %(scan)s
)
SELECT (SELECT max(id) FROM page), (SELECT count(*) FROM page), ARRAY(
    SELECT id FROM page WHERE concat(E'\\n', object_repr, E'\\n', change_message, E'\\n') ~ %(pattern)s
        OR regexp_replace(object_repr, '^.*? (of|in) ', '') = ANY(%(conversations)s)
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntries:
    """Entries that name a user, and the entry to continue after, 0 at the end."""

    ids: Collection[int]
    after: int


def erase_histories_of(row_ids: Iterable[UUID]) -> int:
    """Erase the texts of the entries about these rows, and return their number. The entries stay."""
    return erase_in(LogEntry.objects.all(), row_ids)


def erase_histories_of_table(table: str, row_ids: Iterable[UUID | int]) -> int:
    """Erase as `erase_histories_of` does, for rows of a table whose ids may be those of other rows as well.

    It reads the entries about models of this table alone.
    """
    # with kinds of memories, which share one
    of_table = [model for model in apps.get_models() if model._meta.db_table == table]
    types = ContentType.objects.get_for_models(*of_table, for_concrete_models=False).values()
    return erase_in(LogEntry.objects.filter(content_type__in=types), row_ids)


def erase_in(entries: Any, row_ids: Iterable[UUID | int]) -> int:
    """Erase the texts of those of the entries that are about these rows, and return their number."""
    ids, erased = [str(each) for each in row_ids], 0
    for some in batched(ids, CHUNK):
        erased += erase_texts(entries.filter(object_id__in=some).exclude(object_repr=ERASED))
    return erased


def erase_naming_histories(
    account_id: UUID, naming: Naming, conversations: Iterable[str], *, after: int
) -> NamedEntries:
    """Erase the texts of those of the next entries that name the user or one of its conversations."""
    asked = {"after": after, "scan": SCANNED_ENTRIES, "pattern": naming.pattern, "conversations": list(conversations)}
    ((last, count, found),) = fetch_rows(FIND_NAMED, asked)
    entries = LogEntry.objects.filter(id__in=found)
    ids = set(found) - entries_of_others(account_id, entries)
    erase_texts(entries.filter(id__in=ids))
    return NamedEntries(ids=ids, after=last if count == SCANNED_ENTRIES else 0)


def erase_texts(entries: Any) -> int:
    return int(entries.update(object_repr=ERASED, change_message=""))


def entries_of_others(account_id: UUID, entries: Iterable[LogEntry]) -> set[int]:
    """Return the entries about rows of other accounts, and about rows that belong to no account."""
    by_type: defaultdict[int | None, list[LogEntry]] = defaultdict(list)
    for entry in entries:
        by_type[entry.content_type_id].append(entry)
    found: set[int] = set()
    for type_id, some in by_type.items():
        model: Any = type_id and ContentType.objects.get_for_id(type_id).model_class()
        if model and not has_account(model):
            # of the account itself, or of the installation
            found |= {entry.id for entry in some if entry.object_id != str(account_id)}
        elif model:
            theirs = rows_of_others(model, account_id, [str(entry.object_id) for entry in some])
            found |= {entry.id for entry in some if str(entry.object_id) in theirs}
    return found


def has_account(model: Any) -> bool:
    return any(field.attname == "account_id" for field in model._meta.concrete_fields)


def rows_of_others(model: Any, account_id: UUID, row_ids: Iterable[str]) -> set[str]:
    """Return the ids of those of the rows that another account has."""
    valid = []
    for row_id in row_ids:
        try:
            valid.append(model._meta.pk.to_python(row_id))
        except ValidationError:
            continue
    rows = model._base_manager.filter(pk__in=valid).exclude(account_id=account_id)
    return {str(each) for each in rows.values_list("pk", flat=True)}

"""What happened to memory: one statement in the caller's transaction; a write and its record stand or fall together.

The statement asks the account's own level and adds the entry; where the partition of the day is missing, the entry is
added as the transaction commits, which makes it. Whatever callers pass, the table takes the entry: what would be
refused is mended. Reads, which shall not cost a write, go by `services.audit_log.record_read`.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isfinite
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from memory import conf
from memory.models import AuditEntry
from memory.owner import Owner
from memory.redaction import redact, redact_values

READ_OPERATIONS = frozenset({"retrieve"})
UNCONDITIONAL = frozenset({"deep_replay", "erase_audit", "set_audit_level"})
"""At every level: who was told raw traces, or made the log say less, somebody may have to answer for."""
PAYLOAD_COLUMNS = frozenset({"metadata"})
"""Kept at `verbose` only."""

GREATEST_INTEGER = 2**31 - 1
LONGEST_INTEGER = 64
"""Bits of one in JSON; longer ones are texts."""
DEEPEST = 64
"""Objects and lists in one another; what is below is left out."""

MOST_TEXTS = 20
LONGEST_TEXT = 2_000
"""Characters of one that an entry keeps, secrets masked before it is cut."""

WRITE = "SELECT memory_audit_write(%s::jsonb, %s, %s)"

Entry = Mapping[str, Any]
"""All columns of an entry, as JSON takes them. Without a timestamp, it is of the moment that it is written."""


def record(
    owner: Owner, *, operation: str, memory_type: str, affected_ids: Sequence[UUID | str] = (), **columns: Any
) -> None:
    """Add one entry, where the account's level keeps such ones; `columns` are further columns of `AuditEntry`.

    `config_snapshot` is added to the thresholds that are in force, or says others.
    """
    entry = compose(owner, operation=operation, memory_type=memory_type, affected_ids=affected_ids, **columns)
    write_entry(entry, needed=needed_level(operation))


def needed_level(operation: str) -> str:
    """The first level that keeps such an operation."""
    if operation in UNCONDITIONAL:
        return "off"
    return "reads" if operation in READ_OPERATIONS else "writes"


def keeps(level: str, needed: str) -> bool:
    return conf.AUDIT_LEVELS.index(level) >= conf.AUDIT_LEVELS.index(needed)


def level_of(owner: Owner) -> str:
    """What the log keeps of the owner's account, as far as the owner knows."""
    return owner.audit_level or conf.AUDIT_LEVEL


def is_verbose(owner: Owner) -> bool:
    return level_of(owner) == "verbose"


def texts_kept(owner: Owner, texts: Iterable[str]) -> dict[str, Any]:
    """Metadata for an entry: the texts that were stored, at `verbose`; else nothing, and none of them is looked at."""
    if not is_verbose(owner):
        return {}
    kept = [redact(fit_text(text))[:LONGEST_TEXT] for text in islice(texts, MOST_TEXTS)]
    return {"texts": kept} if kept else {}


def write_entry(entry: Entry, *, needed: str) -> None:
    """Store it, unless the account keeps less than `needed`, or it is stored already. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(WRITE, [to_json(entry), needed, conf.AUDIT_LEVEL])


def to_json(entry: Entry | Sequence[Entry]) -> str:
    return json.dumps(entry, default=str, ensure_ascii=False)


def compose(
    owner: Owner, *, operation: str, memory_type: str, affected_ids: Sequence[UUID | str], **columns: Any
) -> Entry:
    """The entry as the table takes it, its texts redacted. Changes nothing."""
    row = AuditEntry(
        account_id=owner.account_id,
        actor=owner.actor,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        source_channel=owner.channel,
        operation=operation,
        memory_type=memory_type,
        affected_ids=[str(affected) for affected in affected_ids],
        **{"timestamp": None} | columns,
    )
    entry = {field.attname: fit(field, getattr(row, field.attname)) for field in AuditEntry._meta.concrete_fields}
    return entry | {
        "query_text": redact(entry["query_text"]),
        "error_message": redact(entry["error_message"]),
        "metadata": redact_values(entry["metadata"]),
        "config_snapshot": active_thresholds() | redact_values(entry["config_snapshot"]),
    }


def fit(field: Any, value: Any) -> Any:
    """The value as its column takes it: cut, clipped, without what is no text or number to PostgreSQL."""
    if isinstance(field, ArrayField):
        return [fit(field.base_field, each) for each in value or ()]
    if isinstance(field, models.JSONField):
        return fit_json(value or {}, below=DEEPEST)
    if isinstance(field, models.CharField | models.TextField):
        return fit_text("" if value is None else str(value))[: field.max_length]
    if isinstance(field, models.IntegerField | models.FloatField):
        return fit_number(field, value)
    return value


def fit_text(text: str) -> str:
    """Without NUL, and with "?" for each surrogate that stands alone."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def fit_number(field: Any, value: float | None) -> float | None:
    """The nearest one that the column holds; None for what is no number."""
    if value is None or value != value:
        return None
    if isinstance(field, models.IntegerField):
        return int(max(-GREATEST_INTEGER, min(value, GREATEST_INTEGER)))
    return float(max(-sys.float_info.max, min(value, sys.float_info.max)))


def fit_json(value: Any, *, below: int) -> Any:
    """With texts in place of what is no JSON, and of what stands deeper than `below` objects and lists."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= LONGEST_INTEGER else hex(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Mapping | list | tuple) and not below:
        return "..."
    if isinstance(value, Mapping):
        return {fit_text(str(name)): fit_json(each, below=below - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [fit_json(each, below=below - 1) for each in value]
    return fit_text(str(value))


def active_thresholds() -> dict[str, Any]:
    """What decides what becomes of memories, at this moment; the level is added as the entry is written."""
    return {
        "promote_confidence": conf.PROMOTE_CONFIDENCE,
        "promote_access_count": conf.PROMOTE_ACCESS_COUNT,
        "promote_conversations": conf.PROMOTE_CONVERSATIONS,
        "duplicate_similarity": conf.DUPLICATE_SIMILARITY,
        "stale_from": conf.STALE_FROM,
        "contradictions": conf.CONTRADICTIONS,
    }


def moment_of(entry_id: UUID) -> datetime:
    """When an id of version 7 was made, to the millisecond: so a read has one time, whichever way it is written."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=entry_id.int >> 80)

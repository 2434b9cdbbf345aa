"""The audit log of writes, in the caller's transaction: a write and its entry succeed or fail together.

One statement reads the account's own level and adds the entry. Where the partition of the day is missing, the entry is
added by a commit trigger, which creates the partition. Values that the table would refuse are adapted, whatever callers
pass. Reads must not cost a write, so they go through `services.audit.record_read`.
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
from django.db import models

from memory import conf
from memory.models import AuditEntry
from memory.models.short_term import MIN_PROMOTION_READS
from memory.models.statements import execute_statement
from memory.owner import Owner
from memory.redaction import redact, redact_values
from memory.scoring import DAILY_DECAY
from memory_project.logs import current_request_id

READ_OPERATIONS = frozenset({"retrieve"})
ALWAYS_RECORDED = frozenset({"deep_replay", "delete_account", "erase_audit", "set_audit_level"})
"""Operations recorded at every level.

Reading raw traces, deleting an account, and reducing what the log says must stay accountable.
"""

MAX_INTEGER = 2**31 - 1
MAX_JSON_INTEGER_BITS = 64
"""Longer integers in JSON are stored as texts."""
MAX_JSON_DEPTH = 64
"""Nested objects and lists; anything deeper is left out."""

MAX_TEXTS = 20
MAX_TEXT_CHARACTERS = 2_000
"""Characters that an entry keeps of a text. Secrets are masked before it is cut."""

WRITE_ENTRY = "SELECT memory_audit_write(%s::jsonb, %s, %s)"

AuditColumns = Mapping[str, Any]
"""All columns of an entry, as JSON values. Without a timestamp, an entry gets the time of its insertion."""


def record_audit(
    owner: Owner, *, operation: str, memory_type: str, affected_ids: Sequence[UUID | str] = (), **columns: Any
) -> None:
    """Add one entry if the account's level keeps such operations; `columns` are further columns of `AuditEntry`.

    `config_snapshot` is merged over the active thresholds. The metadata has the id of the request, and for changes of
    staff their reason and the rows' values before and after, which are kept at every level but `off`.
    """
    notes = owner.changes.describe(affected_ids) if owner.changes is not None else {}
    if request_id := current_request_id.get():
        notes["request_id"] = request_id
    if notes:
        columns["metadata"] = {**columns.get("metadata", {}), **notes}
    entry = build_audit_entry(owner, operation=operation, memory_type=memory_type, affected_ids=affected_ids, **columns)
    write_audit_entry(entry, needed=required_level(operation))


def required_level(operation: str) -> str:
    """Return the lowest level that keeps such an operation."""
    if operation in ALWAYS_RECORDED:
        return "off"
    return "reads" if operation in READ_OPERATIONS else "writes"


def level_includes(level: str, needed: str) -> bool:
    """Return True if a log at `level` keeps operations that need level `needed`."""
    return conf.AUDIT_LEVELS.index(level) >= conf.AUDIT_LEVELS.index(needed)


def audit_level_of(owner: Owner) -> str:
    """Return the audit level of the owner's account, or the installation's where the owner does not carry one."""
    return owner.audit_level or conf.AUDIT_LEVEL


def is_verbose(owner: Owner) -> bool:
    return audit_level_of(owner) == "verbose"


def texts_metadata(owner: Owner, texts: Iterable[str]) -> dict[str, Any]:
    """Return `{"texts": …}` with the stored texts at level `verbose`, else an empty dict without looking at them."""
    if not is_verbose(owner):
        return {}
    kept = [redact(fit_text(text))[:MAX_TEXT_CHARACTERS] for text in islice(texts, MAX_TEXTS)]
    return {"texts": kept} if kept else {}


def write_audit_entry(entry: AuditColumns, *, needed: str) -> None:
    """Store the entry, unless the account's level is below `needed` or the entry is stored already. One statement."""
    execute_statement(WRITE_ENTRY, [audit_json(entry), needed, conf.AUDIT_LEVEL])


def audit_json(entry: AuditColumns | Sequence[AuditColumns]) -> str:
    return json.dumps(entry, default=str, ensure_ascii=False)


def build_audit_entry(
    owner: Owner, *, operation: str, memory_type: str, affected_ids: Sequence[UUID | str], **columns: Any
) -> AuditColumns:
    """Return the entry as the table accepts it, with secrets in its texts masked. Changes nothing."""
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
    entry = {
        field.attname: fit_to_column(field, getattr(row, field.attname)) for field in AuditEntry._meta.concrete_fields
    }
    return entry | {
        "query_text": redact(entry["query_text"]),
        "error_message": redact(entry["error_message"]),
        "metadata": redact_values(entry["metadata"]),
        "config_snapshot": active_thresholds() | redact_values(entry["config_snapshot"]),
    }


def fit_to_column(field: Any, value: Any) -> Any:
    """Return the value as its column accepts it: cut, clipped, without what PostgreSQL refuses."""
    if isinstance(field, ArrayField):
        return [fit_to_column(field.base_field, each) for each in value or ()]
    if isinstance(field, models.JSONField):
        return fit_json(value or {}, below=MAX_JSON_DEPTH)
    if isinstance(field, models.CharField | models.TextField):
        return fit_text("" if value is None else str(value))[: field.max_length]
    if isinstance(field, models.IntegerField | models.FloatField):
        return fit_number(field, value)
    return value


def fit_text(text: str) -> str:
    """Remove NUL characters and replace lone surrogates by "?"."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def fit_number(field: Any, value: float | None) -> float | None:
    """Return the nearest number that the column can hold; None for NaN."""
    if value is None or value != value:
        return None
    if isinstance(field, models.IntegerField):
        return int(max(-MAX_INTEGER, min(value, MAX_INTEGER)))
    return float(max(-sys.float_info.max, min(value, sys.float_info.max)))


def fit_json(value: Any, *, below: int) -> Any:
    """Replace values that JSON has no form for by texts, and anything nested deeper than `below` by "..."."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= MAX_JSON_INTEGER_BITS else hex(value)
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
    """Return the settings that currently decide about memories; the level is added when the entry is written."""
    return {
        "promote_confidence": conf.PROMOTE_CONFIDENCE,
        "promote_access_count": conf.PROMOTE_ACCESS_COUNT,
        "promote_conversations": conf.PROMOTE_CONVERSATIONS,
        "promote_short_term_reads": MIN_PROMOTION_READS,
        "duplicate_similarity": conf.DUPLICATE_SIMILARITY,
        "stale_from": conf.STALE_FROM,
        "contradictions": conf.CONTRADICTIONS,
        "daily_decay": DAILY_DECAY,
        "retention_days": conf.RETENTION_DAYS,
        "audit_retention_days": conf.AUDIT_RETENTION_DAYS,
        "summary_threshold": conf.SUMMARY_THRESHOLD,
    }


def time_of_uuid7(entry_id: UUID) -> datetime:
    """Return the creation time of a version 7 UUID, in milliseconds.

    A read gets its time from its id, so that it is the same whether the entry goes through Redis or directly to the
    table.
    """
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=entry_id.int >> 80)

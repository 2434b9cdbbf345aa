"""The steps of deleting an account, and its end: the account itself goes, and the audit log keeps the receipt.

Entries of the audit log and of the admin's history stay without texts, and without names of users and conversations.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import models, transaction

from memory.audit import record_audit
from memory.models import Account, Erasure, JobRun
from memory.owner import Owner
from memory.services.custody.histories import erase_histories_of, erase_histories_of_table
from memory.services.custody.steps import (
    Selection,
    Step,
    StepReport,
    erase_next_audited,
    flush_audited_reads,
    flush_ledger_changes,
)
from memory.services.custody.stores import Model, memory_field, tables
from memory.services.custody.traces import HAS_AUDITED_TEXTS
from memory_project.redis import client
from memory_project.tenancy import ReferenceInAccount

DELETE_OPERATION = "delete_account"
ROWS_A_BATCH = 1_000
SCAN_KEYS = 500

GO_WITH_ACCOUNT = frozenset({"accounts", "agents", "api_keys", "erasures", "job_runs", "teams"})
"""Tables whose rows are deleted with the account, in one transaction: they are few, or say how far the deletion is."""
KEPT = frozenset({"memory_audit_log"})
"""Tables whose rows outlive their account."""
LAST = ("memories", "persistent_contexts", "conversations", "memory_terms")
"""Tables whose rows others refer to, or follow from, in the order in which they are emptied."""

HAS_TEXTS_OR_NAMES = f"""
user_id <> '' OR conversation_id <> '' OR session_id <> '' OR {HAS_AUDITED_TEXTS}
OR EXISTS (SELECT FROM unnest(affected_ids) AS each (id) WHERE each.id !~ '^[0-9a-f-]{{36}}$')
"""


def list_tables() -> list[str]:
    """Return the tables with rows of accounts in the order in which they are emptied: what belongs to memories first.

    The database would delete those with their memory, but a batch would then have no limit.
    """
    named = {
        name: model
        for name, model in tables().items()
        if name not in GO_WITH_ACCOUNT | KEPT and any(field.name == "account" for field in model._meta.concrete_fields)
    }
    others = sorted(set(named) - set(LAST), key=lambda name: (not memory_field(named[name]), name))
    return [*others, *(name for name in LAST if name in named)]


def delete_tables(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Delete the next rows of the account. The cursor is the table."""
    names = list_tables()
    name = cursor or names[0]
    deleted, histories = delete_batch(tables()[name], selection.owner.account_id)
    following = names[names.index(name) + 1 :]
    is_empty = deleted < ROWS_A_BATCH
    counts = Counter({name: deleted, "staff_history": histories})
    return StepReport(counts=counts, cursor=(following[0] if following else "") if is_empty else name)


def delete_batch(model: Model, account_id: UUID) -> tuple[int, int]:
    """Delete some rows of a table, and the texts of the admin's history about them. Returns the number of each.

    References that do not cascade are cleared first.
    """
    rows = model._default_manager.filter(account_id=account_id)
    with transaction.atomic():
        # in no order, since some keys begin with the id and would be read across all accounts
        ids = list(rows.values_list("pk", flat=True)[:ROWS_A_BATCH])
        for referring, field in find_references(model):
            pointing = referring._default_manager.filter(account_id=account_id, **{f"{field}__in": ids})
            pointing.update(**{field: None})
        found: Any = rows.filter(pk__in=ids)
        histories = erase_histories_of_table(model._meta.db_table, ids)
        # the database deletes what goes with them
        found._raw_delete(found.db)
    return len(ids), histories


def find_references(model: Model) -> list[tuple[Model, str]]:
    """Return the tables and columns that refer to rows of this table and would keep the database from deleting it."""
    return [
        (referring, field.attname)
        for referring in tables().values()
        for field in kept_references(referring)
        if field.related_model._meta.db_table == model._meta.db_table
    ]


def kept_references(model: Model) -> list[Any]:
    """Return the fields of the model whose foreign keys do not cascade."""
    found = [each for each in model._meta.constraints if isinstance(each, ReferenceInAccount)]
    return [model._meta.get_field(each.field) for each in found if not does_cascade(model, each)]


def does_cascade(model: Model, reference: ReferenceInAccount) -> bool:
    if reference.cascades is not None:
        return reference.cascades
    relation: Any = model._meta.get_field(reference.field).remote_field
    return bool(relation.on_delete is models.CASCADE)


def delete_keys_of_redis(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Delete the next keys of the account."""
    pattern = f"account:{selection.owner.account_id}:*"
    following, keys = cast(
        "tuple[int, list[str]]", client().scan(cursor=int(cursor or 0), match=pattern, count=SCAN_KEYS)
    )
    deleted = client().unlink(*keys) if keys else 0
    return StepReport(counts=Counter(redis=deleted), cursor=str(following or ""))


def erase_audit(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase the texts, and the names of users and conversations, of the next entries of the account's audit log."""
    return erase_next_audited(selection, cursor, HAS_TEXTS_OR_NAMES, {})


ACCOUNT_STEPS: Mapping[str, Step] = {
    "redis": delete_keys_of_redis,
    "ledger changes": flush_ledger_changes,
    "audited reads": flush_audited_reads,
    "rows": delete_tables,
    "later reads": flush_audited_reads,
    "audit": erase_audit,
}
"""The steps of deleting an account, by name, in order."""


def has_running_jobs(account_id: UUID) -> bool:
    """Return True while a worker is at a run of the account, whose row must not go before it ends."""
    return JobRun.objects.filter(account_id=account_id, status=JobRun.Status.RUNNING).exists()


def finish_deletion(erasure: Erasure) -> None:
    """Delete the emptied account with its last rows, this erasure among them. The audit log keeps the receipt."""
    account = Account.objects.get(id=erasure.account_id)
    for name in sorted(GO_WITH_ACCOUNT - {"accounts"}):
        erase_histories_of(tables()[name]._default_manager.filter(account_id=account.id).values_list("pk", flat=True))
    erase_histories_of([account.id])
    record_audit(
        Owner(account_id=account.id, actor=erasure.requested_by),
        operation=DELETE_OPERATION,
        memory_type="account",
        affected_ids=[account.id, erasure.id],
        metadata={"reason": erasure.reason},
        # which every level keeps
        config_snapshot={"account": account.name, "receipt": erasure.receipt, "signature": erasure.signature},
    )
    account.delete()

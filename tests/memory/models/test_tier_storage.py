"""Constraints and triggers of the database for tiers, pools and contexts."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from memory.models import (
    Account,
    BlackboardPosting,
    ContextEntry,
    ContextEntryVersion,
    Kind,
    Memory,
    MemoryPool,
    PersistentContext,
    Vector,
    WorkflowRun,
)
from memory.models.writer import insert_memories
from memory.owner import Owner
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW
from tests.memory.rows import row_of

pytestmark = pytest.mark.django_db

OPEN = {"read": [], "write": [], "public_read": False}


def test_every_composite_index_of_the_tiers_starts_with_the_account() -> None:
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT relation.relname || '.' || index.relname
            FROM pg_index JOIN pg_class index ON index.oid = indexrelid
            JOIN pg_class relation ON relation.oid = indrelid
            JOIN pg_attribute attribute ON attribute.attrelid = indrelid AND attribute.attnum = indkey[0]
            WHERE indnkeyatts > 1 AND NOT indisprimary AND attribute.attname <> 'account_id'
                AND relation.relname ~ '^(workflow|blackboard|tool_cache|persistent|context|learning|memory_pool)'
        """)
        others = cursor.fetchall()

    assert others == []


def test_an_entry_lives_in_a_context_of_its_own_account(owner: Owner, stranger: Account) -> None:
    context = context_of(Owner(account_id=stranger.id, agent_id="theirs"))

    row = row_of(Kind.CONTEXT_ENTRY, account_id=owner.account_id, context=context)

    with pytest.raises(IntegrityError, match="memories_context_in_account"):
        insert_memories([row])


@pytest.mark.parametrize(
    ("kind", "in_context"), [(Kind.FACT, True), (Kind.CONTEXT_ENTRY, False), (Kind.LEARNING, False)]
)
def test_only_entries_and_learnings_live_in_contexts(owner: Owner, kind: Kind, in_context: bool) -> None:
    row = row_of(kind, account_id=owner.account_id, context=context_of(owner) if in_context else None)

    with pytest.raises(IntegrityError, match="memory_in_context_by_kind"):
        insert_memories([row])


@pytest.mark.parametrize(
    "change", [{"content": "x"}, {"number": 7}, {"editor": "x"}, {"value": 1}, {"created_at": NOW}], ids=str
)
def test_a_version_never_changes(owner: Owner, change: dict[str, Any]) -> None:
    keep(owner, context_of(owner), entry("as it was"))

    with pytest.raises(IntegrityError, match="written once"):
        ContextEntryVersion.objects.update(**change)


def test_a_posting_never_changes(account: Account) -> None:
    run = WorkflowRun.objects.create(account=account, workflow_run_id="run", started_at=NOW)
    pool = MemoryPool.objects.create(account=account, pool_id="board", pool_type="blackboard", workflow_run=run)
    posting = BlackboardPosting.objects.create(account=account, pool=pool, position=0, content="first")

    with pytest.raises(IntegrityError, match="written once"):
        BlackboardPosting.objects.filter(id=posting.id).update(content="second")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [],
        "all",
        {"read": [], "write": []},
        OPEN | {"read": "everybody"},
        OPEN | {"read": [1]},
        OPEN | {"write": [None]},
        OPEN | {"public_read": "yes"},
        OPEN | {"admin": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("row", [MemoryPool(pool_id="p"), PersistentContext(name="c")], ids=["pool", "context"])
def test_access_control_of_another_shape_is_refused(account: Account, broken: Any, row: Any) -> None:
    row.account, row.access_control = account, broken

    with pytest.raises(IntegrityError, match="access_control"):
        row.save(force_insert=True)


def test_a_vector_follows_its_entry_to_another_context(owner: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("moving", angle=0.1))
    other = context_of(owner, "elsewhere")

    Memory.objects.filter(id=row.id).update(context=other)

    assert Vector.objects.get(memory_id=row.id).context_id == other.id


def test_deleting_a_context_deletes_everything_in_it(owner: Owner) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("old", angle=0.1))
    rewrite(owner, row, "new")

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM persistent_contexts WHERE id = %s", [context.id])

    assert not Memory.objects.exists()
    assert not Vector.objects.exists()
    assert not ContextEntryVersion.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"pool_type": "blackboard"},
        {"scope": "task"},
        {"is_own": True},
        {"is_own": True, "agent_id": "a", "scope": "account", "pool_type": "agent_private"},
        {"version": 0},
        {"pool_id": ""},
    ],
    ids=str,
)
def test_a_pool_that_contradicts_itself_is_refused(account: Account, fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        MemoryPool.objects.create(**{"account": account, "pool_id": str(uuid4())} | fields)


def test_importance_and_confidence_stay_in_their_range(owner: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("weighed"))
    rows = ContextEntry.objects

    for column in ("importance", "confidence"):
        with pytest.raises(IntegrityError, match="in_range"), transaction.atomic():
            rows.filter(pk=row.id).update(**{column: 1.01})

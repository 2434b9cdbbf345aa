"""The migration that lets extracted facts begin when they were said."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from tests.memory.episodes import NOW
from tests.memory.migrations import empty_database, migrate_to

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis"),
]

BEFORE, AFTER = "0027_fact_attributes", "0028_fact_beginnings"
SAID = NOW - timedelta(days=9)


@pytest.fixture(autouse=True)
def _own_database(transactional_db: None) -> Iterator[None]:
    with empty_database():
        yield


def store_fact(old: Any, account: Any, name: str, **columns: Any) -> Any:
    """Store a fact, said a second time at NOW, with its version, as the former release did."""
    shared = {"temporal": "current", "confidence": 0.9, "valid_from": None, "valid_to": None, "recorded_at": NOW}
    fact = old.get_model("memory", "Fact").objects.create(
        account_id=account.id, kind="fact", identity=name, text=name, event_time=NOW, **shared | columns
    )
    versions = old.get_model("memory", "FactVersion").objects
    spans = {key: columns.get(key) for key in ("valid_from", "valid_to")}
    versions.create(account_id=account.id, fact_id=fact.id, number=1, claim=name, reason="learned", **shared | spans)
    return fact


def test_extracted_facts_begin_in_the_first_turn_that_states_them() -> None:
    old = migrate_to(BEFORE)
    account = old.get_model("memory", "Account").objects.create(name="workshop")
    log = old.get_model("memory", "Conversation").objects.create(
        account_id=account.id, agent_id="a", conversation_id="c1", started_at=SAID, turn_count=1
    )
    turn = old.get_model("memory", "Turn").objects.create(
        account_id=account.id, kind="turn", identity="t", text="t", event_time=SAID, log=log, index=0, role="user"
    )
    undated = store_fact(old, account, "undated", source="extraction")
    dated = store_fact(old, account, "dated", source="extraction", valid_from=SAID)
    over = store_fact(old, account, "over", source="extraction", temporal="past", valid_to=SAID - timedelta(days=1))
    told = store_fact(old, account, "told")
    for fact in (undated, dated, over, told):
        old.get_model("memory", "Link").objects.create(
            account_id=account.id, source_id=fact.id, target_id=turn.id, type="DERIVED_FROM"
        )

    migrate_to(AFTER)
    again = migrate_to(AFTER)

    rows = again.get_model("memory", "MemoryTable").objects.filter(kind="fact").order_by("text")
    found = {row.text: (row.valid_from, row.valid_from_source) for row in rows}
    assert found == {
        "undated": (SAID, "said"),
        "dated": (SAID, "stated"),
        "over": (None, None),
        "told": (None, None),
    }
    with connection.cursor() as cursor:
        statement = "SELECT number, valid_from, retracted_at IS NULL FROM fact_versions WHERE fact_id = %s ORDER BY 1"
        cursor.execute(statement, [undated.id])
        assert cursor.fetchall() == [(1, None, False), (2, SAID, True)]

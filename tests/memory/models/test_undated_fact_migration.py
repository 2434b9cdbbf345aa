"""The migration that lets facts of clients begin when they were said."""

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

BEFORE, AFTER = "0059_audit_erasure_rights", "0060_undated_fact_beginnings"
EARLIER = NOW - timedelta(days=9)


@pytest.fixture(autouse=True)
def _own_database(transactional_db: None) -> Iterator[None]:
    with empty_database():
        yield


def store_fact(old: Any, account: Any, name: str, *, starts: Any = (None,), **columns: Any) -> Any:
    """Store a fact of NOW as the former release did, with a version for each of its starts."""
    shared = {"temporal": "current", "confidence": 0.9, "recorded_at": NOW, "valid_to": None} | columns
    fact = old.get_model("memory", "Fact").objects.create(
        account_id=account.id, kind="fact", identity=name, text=name, event_time=NOW, valid_from=starts[-1],
        belief_number=len(starts), **shared,
    )  # fmt: skip
    for number, start in enumerate(starts, 1):
        old.get_model("memory", "FactVersion").objects.create(
            account_id=account.id, fact_id=fact.id, claim=name, number=number, reason="learned", valid_from=start,
            retracted_at=None if number == len(starts) else NOW, **shared,
        )  # fmt: skip
    return fact


def read_beginnings(apps: Any) -> dict[str, tuple[Any, Any]]:
    rows = apps.get_model("memory", "MemoryTable").objects.filter(kind="fact")
    return {row.text: (row.valid_from, row.valid_from_source) for row in rows}


def test_undated_facts_begin_when_they_were_said_and_stay_so_on_the_way_back_and_forth() -> None:
    old = migrate_to(BEFORE)
    account = old.get_model("memory", "Account").objects.create(name="workshop")
    undated = store_fact(old, account, "undated")
    store_fact(old, account, "ended later", valid_to=NOW + timedelta(days=1))
    store_fact(old, account, "over", temporal="past", valid_to=EARLIER)
    store_fact(old, account, "dated", starts=[EARLIER])
    store_fact(old, account, "undone", starts=[EARLIER, None])
    expected = {
        "undated": (NOW, "said"),
        "ended later": (NOW, "said"),
        "over": (None, None),
        "dated": (EARLIER, None),
        "undone": (None, None),
    }

    assert read_beginnings(migrate_to(AFTER)) == expected
    assert read_beginnings(migrate_to(BEFORE)) == expected
    assert read_beginnings(migrate_to(AFTER)) == expected
    with connection.cursor() as cursor:
        statement = "SELECT number, valid_from, retracted_at IS NULL FROM fact_versions WHERE fact_id = %s ORDER BY 1"
        cursor.execute(statement, [undated.id])
        assert cursor.fetchall() == [(1, None, False), (2, NOW, True)]

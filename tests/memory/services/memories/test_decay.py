"""Decay: unread memories decay by the formula from a stored base, and return to it when they are read."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Fact, FactVersion, Kind, Memory
from memory.owner import Owner
from memory.scoring import MIN_DECAY_STEP, decayed_confidence, decayed_salience
from memory.services.entities.merge import merge_entities
from memory.services.facts.supersede import correct_fact
from memory.services.memories.correct import correct_memory, mark_memories
from memory.services.memories.decay import (
    CONFIDENCE,
    SALIENCE,
    DecayBatch,
    DecayedColumn,
    DecayResult,
    decay_rows,
    preview_decay,
    reinforce,
)
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import know, learn_claim, versions_of
from tests.memory.heap import hot_updates
from tests.memory.heap import room_beside_rows as room_beside_rows
from tests.memory.turns import talk
from tests.properties import examples

pytestmark = pytest.mark.django_db

SOON = timedelta(hours=1)
SQL_TO_PYTHON = examples(25, derandomize=True)


def day(number: float) -> datetime:
    """Return the time so many days after NOW, when the memories of these tests were written."""
    return NOW + timedelta(days=number)


def age(**columns: Any) -> None:
    """Make every memory one that was written at NOW, with these columns."""
    Memory.objects.update(updated_at=NOW, **columns)


def fading(
    owner: Owner, kind: Kind, *, now: datetime, what: DecayedColumn = SALIENCE, limit: int = 1_000
) -> DecayResult:
    return decay_rows(what, DecayBatch(account_id=owner.account_id, kind=kind, limit=limit), now=now)


def saliences(*ids: UUID) -> list[float]:
    """Return the saliences of these memories in this order, or of all."""
    found = {row.id: row.salience for row in Memory.objects.order_by("id")}
    return [found[each] for each in ids] if ids else list(found.values())


@pytest.fixture
def episodes(owner: Owner) -> Sequence[UUID]:
    """Store three episodes of salience 0.5, written at NOW, and return their ids in order."""
    rows = store(owner, *(draft(f"episode {number}", angle=0.1) for number in range(3)))
    age(salience=0.5)
    return sorted(row.id for row in rows)


@pytest.fixture
def inferred(owner: Owner) -> Fact:
    """Store an inferred fact of confidence 0.7, written at NOW."""
    fact = know(owner, certainty="inferred")
    age()
    return fact


def test_an_unread_memory_decays_by_the_formula_after_a_day(owner: Owner, episodes: Sequence[UUID]) -> None:
    reinforce(owner, episodes[1:2], now=day(9.5))
    reinforce(owner, episodes[2:3], now=day(8))

    faded = fading(owner, Kind.EPISODE, now=day(10))

    assert (faded.examined, faded.changed) == (2, 2)
    assert saliences(*episodes) == pytest.approx(
        [decayed_salience(0.5, age_days=10, access_count=0), 0.5, decayed_salience(0.5, age_days=2, access_count=1)]
    )


def test_an_imported_memory_has_faded_since_it_happened_until_it_is_changed_or_read(owner: Owner) -> None:
    drafts = (replace(draft(f"old {number}"), event_time=day(-20)) for number in range(3))
    changed, read, untouched = store(owner, *drafts)
    age(salience=0.5)
    Memory.objects.filter(id=changed.id).update(version=2)
    reinforce(owner, [read.id], now=NOW)

    fading(owner, Kind.EPISODE, now=day(0.5))

    faded = decayed_salience(0.5, age_days=20.5, access_count=0)
    assert saliences(changed.id, read.id, untouched.id) == pytest.approx([0.5, 0.5, faded])


def test_a_second_run_at_the_same_time_changes_nothing(owner: Owner, episodes: Sequence[UUID]) -> None:
    fading(owner, Kind.EPISODE, now=day(10))
    before = saliences()

    assert fading(owner, Kind.EPISODE, now=day(10)).changed == 0
    assert saliences() == before


@SQL_TO_PYTHON
@given(
    salience=st.floats(0, 1),
    access_count=st.integers(0, 2**31 - 1),
    days=st.lists(st.floats(0, 4_000), min_size=1, max_size=6),
)
def test_many_runs_give_the_result_of_one_run(
    owner: Owner, salience: float, access_count: int, days: list[float]
) -> None:
    Memory.objects.all().delete()
    store(owner, draft("once"))
    age(salience=salience, access_count=access_count)

    for now in sorted(days):
        fading(owner, Kind.EPISODE, now=day(now))

    last = max(days)
    expected = decayed_salience(salience, age_days=last, access_count=access_count) if last >= 1 else salience
    assert saliences() == pytest.approx([expected], abs=MIN_DECAY_STEP)


def test_daily_runs_write_a_row_only_when_its_value_changes(owner: Owner, episodes: Sequence[UUID]) -> None:
    writes = sum(fading(owner, Kind.EPISODE, now=day(number)).changed for number in range(1, 366))

    assert writes == 3 * 32
    assert saliences() == pytest.approx([0, 0, 0], abs=MIN_DECAY_STEP)


def test_a_memory_that_is_read_returns_to_its_base(owner: Owner, episodes: Sequence[UUID]) -> None:
    fading(owner, Kind.EPISODE, now=day(30))
    reinforce(owner, episodes[:1], now=day(30) + SOON)

    fading(owner, Kind.EPISODE, now=day(31))
    back, *others = saliences(*episodes)
    fading(owner, Kind.EPISODE, now=day(40) + SOON)

    assert back == 0.5
    assert max(others) < 0.11
    assert saliences(episodes[0]) == pytest.approx([decayed_salience(0.5, age_days=10, access_count=1)])


@pytest.mark.parametrize("mark", ["pin", "archive", "quarantine"])
def test_marked_memories_do_not_decay(owner: Owner, episodes: Sequence[UUID], mark: str) -> None:
    mark_memories(owner, episodes, mark=mark, now=NOW)

    assert fading(owner, Kind.EPISODE, now=day(10)) == DecayResult(examined=0, changed=0, last=None)


def test_a_salience_that_is_set_becomes_the_base(owner: Owner, episodes: Sequence[UUID]) -> None:
    fading(owner, Kind.EPISODE, now=day(10))
    correct_memory(owner, episodes[0], changes={"salience": 0.9}, version=1, now=day(10))

    fading(owner, Kind.EPISODE, now=day(12))

    assert saliences(episodes[0]) == pytest.approx([decayed_salience(0.9, age_days=2, access_count=0)])


def test_a_merge_of_decayed_entities_keeps_the_greater_base(owner: Owner) -> None:
    ana, twin = entity_of(owner, "Ana", salience=0.4), entity_of(owner, "A. Lima", salience=0.8)
    age()
    fading(owner, Kind.ENTITY, now=day(5))

    merge_entities(owner, ana.id, twin.id, now=day(5))
    fading(owner, Kind.ENTITY, now=day(7))

    assert saliences(ana.id) == pytest.approx([decayed_salience(0.8, age_days=2, access_count=0)])


def test_storing_a_decayed_entity_again_keeps_its_base(owner: Owner) -> None:
    ana = entity_of(owner, "Ana", salience=0.9)
    age()
    fading(owner, Kind.ENTITY, now=day(20))

    entity_of(owner, "Ana", salience=0.5)

    assert saliences(ana.id) == [0.9]


@pytest.mark.usefixtures("room_beside_rows")
def test_decay_does_not_count_as_a_change(owner: Owner, episodes: Sequence[UUID]) -> None:
    columns = ("version", "updated_at", "last_accessed", "embed_after", "text")
    before = list(Memory.objects.order_by("id").values(*columns))
    hot, beside = hot_updates(), rows_beside()

    fading(owner, Kind.EPISODE, now=day(10))

    assert list(Memory.objects.order_by("id").values(*columns)) == before
    assert rows_beside() == beside
    assert hot_updates() - hot == len(episodes)


def rows_beside() -> list[tuple[Any, ...]]:
    """Return the physical positions of rows that triggers of memories write. An updated row has another one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text FROM memory_vectors UNION ALL SELECT ctid::text FROM memory_terms ORDER BY 1")
        return list(cursor.fetchall())


def test_decay_is_one_statement_for_any_number_of_rows(
    owner: Owner, episodes: Sequence[UUID], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert fading(owner, Kind.EPISODE, now=day(10)).changed == 3


@pytest.mark.django_db(transaction=True)
def test_decay_locks_rows_by_id_and_skips_those_read_meanwhile(
    owner: Owner, episodes: Sequence[UUID], start_concurrently: Start
) -> None:
    with transaction.atomic():
        reinforce(owner, episodes[:1], now=day(10))
        waiting: Any = start_concurrently(lambda: fading(owner, Kind.EPISODE, now=day(10)))
        # it has not locked any of the others yet
        reinforce(owner, episodes[1:2], now=day(10))

    assert waiting.result(PATIENCE_SECONDS) == DecayResult(examined=3, changed=1, last=None)
    assert saliences(*episodes) == pytest.approx([0.5, 0.5, decayed_salience(0.5, age_days=10, access_count=0)])


def test_a_preview_counts_and_changes_nothing(owner: Owner, episodes: Sequence[UUID]) -> None:
    rows = DecayBatch(account_id=owner.account_id, kind=Kind.EPISODE, limit=2)

    assert preview_decay(SALIENCE, rows, now=day(10)) == DecayResult(examined=2, changed=2, last=episodes[1])
    assert saliences() == [0.5] * 3


def test_other_kinds_and_accounts_do_not_decay_with_them(owner: Owner, stranger: Account) -> None:
    talk(owner, 1)
    store(Owner(account_id=stranger.id, agent_id="assistant"), draft("theirs"))
    age(salience=0.5)

    fading(owner, Kind.EPISODE, now=day(10))

    assert saliences() == [0.5, 0.5]


@SQL_TO_PYTHON
@given(confidence=st.floats(0, 1), days=st.lists(st.floats(0, 4_000), min_size=1, max_size=4))
def test_inferred_confidence_decays_by_the_formula(owner: Owner, confidence: float, days: list[float]) -> None:
    Memory.objects.all().delete()
    know(owner, certainty="inferred", confidence=confidence)
    age()

    for now in sorted(days):
        fading(owner, Kind.FACT, what=CONFIDENCE, now=day(now))

    expected = decayed_confidence(confidence, age_days=max(days))
    assert Fact.objects.get().confidence == pytest.approx(expected, abs=MIN_DECAY_STEP)


def test_confidence_falls_for_longer_than_seven_hundred_days(owner: Owner) -> None:
    know(owner, certainty="inferred", confidence=0.75)
    age()

    for now in (546, 728):
        fading(owner, Kind.FACT, what=CONFIDENCE, now=day(now))

    assert Fact.objects.get().confidence == pytest.approx(0.75 * 0.95**104)


def test_confidence_falls_by_the_week(owner: Owner, inferred: Fact) -> None:
    changed = [fading(owner, Kind.FACT, what=CONFIDENCE, now=day(number)).changed for number in range(1, 22)]

    assert [number for number, count in enumerate(changed, 1) if count] == [7, 14, 21]
    assert Fact.objects.get().confidence == pytest.approx(0.7 * 0.95**3)


@pytest.mark.parametrize("certainty", ["explicit", "implied", "uncertain", ""])
def test_confidence_of_facts_that_were_not_inferred_does_not_decay(owner: Owner, certainty: str) -> None:
    know(owner, certainty=certainty)
    age()

    assert fading(owner, Kind.FACT, what=CONFIDENCE, now=day(100)).examined == 0


def test_decayed_confidence_is_no_new_belief(owner: Owner, inferred: Fact) -> None:
    fading(owner, Kind.FACT, what=CONFIDENCE, now=day(28))

    assert [version.confidence for version in versions_of(inferred)] == [0.7]
    assert FactVersion.objects.filter(retracted_at=None).count() == 1


def test_learning_a_decayed_fact_again_raises_its_confidence(owner: Owner, inferred: Fact) -> None:
    fading(owner, Kind.FACT, what=CONFIDENCE, now=day(28))

    learned = learn_claim(owner, certainty="inferred", now=day(28))
    fading(owner, Kind.FACT, what=CONFIDENCE, now=day(28) + SOON)

    assert learned.fact.id == inferred.id
    assert Fact.objects.get().confidence == 0.7


def test_reading_a_decayed_fact_restores_its_confidence(owner: Owner, inferred: Fact) -> None:
    fading(owner, Kind.FACT, what=CONFIDENCE, now=day(28))
    reinforce(owner, [inferred.id], now=day(28))

    fading(owner, Kind.FACT, what=CONFIDENCE, now=day(29))

    assert Fact.objects.get().confidence == 0.7


def test_a_decayed_confidence_is_never_recorded_as_a_belief(owner: Owner) -> None:
    fact = know(owner, "It rains.", certainty="inferred")
    age()
    fading(owner, Kind.FACT, now=day(70), what=CONFIDENCE)
    assert Fact.objects.get(pk=fact.id).confidence < 0.5

    correct_fact(owner, fact.id, changes={"valid_from": day(-1)}, embedded=NOTHING, now=day(70))

    assert list(FactVersion.objects.order_by("number").values_list("confidence", flat=True)) == [0.7, 0.7]
    assert Fact.objects.get(pk=fact.id).confidence == 0.7

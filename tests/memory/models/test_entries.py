"""Effective relevance: one formula in Python and in SQL, so that lists are in the order of the scores they show."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.models import ContextEntry
from memory.models.entries import effective_relevance
from memory.owner import Owner
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.properties import examples

pytestmark = pytest.mark.django_db

SHARE = st.floats(0, 1, allow_subnormal=False)
MOMENT = st.timedeltas(timedelta(days=-27_000), timedelta(days=27_000)).map(lambda away: NOW + away)
WEIGHED = st.tuples(SHARE, SHARE, MOMENT, st.none() | MOMENT)
LONG_AGO = NOW - timedelta(days=50_000)
REUSED = examples(60)


def weigh(entries: list[ContextEntry], weights: list[tuple[float, float, datetime, datetime | None]]) -> None:
    for row, (importance, confidence, updated_at, last_accessed) in zip(entries, weights, strict=False):
        ContextEntry.objects.filter(id=row.id).update(
            importance=importance, confidence=confidence, updated_at=updated_at, last_accessed=last_accessed
        )


def in_order_of_score(rows: list[ContextEntry], now: datetime) -> list[ContextEntry]:
    found = ContextEntry.objects.filter(id__in=[row.id for row in rows]).annotate(score=effective_relevance(now))
    return list(found.order_by("-score", "-id"))


@pytest.fixture
def rows(owner: Owner) -> list[ContextEntry]:
    return list(keep(owner, context_of(owner), *(entry(f"number {number}") for number in range(6))))


@REUSED
@given(weights=st.lists(WEIGHED, min_size=6, max_size=6), now=MOMENT)
@example(weights=[(0.5, 1.0, NOW, None), (0.5, 1.0, LONG_AGO, LONG_AGO), *[(0.1, 0.1, LONG_AGO, NOW)] * 4], now=NOW)
@example(weights=[(0.5, 1.0, NOW, None)] * 6, now=datetime(9999, 12, 31, tzinfo=UTC))
@example(weights=[(0.5, 1.0, NOW, None)] * 6, now=datetime(1, 1, 1, tzinfo=UTC))
def test_sql_and_python_agree_on_scores_and_order(
    rows: list[ContextEntry], weights: list[tuple[float, float, datetime, datetime | None]], now: datetime
) -> None:
    weigh(rows, weights)

    found = in_order_of_score(rows, now)

    scores = [row.effective_relevance_score(now) for row in found]
    assert [row.score for row in found] == pytest.approx(scores, abs=1e-9)  # type: ignore[attr-defined]
    # of equal scores either may come first: the last digit differs between Python and SQL
    assert all(before >= after - 1e-9 for before, after in pairwise(scores))


def test_a_recent_read_counts_as_recency(rows: list[ContextEntry]) -> None:
    stale, read = rows[:2]
    weigh([stale, read], [(0.5, 1.0, LONG_AGO, None), (0.5, 1.0, LONG_AGO, NOW)])

    first, second = in_order_of_score([stale, read], NOW)

    assert (first, second) == (read, stale)
    assert (first.effective_relevance_score(NOW), second.effective_relevance_score(NOW)) == pytest.approx((0.8, 0.5))

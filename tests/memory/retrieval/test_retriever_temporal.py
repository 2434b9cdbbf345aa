"""Candidates by time: a bounded number from the times that a question mentions, nearest first."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memory.models import Account, Kind, Vector
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import TimeWindow
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.temporal import MAX_COMPARED, MAX_FOUND, MAX_SCANNED, merge_windows
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.facts import know
from tests.memory.gatherings import asked, found, gathered, recall_context
from tests.memory.graphs import node

pytestmark = pytest.mark.django_db

NO_ANALYSIS = QueryAnalysis()
YESTERDAY = TimeWindow(since=NOW - timedelta(days=1), until=NOW)


def within(owner: Owner, *windows: TimeWindow, **fields: Any) -> set[str]:
    return found(owner, asked(windows=windows, **fields), NO_ANALYSIS, "temporal")


def test_memories_of_the_requested_time_are_found_whatever_their_words(owner: Owner) -> None:
    for text, hours in (("early", 25), ("first", 24), ("last", 1), ("late", 0)):
        node(owner, text, kind=Kind.GOAL, event_time=NOW - timedelta(hours=hours))

    assert within(owner, YESTERDAY) == {"first", "last"}
    assert within(owner) == set()


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TimeWindow(since=None, until=NOW - timedelta(days=2)), {"old"}),
        (TimeWindow(since=NOW - timedelta(days=2), until=None), {"new"}),
        (TimeWindow(since=None, until=None), {"old", "new"}),
    ],
    ids=["no-beginning", "no-end", "neither"],
)
def test_a_time_may_be_without_beginning_or_end(owner: Owner, window: TimeWindow, expected: set[str]) -> None:
    node(owner, "old", event_time=NOW - timedelta(days=9))
    node(owner, "new", kind=Kind.GOAL)

    assert within(owner, window) == expected


def test_several_windows_are_searched_and_a_memory_in_two_is_found_once(owner: Owner) -> None:
    node(owner, "yesterday", event_time=NOW - timedelta(hours=1))
    node(owner, "last week", event_time=NOW - timedelta(days=7))
    week = TimeWindow(since=NOW - timedelta(days=8), until=NOW)

    both = gathered(owner, asked(windows=[YESTERDAY, week]), NO_ANALYSIS, "temporal")

    assert sorted(each.text for each in both.candidates) == ["last week", "yesterday"]
    assert both.metrics[0].results == 2


def test_filters_limit_the_memories_found(owner: Owner) -> None:
    node(owner, "a goal", kind=Kind.GOAL, event_time=NOW - timedelta(hours=2))
    node(owner, "a thing", event_time=NOW - timedelta(hours=1))
    know(owner, "Ana lived in Berlin.", valid_to=NOW - timedelta(days=3), event_time=NOW - timedelta(hours=3))

    assert within(owner, YESTERDAY, kinds=(Kind.GOAL,)) == {"a goal"}
    assert within(owner, YESTERDAY, since=NOW - timedelta(minutes=90)) == {"a thing"}
    assert within(owner, YESTERDAY) == {"a goal", "a thing"}


def test_memories_hidden_from_the_owner_are_not_found(owner: Owner, stranger: Account) -> None:
    at = NOW - timedelta(hours=1)
    node(Owner(account_id=stranger.id, agent_id=owner.agent_id), "a stranger's", event_time=at)
    node(owner, "a colleague's", agent_id="colleague", event_time=at)
    node(owner, "buried", buried=True, event_time=at)

    assert within(owner, YESTERDAY) == set()


def test_the_nearest_in_meaning_of_very_many_memories_are_found(owner: Owner) -> None:
    rows = [node(owner, str(number), event_time=NOW - timedelta(minutes=number + 1)) for number in range(MAX_FOUND + 5)]
    vectors = [(row.id, direction(int(row.text) / 100)) for row in reversed(rows)]
    insert_vectors(owner.account_id, model=MODEL, vectors=vectors[:-1])

    nearest = within(owner, YESTERDAY, angle=0.0)

    assert nearest == {str(number) for number in range(1, MAX_FOUND + 1)}
    assert Vector.objects.count() == len(rows) - 1


def test_without_a_vector_memories_that_share_words_are_preferred(owner: Owner) -> None:
    for number in range(MAX_FOUND + 5):
        text = f"boiler {number}" if number > MAX_FOUND else f"garden {number}"
        node(owner, text, event_time=NOW - timedelta(minutes=number + 1))
    query = asked("Where is the boiler?", windows=[YESTERDAY])

    brought = found(owner, query, analyze_query(owner, query, recall_context(owner)), "temporal")

    assert {f"boiler {number}" for number in range(MAX_FOUND + 1, MAX_FOUND + 5)} < brought
    assert len(brought) == MAX_FOUND


def test_only_the_latest_memories_of_each_kind_in_a_long_window_are_compared(owner: Owner) -> None:
    first = node(owner, "first", kind=Kind.GOAL, event_time=NOW - timedelta(days=100))
    node(owner, "salient", salience=1.0, event_time=NOW - timedelta(days=50))
    copy_of(first, MAX_COMPARED + 1)

    assert within(owner, TimeWindow(since=None, until=NOW)) == {"salient", "copy"}


def test_only_the_agents_own_memory_is_found_among_very_many_of_others(owner: Owner) -> None:
    node(owner, "own", kind=Kind.GOAL, user_id="ana", event_time=NOW - timedelta(days=100))
    other = {"agent_id": "other", "user_id": "ben", "event_time": NOW - timedelta(days=50)}
    copy_of(node(owner, "other", kind=Kind.GOAL, **other), MAX_SCANNED)

    assert within(replace(owner, user_id="ana"), TimeWindow(since=None, until=NOW)) == {"own"}
    assert within(replace(owner, agent_id="", user_id="ana"), TimeWindow(since=None, until=NOW)) == set()


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([], []),
        ([(3, 4), (1, 2)], [(1, 2), (3, 4)]),
        ([(1, 3), (2, 4), (4, 5)], [(1, 5)]),
        ([(1, 9), (2, 3)], [(1, 9)]),
        ([(None, 2), (1, None)], [(None, None)]),
        ([(5, None), (1, 2)], [(1, 2), (5, None)]),
    ],
)
def test_overlapping_windows_are_merged(windows: list[Any], expected: list[Any]) -> None:
    assert merge_windows([days(*each) for each in windows]) == [days(*each) for each in expected]


def days(since: int | None, until: int | None) -> TimeWindow:
    opens, closes = (None if number is None else NOW + timedelta(days=number) for number in (since, until))
    return TimeWindow(since=opens, until=closes)


def copy_of(row: Any, count: int) -> None:
    """Store so many rows like it, a minute apart, the last ones later."""
    columns = [str(field.column) for field in row._meta.model._meta.concrete_fields]
    own = {
        "id": "gen_random_uuid()",
        "identity": "'copy ' || number",
        "text": "'copy'",
        "event_time": "event_time + number * interval '1 minute'",
    }
    values = [own.get(column, column) for column in columns]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO memories ({', '.join(columns)}) SELECT {', '.join(values)} FROM memories, "
            "generate_series(1, %s) AS number WHERE id = %s",
            [count, row.id],
        )

"""The timeline: what an owner sees of all kinds, in order, and how little a page reads."""

from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Kind, Memory, PersistentContext
from memory.models.writer import insert_memories
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.timeline import TimelineFilter, TimelineItem, read_timeline
from memory.services.facts.supersede import retract_fact, supersede_fact
from tests.memory.contexts import context_of, entry, keep
from tests.memory.crowds import analyze, crowd
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import day, fact_draft, know
from tests.memory.gatherings import Sent, rows_read
from tests.memory.goals import aim
from tests.memory.reasonings import allow, thought
from tests.memory.rows import row_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

ANYTHING = TimelineFilter()


def timeline(owner: Owner, filters: TimelineFilter = ANYTHING, **asked: Any) -> list[TimelineItem]:
    return list(read_timeline(owner, filters, **{"limit": 100, "now": NOW, **asked}))


def texts(owner: Owner, filters: TimelineFilter = ANYTHING, **asked: Any) -> list[str]:
    return [row.summary for row in timeline(owner, filters, **asked)]


def lived(owner: Owner) -> None:
    """Store a memory of each of five kinds, an hour after each other."""
    say(owner, turn("Where is the key?"), now=NOW - timedelta(hours=5))
    store(owner, draft("They looked for the key."), now=NOW - timedelta(hours=4))
    know(owner, "The key is under the mat.", now=NOW - timedelta(hours=3))
    keep(owner, context_of(owner), entry("Ask the neighbour.", importance=0.9), now=NOW - timedelta(hours=2))
    aim(owner, "Find the key.")


def test_all_kinds_are_listed_by_their_times(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    lived(owner)

    with django_assert_num_queries(1):
        rows = timeline(owner)

    assert [row.kind for row in rows] == ["goal", "context_entry", "fact", "episode", "turn"]
    assert [row.importance for row in rows[:3]] == [0.5, 0.9, 0.5]
    assert [row.kind for row in timeline(owner, newest_first=False)] == [row.kind for row in reversed(rows)]
    assert (rows[-1].conversation_id, rows[-1].metadata, rows[-1].item_key) == ("c1", {}, f"turn:{rows[-1].id}")


def test_a_filter_limits_the_timeline(owner: Owner) -> None:
    lived(owner)
    Memory.objects.filter(kind="fact").update(channel="garden")
    Memory.objects.filter(kind="goal").update(archived=True)
    since, until = NOW - timedelta(hours=4), NOW - timedelta(hours=3)

    assert texts(owner, TimelineFilter(since=since, until=until)) == ["They looked for the key."]
    assert texts(owner, TimelineFilter(kinds=[Kind.TURN, Kind.FACT])) == [
        "The key is under the mat.",
        "Where is the key?",
    ]
    assert texts(owner, TimelineFilter(channel="garden")) == ["The key is under the mat."]
    assert texts(owner, TimelineFilter(conversation_id="c1")) == ["They looked for the key.", "Where is the key?"]
    assert texts(owner, TimelineFilter(archived=True)) == ["Find the key."]
    assert len(texts(owner, TimelineFilter(archived=None))) == 5


def test_the_last_row_of_a_page_is_the_cursor_of_the_next(owner: Owner) -> None:
    say(owner, *[turn(f"message {number}") for number in range(5)])
    store(owner, draft("an episode"))
    seen: list[UUID] = []

    while page := timeline(owner, limit=2, beyond=(NOW, seen[-1]) if seen else None):
        seen += [row.id for row in page]

    assert len(seen) == 6
    assert seen == sorted(seen, reverse=True)


def test_unreadable_memories_are_not_listed(owner: Owner, stranger: Account) -> None:
    lived(owner)
    hidden: tuple[dict[str, Any], ...] = ({"quarantined": True}, {"expires_at": NOW}, {"account": stranger})
    for number, state in enumerate(hidden):
        row = store(owner, draft(f"hidden {number}", conversation_id=f"h{number}"))[0]
        Memory.objects.filter(id=row.id).update(**state)
    Memory.objects.filter(kind="turn").update(buried=True)

    listed = texts(owner, TimelineFilter(archived=None))

    assert "Where is the key?" in listed
    assert not [text for text in listed if text.startswith("hidden")]
    assert texts(Owner(account_id=stranger.id)) == ["hidden 2"]
    # nothing of another agent: no conversation, no context, no episode, and no knowledge that belongs to no user
    assert texts(Owner(account_id=owner.account_id, agent_id="colleague")) == []
    assert texts(Owner(account_id=owner.account_id, agent_id="colleague", user_id="ana")) == []
    assert len(texts(Owner(account_id=owner.account_id))) == 5


def test_only_facts_that_are_believed_are_listed(owner: Owner) -> None:
    moved = supersede_fact(
        owner,
        know(owner, "Ana lives in Berlin.").id,
        fact_draft("Ana lives in Paris.", valid_from=day(1)),
        embedded=NOTHING,
        now=day(2),
    )
    retract_fact(owner, know(owner, "Ana is a pilot.").id, now=NOW)

    listed = texts(owner, TimelineFilter(archived=None), now=day(3))

    assert moved is not None
    assert sorted(listed) == ["Ana lives in Berlin.", "Ana lives in Paris."]


def test_entries_of_an_archived_context_are_listed_as_archived_only(owner: Owner) -> None:
    context = context_of(owner)
    keep(owner, context, entry("Ask the neighbour."))
    PersistentContext.objects.filter(id=context.id).update(archived=True)

    [row] = timeline(owner, TimelineFilter(archived=True))

    assert (row.summary, row.archived) == ("Ask the neighbour.", True)
    assert texts(owner) == []


def test_reasoning_is_listed_as_far_as_the_account_allows(owner: Owner) -> None:
    allow(owner, ReasoningTier.STRUCTURED_RATIONALE)
    thought(owner, summary="It is spring.")
    before = len(texts(owner))

    allow(owner, ReasoningTier.NONE)

    assert before == 4
    assert [text for text in texts(owner, TimelineFilter(archived=None)) if "spring" in text] == []
    assert len(texts(owner)) == 3


def test_long_texts_are_cut_and_marked_as_truncated(owner: Owner) -> None:
    say(owner, turn("x" * 500), now=NOW - timedelta(hours=1))
    say(owner, turn("y" * 501))

    rows = timeline(owner, newest_first=False)

    assert [(row.summary, row.truncated) for row in rows] == [("x" * 500, False), ("y" * 500, True)]


def scanned(owner: Owner, filters: TimelineFilter) -> float:
    """Return how many rows of memories a page of 50 reads."""
    with Sent() as sent:
        assert len(timeline(owner, filters, limit=50)) == 50
    return rows_read(sent, of=("memories",))


@pytest.mark.slow
def test_a_page_reads_no_more_than_pages_of_its_kinds(account: Account) -> None:
    agents = crowd(account, rows=6_000)
    context = context_of(agents[0])
    times = [NOW - timedelta(minutes=number) for number in range(1_000)]
    insert_memories(
        [row_of(Kind.CONTEXT_ENTRY, account_id=account.id, context=context, event_time=time) for time in times]
    )
    analyze()
    knowledge = [Kind.FACT, Kind.ENTITY]

    # of each kind a page and one to look ahead, and the returned page; agent-5 learned nothing for days
    for owner, kinds in product((Owner(account_id=account.id), agents[0]), ([], [Kind.TURN], [Kind.CONTEXT_ENTRY])):
        assert scanned(owner, TimelineFilter(kinds=kinds)) <= (len(kinds or Kind) + 1) * 51, (owner, kinds)
    # what it wrote and what the account stored are two lists of each kind
    assert scanned(agents[5], TimelineFilter(kinds=knowledge, archived=None)) <= (2 * len(knowledge) + 1) * 51

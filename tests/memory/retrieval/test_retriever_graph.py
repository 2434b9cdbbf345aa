"""Candidates by links: from named entities, in both directions, three links deep, with tenant isolation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from memory.models import Account, Fact, Kind, Link, MemoryRow, Participant
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.around import FOLLOWED, REACHED
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.gatherings import Sent, about, asked, explain, gathered, steps_of
from tests.memory.graphs import entity, link, make_hub, node
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

ANYTHING = asked()
NEIGHBOURS, OTHERS = 2_000, 20_000
MOST_READ = 5_000


def reached(owner: Owner, *starts: MemoryRow, query: Query = ANYTHING) -> dict[str, int | None]:
    """Return what is found, and over how many links."""
    analysis = about(*(start.id for start in starts))
    return {each.text: each.hops for each in gathered(owner, query, analysis, "graph").candidates}


def chain(owner: Owner, *texts: str, **middle: Any) -> list[MemoryRow]:
    """Return goals linked one to the next; `middle` are columns of all but the first and the last."""
    ends = {0, len(texts) - 1}
    nodes = [node(owner, text, kind=Kind.GOAL, **({} if place in ends else middle)) for place, text in enumerate(texts)]
    for one, other in pairwise(nodes):
        link(one, other)
    return nodes


def test_a_named_entity_leads_to_its_facts_their_turns_and_its_neighbours(owner: Owner) -> None:
    ana, ben = entity(owner, "Ana"), entity(owner, "Ben")
    [said] = say(owner, turn("We moved.")).turns
    fact = know(owner, "Ana lives in Berlin.", entity_ids=[ana.id], turn_ids=[said.id])
    link(ben, ana, "KNOWS")

    found = reached(owner, ana)

    assert found == {"Ana": 0, fact.text: 1, "Ben": 1, "We moved.": 2}


def test_a_walk_ends_after_three_links(owner: Owner) -> None:
    first, *_ = chain(owner, "a", "b", "c", "d", "e")

    assert reached(owner, first) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_members_of_cycles_and_adjacent_starts_are_found_once_at_their_nearest(owner: Owner) -> None:
    a, b, c = chain(owner, "a", "b", "c")
    link(c, a)

    assert reached(owner, a, b) == {"a": 0, "b": 0, "c": 1}


def test_without_a_name_in_the_question_nothing_is_walked(owner: Owner) -> None:
    with Sent() as sent:
        found = gathered(owner, ANYTHING, QueryAnalysis(), "graph")

    assert (found.candidates, found.metrics, sent.statements) == ([], [], [])


@pytest.mark.parametrize(
    "hidden",
    [
        {"agent_id": "colleague"},
        {"channel": "elsewhere"},
        {"archived": True},
        {"quarantined": True},
        {"buried": True},
        {"expires_at": NOW},
        {"user_id": "ben", "agent_id": "colleague"},
    ],
    ids=str,
)
def test_memories_hidden_from_the_owner_are_neither_found_nor_walked_through(
    owner: Owner, hidden: dict[str, Any]
) -> None:
    first, *_ = chain(owner, "a", "hidden", "c", **hidden)

    assert reached(owner, first) == {"a": 0}


def test_turns_and_entries_lead_on_only_where_they_may_be_read(owner: Owner) -> None:
    writer = replace(owner, agent_id="writer", user_id="ana")
    reader = replace(owner, agent_id="reader", user_id="ana")
    Participant.objects.create(account_id=owner.account_id, agent_id="writer", conversation_id="c1")
    start, far = node(writer, "start"), node(writer, "far")
    said = node(writer, "said", kind=Kind.TURN, conversation_id="c1")
    [noted] = keep(writer, context_of(writer, "notes"), entry("noted"))
    for one, other in ((said, start), (noted, start), (said, far), (noted, far)):
        link(one, other)

    assert reached(writer, start) == {"start": 0, "said": 1, "noted": 1, "far": 2}
    assert reached(reader, start) == {"start": 0}


def test_links_of_another_account_are_not_followed(owner: Owner, stranger: Account) -> None:
    theirs = Owner(account_id=stranger.id, agent_id=owner.agent_id)
    first, *_ = chain(theirs, "a", "b")

    assert reached(owner, first) == {}
    assert reached(theirs, first) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"kinds": (Kind.ENTITY,)}, {"Ana": 0}),
        ({"kinds": (Kind.GOAL,)}, {"goal": 2}),
        ({"since": NOW - timedelta(days=1)}, {"Ana": 0, "goal": 2}),
        ({"min_confidence": 0.9}, {"Ana": 0, "goal": 2}),
    ],
    ids=["kind-of-the-start", "kind-of-the-end", "since", "confidence"],
)
def test_memories_outside_the_filters_are_walked_through(
    owner: Owner, wanted: dict[str, Any], expected: dict[str, int | None]
) -> None:
    ana = entity(owner, "Ana")
    fact = know(owner, confidence=0.5, entity_ids=[ana.id], event_time=NOW - timedelta(days=9))
    link(fact, node(owner, "goal", kind=Kind.GOAL))

    assert reached(owner, ana, query=asked(**wanted)) == expected


def test_memories_recalled_already_are_walked_through(owner: Owner) -> None:
    first, middle, _last = chain(owner, "a", "b", "c")

    assert reached(owner, first, query=asked(without=[first.id, middle.id])) == {"c": 2}


def test_a_fact_that_is_no_longer_true_is_neither_found_nor_walked_through(owner: Owner) -> None:
    ana = entity(owner, "Ana")
    fact = know(owner, entity_ids=[ana.id], valid_to=NOW - timedelta(days=1))
    link(fact, node(owner, "beyond", kind=Kind.GOAL))

    assert reached(owner, ana) == {"Ana": 0}
    assert len(reached(owner, ana, query=asked(as_of=NOW - timedelta(days=2)))) == 3


def test_an_entity_mentioned_by_very_many_turns_leads_to_facts_and_neighbours_first(owner: Owner) -> None:
    Participant.objects.create(account_id=owner.account_id, agent_id=owner.agent_id, conversation_id="c1")
    ana = entity(owner, "Ana")
    for number in range(FOLLOWED[0] + 1):
        link(node(owner, f"turn {number}", kind=Kind.TURN, conversation_id="c1"), ana, "MENTIONS")
    fact = know(owner, entity_ids=[ana.id])
    link(node(owner, "neighbour"), ana, weight=0.1)

    found = reached(owner, ana)

    assert {fact.text, "neighbour"} <= found.keys()
    assert len(found) == 1 + FOLLOWED[0]


@pytest.mark.slow
def test_hubs_stay_bounded_and_their_weightiest_are_followed(owner: Owner) -> None:
    hub, leaf = make_hub(owner, neighbours=NEIGHBOURS, others=OTHERS)
    weightiest = Link.objects.filter(source_id=hub).order_by("-weight", "id")[: FOLLOWED[0]]

    for start in (hub, leaf):
        with Sent() as sent:
            found = gathered(owner, ANYTHING, about(start), "graph").candidates
        if start == hub:
            assert {each.id for each in found if each.hops == 1} == {each.target_id for each in weightiest}
        assert len(found) <= REACHED[0]
        assert rows_read(*sent.statements[0]) < MOST_READ < OTHERS


def rows_read(statement: str, parameters: Sequence[Any]) -> int:
    plan = explain(statement, parameters)["Plan"]
    return sum(int(step["Actual Rows"] * step["Actual Loops"]) for step in steps_of(plan) if "Relation Name" in step)


def test_facts_of_another_time_are_walked_as_they_were_believed_then(owner: Owner) -> None:
    ana = entity(owner, "Ana")
    fact = know(owner, entity_ids=[ana.id])
    Fact._base_manager.filter(pk=fact.pk).update(status="retracted", retracted_at=NOW)

    assert reached(owner, ana) == {"Ana": 0}
    assert reached(owner, ana, query=asked(known_at=NOW)) == {"Ana": 0, fact.text: 1}

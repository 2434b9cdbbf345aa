"""Walks over links: reach, visibility, bounds, and equality with a naive walk."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound, Unprocessable
from memory.models import Account, Fact, Kind, MemoryRow, Participant
from memory.owner import Owner
from memory.retrieval.graph import Graph, WalkBounds, walk_graph
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.memory.graphs import entity, link, node, store_node
from tests.properties import examples

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)
TYPES = ("KNOWS", "PART_OF", "MENTIONS")


def walk(
    owner: Owner, *starts: MemoryRow, depth: int = 1, types: Sequence[str] = (), bounds: WalkBounds | None = None
) -> Graph:
    return walk_graph(
        owner, [start.id for start in starts], depth=depth, types=types, bounds=bounds or WalkBounds(), now=NOW
    )


def labels(graph: Graph) -> list[str]:
    return [found.label for found in graph.nodes]


def test_a_walk_goes_in_both_directions_to_the_given_depth(owner: Owner) -> None:
    a, b, c, d = (node(owner, text) for text in "abcd")
    links = [link(b, a), link(b, c), link(d, c)]

    found = walk(owner, a, depth=2)

    assert [(each.label, each.depth) for each in found.nodes] == [("a", 0), ("b", 1), ("c", 2)]
    assert {each.id for each in found.edges} == {links[0].id, links[1].id}
    assert not found.truncated
    assert labels(walk(owner, a, depth=3)) == ["a", "b", "c", "d"]


def test_nodes_and_edges_describe_memories_and_links(owner: Owner) -> None:
    ana = entity(owner, "Ana", type="person", salience=0.9)
    said = node(owner, "x" * 300, kind=Kind.GOAL, conversation_id="c1", channel="_global")
    related = link(said, ana, "ABOUT", 0.25, since="May")

    found = walk(owner, ana)

    first, second = found.nodes
    assert (first.kind, first.label, first.type, first.salience) == ("entity", "Ana", "person", 0.9)
    assert (second.label, second.type, second.conversation_id) == ("x" * 200, "", "c1")
    assert (second.event_time, second.item_key) == (NOW, f"goal:{said.id}")
    [edge] = found.edges
    assert (edge.id, edge.source, edge.target) == (related.id, said.id, ana.id)
    assert (edge.type, edge.weight, edge.properties) == ("ABOUT", 0.25, {"since": "May"})


def test_a_cycle_is_walked_once(owner: Owner) -> None:
    cycle = [node(owner, text) for text in "abc"]
    for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        link(one, other)

    found = walk(owner, cycle[0], depth=3)

    assert sorted(labels(found)) == ["a", "b", "c"]
    assert len(found.edges) == 3


def test_links_between_nodes_of_the_last_level_are_returned_too(owner: Owner) -> None:
    a, b, c = (node(owner, text) for text in "abc")
    for one, other in ((a, b), (a, c), (b, c)):
        link(one, other)

    assert len(walk(owner, a).edges) == 3


def test_within_a_level_the_most_salient_come_first(owner: Owner) -> None:
    hub = node(owner, "hub")
    for text, salience, weight in (("dull", 0.1, 1.0), ("weak", 0.9, 0.2), ("strong", 0.9, 0.8)):
        link(hub, node(owner, text, salience=salience), weight=weight)

    assert labels(walk(owner, hub)) == ["hub", "strong", "weak", "dull"]


def test_types_limit_which_links_are_walked_and_returned(owner: Owner) -> None:
    a, b, c = (node(owner, text) for text in "abc")
    for one, other, type_ in ((a, b, "KNOWS"), (a, b, "PART_OF"), (b, c, "PART_OF")):
        link(one, other, type_)

    found = walk(owner, a, depth=3, types=["KNOWS"])

    assert labels(found) == ["a", "b"]
    assert [edge.type for edge in found.edges] == ["KNOWS"]
    assert labels(walk(owner, a, depth=3, types=["KNOWS", "PART_OF"])) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "hidden",
    [
        {"agent_id": "colleague"},
        {"channel": "elsewhere"},
        {"archived": True},
        {"quarantined": True},
        {"expires_at": NOW},
        {"kind": Kind.EPISODE, "agent_id": "colleague"},
        {"kind": Kind.TURN, "conversation_id": "theirs"},
        {"user_id": "ben", "agent_id": "colleague"},
    ],
    ids=str,
)
def test_memories_hidden_from_the_owner_are_neither_returned_nor_walked_through(
    owner: Owner, hidden: dict[str, Any]
) -> None:
    Participant.objects.create(account_id=owner.account_id, agent_id="colleague", conversation_id="theirs")
    a, b, c = node(owner, "a"), node(owner, "b", **hidden), node(owner, "c")
    link(a, b)
    link(b, c)

    found = walk(owner, a, depth=3)

    assert (labels(found), found.edges, found.truncated) == (["a"], [], False)


def test_turns_and_context_entries_are_walked_where_they_may_be_read(owner: Owner) -> None:
    Participant.objects.create(account_id=owner.account_id, agent_id=owner.agent_id, conversation_id="c1")
    ana, said = node(owner, "ana", user_id="ana"), node(owner, "said", kind=Kind.TURN, conversation_id="c1")
    [noted] = keep(owner, context_of(owner, "notes"), entry("noted"))
    for one in (said, noted):
        link(one, ana, "MENTIONS")

    assert sorted(labels(walk(owner, ana))) == ["ana", "noted", "said"]
    assert labels(walk(replace(owner, agent_id="colleague", user_id="ana"), ana)) == ["ana"]


def test_an_account_walks_all_memories_and_an_agent_those_of_its_user_and_unowned_ones(owner: Owner) -> None:
    hub = node(owner, "hub")
    for agent_id, user_id in product(("", owner.agent_id, "colleague"), ("", "ana", "ben")):
        link(hub, node(replace(owner, agent_id=agent_id), f"{agent_id}:{user_id}", user_id=user_id))

    assert len(labels(walk(replace(owner, agent_id=""), hub))) == 10
    assert sorted(labels(walk(replace(owner, user_id="ana"), hub))) == [
        *(":", ":ana", f"{owner.agent_id}:", f"{owner.agent_id}:ana", "colleague:ana", "hub")
    ]


def test_a_project_walks_in_its_channel_and_the_global_one(owner: Owner) -> None:
    hub = node(owner, "hub")
    for channel in ("_global", "mill", "well"):
        link(hub, node(owner, channel, channel=channel))

    assert sorted(labels(walk(replace(owner, channel="mill"), hub))) == ["_global", "hub", "mill"]


def believed(owner: Owner, text: str, **fields: Any) -> Fact:
    return store_node(owner, Fact(kind=Kind.FACT, text=text, **{"recorded_at": NOW, **fields}))


def test_facts_that_are_not_true_now_are_left_out_unless_the_walk_begins_there(owner: Owner) -> None:
    ana = node(owner, "ana")
    true, lasting = believed(owner, "true"), believed(owner, "lasting", valid_from=NOW, valid_to=LATER)
    past = believed(owner, "past", valid_to=NOW, status=Fact.Status.SUPERSEDED)
    future = believed(owner, "future", valid_from=LATER)
    wrong = believed(owner, "wrong", retracted_at=NOW, status=Fact.Status.RETRACTED)
    pending = believed(owner, "pending", recorded_at=None, status=Fact.Status.PENDING)
    for fact in (true, lasting, past, future, wrong, pending):
        link(fact, ana, "ABOUT")

    assert sorted(labels(walk(owner, ana))) == ["ana", "lasting", "true"]
    assert labels(walk(owner, past)) == ["past", "ana"]


def test_a_walk_cannot_start_at_an_invisible_memory(owner: Owner, stranger: Account) -> None:
    mine = node(owner, "mine")
    theirs = node(Owner(account_id=stranger.id, agent_id="assistant"), "theirs")
    hidden = [theirs.id, node(owner, "gone", archived=True).id, uuid4()]

    for start in hidden:
        with pytest.raises(NotFound, match="no such memory"):
            walk_graph(owner, [mine.id, start], depth=1, now=NOW)


@pytest.mark.parametrize("depth", [0, 4, -1])
def test_a_walk_is_one_to_three_links_deep(owner: Owner, depth: int) -> None:
    with pytest.raises(Unprocessable):
        walk(owner, node(owner), depth=depth)


def test_a_walk_from_nowhere_is_empty(owner: Owner) -> None:
    assert walk(owner) == Graph(nodes=[], edges=[], truncated=False)


def test_the_heaviest_of_too_many_links_are_followed(owner: Owner) -> None:
    hub = node(owner, "hub")
    for weight in (0.1, 0.9, 0.5):
        link(hub, node(owner, str(weight)), weight=weight)

    found = walk(owner, hub, bounds=WalkBounds(fan_out=2))

    assert (sorted(labels(found)), found.truncated) == (["0.5", "0.9", "hub"], True)
    assert not walk(owner, hub, bounds=WalkBounds(fan_out=3)).truncated


def test_the_weightiest_of_both_directions_count_together(owner: Owner) -> None:
    hub = node(owner, "hub")
    link(hub, node(owner, "out"), weight=0.9)
    link(node(owner, "in"), hub, weight=0.5)

    assert labels(walk(owner, hub, bounds=WalkBounds(fan_out=1))) == ["hub", "out"]


def test_the_number_of_nodes_in_a_graph_is_bounded(owner: Owner) -> None:
    a = node(owner, "a")
    for salience in (0.1, 0.9, 0.5):
        b = node(owner, f"b {salience}", salience=salience)
        link(a, b)
        link(b, node(owner, f"c {salience}", salience=salience))

    cut_in_level, cut_between = (walk(owner, a, depth=2, bounds=WalkBounds(nodes=nodes)) for nodes in (3, 4))

    assert (labels(cut_in_level), cut_in_level.truncated) == (["a", "b 0.9", "b 0.5"], True)
    assert (labels(cut_between), cut_between.truncated) == (["a", "b 0.9", "b 0.5", "b 0.1"], True)
    assert not walk(owner, a, depth=2, bounds=WalkBounds(nodes=7)).truncated
    assert not walk(owner, a, depth=1, bounds=WalkBounds(nodes=4)).truncated


def test_a_walk_with_more_starts_than_allowed_nodes_is_refused(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        walk(owner, node(owner), node(owner), bounds=WalkBounds(nodes=1))


def test_of_too_many_edges_those_with_the_greatest_weights_are_returned(owner: Owner) -> None:
    a, b = node(owner, "a"), node(owner, "b")
    for number in range(11):
        link(a, b, f"TYPE_{number}", weight=number / 10)

    found = walk(owner, a, bounds=WalkBounds(nodes=2))

    assert [edge.weight for edge in found.edges] == [number / 10 for number in range(10, 0, -1)]
    assert found.truncated


def test_invisible_neighbours_do_not_displace_visible_ones(owner: Owner) -> None:
    hub, colleague = node(owner, "hub"), replace(owner, agent_id="colleague")
    for _number in range(19):
        link(hub, node(colleague), weight=0.9)
    link(hub, node(owner, "seen"), weight=0.1)

    found = walk(owner, hub, bounds=WalkBounds(fan_out=1))

    assert (labels(found), found.truncated) == (["hub", "seen"], False)


def test_a_walk_past_too_many_invisible_links_stops_and_reports_truncation(owner: Owner) -> None:
    hub, colleague = node(owner, "hub"), replace(owner, agent_id="colleague")
    for _number in range(20):
        link(hub, node(colleague), weight=0.9)
    link(hub, node(owner, "seen"), weight=0.1)

    found = walk(owner, hub, bounds=WalkBounds(fan_out=1))

    assert (labels(found), found.truncated) == (["hub"], True)


def test_links_of_other_types_do_not_displace_the_requested_ones(owner: Owner) -> None:
    hub = node(owner, "hub")
    for _number in range(30):
        link(hub, node(owner), "MENTIONS", weight=0.9)
    link(hub, node(owner, "friend"), "KNOWS", weight=0.1)

    found = walk(owner, hub, types=["KNOWS"], bounds=WalkBounds(fan_out=1))

    assert (labels(found), found.truncated) == (["hub", "friend"], False)


def test_a_walk_is_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    a, b = node(owner, "a"), node(owner, "b")
    link(a, b)

    with django_assert_num_queries(1):
        walk(owner, a, depth=3, types=["KNOWS"])


NODES = 8
graphs = st.fixed_dictionaries(
    {
        "visible": st.lists(st.booleans(), min_size=NODES, max_size=NODES),
        "links": st.sets(
            st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.sampled_from(TYPES)), max_size=20
        ).map(sorted),
        "weights": st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=20, max_size=20),
        "salience": st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=NODES, max_size=NODES),
    }
)

Step = tuple[UUID, UUID, float, str, UUID]
"""A link's ends, weight, type and id."""


def walk_naively(
    links: Collection[Step], nodes: dict[UUID, float], starts: Sequence[UUID], depth: int, bounds: WalkBounds
) -> list[list[UUID]]:
    """Return the levels of a breadth-first walk among nodes with their salience."""
    seen = set(starts)
    levels = [sorted(seen, key=lambda each: (-nodes[each], each))]
    for _step in range(depth):
        reached: dict[UUID, float] = {}
        for at in levels[-1]:
            near = [(-weight, link_id, b if a == at else a) for a, b, weight, _type, link_id in links if at in (a, b)]
            for weight, _link_id, other in sorted(each for each in near if each[2] in nodes)[: bounds.fan_out]:
                if other not in seen:
                    reached[other] = min(reached.get(other, 0.0), weight)
        in_order = sorted(reached, key=lambda each: (-nodes[each], reached[each], each))
        levels.append(in_order[: bounds.nodes - len(seen)])
        seen |= set(levels[-1])
    return [level for level in levels if level]


@examples(80)
@given(
    drawn=graphs,
    starts=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=2).map(sorted),
    depth=st.integers(1, 3),
    types=st.sets(st.sampled_from(TYPES)).map(sorted),
    bounds=st.sampled_from([WalkBounds(), WalkBounds(fan_out=2), WalkBounds(nodes=4), WalkBounds(nodes=3, fan_out=1)]),
)
def test_a_walk_equals_a_naive_one_over_any_graph(
    owner: Owner, drawn: dict[str, Any], starts: list[int], depth: int, types: list[str], bounds: WalkBounds
) -> None:
    salience: list[float] = drawn["salience"]
    rows = [
        node(owner, str(number), salience=salience[number], agent_id="assistant" if sees or number in starts else "x")
        for number, sees in enumerate(drawn["visible"])
    ]
    stored = [
        link(rows[one], rows[other], type_, weight)
        for (one, other, type_), weight in zip(drawn["links"], drawn["weights"], strict=False)
        if one != other
    ]
    visible = {row.id: row.salience for row in rows if row.agent_id == owner.agent_id}
    steps = [
        (each.source_id, each.target_id, each.weight, each.type, each.id)
        for each in stored
        if not types or each.type in types
    ]

    found = walk(owner, *(rows[number] for number in starts), depth=depth, types=types, bounds=bounds)

    levels = walk_naively(steps, visible, [rows[number].id for number in starts], depth, bounds)
    depths = [(each.id, each.depth) for each in found.nodes]
    assert depths == [(each, number) for number, level in enumerate(levels) for each in level]
    between = {each[4] for each in steps if {each[0], each[1]} <= {each.id for each in found.nodes}}
    assert {edge.id for edge in found.edges} == between or found.truncated
    unbounded = walk_naively(steps, visible, [rows[number].id for number in starts], depth, WalkBounds())
    assert found.truncated or levels == unbounded

"""The documented relations of the graph to conversations, users and tools."""

from dataclasses import replace

import pytest

from memory.agent_memory import AgentMemory
from memory.owner import Owner
from memory.retrieval.graph import Graph
from memory.services.entities.structure import STRUCTURE_TYPES
from memory.services.strategies.learn import StrategyDraft
from memory.services.tools import InvocationDraft

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return AgentMemory(replace(owner, user_id="ana"))


def relations(graph: Graph) -> set[tuple[str, str, str]]:
    """Return each edge by the labels of its ends."""
    labels = {node.id: node.label for node in graph.nodes}
    return {(labels[edge.source], edge.type, labels[edge.target]) for edge in graph.edges}


def test_turns_lead_to_their_conversation_and_to_its_tools(memory: AgentMemory) -> None:
    first = memory.store_turn("trip", {"role": "user", "content": "Find a flight."})
    second = memory.store_turn("trip", {"role": "assistant", "content": "I looked."})
    memory.record_invocation(InvocationDraft(conversation_id="trip", tool_name="search", success=True))

    graph = memory.get_entity_graph([first.id, second.id], types=STRUCTURE_TYPES)

    assert relations(graph) == {
        ("trip", "HAS_TURN", "Find a flight."),
        ("trip", "HAS_TURN", "I looked."),
        ("Find a flight.", "FOLLOWED_BY", "I looked."),
        ("trip", "USED_TOOL", "search"),
        ("search", "INVOKED", "search"),
    }
    depths = {node.kind: node.depth for node in graph.nodes}
    assert depths == {"turn": 0, "conversation": 1, "tool_invocation": 2, "tool": 3}


def test_goals_lead_to_users_and_strategies_to_tools_and_conversations(memory: AgentMemory) -> None:
    goal = memory.add_goal("book a flight")
    memory.store_turn("trip", {"role": "user", "content": "Find a flight."})
    strategy = memory.learn_strategy(
        StrategyDraft(description="search first", tool_sequence=["search"], conversation_id="trip", success=True)
    )

    graph = memory.get_entity_graph([goal.id, strategy.id], types=["HAS_GOAL", "USES_TOOL", "SUCCEEDED_IN"])

    assert relations(graph) == {
        ("ana", "HAS_GOAL", "book a flight"),
        ("search first", "USES_TOOL", "search"),
        ("search first", "SUCCEEDED_IN", "trip"),
    }


def test_the_same_walk_has_the_same_edges_and_none_unless_they_are_named(memory: AgentMemory) -> None:
    goal = memory.add_goal("book a flight")
    turn = memory.store_turn("trip", {"role": "user", "content": "Find a flight."})

    one, other = (memory.get_entity_graph([goal.id, turn.id], types=STRUCTURE_TYPES) for _ in range(2))
    plain = memory.get_entity_graph([goal.id, turn.id])

    assert [edge.id for edge in one.edges] == [edge.id for edge in other.edges]
    assert {node.kind for node in plain.nodes} == {"goal", "turn"}

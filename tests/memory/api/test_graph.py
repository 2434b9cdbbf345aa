"""`/graph`: the neighbourhood of memories. Bad queries are refused, memories of others are hidden."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.models import Account, Entity, Kind, MemoryRow
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.memory.graphs import entity, link, node

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(owner: Owner) -> Entity:
    """Store: A WORKS_FOR Acme, which is LOCATED_IN Rome, about which there is a goal."""
    ana, acme, rome = (entity(owner, name) for name in ("Ana", "Acme", "Rome"))
    link(ana, acme, "WORKS_FOR", 0.5, since="May")
    link(acme, rome, "LOCATED_IN")
    link(node(owner, "See Rome and live", kind=Kind.GOAL), rome, "ABOUT")
    return ana


def walk(api: ServiceClient, *starts: MemoryRow | UUID | str, agent_id: str = "assistant", **parameters: Any) -> Any:
    named = ",".join(str(start.id if isinstance(start, MemoryRow) else start) for start in starts)
    query = "".join(f"&{name}={value}" for name, value in parameters.items())
    return api.get(f"/graph?ids={named}&agent_id={agent_id}{query}", HTTP_X_REQUEST_ID="same")


def labels(answer: Any) -> Sequence[str]:
    return [each["label"] for each in answer.json()["nodes"]]


def test_a_graph_consists_of_nodes_edges_and_a_truncated_flag(api: ServiceClient, ana: Entity) -> None:
    answer = walk(api, ana)

    graph = answer.json()
    assert (answer.status_code, set(graph), graph["truncated"]) == (200, {"nodes", "edges", "truncated"}, False)
    first, second = graph["nodes"]
    said = {"id": str(ana.id), "kind": "entity", "label": "Ana", "type": "person", "depth": 0}
    assert first == first | said | {"item_key": f"entity:{ana.id}", "channel": "_global", "salience": 0.5}
    [edge] = graph["edges"]
    assert (edge["source"], edge["target"]) == (first["id"], second["id"])
    assert (edge["type"], edge["weight"], edge["properties"]) == ("WORKS_FOR", 0.5, {"since": "May"})


def test_depth_types_and_limit_restrict_a_walk(api: ServiceClient, ana: Entity) -> None:
    assert labels(walk(api, ana, depth=2)) == ["Ana", "Acme", "Rome"]
    assert labels(walk(api, ana, depth=3)) == ["Ana", "Acme", "Rome", "See Rome and live"]
    assert labels(walk(api, ana, depth=3, types="WORKS_FOR")) == ["Ana", "Acme"]
    assert labels(walk(api, ana, depth=3, types="WORKS_FOR,LOCATED_IN")) == ["Ana", "Acme", "Rome"]
    cut = walk(api, ana, depth=3, limit=2)
    assert (labels(cut), cut.json()["truncated"]) == (["Ana", "Acme"], True)


def test_a_walk_may_start_at_several_entities(api: ServiceClient, ana: Entity, owner: Owner) -> None:
    other = entity(owner, "Ben", salience=0.9)

    assert labels(walk(api, ana, other, other)) == ["Ben", "Ana", "Acme"]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("", "ids"),
        ("ids=", "ids"),
        ("ids=ana", "ids"),
        ("ids={id},", "ids"),
        ("ids={id},%20{id}", "ids"),
        (f"ids={','.join([str(UUID(int=1))] * 51)}", "ids"),
        ("ids={id}&ids={id}", "ids"),
        ("ids={id}&depth=0", "depth"),
        ("ids={id}&depth=4", "depth"),
        ("ids={id}&depth=x", "depth"),
        ("ids={id}&types=", "types"),
        ("ids={id}&types=knows", "types"),
        ("ids={id}&types=A,,B", "types"),
        (f"ids={{id}}&types={','.join(['A'] * 21)}", "types"),
        ("ids={id}&limit=0", "limit"),
        (f"ids={{id}}&limit={conf.GRAPH_NODES + 1}", "limit"),
        (f"ids={{id}},{UUID(int=1)}&limit=1", "limit"),
        ("ids={id}&surprise=1", "surprise"),
    ],
    ids=lambda value: value[:60],
)
def test_an_invalid_query_is_refused(api: ServiceClient, ana: Entity, query: str, wrong: str) -> None:
    answer = api.get(f"/graph?{query.format(id=ana.id)}")

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {wrong}


def test_an_invisible_memory_is_answered_like_a_missing_one(
    api: ServiceClient, stranger_api: ServiceClient, ana: Entity
) -> None:
    nobodys = walk(api, uuid4())

    assert nobodys.status_code == 404
    for answer in (walk(stranger_api, ana), walk(api, ana, agent_id="colleague"), walk(api, ana, uuid4())):
        assert (answer.status_code, answer.content) == (404, nobodys.content)


def test_a_walk_omits_memories_of_other_agents(api: ServiceClient, ana: Entity, owner: Owner) -> None:
    hidden = entity(replace(owner, agent_id="colleague"), "hidden")
    link(ana, hidden)

    answer = walk(api, ana, depth=3)

    assert "hidden" not in labels(answer)
    assert str(hidden.id) not in answer.content.decode()


def test_a_walk_is_limited_to_the_channel_and_user_of_the_request(
    api: ServiceClient, ana: Entity, owner: Owner
) -> None:
    link(ana, entity(owner, "of the mill", channel="mill"))
    link(ana, entity(owner, "of a user", user_id="u"))

    assert set(labels(walk(api, ana, channel="mill"))) == {"Ana", "Acme", "of the mill", "of a user"}
    assert set(labels(walk(api, ana, user_id="u"))) == {"Ana", "Acme", "of a user"}
    assert set(labels(walk(api, ana, user_id="other"))) == {"Ana", "Acme"}


def test_a_walk_requires_a_key_with_read_scope(account: Account, ana: Entity) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    assert walk(reader, ana).status_code == 200
    assert walk(ServiceClient(), ana).status_code == 401


def test_a_walk_uses_one_query_in_addition_to_the_key_lookup(
    api: ServiceClient, ana: Entity, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    walk(api, ana)

    with django_assert_num_queries(2):
        walk(api, ana, depth=3)

"""`/entities`: upsert by name, list, change, merge, split, delete; hidden from other agents, users and accounts."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Entity, EntityName, Link
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from memory.services.memories.correct import mark_memories
from memory.services.memories.links import MENTIONS
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn

NOBODY = UUID(int=7)
"""The id of nothing, the same in every process that collects these tests."""

pytestmark = pytest.mark.django_db

PERSON = {"agent_id": "assistant", "name": "Ana Lima", "type": "person"}


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


def upsert(api: ServiceClient, name: str = "Ana Lima", **fields: Any) -> Any:
    return api.post("/entities", {**PERSON, "name": name, **fields})


def id_of(api: ServiceClient, name: str = "Ana Lima", **fields: Any) -> str:
    return str(upsert(api, name, **fields).json()["id"])


def names(answer: Any) -> list[str]:
    return [entity["name"] for entity in answer.json()["results"]]


def act(api: ServiceClient, entity_id: str, action: str, **fields: Any) -> Any:
    return api.post(f"/entities/{entity_id}/{action}", {"agent_id": "assistant", **fields})


def test_a_new_entity_is_returned_as_it_is_read(api: ServiceClient) -> None:
    said: dict[str, Any] = {"aliases": ["Anita"], "description": "A baker.", "properties": {"a": 4}, "salience": 0.7}

    made = upsert(api, type="Person", user_id="ana", channel="shop", **said)

    entity = made.json()
    assert made.status_code == 201
    assert entity | said == entity
    assert (entity["name"], entity["type"], entity["version"], entity["merged_into"]) == ("Ana Lima", "person", 1, None)
    assert (entity["agent_id"], entity["user_id"], entity["channel"]) == ("assistant", "ana", "shop")
    assert (entity["embedding"], entity["access_count"], entity["last_accessed"]) == ("stored", 0, None)
    assert entity["item_key"] == f"entity:{entity['id']}"
    assert api.get(f"/entities/{entity['id']}?agent_id=other&user_id=ana").json() == entity


def test_storing_a_known_entity_adds_new_aliases_and_a_description(api: ServiceClient) -> None:
    made = upsert(api, aliases=["Anita"])

    again = upsert(api, "ANITA", aliases=["Nita"], description="A baker.")

    assert (made.status_code, again.status_code) == (201, 200)
    assert again.json() == made.json() | {"aliases": ["Anita", "Nita"], "description": "A baker.", "version": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": " \n"},
        {"name": "x" * 10_000},
        {"name": 7},
        {"type": ""},
        {"type": "x" * 51},
        {"type": None},
        {"aliases": "Anita"},
        {"aliases": ["x" * 501]},
        {"aliases": [""]},
        {"aliases": ["x"] * 101},
        {"description": "x" * 10_001},
        {"properties": []},
        {"salience": 1.2},
        {"salience": "high"},
        {"embedding": []},
        {"surprise": 1},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_entity_is_refused_and_not_stored(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = api.post("/entities", {**PERSON, **change})

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Entity.objects.exists()


def test_an_alias_that_belongs_to_another_entity_is_a_conflict(api: ServiceClient) -> None:
    upsert(api, "Bo")

    assert upsert(api, aliases=["bo"]).status_code == 409
    assert names(api.get("/entities")) == ["Bo"]


def test_the_name_of_a_quarantined_entity_is_a_conflict(api: ServiceClient, owner: Owner) -> None:
    entity_id = id_of(api)
    mark_memories(owner, [Entity.objects.get().id], mark="quarantine", now=NOW)

    assert upsert(api).status_code == 409
    assert api.get(f"/entities/{entity_id}").status_code == 404


def test_an_entity_stored_twice_with_one_idempotency_key_gets_the_same_response(api: ServiceClient) -> None:
    first, again = (api.post("/entities", PERSON, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert (first.status_code, first.content) == (201, again.content)


def test_an_entity_may_be_stored_with_a_vector_of_the_client(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    vector = vector_of("anything").tolist()

    assert upsert(api, embedding=vector, embedding_model=MODEL).json()["embedding"] == "stored"

    assert embedding_server.texts == []
    assert upsert(api, embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL).status_code == 422


def test_without_the_embedder_an_entity_is_stored_with_a_pending_vector(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert upsert(api).json()["embedding"] == "pending"


def test_entities_are_filtered_by_type_and_by_any_of_their_names(api: ServiceClient) -> None:
    upsert(api, "Paris", type="place")
    upsert(api, "Paris", type="person", aliases=["The Paris"])
    upsert(api, "Bo", channel="shop")

    assert names(api.get("/entities")) == ["Paris", "Paris"]
    assert names(api.get("/entities?channel=shop")) == ["Bo", "Paris", "Paris"]
    assert names(api.get("/entities?type=PLACE")) == ["Paris"]
    assert names(api.get("/entities?name=the%20PARIS")) == ["Paris"]
    assert names(api.get("/entities?name=paris&type=place&channel=shop")) == ["Paris"]
    assert names(api.get("/entities?name=Par")) == names(api.get("/entities?type=x")) == []
    for refused in ("type=", f"type={'x' * 51}", "ordering=name", f"name={'x' * 501}", "surprise=1"):
        assert api.get(f"/entities?{refused}").status_code == 400


def test_entities_are_listed_newest_first_or_by_salience_in_pages(api: ServiceClient) -> None:
    for number in range(5):
        upsert(api, f"number {number}", salience=number % 3 / 10)

    assert names(api.get("/entities")) == [f"number {number}" for number in (4, 3, 2, 1, 0)]
    url, seen = "/entities?ordering=salience&page_size=2", []
    while url:
        page = api.get(url).json()
        seen += [entity["name"] for entity in page["results"]]
        url = page["next"] and page["next"].split("/api/v1", 1)[1]
    assert seen == [f"number {number}" for number in (2, 4, 1, 3, 0)]


def test_entities_are_filtered_by_the_conversation_that_mentions_them(api: ServiceClient, owner: Owner) -> None:
    mentioned = id_of(api, user_id="ana")
    upsert(api, "Bo", user_id="ana")
    said = say(owner, turn("Ana was here."), conversation_id="talk").turns[0]
    Link.objects.create(account_id=owner.account_id, source_id=said.id, target_id=mentioned, type=MENTIONS)

    path = "/entities?user_id=ana&conversation_id=talk"

    assert names(api.get(f"{path}&agent_id=assistant")) == names(api.get(path)) == ["Ana Lima"]
    # it knows of her, and takes no part in the conversation
    assert names(api.get(f"{path}&agent_id=other")) == names(api.get("/entities?conversation_id=elsewhere")) == []


def test_changing_an_entity_returns_the_changed_entity(api: ServiceClient) -> None:
    entity_id = id_of(api, aliases=["Anita"])
    changes = {"name": "Ana Souza", "description": "A baker.", "properties": {"a": 1}, "salience": 0.1}

    changed = api.patch(f"/entities/{entity_id}", {"agent_id": "assistant", **changes})

    assert changed.status_code == 200
    wanted = changes | {"aliases": ["Ana Lima", "Anita"], "version": 2, "embedding": "stored"}
    assert changed.json() | wanted == changed.json() == api.get(f"/entities/{entity_id}").json()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"name": ""}, 400),
        ({"name": "x" * 501}, 400),
        ({"aliases": None}, 400),
        ({"type": ""}, 400),
        ({"type": "place", "name": "Acme"}, 409),
        ({"salience": -1}, 400),
        ({"name": "bo"}, 409),
        ({"aliases": ["BO"]}, 409),
        ({"user_id": "ana"}, 403),
        ({"agent_id": "other"}, 404),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_change_of_an_entity_is_refused(api: ServiceClient, changes: dict[str, Any], status: int) -> None:
    entity_id = id_of(api)
    upsert(api, "Bo")
    upsert(api, "Acme", type="place")

    answer = api.patch(f"/entities/{entity_id}", {"agent_id": "assistant", "description": "x", **changes})

    assert answer.status_code == status
    assert api.get(f"/entities/{entity_id}").json()["version"] == 1


def test_a_change_of_what_somebody_else_changed_is_refused(api: ServiceClient) -> None:
    made = upsert(api, properties={"a": 1})
    path, tag = f"/entities/{made.json()['id']}", made["ETag"]
    changes = [{"agent_id": "assistant", "properties": {"a": 1, name: 2}} for name in ("b", "c")]

    first, second = (api.patch(path, change, HTTP_IF_MATCH=tag) for change in changes)
    gone = [api.delete(f"{path}?agent_id=assistant", HTTP_IF_MATCH=each) for each in (tag, first["ETag"])]

    assert [answer.status_code for answer in (first, second, *gone)] == [200, 412, 412, 204]
    assert (made["ETag"], first["ETag"], first.json()["version"]) == ('"1"', '"2"', 2)
    assert first.json()["properties"] == {"a": 1, "b": 2}


def test_two_entities_are_merged_and_split_again(api: ServiceClient) -> None:
    survivor, loser = id_of(api), id_of(api, "Anita")

    merged = act(api, survivor, "merge", **{"from": loser})

    assert (merged.status_code, merged.json()["id"], merged.json()["aliases"]) == (200, survivor, ["Anita"])
    assert api.get(f"/entities/{loser}").json()["merged_into"] == survivor
    assert names(api.get("/entities")) == ["Ana Lima"]
    split = act(api, survivor, "split", names=["anita"])
    assert (split.status_code, split.json()["id"], split.json()["merged_into"]) == (201, loser, None)
    assert names(api.get("/entities")) == ["Anita", "Ana Lima"]


def test_the_id_of_a_merged_entity_leads_to_the_survivor(api: ServiceClient) -> None:
    survivor, loser, other = id_of(api), id_of(api, "Anita"), id_of(api, "Bo")
    for name, entity_id in (("Anita", loser), ("Bo", other)):
        api.post("/facts", {"agent_id": "assistant", "claim": f"{name} is tall.", "entities": [entity_id]})
    act(api, survivor, "merge", **{"from": loser})

    facts = [api.get(f"/facts?agent_id=assistant&entity={each}").json()["results"] for each in (survivor, loser, other)]
    changed = api.patch(f"/entities/{loser}", {"agent_id": "assistant", "description": "x"})
    deleted = api.delete(f"/entities/{loser}?agent_id=assistant")

    assert [[fact["claim"] for fact in each] for each in facts] == [["Anita is tall."]] * 2 + [["Bo is tall."]]
    assert [(answer.status_code, survivor in answer.json()["detail"]) for answer in (changed, deleted)] == [
        (409, True)
    ] * 2
    assert api.patch(f"/entities/{loser}", {"agent_id": "other", "description": "x"}).status_code == 404


def test_what_is_linked_to_a_merged_entity_is_linked_to_the_survivor(api: ServiceClient) -> None:
    survivor, loser, other = id_of(api), id_of(api, "Anita"), id_of(api, "Bo")
    act(api, survivor, "merge", **{"from": loser})
    told = {"agent_id": "assistant", "claim": "Anita is tall.", "entities": [loser, survivor, other]}
    knows = {"agent_id": "assistant", "source": other, "target": loser, "type": "KNOWS"}

    fact_id = api.post("/facts", told).json()["id"]
    related = api.post("/relationships", knows)
    ring = api.post("/relationships", knows | {"source": survivor})
    foreign = [
        api.post(path, body | {"agent_id": "other"}) for path, body in (("/facts", told), ("/relationships", knows))
    ]

    assert set(api.get(f"/facts/{fact_id}?agent_id=assistant").json()["entities"]) == {survivor, other}
    assert (related.status_code, related.json()["target"]) == (201, survivor)
    assert [answer.status_code for answer in (ring, *foreign)] == [422] * 3
    for named in (f"entity={loser}", f"target={loser}"):
        assert len(api.get(f"/relationships?agent_id=assistant&{named}").json()["results"]) == 1
    starts = [node["id"] for node in api.get(f"/graph?agent_id=assistant&ids={loser}").json()["nodes"]]
    assert starts[0] == survivor
    assert api.get(f"/graph?agent_id=other&ids={loser}").status_code == 404


def test_a_merge_repeated_with_one_idempotency_key_gets_the_same_response(api: ServiceClient) -> None:
    survivor, body = id_of(api), {"agent_id": "assistant", "from": id_of(api, "Anita")}

    first, again = (api.post(f"/entities/{survivor}/merge", body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert (first.status_code, first.content) == (200, again.content)


@pytest.mark.parametrize(
    ("action", "fields", "status"),
    [
        ("merge", {}, 400),
        ("merge", {"from": "x"}, 400),
        ("merge", {"from": str(NOBODY)}, 404),
        ("split", {}, 400),
        ("split", {"names": []}, 400),
        ("split", {"names": [""]}, 400),
        ("split", {"names": ["Bo"]}, 422),
        ("split", {"names": ["Ana Lima", "Anita"]}, 422),
        ("split", {"names": ["Anita"], "links": ["x"]}, 400),
        ("split", {"names": ["Anita"], "links": [str(NOBODY)]}, 422),
        ("split", {"names": ["Anita"], "user_id": "ana"}, 403),
        ("split", {"names": ["Anita"], "agent_id": "other"}, 404),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_merge_or_split_is_refused(
    api: ServiceClient, action: str, fields: dict[str, Any], status: int
) -> None:
    entity_id = id_of(api, aliases=["Anita"])

    assert act(api, entity_id, action, **fields).status_code == status
    assert api.get(f"/entities/{entity_id}").json()["aliases"] == ["Anita"]


def test_only_different_entities_of_one_type_and_owner_can_be_merged(api: ServiceClient) -> None:
    entity_id = id_of(api)
    others = [entity_id, id_of(api, "Acme", type="organization"), id_of(api, "Anita", user_id="ana")]

    answers = [api.post(f"/entities/{entity_id}/merge", {"from": other}) for other in others]

    assert [answer.status_code for answer in answers] == [422, 422, 422]


def test_an_entity_that_got_the_type_of_another_can_be_merged_into_it(api: ServiceClient) -> None:
    corp, twin = id_of(api, "Nova Corp", type="org"), id_of(api, "Nova Corporation", type="company")

    changed = api.patch(f"/entities/{twin}", {"agent_id": "assistant", "type": "Org"})

    assert (changed.status_code, changed.json()["type"], changed.json()["version"]) == (200, "org", 2)
    assert act(api, corp, "merge", **{"from": twin}).json()["aliases"] == ["Nova Corporation"]


def test_a_deleted_entity_is_gone(api: ServiceClient) -> None:
    entity_id = id_of(api, aliases=["Anita"])
    assert api.delete(f"/entities/{entity_id}?agent_id=assistant&user_id=ana").status_code == 403

    assert api.delete(f"/entities/{entity_id}?agent_id=assistant").status_code == 204

    assert api.get(f"/entities/{entity_id}").status_code == 404
    assert api.delete(f"/entities/{entity_id}").status_code == 404
    assert not EntityName.objects.exists()


def test_an_entity_is_hidden_from_other_agents_users_and_accounts(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    entity_id = id_of(api, user_id="ana")
    path = f"/entities/{entity_id}"
    for refused in (
        api.get(f"{path}?agent_id=other"),
        api.get(f"{path}?agent_id=other&user_id=bo"),
        api.patch(path, {"agent_id": "other", "description": "x"}),
        api.delete(f"{path}?agent_id=other&user_id=bo"),
        act(api, entity_id, "merge", agent_id="other", **{"from": str(uuid4())}),
        act(api, entity_id, "split", agent_id="other", names=["Ana Lima"]),
        stranger_api.get(path),
        stranger_api.patch(path, {"description": "x"}),
        stranger_api.delete(path),
    ):
        assert refused.status_code == 404

    for others in (api.get("/entities?agent_id=other"), stranger_api.get("/entities?name=Ana%20Lima")):
        assert names(others) == []
    assert names(api.get("/entities?agent_id=other&user_id=ana&name=Ana%20Lima")) == ["Ana Lima"]
    assert upsert(stranger_api).status_code == 201


def test_an_api_key_bound_to_an_agent_cannot_act_as_another(bound_api: ServiceClient) -> None:
    assert upsert(bound_api, agent_id="other").status_code == 403
    assert upsert(bound_api).json()["agent_id"] == "assistant"


def test_a_read_only_api_key_cannot_change_entities(
    account: Account, api: ServiceClient, client_for: Callable[[str], ServiceClient]
) -> None:
    entity_id = id_of(api)
    reader = client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert names(reader.get("/entities")) == ["Ana Lima"]
    for refused in (upsert(reader), act(reader, entity_id, "merge"), act(reader, entity_id, "split")):
        assert refused.status_code == 403


def test_entity_requests_take_a_fixed_number_of_queries(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    entity_id = id_of(api)
    with django_assert_num_queries(2):  # the key, and the page
        api.get("/entities?agent_id=assistant&name=Ana&conversation_id=talk")
    with django_assert_num_queries(2):  # the key, and the entity
        api.get(f"/entities/{entity_id}")
    with django_assert_num_queries(8):  # the key, the text to embed twice, and the service's
        upsert(api)

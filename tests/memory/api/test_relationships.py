"""`/relationships`: store, store again, list, delete; hidden from agents that do not see both ends."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Link
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.memory.graphs import entity, link

pytestmark = pytest.mark.django_db

AGENT = "agent_id=assistant"


@pytest.fixture
def ends(owner: Owner) -> dict[str, str]:
    return {"source": str(entity(owner, "Ana").id), "target": str(entity(owner, "Acme").id)}


def relate(api: ServiceClient, ends: dict[str, str], **fields: Any) -> Any:
    return api.post("/relationships", {"agent_id": "assistant", "type": "WORKS_FOR", **ends, **fields})


def ids(answer: Any) -> list[str]:
    return [each["id"] for each in answer.json()["results"]]


def test_a_relationship_is_created_and_read(api: ServiceClient, ends: dict[str, str]) -> None:
    made = relate(api, ends, properties={"since": "May"}, weight=0.5)
    read = api.get(f"/relationships/{made.json()['id']}?{AGENT}")

    assert (made.status_code, read.status_code) == (201, 200)
    said = {**ends, "type": "WORKS_FOR", "weight": 0.5, "properties": {"since": "May"}}
    assert made.json() | said == made.json() == read.json()


def test_creating_a_relationship_again_adds_its_properties(api: ServiceClient, ends: dict[str, str]) -> None:
    made = relate(api, ends, properties={"since": "May"})

    again = relate(api, ends, properties={"desk": 7})

    assert again.status_code == 200
    assert again.json() == made.json() | {"properties": {"since": "May", "desk": 7}}


def test_a_request_repeated_with_its_idempotency_key_has_the_same_answer(
    api: ServiceClient, ends: dict[str, str]
) -> None:
    body = {"agent_id": "assistant", "type": "KNOWS", **ends}

    first, again = (api.post("/relationships", body, HTTP_IDEMPOTENCY_KEY="k") for _request in range(2))

    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())


@pytest.mark.parametrize(
    "change",
    [
        {"source": "ana"},
        {"source": None},
        {"type": ""},
        {"type": "works for"},
        {"type": "A" * 51},
        {"type": "MENTIONS"},
        {"type": "SUBGOAL_OF"},
        {"weight": 1.2},
        {"weight": -1},
        {"weight": "1"},
        {"weight": True},
        {"properties": []},
        {"properties": {"text": "x" * 65_536}},
        {"surprise": 1},
    ],
    ids=lambda change: str(change)[:60],
)
def test_an_invalid_body_is_refused_and_stores_nothing(
    api: ServiceClient, ends: dict[str, str], change: dict[str, Any]
) -> None:
    answer = relate(api, ends, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Link.objects.exists()


def test_a_relationship_of_an_entity_with_itself_is_refused(api: ServiceClient, ends: dict[str, str]) -> None:
    answer = relate(api, ends, target=ends["source"])

    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"target"})


def test_entities_of_other_owners_are_refused_like_unknown_ones(
    api: ServiceClient, ends: dict[str, str], owner: Owner, stranger: Account
) -> None:
    others = [
        entity(replace(owner, agent_id="colleague"), "a colleague's"),
        entity(Owner(account_id=stranger.id, agent_id="assistant"), "a stranger's"),
    ]

    answers = [
        api.post(
            "/relationships",
            {"agent_id": "assistant", "type": "KNOWS", **ends, "target": str(target)},
            HTTP_X_REQUEST_ID="same",
        )
        for target in (*(other.id for other in others), uuid4())
    ]

    assert {answer.status_code for answer in answers} == {422}
    assert len({answer.content for answer in answers}) == 1


def test_a_list_is_newest_first_and_filtered_by_ends_and_type(
    api: ServiceClient, ends: dict[str, str], owner: Owner
) -> None:
    third = str(entity(owner, "Rome").id)
    works = relate(api, ends).json()["id"]
    lives = relate(api, ends | {"target": third}, type="LOCATED_IN").json()["id"]
    back = relate(api, {"source": third, "target": ends["source"]}, type="KNOWS").json()["id"]

    def found(query: str) -> list[str]:
        return ids(api.get(f"/relationships?{AGENT}&{query}"))

    assert found("") == [back, lives, works]
    assert found(f"source={ends['source']}") == [lives, works]
    assert found(f"target={third}") == [lives]
    assert found(f"entity={third}") == [back, lives]
    assert found("type=KNOWS") == [back]
    assert found(f"entity={third}&type=LOCATED_IN") == [lives]
    assert found(f"entity={uuid4()}") == found("type=%20KNOWS") == []


@pytest.mark.parametrize("query", ["source=ana", "entity=1", "surprise=1", "type=A&type=B", f"type={'A' * 51}"])
def test_an_invalid_filter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/relationships?{query}").status_code == 400


def test_a_relationship_is_hidden_from_other_agents_and_accounts(
    api: ServiceClient, stranger_api: ServiceClient, ends: dict[str, str]
) -> None:
    made = relate(api, ends).json()["id"]

    for client, agent in ((stranger_api, "assistant"), (api, "colleague")):
        path = f"/relationships/{made}?agent_id={agent}"
        nobodys = client.get(f"/relationships/{uuid4()}?agent_id={agent}", HTTP_X_REQUEST_ID="same")
        assert client.get(path, HTTP_X_REQUEST_ID="same").content == nobodys.content
        assert client.delete(path).status_code == client.get(path).status_code == 404
        assert ids(client.get(f"/relationships?agent_id={agent}")) == []
    assert Link.objects.count() == 1


def test_a_deleted_relationship_is_not_found(api: ServiceClient, ends: dict[str, str]) -> None:
    path = f"/relationships/{relate(api, ends).json()['id']}?{AGENT}"

    assert [api.delete(path).status_code for _request in range(2)] == [204, 404]
    assert api.get(path).status_code == 404


def test_a_request_for_a_user_cannot_delete_a_relationship_of_the_agent(
    api: ServiceClient, ends: dict[str, str]
) -> None:
    made = relate(api, ends).json()["id"]

    assert api.get(f"/relationships/{made}?{AGENT}&user_id=u").status_code == 200
    assert api.delete(f"/relationships/{made}?{AGENT}&user_id=u").status_code == 403


def test_a_read_only_key_cannot_create_a_relationship(account: Account, ends: dict[str, str]) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    assert relate(reader, ends).status_code == 403
    assert reader.get("/relationships").status_code == 200


def test_a_page_uses_two_queries_for_any_number_of_rows(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    hub = entity(owner, "hub")
    api.get("/relationships")
    for number in range(3):
        link(hub, entity(owner, f"e{number}"))

    # the key, then the page
    with django_assert_num_queries(2):
        assert len(ids(api.get(f"/relationships?{AGENT}"))) == 3

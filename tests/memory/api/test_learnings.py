"""`/learnings`: publish to a team, vote, list, search; hidden from other agents, teams and accounts."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Learning, LearningVote
from memory.scoring import wilson_lower_bound
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of

pytestmark = pytest.mark.django_db

INSIGHT = "Ask for the permit before the survey."


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


@pytest.fixture
def crew(api: ServiceClient) -> str:
    """Return the id of a team of `assistant` and `colleague`."""
    return team_of(api, "crew", "assistant", "colleague")


@pytest.fixture
def learning_id(api: ServiceClient, crew: str) -> str:
    """Return the id of an insight that `assistant` published."""
    return str(publish(api, crew).json()["id"])


def team_of(api: ServiceClient, name: str, *agent_ids: str) -> str:
    team = api.post("/teams", {"name": name}).json()["id"]
    for agent_id in agent_ids:
        api.post(f"/teams/{team}/members", {"agent_id": agent_id})
    return str(team)


def publish(api: ServiceClient, team: str, insight: str = INSIGHT, **fields: Any) -> Any:
    return api.post("/learnings", {"agent_id": "assistant", "team": team, "insight": insight, **fields})


def vote(api: ServiceClient, learning_id: str, agent_id: str = "colleague", **fields: Any) -> Any:
    return api.post(f"/learnings/{learning_id}/vote", {"agent_id": agent_id, "helpful": True, **fields})


def insights(answer: Any) -> list[str]:
    return [learning["insight"] for learning in answer.json()["results"]]


def search(api: ServiceClient, **fields: Any) -> Any:
    return api.post("/learnings/search", {"agent_id": "colleague", "query": INSIGHT, **fields})


def test_an_insight_is_published_and_read_by_the_team(api: ServiceClient, crew: str) -> None:
    published = publish(api, crew, metadata={"from": "run 7"})
    read = api.get(f"/learnings/{published.json()['id']}?agent_id=colleague")

    assert published.status_code == 201
    said = {"agent_id": "assistant", "team": crew, "insight": INSIGHT, "metadata": {"from": "run 7"}}
    assert published.json() | said | {"embedding": "stored", "score": 0.0} == published.json()
    assert published.json()["item_key"] == f"learning:{published.json()['id']}"
    assert read.json() == published.json()


@pytest.mark.parametrize(
    "change",
    [
        {"insight": ""},
        {"insight": " \n"},
        {"insight": "x" * 100_001},
        {"team": "crew"},
        {"team": None},
        {"metadata": []},
        {"embedding": []},
        {"surprise": 1},
    ],
    ids=str,
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, crew: str, change: dict[str, Any]) -> None:
    answer = api.post("/learnings", {"agent_id": "assistant", "team": crew, "insight": INSIGHT, **change})

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Learning.objects.exists()


def test_another_team_is_refused_like_a_missing_one(api: ServiceClient, stranger_api: ServiceClient, crew: str) -> None:
    others, theirs = team_of(api, "others", "outsider"), team_of(stranger_api, "theirs", "assistant")

    answers = [publish(api, team) for team in (others, theirs, str(uuid4()))]

    assert {answer.status_code for answer in answers} == {422}
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_a_request_repeated_with_its_idempotency_key_publishes_once(api: ServiceClient, crew: str) -> None:
    body = {"agent_id": "assistant", "team": crew, "insight": INSIGHT}

    first, again = (api.post("/learnings", body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert first.content == again.content
    assert Learning.objects.count() == 1


def test_a_vector_sent_by_the_client_is_stored_and_used_in_a_search(
    api: ServiceClient, crew: str, embedding_server: EmbeddingServer
) -> None:
    vector = vector_of("anything").tolist()

    stored = publish(api, crew, embedding=vector, embedding_model=MODEL)
    found = search(api, query_embedding=vector, embedding_model=MODEL)

    assert stored.json()["embedding"] == "stored"
    assert found.json()["results"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert embedding_server.texts == []
    assert publish(api, crew, embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL).status_code == 422


def test_votes_are_counted_and_may_be_changed(api: ServiceClient, learning_id: str) -> None:
    first = vote(api, learning_id)
    changed = vote(api, learning_id, helpful=False)

    assert first.status_code == 200
    assert (first.json()["helpful_count"], first.json()["score"]) == (1, wilson_lower_bound(1, 1))
    assert (changed.json()["helpful_count"], changed.json()["unhelpful_count"]) == (0, 1)
    assert api.get(f"/learnings/{learning_id}").json() == changed.json()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"helpful": "yes"}, 400),
        ({"helpful": None}, 400),
        ({"agent_id": "assistant"}, 422),
        ({"agent_id": "outsider"}, 404),
    ],
    ids=str,
)
def test_an_invalid_vote_is_refused(api: ServiceClient, learning_id: str, fields: dict[str, Any], status: int) -> None:
    answer = api.post(f"/learnings/{learning_id}/vote", {"agent_id": "colleague", "helpful": True, **fields})

    assert answer.status_code == status
    assert not LearningVote.objects.exists()


def test_a_vote_without_an_agent_is_refused(api: ServiceClient, learning_id: str) -> None:
    answer = api.post(f"/learnings/{learning_id}/vote", {"helpful": True})

    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"agent_id"})


def test_learnings_are_listed_newest_first_or_by_score(api: ServiceClient, crew: str) -> None:
    for insight in ("helped one", "helped nobody", "helped two"):
        publish(api, crew, insight, agent_id="assistant")
    by_name = {learning.text: str(learning.id) for learning in Learning.objects.all()}
    api.post(f"/teams/{crew}/members", {"agent_id": "third"})
    for insight, agent_id in (("helped one", "third"), ("helped two", "third"), ("helped two", "colleague")):
        vote(api, by_name[insight], agent_id)

    assert insights(api.get("/learnings")) == ["helped two", "helped nobody", "helped one"]
    assert insights(api.get("/learnings?ordering=score")) == ["helped two", "helped one", "helped nobody"]
    assert api.get("/learnings?ordering=text").status_code == 400


def test_pages_by_score_neither_skip_nor_repeat(api: ServiceClient, crew: str) -> None:
    for number in range(5):
        vote(api, publish(api, crew, f"number {number}").json()["id"], helpful=number % 2 == 0)
    url, seen = "/learnings?ordering=score&page_size=2", []

    while url:
        page = api.get(url).json()
        seen += [learning["insight"] for learning in page["results"]]
        url = page["next"] and page["next"].split("/api/v1", 1)[1]

    assert seen == ["number 4", "number 2", "number 0", "number 3", "number 1"]


def test_a_list_is_filtered_by_team_and_publisher(api: ServiceClient, crew: str, learning_id: str) -> None:
    other = team_of(api, "other", "assistant")
    publish(api, other, "elsewhere")
    publish(api, crew, "by a colleague", agent_id="colleague")

    assert insights(api.get(f"/learnings?team={other}")) == ["elsewhere"]
    assert insights(api.get("/learnings?published_by=colleague")) == ["by a colleague"]
    assert api.get("/learnings?team=crew").status_code == 400


def test_a_learning_is_hidden_from_other_agents_and_accounts(
    api: ServiceClient, stranger_api: ServiceClient, learning_id: str
) -> None:
    path = f"/learnings/{learning_id}"
    for refused in (
        api.get(f"{path}?agent_id=outsider"),
        api.delete(f"{path}?agent_id=outsider"),
        vote(api, learning_id, "outsider"),
        stranger_api.get(path),
        stranger_api.delete(path),
        vote(stranger_api, learning_id),
    ):
        assert refused.status_code == 404

    assert insights(api.get("/learnings?agent_id=outsider")) == insights(stranger_api.get("/learnings")) == []
    assert insights(search(api, agent_id="outsider")) == insights(search(stranger_api)) == []
    assert insights(api.get("/learnings?agent_id=colleague")) == [INSIGHT]


def test_a_key_bound_to_an_agent_cannot_act_as_another_agent(bound_api: ServiceClient, crew: str) -> None:
    assert publish(bound_api, crew, agent_id="colleague").status_code == 403
    assert publish(bound_api, crew).json()["agent_id"] == "assistant"


def test_only_its_publisher_can_remove_a_learning(api: ServiceClient, learning_id: str) -> None:
    assert api.delete(f"/learnings/{learning_id}?agent_id=colleague").status_code == 403

    assert api.delete(f"/learnings/{learning_id}?agent_id=assistant").status_code == 204

    assert api.get(f"/learnings/{learning_id}").status_code == 404
    assert insights(search(api)) == []


def test_a_search_ranks_by_similarity_and_shows_votes(api: ServiceClient, crew: str, learning_id: str) -> None:
    publish(api, crew, "Order flour on Mondays.")
    vote(api, learning_id)

    answer = search(api).json()

    hit = answer["results"][0]
    assert hit["similarity"] == pytest.approx(1, abs=1e-3)
    stored = api.get(f"/learnings/{learning_id}").json()
    assert {name: value for name, value in hit.items() if name != "similarity"} == {
        name: value for name, value in stored.items() if name != "embedding"
    }
    assert (len(answer["results"]), answer["degraded"]) == (2, [])


def test_a_search_can_be_limited_to_one_team(api: ServiceClient, crew: str, learning_id: str) -> None:
    other = team_of(api, "other", "assistant", "colleague")
    publish(api, other, "elsewhere")

    assert insights(search(api, team=other)) == ["elsewhere"]
    assert insights(search(api, team=str(uuid4()))) == []


@pytest.mark.parametrize("change", [{"top_k": 0}, {"top_k": 201}, {"query": ""}, {"team": "x"}], ids=str)
def test_an_invalid_search_is_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    assert search(api, **change).status_code == 400


@pytest.mark.slow
def test_a_learning_stored_without_the_embedder_is_pending_and_found_by_words(
    api: ServiceClient, crew: str, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert publish(api, crew).json()["embedding"] == "pending"

    answer = search(api)
    assert insights(answer) == [INSIGHT]
    assert answer.json()["degraded"] == ["embedder_unavailable", "embedding_pending"]


def test_a_read_only_key_can_search_but_not_vote(
    account: Account, client_for: Callable[[str], ServiceClient], learning_id: str
) -> None:
    reader = client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert insights(search(reader)) == [INSIGHT]
    assert vote(reader, learning_id).status_code == 403


def test_lists_and_searches_use_two_queries(
    api: ServiceClient, learning_id: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(2):  # the key, and the page
        api.get("/learnings?agent_id=colleague")
    with django_assert_num_queries(2):  # the key, and the one statement of the search
        search(api, query_embedding=vector_of("x").tolist(), embedding_model=MODEL)

"""`/facts`: learn, read as of any time, correct, supersede, promote, reject; hidden from others."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory.models import Account, AuditEntry, Fact, FactTombstone
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of
from tests.memory.api.fact_requests import CLAIM, ME, MUNICH, act, correct, entity_of, learn, listed, read, said_by

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


@pytest.fixture
def fact_id(api: ServiceClient) -> str:
    """Return the id of a fact that `assistant` learned."""
    return str(learn(api).json()["id"])


def test_a_fact_is_learned_and_read(api: ServiceClient) -> None:
    ana, said = entity_of(api), said_by(api)
    sent: dict[str, Any] = {
        "certainty": "implied",
        "temporal": "current",
        "valid_from": "2026-01-02T00:00:00Z",
        "metadata": {"a": 1},
    }

    answer = learn(api, entities=[ana], source_turn_id=said, **sent)

    fact = answer.json()
    assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
    assert fact | sent == fact
    assert (fact["claim"], fact["confidence"], fact["status"], fact["valid_to"]) == (CLAIM, 0.85, "active", None)
    assert (fact["source_turn_id"], fact["conversation_id"], fact["agent_id"]) == (said, "c1", "assistant")
    assert (fact["embedding"], fact["item_key"], fact["belief_number"]) == ("stored", f"fact:{fact['id']}", 1)
    detail = read(api, fact["id"])
    assert detail | fact == detail
    assert (detail["turns"], detail["entities"], detail["supersedes"]) == ([said], [ana], [])
    assert [version["reason"] for version in detail["versions"]] == ["learned"]


def test_learning_a_known_fact_again_answers_200(api: ServiceClient) -> None:
    first, again, surer = (learn(api, confidence=confidence) for confidence in (0.5, 0.5, 0.9))

    assert [answer.status_code for answer in (first, again, surer)] == [201, 200, 200]
    assert first.json() == again.json()
    assert (surer.json()["id"], surer.json()["confidence"]) == (first.json()["id"], 0.9)


INVALID: list[dict[str, Any]] = [
    {"claim": ""},
    {"claim": " \n"},
    {"claim": "x" * 10_001},
    {"claim": 7},
    {"confidence": 1.2},
    {"confidence": -0.1},
    {"confidence": "0.5"},
    {"certainty": "sure"},
    {"certainty": ""},
    {"temporal": "soon"},
    {"valid_from": "2026-01-02T00:00:00"},
    {"valid_from": "yesterday"},
    {"valid_to": "2026-01-02"},
    {"entities": ["Ana"]},
    {"entities": [str(UUID(int=7))] * 101},
    {"source_turn_id": "first"},
    {"metadata": []},
    {"embedding": []},
    {"claim": "\u200b \u200d\ufeff"},
    {"surprise": 1},
]
"""Fields that make a body invalid."""


@pytest.mark.parametrize("path", ["/facts", "/facts/{fact_id}/supersede"])
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, fact_id: str, path: str) -> None:
    for change in INVALID:
        answer = api.post(path.format(fact_id=fact_id), {"agent_id": "assistant", "claim": MUNICH, **change})

        assert answer.status_code == 400, change
        assert set(answer.json()["errors"]) == set(change)
        assert Fact.objects.count() == 1


@pytest.mark.parametrize("valid_to", ["2026-01-02T00:00:00Z", "2026-01-02T00:00:00+05:00"])
def test_a_period_that_ends_before_it_begins_is_refused(api: ServiceClient, fact_id: str, valid_to: str) -> None:
    span = {"valid_from": "2026-01-02T00:00:00Z", "valid_to": valid_to}

    for answer in (
        learn(api, MUNICH, **span),
        correct(api, fact_id, **span),
        act(api, fact_id, "supersede", claim="x", **span),
    ):
        assert (answer.status_code, set(answer.json()["errors"])) == (400, {"valid_to"})

    assert read(api, fact_id)["valid_to"] is None


def test_entities_and_turns_of_other_owners_are_refused_like_missing_ones(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    entities = [entity_of(stranger_api), str(uuid4())]
    turns = [said_by(stranger_api), said_by(api, "colleague", "c2"), str(uuid4())]

    answers = [learn(api, entities=[each]) for each in entities] + [learn(api, source_turn_id=each) for each in turns]

    assert {answer.status_code for answer in answers} == {422}
    assert not Fact.objects.exists()


def test_a_request_repeated_with_its_idempotency_key_learns_once(api: ServiceClient) -> None:
    body = {"agent_id": "assistant", "claim": CLAIM}

    first, again = (api.post("/facts", body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert (first.status_code, first.content) == (again.status_code, again.content) == (201, first.content)


def test_a_vector_sent_by_the_client_is_stored(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
    stored = learn(api, embedding=vector_of("anything").tolist(), embedding_model=MODEL)

    assert stored.json()["embedding"] == "stored"
    assert embedding_server.texts == []
    assert learn(api, MUNICH, embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL).status_code == 422


def test_a_fact_is_stored_as_pending_when_the_embedder_fails(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert learn(api).json()["embedding"] == "pending"


def test_a_correction_keeps_the_former_belief(api: ServiceClient, fact_id: str) -> None:
    answer = correct(api, fact_id, claim=MUNICH, confidence=0.4, valid_from="2026-01-02T00:00:00Z")

    assert answer.status_code == 200
    said = {"claim": MUNICH, "confidence": 0.4, "valid_from": "2026-01-02T00:00:00Z", "embedding": "stored"}
    assert answer.json() | said == answer.json()
    versions = read(api, fact_id)["versions"]
    assert [(version["number"], version["claim"], version["reason"]) for version in versions] == [
        (1, CLAIM, "learned"),
        (2, MUNICH, "corrected"),
    ]
    assert versions[0]["retracted_at"] == versions[1]["recorded_at"]
    assert correct(api, fact_id, valid_from=None).json()["valid_from"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"claim": " "},
        {"claim": "\u200b\u2060"},
        {"claim": None},
        {"confidence": 2},
        {"temporal": None},
        {"valid_from": "soon"},
        {"certainty": "explicit"},
        {"status": "active"},
    ],
    ids=str,
)
def test_an_invalid_correction_is_refused(api: ServiceClient, fact_id: str, change: dict[str, Any]) -> None:
    answer = correct(api, fact_id, **change)

    assert (answer.status_code, set(answer.json()["errors"])) == (400, set(change))
    assert len(read(api, fact_id)["versions"]) == 1


def test_a_correction_that_conflicts_with_stored_facts_is_refused(api: ServiceClient) -> None:
    fact_id = learn(api, valid_from="2026-01-02T00:00:00Z").json()["id"]
    learn(api, MUNICH, on_contradiction="keep_both")

    assert correct(api, fact_id, valid_to="2026-01-01T00:00:00Z").status_code == 422
    assert correct(api, fact_id, claim=MUNICH).status_code == 409


def test_a_request_with_a_stale_version_changes_nothing(api: ServiceClient, fact_id: str) -> None:
    tag = api.get(f"/facts/{fact_id}?{ME}").headers["ETag"]
    changed = correct(api, fact_id, if_match=tag, claim=MUNICH)

    assert changed.headers["ETag"] != tag
    assert correct(api, fact_id, if_match=tag, claim=CLAIM).status_code == 412
    assert api.delete(f"/facts/{fact_id}?{ME}", HTTP_IF_MATCH=tag).status_code == 412
    assert api.delete(f"/facts/{fact_id}?{ME}", HTTP_IF_MATCH=changed.headers["ETag"]).status_code == 204


def test_a_superseded_fact_names_its_successor(api: ServiceClient, fact_id: str) -> None:
    answer = act(api, fact_id, "supersede", claim=MUNICH, valid_from="2026-01-02T00:00:00Z")

    new, old = answer.json(), read(api, fact_id)
    assert (answer.status_code, new["claim"], new["valid_from"]) == (201, MUNICH, "2026-01-02T00:00:00Z")
    assert (old["status"], old["valid_to"], old["superseded_by"]) == ("superseded", new["valid_from"], [new["id"]])
    assert read(api, new["id"])["supersedes"] == [fact_id]
    assert act(api, fact_id, "supersede", claim="Ana lives in Bern.").status_code == 409


def test_a_retracted_fact_leaves_the_list_and_keeps_its_history(api: ServiceClient, fact_id: str) -> None:
    assert api.delete(f"/facts/{fact_id}?{ME}").status_code == 204

    assert (listed(api), listed(api, status="retracted")) == ([], [CLAIM])
    assert read(api, fact_id)["status"] == "retracted"
    assert api.delete(f"/facts/{fact_id}?{ME}").status_code == 409
    assert correct(api, fact_id, confidence=0.1).status_code == 409
    assert learn(api).status_code == 201


def test_a_rejected_claim_cannot_be_learned_again(api: ServiceClient, fact_id: str) -> None:
    answer = act(api, fact_id, "reject")

    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
    again = learn(api)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert (listed(api), FactTombstone.objects.count()) == ([], 1)


def test_a_promoted_fact_is_known_in_every_channel(api: ServiceClient) -> None:
    fact_id = learn(api, channel="atlas").json()["id"]
    assert listed(api) == []

    copy = act(api, fact_id, "promote", reason="everybody asks")

    assert (copy.status_code, copy.json()["channel"]) == (200, "_global")
    assert (listed(api), listed(api, channel="atlas")) == ([CLAIM], [CLAIM, CLAIM])
    assert read(api, fact_id)["promoted_to"] == [copy.json()["id"]]
    assert AuditEntry.objects.get(operation="promote").promoted_from_channel == "atlas"
    assert act(api, copy.json()["id"], "promote", reason="again").status_code == 409


@pytest.mark.parametrize(
    "fields", [{}, {"reason": ""}, {"reason": "x" * 1_001}, {"reason": "r", "surprise": 1}], ids=str
)
def test_an_invalid_promotion_is_refused(api: ServiceClient, fields: dict[str, Any]) -> None:
    fact_id = learn(api, channel="atlas").json()["id"]

    assert act(api, fact_id, "promote", **fields).status_code == 400
    assert Fact.objects.count() == 1


def every_use(client: ServiceClient, fact_id: str, agent_id: str) -> list[Any]:
    path, me = f"/facts/{fact_id}", {"agent_id": agent_id}
    return [
        client.get(f"{path}?agent_id={agent_id}"),
        client.patch(path, {**me, "claim": MUNICH}),
        client.delete(f"{path}?agent_id={agent_id}"),
        client.post(f"{path}/supersede", {**me, "claim": MUNICH}),
        client.post(f"{path}/promote", {**me, "reason": "why not"}),
        client.post(f"{path}/reject", me),
    ]


def test_a_fact_is_hidden_from_other_agents_and_accounts(
    api: ServiceClient, stranger_api: ServiceClient, fact_id: str
) -> None:
    before = read(api, fact_id)

    refused = [*every_use(api, fact_id, "colleague"), *every_use(stranger_api, fact_id, "assistant")]

    assert {answer.status_code for answer in refused} == {404}
    assert read(api, fact_id) == before
    assert listed(api, agent_id="colleague") == listed(stranger_api) == []


def test_an_agent_that_may_only_read_a_fact_is_forbidden_to_change_it(api: ServiceClient) -> None:
    me = {"agent_id": "colleague", "user_id": "ana"}
    fact_id = api.post("/facts", {"claim": CLAIM}).json()["id"]

    assert api.get(f"/facts/{fact_id}", me).status_code == 200
    assert api.patch(f"/facts/{fact_id}", {**me, "claim": MUNICH}).status_code == 403
    assert api.post(f"/facts/{fact_id}/reject", me).status_code == 403


def test_a_users_facts_are_visible_to_every_agent_that_names_the_user(api: ServiceClient) -> None:
    learn(api, user_id="ana")

    assert listed(api, agent_id="colleague", user_id="ana") == [CLAIM]
    assert listed(api, agent_id="colleague", user_id="bob") == listed(api, agent_id="colleague") == []


def test_a_key_bound_to_an_agent_cannot_act_as_another_agent(bound_api: ServiceClient) -> None:
    assert learn(bound_api, agent_id="colleague").status_code == 403
    assert bound_api.post("/facts", {"claim": CLAIM}).json()["agent_id"] == "assistant"


def test_a_read_only_key_lists_facts_but_cannot_change_them(
    account: Account, client_for: Callable[[str], ServiceClient], fact_id: str
) -> None:
    reader = client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert listed(reader) == [CLAIM]
    assert {answer.status_code for answer in every_use(reader, fact_id, "assistant")} == {200, 403}


@pytest.mark.parametrize("change", ["supersede", "reject"])
def test_a_change_of_an_outdated_fact_is_refused(api: ServiceClient, change: str) -> None:
    learned = api.post("/facts", {"agent_id": "assistant", "claim": "Ana lives in Oslo."})
    path, tag = f"/facts/{learned.json()['id']}", learned.headers["ETag"]
    corrected = api.patch(path, {"agent_id": "assistant", "confidence": 0.5})
    body = {"agent_id": "assistant", **({"claim": "Ana lives in Bergen."} if change == "supersede" else {})}

    outdated = api.post(f"{path}/{change}", body, HTTP_IF_MATCH=tag)
    current = api.post(f"{path}/{change}", body, HTTP_IF_MATCH=corrected.headers["ETag"])

    assert (outdated.status_code, outdated.json()["code"]) == (412, "stale_version")
    assert current.status_code in (200, 201)

"""HTTP: ending a conversation, and what ends with it."""

from typing import Any

import pytest
from django.utils import timezone

from ledger import store as ledger
from memory.models import Account, ApiKey, Conversation, JobRun
from memory.owner import Owner
from memory.services.accounts.register import issue_key
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef
from tests.api_client import ServiceClient
from tests.memory.conversation_requests import create
from tests.memory.episodes import NOW
from tests.memory.summaries import summarize
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


ENOUGH = 30
"""Messages that make a session worth a summary."""


def test_ending_a_conversation_clears_its_session_working_memory_and_ledger(api: ServiceClient, owner: Owner) -> None:
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")
    talk(owner, 2)
    api.post("/conversations/c1/thoughts", {"agent_id": "assistant", "thought": "hm"})
    WorkingMemory(owner).set("c1", {"scratchpad": "x"})
    ledger.mark(place, "skill:x")

    ended = api.post("/conversations/c1/end", {"outcome": "success"})

    said = {"conversation_id": "c1", "status": "ended", "outcome": "success", "summary": False, "summary_state": "none"}
    said["cleared"] = True
    assert (ended.status_code, ended.json()) == (200, said | {"ended_at": ended.json()["ended_at"]})
    assert api.get("/conversations/c1/thoughts").json() == {"thoughts": []}
    assert (WorkingMemory(owner).get("c1"), ledger.get_all(place)) == ({}, {})
    assert api.get("/conversations/c1").json()["ended_at"] == ended.json()["ended_at"]


def test_the_end_of_a_conversation_with_turns_queues_the_extraction_of_its_knowledge(
    api: ServiceClient, owner: Owner
) -> None:
    waiting = JobRun.objects.queued().filter(job="extract_knowledge")
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="without"), "skill:x")
    talk(owner, 2)

    api.post("/conversations/without/end", {})
    assert waiting.count() == 0
    for _ in range(2):
        api.post("/conversations/c1/end", {})
        assert waiting.count() == 1


def test_a_conversation_with_a_ledger_and_no_turn_can_be_ended(api: ServiceClient, owner: Owner) -> None:
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")
    ledger.mark(place, "skill:x")

    ended = api.post("/conversations/c1/end", {})
    unknown = api.post("/conversations/c2/end", {})

    assert (ended.status_code, ended.json()["cleared"], ledger.get_all(place)) == (200, True, {})
    assert unknown.status_code == 404


def test_a_conversation_of_others_cannot_be_ended_by_its_ledger(bound_api: ServiceClient, account: Account) -> None:
    talk(Owner(account_id=account.id, agent_id="colleague"), 1)
    place = ConversationRef(account_id=account.id, conversation_id="c1")
    ledger.mark(place, "skill:x")

    assert bound_api.post("/conversations/c1/end", {}).status_code == 404
    assert ledger.get_all(place) == {"skill:x": "injected"}


def test_ending_a_conversation_again_keeps_its_end_time_and_takes_the_later_outcome(api: ServiceClient) -> None:
    create(api, "c1")

    first = api.post("/conversations/c1/end", {"outcome": "failure"}).json()
    bare = api.post("/conversations/c1/end").json()
    later = api.post("/conversations/c1/end", {"outcome": "success"}).json()

    assert [first["outcome"], bare["outcome"], later["outcome"]] == ["failure", "failure", "success"]
    assert first["ended_at"] == bare["ended_at"] == later["ended_at"]


def test_repeating_an_end_with_its_idempotency_key_does_not_end_a_reopened_conversation(
    api: ServiceClient, owner: Owner
) -> None:
    talk(owner, 1)
    first = api.post("/conversations/c1/end", {}, HTTP_IDEMPOTENCY_KEY="k")
    say(owner, turn("one more thing"))

    again = api.post("/conversations/c1/end", {}, HTTP_IDEMPOTENCY_KEY="k")

    assert again.content == first.content
    assert api.get("/conversations/c1").json()["ended_at"] is None


def test_ending_a_long_conversation_queues_its_summary(api: ServiceClient, owner: Owner) -> None:
    talk(owner, ENOUGH)

    ended = api.post("/conversations/c1/end", {}).json()

    assert ended["summary_state"] == "queued"
    assert api.get("/conversations/c1").json()["summary_state"] == "queued"
    assert JobRun.objects.queued().filter(job="summarize").count() == 1


def test_a_new_turn_reopens_an_ended_conversation(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 1)
    api.post("/conversations/c1/end", {"outcome": "failure"})

    say(owner, turn("one more thing"))

    found = api.get("/conversations/c1").json()
    assert (found["ended_at"], found["outcome"], found["turn_count"]) == (None, "", 2)


@pytest.mark.parametrize("body", [{"outcome": "draw"}, {"outcome": ""}, {"outcome": None}, {"reason": "tired"}])
def test_an_invalid_end_request_does_not_end_the_conversation(api: ServiceClient, body: dict[str, Any]) -> None:
    create(api, "c1")

    assert api.post("/conversations/c1/end", body).status_code == 400

    assert api.get("/conversations/c1").json()["ended_at"] is None


def test_requesting_a_summary_queues_a_run_of_the_summarize_job(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 11)

    accepted = api.post("/conversations/c1/summarize", {})

    run = JobRun.objects.get()
    assert (accepted.status_code, accepted.json()) == (202, {"job_id": str(run.id), "status": "queued"})
    assert (run.job, run.account_id) == ("summarize", owner.account_id)
    assert api.get("/conversations/c1").json()["summary_state"] == "queued"
    assert api.get(f"/jobs/{run.id}").json()["status"] == "queued"


def test_a_requested_summary_leaves_the_last_ten_messages(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 14)
    api.post("/conversations/c1/summarize", {})

    summarize(timezone.now())

    found = api.get("/conversations/c1").json()
    assert (found["summary"], found["summary_state"], found["summarized_count"]) == (True, "none", 4)
    kept = api.get("/conversations/c1/messages").json()["messages"]
    assert [message["index"] for message in kept] == list(range(4, 14))


@pytest.mark.parametrize("turns", [0, 10])
def test_requesting_a_summary_of_ten_messages_is_accepted_and_queues_nothing(
    api: ServiceClient, owner: Owner, turns: int
) -> None:
    create(api, "c1")
    talk(owner, turns)

    accepted = api.post("/conversations/c1/summarize")

    assert accepted.status_code == 202
    assert api.get("/conversations/c1").json()["summary_state"] == "none"


def test_a_summary_requested_twice_with_one_idempotency_key_is_queued_once(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)

    answers = [api.post("/conversations/c1/summarize", {}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert JobRun.objects.count() == 1


def test_parked_work_of_a_conversation_is_shown_and_retried_on_request(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 11)
    parked: dict[str, Any] = {"summary_error": "request_refused", "summary_parked_at": NOW}
    parked |= {"extract_error": "IntegrityError", "extract_parked_at": NOW}
    Conversation.objects.update(**parked, summarize_after=None, extract_after=None)

    before = api.get("/conversations/c1").json()
    for action in ("summarize", "consolidate"):
        assert api.post(f"/conversations/c1/{action}", {}).status_code == 202

    after = api.get("/conversations/c1").json()
    assert (before["summary_state"], before["extraction"], before["extract_error"]) == (
        "parked",
        "parked",
        "IntegrityError",
    )
    assert (after["summary_state"], after["extraction"], after["extract_error"]) == ("queued", "queued", "")


def test_a_failing_summary_is_shown_with_its_error(api: ServiceClient) -> None:
    create(api, "c1")
    Conversation.objects.update(summary_error="provider_refused")

    found = api.get("/conversations/c1").json()

    assert (found["summary_state"], found["summary_error"]) == ("failing", "provider_refused")


def test_saving_a_session_stores_it_in_postgresql(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)
    api.put("/conversations/c1/active-goal", {"goal_id": "g1", "description": "the keel"})

    saved = api.post("/conversations/c1/save", {})

    kept = Conversation.objects.get()
    assert kept.saved_at is not None
    assert (saved.status_code, saved.json()["turn_count"]) == (200, 3)
    assert kept.saved_session is not None


def test_an_api_key_with_the_write_scope_alone_cannot_read_a_conversation(account: Account) -> None:
    writer = ServiceClient(issue_key(account, scopes=[ApiKey.Scope.WRITE]).secret)

    made = create(writer, "c1")

    assert (made.status_code, writer.get("/conversations/c1").status_code) == (201, 403)

"""`/conversations`: create, find, change, summarize, save and end; hidden from agents that take no part."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from ledger import store as ledger
from memory.models import Account, ApiKey, Conversation, JobRun
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef
from tests.api_client import ServiceClient, segment
from tests.memory.episodes import NOW
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

NEW = {"agent_id": "assistant", "conversation_id": "c1"}
ENOUGH = 30
"""Messages that make a session worth a summary."""


def create(api: ServiceClient, conversation_id: str, **fields: Any) -> Any:
    return api.post("/conversations", {"agent_id": "assistant", "conversation_id": conversation_id, **fields})


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [row["conversation_id"] for row in api.get(f"/conversations{query}").json()["results"]]


def test_a_conversation_is_made_and_found_again(api: ServiceClient) -> None:
    facts = {"user_id": "ana", "channel": "boats", "title": "The keel", "metadata": {"from": ["app", 1]}}

    made = create(api, "c1", **facts)

    assert made.status_code == 201
    assert made.json() | NEW | facts == made.json()
    assert api.get("/conversations/c1").json() == made.json()


def test_a_new_conversation_has_nothing_in_it_yet(api: ServiceClient) -> None:
    made = create(api, "c1").json()

    counts = {"turn_count": 0, "summarized_count": 0, "summary": "none", "summary_error": "", "outcome": ""}
    times = {"last_turn_at": None, "ended_at": None, "archived": False}
    assert made | counts | times | {"channel": "_global", "participants": ["assistant"]} == made


def test_an_id_is_made_where_none_is_named(api: ServiceClient) -> None:
    made = api.post("/conversations", {"agent_id": "assistant"}).json()

    assert str(UUID(made["conversation_id"])) == made["conversation_id"]
    assert api.get(f"/conversations/{made['conversation_id']}").status_code == 200


def test_an_id_is_taken_once_in_an_account(api: ServiceClient, stranger_api: ServiceClient) -> None:
    create(api, "c1", title="first")

    again = create(api, "c1", title="second", agent_id="colleague")

    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert api.get("/conversations/c1").json()["title"] == "first"
    assert create(stranger_api, "c1").status_code == 201


@pytest.mark.django_db(transaction=True)
def test_of_many_who_make_one_id_at_once_one_does(api: ServiceClient) -> None:
    def make(number: int) -> int:
        try:
            return int(create(api, "c1", agent_id=f"agent-{number}").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as clients:
        statuses = list(clients.map(make, range(8)))

    assert sorted(statuses) == [201] + [409] * 7
    assert len(api.get("/conversations/c1").json()["participants"]) == 1


def test_made_twice_with_one_idempotency_key_it_is_made_once(api: ServiceClient) -> None:
    answers = [api.post("/conversations", {"agent_id": "a"}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": 7},
        {"agent_id": ""},
        {"conversation_id": ""},
        {"conversation_id": "c" * 101},
        {"conversation_id": "a\nb"},
        {"title": "t" * 201},
        {"title": None},
        {"continues": ""},
        {"metadata": []},
        {"metadata": None},
        {"metadata": {"x": "y" * 65_536}},
        {"turn_count": 5},
        {"outcome": "success"},
    ],
)
def test_another_shape_makes_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    refused = api.post("/conversations", NEW | change)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, list(change))
    assert not Conversation.objects.exists()


def test_somebody_has_to_begin_it(api: ServiceClient, bound_api: ServiceClient) -> None:
    assert api.post("/conversations", {"conversation_id": "c1"}).status_code == 400
    assert bound_api.post("/conversations", {"conversation_id": "c1"}).json()["agent_id"] == "assistant"


def test_it_resumes_one_that_there_is(api: ServiceClient) -> None:
    create(api, "c1")

    resumed, refused = create(api, "c2", continues="c1"), create(api, "c3", continues="unknown")

    assert resumed.json()["continues"] == "c1"
    assert (refused.status_code, refused.json()["code"]) == (422, "unprocessable")
    assert listed(api) == ["c2", "c1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["c3", "c2", "c1"]),
        ("?user_id=ana", ["c1"]),
        ("?channel=boats", ["c2"]),
        ("?continues=c1", ["c3"]),
        ("?ended=true", ["c2"]),
        ("?ended=false", ["c3", "c1"]),
        ("?archived=true", ["c1"]),
        ("?archived=false", ["c3", "c2"]),
        ("?agent_id=colleague", ["c3"]),
        ("?agent_id=nobody", []),
    ],
)
def test_the_list_is_newest_first_and_filtered(api: ServiceClient, query: str, found: list[str]) -> None:
    create(api, "c1", user_id="ana")
    create(api, "c2", channel="boats")
    create(api, "c3", continues="c1")
    api.post("/conversations/c3/thoughts", {"agent_id": "colleague", "thought": "mine too"})
    api.post("/conversations/c2/end", {})
    Conversation.objects.filter(conversation_id="c1").update(archived=True)

    assert listed(api, query) == found


@pytest.mark.parametrize("query", ["?ended=yes", "?archived=1", "?title=x", "?user_id=" + "u" * 101])
def test_an_unclear_filter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/conversations{query}").status_code == 400


def test_pages_follow_each_other(api: ServiceClient) -> None:
    for number in range(3):
        create(api, f"c{number}")

    first = api.get("/conversations?page_size=2").json()
    second = api.get(first["next"].partition("/api/v1")[2]).json()

    assert [row["conversation_id"] for row in first["results"] + second["results"]] == ["c2", "c1", "c0"]


def test_title_metadata_and_what_it_resumes_may_change(api: ServiceClient) -> None:
    create(api, "c0")
    made = create(api, "c1", title="old", metadata={"old": 1}).json()

    changed = api.patch("/conversations/c1", {"title": "", "metadata": {}, "continues": "c0"})

    assert changed.status_code == 200
    assert changed.json() == api.get("/conversations/c1").json()
    rest = {"title": "", "metadata": {}, "continues": "c0", "updated_at": changed.json()["updated_at"]}
    assert changed.json() == made | rest
    assert api.patch("/conversations/c1", {"continues": ""}).json()["continues"] == ""


@pytest.mark.parametrize("change", [{"user_id": "ben"}, {"turn_count": 1}, {"title": 5}, {"metadata": "x"}])
def test_nothing_else_may_change(api: ServiceClient, change: dict[str, Any]) -> None:
    made = create(api, "c1").json()

    assert api.patch("/conversations/c1", change).status_code == 400

    assert api.get("/conversations/c1").json() == made


def test_conversations_do_not_resume_each_other_in_a_ring(api: ServiceClient) -> None:
    create(api, "c1")
    create(api, "c2", continues="c1")

    refused = [api.patch("/conversations/c1", {"continues": other}) for other in ("c2", "c1", "unknown")]

    assert [answer.status_code for answer in refused] == [422] * 3


def test_who_takes_no_part_finds_nothing(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    create(api, "c1", agent_id="colleague")

    for client in (bound_api, stranger_api):
        answers = [
            client.get("/conversations/c1"),
            client.patch("/conversations/c1", {"title": "mine"}),
            *(client.post(f"/conversations/c1/{deed}", {}) for deed in ("summarize", "save", "end")),
        ]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "not_found")] * 5
        assert listed(client) == []
    assert Conversation.objects.get().ended_at is None


def test_who_writes_into_it_takes_part(api: ServiceClient, bound_api: ServiceClient) -> None:
    create(api, "c1", agent_id="colleague")

    bound_api.post("/conversations/c1/thoughts", {"thought": "let me in"})

    found = bound_api.get("/conversations/c1").json()
    assert (found["agent_id"], found["participants"]) == ("colleague", ["assistant", "colleague"])
    assert listed(bound_api) == ["c1"]


def test_a_bound_key_is_refused_another_agents_id(bound_api: ServiceClient) -> None:
    refused = [create(bound_api, "c1", agent_id="colleague"), bound_api.get("/conversations?agent_id=colleague")]

    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(403, "wrong_agent")] * 2


@pytest.mark.parametrize("conversation_id", ["turns", "a/b {c} ü", "%2F", ".."])
def test_any_id_will_do(api: ServiceClient, conversation_id: str) -> None:
    create(api, conversation_id)
    path = f"/conversations/{segment(conversation_id)}"

    assert api.get(path).json()["conversation_id"] == conversation_id
    assert api.post(f"{path}/end", {}).json()["conversation_id"] == conversation_id


def test_reading_takes_a_statement_besides_the_key_and_its_participants_one_more(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        talk(owner, 2, conversation_id=f"c{number}")
    api.get("/agents")

    with django_assert_num_queries(1 + 1):
        api.get("/conversations?agent_id=assistant")
    with django_assert_num_queries(1 + 2):
        api.get("/conversations/c1")


def test_a_read_only_key_changes_nothing(account: Account, owner: Owner) -> None:
    talk(owner, 1)
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    answers = [reader.post(f"/conversations/c1/{deed}", {}) for deed in ("summarize", "save", "end")]
    answers += [create(reader, "c2"), reader.patch("/conversations/c1", {"title": "x"})]

    assert [answer.json()["code"] for answer in answers] == ["missing_scope"] * 5
    assert reader.get("/conversations/c1").status_code == 200


def test_the_end_clears_the_live_side(api: ServiceClient, owner: Owner) -> None:
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")
    talk(owner, 2)
    api.post("/conversations/c1/thoughts", {"agent_id": "assistant", "thought": "hm"})
    WorkingMemory(owner).set("c1", {"scratchpad": "x"})
    ledger.mark(place, "skill:x")

    ended = api.post("/conversations/c1/end", {"outcome": "success"})

    said = {"conversation_id": "c1", "status": "ended", "outcome": "success", "summary": "none", "cleared": True}
    assert (ended.status_code, ended.json()) == (200, said | {"ended_at": ended.json()["ended_at"]})
    assert api.get("/conversations/c1/thoughts").json() == {"thoughts": []}
    assert (WorkingMemory(owner).get("c1"), ledger.get_all(place)) == ({}, {})
    assert api.get("/conversations/c1").json()["ended_at"] == ended.json()["ended_at"]


def test_ending_twice_is_ending_once_and_the_later_outcome_counts(api: ServiceClient) -> None:
    create(api, "c1")

    first = api.post("/conversations/c1/end", {"outcome": "failure"}).json()
    bare = api.post("/conversations/c1/end").json()
    later = api.post("/conversations/c1/end", {"outcome": "success"}).json()

    assert [first["outcome"], bare["outcome"], later["outcome"]] == ["failure", "failure", "success"]
    assert first["ended_at"] == bare["ended_at"] == later["ended_at"]


def test_an_end_sent_again_with_its_idempotency_key_does_not_end_what_was_reopened(
    api: ServiceClient, owner: Owner
) -> None:
    talk(owner, 1)
    first = api.post("/conversations/c1/end", {}, HTTP_IDEMPOTENCY_KEY="k")
    say(owner, turn("one more thing"))

    again = api.post("/conversations/c1/end", {}, HTTP_IDEMPOTENCY_KEY="k")

    assert again.content == first.content
    assert api.get("/conversations/c1").json()["ended_at"] is None


def test_the_end_of_a_long_session_queues_its_summary(api: ServiceClient, owner: Owner) -> None:
    talk(owner, ENOUGH)

    ended = api.post("/conversations/c1/end", {}).json()

    assert ended["summary"] == "queued"
    assert api.get("/conversations/c1").json()["summary"] == "queued"
    assert JobRun.objects.queued().filter(job="summarize").count() == 1


def test_a_turn_reopens_what_ended(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 1)
    api.post("/conversations/c1/end", {"outcome": "failure"})

    say(owner, turn("one more thing"))

    found = api.get("/conversations/c1").json()
    assert (found["ended_at"], found["outcome"], found["turn_count"]) == (None, "", 2)


@pytest.mark.parametrize("body", [{"outcome": "draw"}, {"outcome": ""}, {"outcome": None}, {"reason": "tired"}])
def test_an_end_of_another_shape_ends_nothing(api: ServiceClient, body: dict[str, Any]) -> None:
    create(api, "c1")

    assert api.post("/conversations/c1/end", body).status_code == 400

    assert api.get("/conversations/c1").json()["ended_at"] is None


def test_a_summary_is_a_run_of_its_job_for_the_account(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)

    accepted = api.post("/conversations/c1/summarize", {})

    run = JobRun.objects.get()
    assert (accepted.status_code, accepted.json()) == (202, {"job_id": str(run.id), "status": "queued"})
    assert (run.job, run.account_id) == ("summarize", owner.account_id)
    assert api.get("/conversations/c1").json()["summary"] == "queued"
    assert api.get(f"/jobs/{run.id}").json()["status"] == "queued"


def test_a_summary_of_nothing_is_accepted_and_leaves_nothing_to_do(api: ServiceClient) -> None:
    create(api, "c1")

    accepted = api.post("/conversations/c1/summarize")

    assert accepted.status_code == 202
    assert api.get("/conversations/c1").json()["summary"] == "none"


def test_asked_twice_with_one_idempotency_key_a_summary_is_queued_once(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)

    answers = [api.post("/conversations/c1/summarize", {}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert JobRun.objects.count() == 1


def test_parked_work_is_shown_and_tried_again_on_request(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)
    parked: dict[str, Any] = {"summary_error": "request_refused", "summary_parked_at": NOW}
    parked |= {"extract_error": "IntegrityError", "extract_parked_at": NOW}
    Conversation.objects.update(**parked, summarize_after=None, extract_after=None)

    before = api.get("/conversations/c1").json()
    for action in ("summarize", "consolidate"):
        assert api.post(f"/conversations/c1/{action}", {}).status_code == 202

    after = api.get("/conversations/c1").json()
    assert (before["summary"], before["extraction"], before["extract_error"]) == ("parked", "parked", "IntegrityError")
    assert (after["summary"], after["extraction"], after["extract_error"]) == ("queued", "queued", "")


def test_a_failing_summary_is_shown(api: ServiceClient) -> None:
    create(api, "c1")
    Conversation.objects.update(summary_error="provider_refused")

    found = api.get("/conversations/c1").json()

    assert (found["summary"], found["summary_error"]) == ("failing", "provider_refused")


def test_a_saved_session_outlives_its_redis(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)
    api.put("/conversations/c1/active-goal", {"goal_id": "g1", "description": "the keel"})

    saved = api.post("/conversations/c1/save", {})

    kept = Conversation.objects.get()
    assert kept.saved_at is not None
    assert (saved.status_code, saved.json()["turn_count"]) == (200, 3)
    assert kept.saved_session is not None


def test_the_scopes_of_a_key_say_what_it_may_do(account: Account) -> None:
    writer = ServiceClient(issue_key(account, scopes=[ApiKey.Scope.WRITE]).secret)

    made = create(writer, "c1")

    assert (made.status_code, writer.get("/conversations/c1").status_code) == (201, 403)

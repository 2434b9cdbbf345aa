"""Texts that a walk over routes that write does not reach: in what was derived, in histories and in reasons."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User

from memory.audit import record_audit
from memory.maintenance import JOBS
from memory.models import (
    Account,
    AuditEntry,
    Conversation,
    Entity,
    Fact,
    IdempotentRequest,
    Memory,
    MemoryPool,
    PersistentContext,
    ToolInvocation,
    Turn,
)
from memory.owner import Owner
from memory.services.audit import write_reads
from memory.services.custody.subjects import (
    ErasureFilter,
    continue_erasure,
    find_subject,
    request_filter,
    request_subject,
    verify_receipt,
)
from tests.api_client import ServiceClient
from tests.memory.api.test_subject_canary import USER, lines_with
from tests.memory.custody import later
from tests.memory.pools import make_team
from tests.memory.transfers import run_jobs
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

WORD = "iwibird"


def erase_user(api: ServiceClient, owner: Owner) -> None:
    answer = api.delete(f"/subjects/{USER}?reason=asked")
    assert answer.status_code == 202, answer.content
    for _ in range(1_000):
        if continue_erasure(owner.account_id, find_subject(owner, USER).id, now=later()).status == "completed":
            return
    raise AssertionError("not completed")


def put(api: ServiceClient, path: str, **body: Any) -> Any:
    answer = api.post(path, body)
    assert answer.status_code < 300, answer.content
    return answer.json()


@pytest.mark.slow
def test_nothing_is_left_of_what_jobs_derived_from_an_erased_user(
    api: ServiceClient, account: Account, owner: Owner
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    said = [
        "I live in Kiwibirdtown and I work at Kiwibirdmill.",
        "My sister Kiwibirdina is allergic to nuts.",
        "I moved to Kiwibirdport, I live in Kiwibirdport now.",
    ]
    for talk, user in (("own-1", USER), ("own-2", USER), ("group", "ben")):
        put(api, "/conversations", conversation_id=talk, agent_id="planner", user_id=user)
        turns = [{"role": "user", "content": text} for text in said]
        put(api, f"/conversations/{talk}/turns", agent_id="planner", user_id=USER, turns=turns)
        put(api, "/context", agent_id="planner", user_id=USER, conversation_id=talk, query="Where is Kiwibirdport?")
        put(api, f"/conversations/{talk}/end")
    for text in ("I live in Kiwibirdburg.", "I live in Kiwibirdham now."):
        put(api, "/memories", agent_id="planner", user_id=USER, text=text)
    for days in (1, 2, 40):
        run_jobs(account, *sorted(set(JOBS) - {"erase", "transfer", "reembed"}), after=timedelta(days=days))
    assert Fact.objects.filter(text__contains=WORD).exists()
    assert Entity.objects.filter(text__contains=WORD).exists()

    erase_user(api, owner)

    assert lines_with(WORD, USER) == []
    assert Turn.objects.filter(account_id=account.id).count() == len(said)


@pytest.mark.parametrize("is_written", [True, False], ids=["in the log", "in Redis"])
def test_questions_that_were_asked_in_a_conversation_go_with_it(
    api: ServiceClient, account: Account, is_written: bool
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    put(api, "/conversations", conversation_id="talk", agent_id="planner", title="On kiwibirds")
    put(api, "/conversations/talk/turns", agent_id="planner", turns=[{"role": "user", "content": "A kiwibird."}])
    put(api, "/memories", agent_id="planner", text="Bees make honey.")
    put(api, "/recall", agent_id="planner", conversation_id="talk", query="Where is kiwibird?")
    if is_written:
        write_reads(1_000, after="", account_id=None)

    assert api.delete("/conversations/talk").status_code == 204
    write_reads(1_000, after="", account_id=None)
    run_jobs(account, "recall_statistics", after=timedelta(days=1))

    assert lines_with(WORD) == []


@pytest.mark.parametrize("path", ["/memories/{id}", "/memories?user_id=ana"])
def test_a_note_that_is_deleted_leaves_nothing(api: ServiceClient, account: Account, path: str) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    note = {"agent_id": "planner", "user_id": "ana", "text": "The kiwibird is green."}
    question = {"agent_id": "planner", "user_id": "ana", "query": "Is the kiwibird green?"}
    made = api.post("/memories", note, HTTP_IDEMPOTENCY_KEY="note").json()
    assert api.post("/recall", question, HTTP_IDEMPOTENCY_KEY="recall").json()["results"]

    assert api.delete(path.format(**made)).status_code < 300
    run_jobs(account, "recall_statistics", after=timedelta(days=1))

    assert lines_with(WORD) == []


def log_change(user: User, row: Any, message: str) -> None:
    LogEntry.objects.log_actions(user.pk, [row], CHANGE, change_message=message)


def test_histories_in_the_admin_name_no_erased_user(api: ServiceClient, owner: Owner, stranger: Account) -> None:
    chief = User.objects.create_superuser("chief")
    theirs = Owner(account_id=stranger.id, agent_id="planner", user_id=USER)
    for each in (replace(owner, user_id=USER), theirs):
        say(each, turn("Hello."), conversation_id="own")
        say(replace(each, user_id=""), turn("Hi."), conversation_id="other")
    for row in Turn.objects.order_by("id"):
        log_change(chief, row, f"Corrected. Reason: kiwibird asked by {USER}")
    log_change(chief, Conversation.objects.get(account_id=owner.account_id, conversation_id="other"), "Changed text.")

    erase_user(api, owner)

    kept = LogEntry.objects.filter(change_message__contains=USER)
    assert [Memory.objects.get(id=str(each.object_id)).account_id for each in kept] == [stranger.id] * 2
    assert LogEntry.objects.filter(change_message="Changed text.").exists()


def test_a_memory_that_is_erased_leaves_no_reason_in_the_histories_of_the_admin(
    api: ServiceClient, account: Account
) -> None:
    chief = User.objects.create_superuser("chief")
    fact = put(api, "/facts", agent_id="planner", claim="The kiwibird is green.")
    log_change(chief, Fact.objects.get(id=fact["id"]), "Corrected. Reason: no kiwibird is blue")

    assert api.delete(f"/facts/{fact['id']}?erase=true").status_code in (200, 204)
    run_jobs(account, "recall_statistics", after=timedelta(days=1))

    assert lines_with(WORD) == []


def test_a_context_that_is_erased_leaves_no_name_in_the_histories_of_the_admin(
    api: ServiceClient, account: Account
) -> None:
    chief = User.objects.create_superuser("chief")
    made = put(api, "/contexts", agent_id="planner", name="On kiwibirds", scope="agent")
    log_change(chief, PersistentContext.objects.get(id=made["id"]), "Changed description. Reason: a kiwibird")

    assert api.delete(f"/contexts/{made['id']}").status_code < 300
    run_jobs(account, "recall_statistics", after=timedelta(days=1))

    assert lines_with(WORD) == []


def test_encrypted_values_of_others_that_name_an_erased_user_are_masked(api: ServiceClient, owner: Owner) -> None:
    put(api, "/conversations", conversation_id="group", agent_id="planner", user_id="ben")
    for number in range(120):
        to = USER if number in (3, 110) else "ben"
        sent = {"tool_input": {"to": to, "text": "Hello."}, "tool_output": f"sent to {to}", "success": True}
        put(api, "/tool-invocations", agent_id="planner", conversation_id="group", tool_name="mail", **sent)

    erase_user(api, owner)

    found = [(each.tool_input, each.tool_output) for each in ToolInvocation.objects.order_by("id")]
    assert [number for number, (_, sent) in enumerate(found) if sent == "[erased]"] == [3, 110]
    assert found[110] == ({"to": "[erased]", "text": "Hello."}, "[erased]")
    assert found[111] == ({"to": "ben", "text": "Hello."}, "sent to ben")


def test_a_reason_must_not_name_the_user_of_a_filter(api: ServiceClient) -> None:
    answer = api.post("/erasures", {"user_id": "ana", "reason": "by ana"})

    assert (answer.status_code, "reason" in answer.json()["detail"]) == (422, True)


def test_reasons_of_other_erasures_name_no_erased_user(api: ServiceClient, owner: Owner) -> None:
    reason = f"told by {USER}"
    other = request_filter(owner, ErasureFilter(channel="garden"), reason=reason, now=later())
    unfinished = request_subject(owner, "ben", reason=reason, now=later())
    while (other := continue_erasure(owner.account_id, other.id, now=later())).status != "completed":
        pass

    erase_user(api, owner)

    assert lines_with(USER) == []
    other.refresh_from_db()
    unfinished.refresh_from_db()
    assert (other.reason, unfinished.reason) == ("[erased]", "[erased]")
    assert verify_receipt(owner, dict(other.receipt or {}), other.signature)


DELETED: dict[str, tuple[str, dict[str, Any]]] = {
    "entity": ("/entities", {"name": "Kiwibird", "type": "animal"}),
    "goal": ("/goals", {"description": "Find the kiwibird."}),
    "strategy": ("/strategies", {"description": "Follow the kiwibird."}),
    "artifact": ("/artifacts", {"uri": "notes.md", "title": "About the kiwibird"}),
    "entry": ("/contexts/{context}/entries", {"key": "bird", "content": "The kiwibird is green."}),
    "learning": ("/learnings", {"team": "{team}", "insight": "The kiwibird is green."}),
}


@pytest.mark.parametrize("kind", DELETED)
def test_what_is_deleted_leaves_no_kept_answers_and_audited_texts(
    api: ServiceClient, account: Account, kind: str
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    context = put(api, "/contexts", agent_id="planner", name="notes", scope="agent")["id"]
    team = str(make_team(account, agents=["planner"]).id)
    path, fields = DELETED[kind]
    path = path.format(context=context)
    body = {"agent_id": "planner"} | {name: value.format(team=team) for name, value in fields.items()}
    answer = api.post(path, body, HTTP_IDEMPOTENCY_KEY="make")
    assert answer.status_code < 300, answer.content
    made = first_row(answer.json())
    api.post("/recall", {"agent_id": "planner", "query": "kiwibird"}, HTTP_IDEMPOTENCY_KEY="recall")

    where = f"/entries/{made['id']}" if kind == "entry" else f"{path}/{made['id']}"
    assert api.delete(f"{where}?agent_id=planner").status_code == 204
    write_reads(1_000, after="", account_id=None)

    assert not IdempotentRequest.objects.filter(body__icontains=WORD).exists()
    about = AuditEntry.objects.filter(affected_ids__contains=[made["id"]])
    assert about.filter(metadata__has_key="payload_erased_at").exists()
    assert [each for each in about.values_list("query_text", "metadata") if WORD in str(each).casefold()] == []


POOLS: dict[str, tuple[str, str, Any]] = {
    "shared_memory": ("put", "data?path=/kiwibird", {"data": 1}),
    "blackboard": ("post", "postings", {"content": "The kiwibird is green."}),
    "tool_cache": ("put", "cache/bird", {"value": {"color": "kiwibird green"}, "ttl_seconds": 86_400}),
}


@pytest.mark.parametrize("pool_type", POOLS)
def test_a_deleted_pool_leaves_no_kept_answers_and_audited_texts(
    api: ServiceClient, account: Account, pool_type: str
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    put(api, "/workflow-runs", workflow_run_id="r")
    for pool_id in ("kiwibirds", "others"):
        put(api, "/workflow-runs/r/pools", pool_id=pool_id, pool_type=pool_type)
        method, path, body = POOLS[pool_type]
        send = getattr(api, method)
        written = send(f"/pools/{pool_id}/{path}", body, HTTP_IDEMPOTENCY_KEY=pool_id)
        assert written.status_code < 300, written.content
    pool = MemoryPool.objects.get(pool_id="kiwibirds")
    owner = Owner(account_id=account.id, audit_level="verbose")
    record_audit(owner, operation="update", memory_type="pool", affected_ids=[pool.id], metadata={"note": "kiwibird"})

    assert api.delete("/pools/kiwibirds").status_code == 204

    # of the other pool
    assert IdempotentRequest.objects.count() == 1
    about = AuditEntry.objects.filter(affected_ids__contains=[str(pool.id)])
    assert about.filter(metadata__has_key="payload_erased_at").exists()
    assert [each for each in about.values_list("metadata", flat=True) if WORD in str(each)] == []


@pytest.mark.parametrize("pool_type", POOLS)
def test_an_expired_pool_leaves_no_kept_answers(api: ServiceClient, account: Account, pool_type: str) -> None:
    put(api, "/workflow-runs", workflow_run_id="r")
    put(api, "/workflow-runs/r/pools", pool_id="kiwibirds", pool_type=pool_type)
    method, path, body = POOLS[pool_type]
    getattr(api, method)(f"/pools/kiwibirds/{path}", body, HTTP_IDEMPOTENCY_KEY="k1")
    MemoryPool.objects.update(expires_at=later())
    assert IdempotentRequest.objects.filter(body__icontains=WORD).exists()

    run_jobs(account, "expire", after=timedelta(hours=2))

    assert not MemoryPool.objects.exists()
    assert not IdempotentRequest.objects.filter(body__icontains=WORD).exists()


def test_a_deleted_result_of_a_tool_leaves_no_kept_answers(api: ServiceClient) -> None:
    put(api, "/workflow-runs", workflow_run_id="r")
    put(api, "/workflow-runs/r/pools", pool_id="results", pool_type="tool_cache")
    for key in ("bird", "other"):
        api.put(f"/pools/results/cache/{key}", {"value": f"{WORD} {key}"}, HTTP_IDEMPOTENCY_KEY=key)

    assert api.delete("/pools/results/cache/bird").status_code == 204

    assert [WORD in body for body in IdempotentRequest.objects.values_list("body", flat=True)] == [True]
    assert "bird" not in IdempotentRequest.objects.get().body.replace(WORD, "")


def test_a_deleted_profile_leaves_no_kept_answers(api: ServiceClient) -> None:
    for user_id in ("ana", "ben"):
        changes = {"preferences": {"bird": "kiwibird"}}
        answer = api.patch(f"/profiles/{user_id}", changes, HTTP_IDEMPOTENCY_KEY=user_id)
        assert answer.status_code < 300, answer.content
        acting, said = {"agent_id": "planner", "user_id": user_id}, [{"role": "user", "content": "Hello."}]
        put(api, f"/conversations/c-{user_id}/turns", **acting, turns=said)
        for path in ("/recall", "/resume"):
            asked = {**acting, "query": "Which bird?", "conversation_id": f"c-{user_id}"}
            answer = api.post(path, asked, HTTP_IDEMPOTENCY_KEY=user_id)
            assert WORD in answer.content.decode(), answer.content
    fact = api.post("/facts", {"user_id": "ana", "claim": "Ana sings."}, HTTP_IDEMPOTENCY_KEY="ana")
    assert fact.status_code == 201

    assert api.delete("/profiles/ana").status_code == 204

    kept = IdempotentRequest.objects.values_list("user_id", "body")
    assert sorted(user for user, body in kept if WORD in body) == ["ben", "ben", "ben"]
    assert IdempotentRequest.objects.filter(user_id="ana", body__contains="sings").exists()


def first_row(answer: Any) -> dict[str, Any]:
    """Return the row of an answer, or the first of several."""
    found = answer
    while "id" not in found:
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return dict(found)

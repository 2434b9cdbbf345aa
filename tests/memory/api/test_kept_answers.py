"""Answers recorded for repeated requests, after the account's reasoning policy was lowered."""

from typing import Any

import pytest

from memory.models import AuditEntry, IdempotentRequest, TurnRecord
from memory.owner import Owner
from memory.services.records.reasoning import set_policy
from tests.api_client import ServiceClient
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, thought

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TELLTALE = "freeze"
"""Stands nowhere but in the rationale."""
QUESTION = "Why not wait with the roses?"
READS: dict[str, dict[str, Any]] = {
    "/replay": {"decision": QUESTION, "tier": "structured_rationale"},
    "/resume": {"conversation_id": "chat-1", "query": QUESTION},
    "/recall": {"query": QUESTION},
    "/context": {"conversation_id": "chat-2", "query": QUESTION},
}


@pytest.fixture
def record(owner: Owner) -> TurnRecord:
    """Record a turn of a goal, with a rationale."""
    return thought(owner, rationale=RATIONALE, fields={"goal_id": aim(owner, "Have a garden.").id})


def post(api: ServiceClient, path: str, body: dict[str, Any]) -> Any:
    return api.post(path, {"agent_id": "assistant"} | body, HTTP_IDEMPOTENCY_KEY="k1")


@pytest.mark.parametrize("path", READS)
def test_a_stored_answer_is_not_replayed_after_the_policy_forbids_its_contents(
    api: ServiceClient, owner: Owner, record: TurnRecord, path: str
) -> None:
    first = post(api, path, READS[path])

    set_policy(owner, tier="decision_summary")
    again = post(api, path, READS[path])

    assert (first.status_code, again.status_code) == (200, 200)
    assert (TELLTALE in first.content.decode(), TELLTALE in again.content.decode()) == (True, False)
    assert "Idempotency-Replayed" not in again


def test_the_audit_log_counts_the_deleted_answers(api: ServiceClient, owner: Owner, record: TurnRecord) -> None:
    for path, body in READS.items():
        post(api, path, body)

    set_policy(owner, tier="none")

    entry = AuditEntry.objects.get(memory_type="kept_answer")
    assert (entry.operation, entry.result_count, entry.affected_ids) == ("delete", len(READS), [])


def test_a_repeated_write_is_still_replayed_after_the_policy_changes(api: ServiceClient, owner: Owner) -> None:
    first = post(api, "/goals", {"description": "Have a garden."})

    set_policy(owner, tier="none")

    assert post(api, "/goals", {"description": "Have a garden."}).json() == first.json()
    assert IdempotentRequest.objects.count() == 1


@pytest.mark.parametrize(
    "change", [{"tier": "raw_trace"}, {"trace_tokens": 0}, {"tier": "structured_rationale"}], ids=str
)
def test_a_policy_that_is_not_lowered_deletes_no_answers(
    api: ServiceClient, owner: Owner, record: TurnRecord, change: dict[str, Any]
) -> None:
    post(api, "/recall", READS["/recall"])

    set_policy(owner, **change)

    assert post(api, "/recall", READS["/recall"])["Idempotency-Replayed"] == "true"


def test_a_lowered_policy_keeps_the_answers_of_other_accounts(stranger_api: ServiceClient, owner: Owner) -> None:
    post(stranger_api, "/recall", READS["/recall"])

    set_policy(owner, tier="none")

    assert IdempotentRequest.objects.count() == 1

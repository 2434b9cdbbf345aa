"""`POST /recall` and `POST /context` of slots of structured turns."""

from typing import Any

import pytest

from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, Kind
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.records.record import RecordedTurn
from tests.api_client import ServiceClient
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

SECRET = "siphon"
REASONING = Reasoning(
    tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=Rationale(decisions=[Point(what=f"{SECRET} the boiler")])
)


@pytest.fixture(autouse=True)
def recorded(owner: Owner) -> RecordedTurn:
    """Store a structured turn about the boiler, and a message next to it."""
    say(owner, turn("What about the boiler?"))
    action, outcome = Action(text="Emptied the boiler."), Outcome(status="succeeded", text="The boiler is dry.")
    return add_record(owner, "c1", slots=Slots(reasoning=REASONING, action=action, outcome=outcome))


def ask(api: ServiceClient, path: str = "/recall", **asked: Any) -> Any:
    body = {"agent_id": "assistant", "conversation_id": "c1", "query": "the boiler"} | asked
    answer = api.post(path, body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_recall_is_filtered_by_slots_and_names_their_record(api: ServiceClient, recorded: RecordedTurn) -> None:
    (result,) = ask(api, slots=["outcome"])["results"]

    assert (result["kind"], result["slot"], result["record_id"]) == ("turn_slot", "outcome", str(recorded.record.id))
    assert result["text"] == "The boiler is dry."


def test_a_result_that_is_not_a_slot_has_neither_slot_nor_record(api: ServiceClient) -> None:
    (result,) = ask(api, kinds=["turn"])["results"]

    assert (result["slot"], result["record_id"]) == (None, None)


def test_the_evidence_of_a_prompt_context_is_filtered_by_slots(api: ServiceClient, recorded: RecordedTurn) -> None:
    found = ask(api, "/context", slots=["action", "outcome"])

    assert {(item["slot"], item["record_id"]) for item in found["items"]} == {
        ("action", str(recorded.record.id)),
        ("outcome", str(recorded.record.id)),
    }
    assert "The boiler is dry." in found["context"]


@pytest.mark.parametrize("path", ["/recall", "/context"])
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"kinds": [Kind.FACT.value]}, id="of other kinds"),
        pytest.param({"scopes": ["profile"], "user_id": "ana"}, id="of a scope without slots"),
    ],
)
def test_slots_that_contradict_kinds_or_scopes_are_refused(
    api: ServiceClient, path: str, asked: dict[str, Any]
) -> None:
    body = {"agent_id": "assistant", "conversation_id": "c1", "query": "boiler", "slots": ["outcome"]}

    assert api.post(path, body | asked).status_code == 422


@pytest.mark.parametrize("path", ["/recall", "/context"])
def test_reasoning_that_the_policy_no_longer_allows_is_in_no_answer(
    api: ServiceClient, owner: Owner, path: str
) -> None:
    assert SECRET in str(ask(api, path))

    Account.objects.filter(id=owner.account_id).update(reasoning_tier=ReasoningTier.DECISION_SUMMARY.value)

    assert SECRET not in str(ask(api, path, query=f"the boiler, {SECRET}", slots=["reasoning"])).lower()
    assert SECRET not in str(ask(api, path))

"""Fields: each accepts its own JSON type only, and a list is measured before its elements are checked."""

from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from memory.models import Memory, Turn
from memory_project.http.serializers import MAX_NAMED_ERRORS, BoundedList, Flag, StrictSerializer, Text, WholeNumber
from tests.api_client import ServiceClient

EPISODE = {"agent_id": "planner", "conversation_id": "c", "summary": "We chose the second plan."}


class Counting(Text):
    """A text field that counts its checks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked = 0

    def to_internal_value(self, data: Any) -> str:
        self.asked += 1
        return super().to_internal_value(data)


class Shape(StrictSerializer):
    top_k = WholeNumber(min_value=1, max_value=200, required=False)
    wanted = Flag(required=False)


BY_TEXT = {
    "/facts": {"claim": "The boiler is out."},
    "/episodic/store": {"summary": "The boiler went out.", "conversation_id": "c1"},
    "/goals": {"description": "Mend the boiler."},
    "/strategies": {"description": "Look at the fuse first."},
}


@pytest.mark.parametrize(("path", "body"), BY_TEXT.items())
def test_the_text_of_a_memory_may_be_sent_as_text(api: ServiceClient, path: str, body: dict[str, str]) -> None:
    [name, text] = next(iter(body.items()))
    rest = {key: value for key, value in body.items() if key != name} | {"agent_id": "assistant"}

    assert api.post(path, rest | {"text": text}).status_code in (200, 201)
    assert Memory.objects.get(text__contains=text).agent_id == "assistant"
    refused = api.post(path, rest | {"text": "x", name: text})
    assert refused.json()["errors"] == {"text": [f'"text" is another name of "{name}": send one of them.']}


def test_both_names_of_a_text_may_say_the_same(api: ServiceClient) -> None:
    body = {"agent_id": "assistant", "claim": "The boiler is out.", "text": "The boiler is out."}

    assert api.post("/facts", body).status_code == 201


OTHER_TEXTS = {
    "/agents": {"agent_id": "planner"},
    "/entities": {"name": "Boiler", "type": "device"},
    "/artifacts": {"uri": "docs/boiler.md"},
    "/contexts": {"name": "handbook"},
    "/conversations/c1/thoughts": {},
}


@pytest.mark.usefixtures("empty_redis")
@pytest.mark.parametrize(("path", "body"), OTHER_TEXTS.items())
def test_the_text_of_anything_may_be_sent_as_text(api: ServiceClient, path: str, body: dict[str, str]) -> None:
    answer = api.post(path, {"text": "About the boiler.", **body})

    assert answer.status_code == 201, answer.content
    assert "About the boiler." in answer.content.decode()


def test_unknown_and_missing_fields_are_reported_together(api: ServiceClient) -> None:
    errors = api.post("/goals", {"descriptoin": "Mend it.", "priority": "high"}).json()["errors"]

    assert set(errors) == {"descriptoin", "description", "priority"}
    assert 'Did you mean "description"?' in errors["descriptoin"][0]
    assert "Allowed: " in errors["descriptoin"][0]


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("/recall", "limit", "top_k"),
        ("/recall", "text", "query"),
        ("/recall", "project", "channel"),
        ("/conversations/c1/turns", "messages", "turns"),
        ("/memories", "memory", "text"),
        ("/facts", "statement", "claim"),
        ("/facts", "timestamp", "event_time"),
    ],
)
def test_the_name_that_other_services_use_is_answered_with_ours(
    api: ServiceClient, path: str, field: str, meant: str
) -> None:
    assert f'Did you mean "{meant}"?' in api.post(path, {field: 5}).json()["errors"][field][0]


def test_unknown_fields_of_a_turn_are_answered_with_those_that_there_are(api: ServiceClient) -> None:
    turn = {"role": "user", "content": "It leaks.", "timestamps": "2026-03-01T09:00:00Z", "weather": "calm"}

    errors = api.post("/conversations/c1/turns", {"agent_id": "a", "turns": [turn]}).json()["errors"]

    assert 'Did you mean "timestamp"?' in errors["turns.0.timestamps"][0]
    assert errors["turns.0.timestamps"][0].endswith(
        "Allowed: annotations, audio, client_id, content, embedding, embedding_model, event_time, function_call, "
        "index, metadata, model, name, refusal, role, timestamp, tool_call_id, tool_calls."
    )
    assert errors["turns.0.weather"] == ['"weather" is not a field here.']


def test_errors_of_messages_to_learn_from_name_the_messages(api: ServiceClient) -> None:
    message = {"role": "user", "content": "It leaks.", "weather": "calm"}

    errors = api.post("/memories", {"agent_id": "a", "infer": True, "messages": [message]}).json()["errors"]

    assert list(errors) == ["messages.0.weather"]


def test_a_field_of_the_body_in_the_query_is_sent_back_to_the_body(api: ServiceClient) -> None:
    answer = api.post("/goals?agent_id=a", {"description": "Mend it."})

    assert answer.json()["errors"] == {
        "agent_id": ['"agent_id" belongs in the body of this request, not in its query.']
    }


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/goals", {"description": "Mend it.", "priority": "high"}, "Must be a whole number, without quotes."),
        ("/recall", {"query": "x", "top_k": 5_000}, "Must be at most 200."),
        ("/recall", {"query": "x", "top_k": 0}, "Must be at least 1."),
        ("/recall", {"query": "x", "min_score": "0.5"}, "Must be a number, without quotes."),
        ("/recall", {"query": "x", "explain": "yes"}, "Must be true or false, without quotes."),
    ],
)
def test_a_value_of_the_wrong_type_or_size_is_answered_with_what_is_allowed(
    api: ServiceClient, path: str, body: dict[str, Any], sentence: str
) -> None:
    [problems] = api.post(path, body).json()["errors"].values()

    assert problems == [sentence]


def test_a_limit_of_a_list_is_answered_with_the_page_size(api: ServiceClient) -> None:
    assert 'Did you mean "page_size"?' in api.get("/facts?limit=5").json()["errors"]["limit"][0]


@pytest.mark.parametrize(
    ("ask", "field", "choice"),
    [
        (lambda api: api.post("/facts", {"claim": "x", "temporal": "now"}), "temporal", "current, past, future"),
        (lambda api: api.post("/recall", {"query": "x", "kinds": ["letter"]}), "kinds", "fact"),
        (lambda api: api.get("/facts?status=old"), "status", "active, pending"),
        (lambda api: api.get("/facts?temporal=now"), "temporal", "current, past, future"),
    ],
    ids=["a body", "a list", "a query", "a filter"],
)
def test_an_unknown_choice_is_answered_with_the_choices(api: ServiceClient, ask: Any, field: str, choice: str) -> None:
    assert choice in str(ask(api).json()["errors"][field])


def test_the_content_of_a_turn_may_be_sent_as_text(api: ServiceClient) -> None:
    body = {"agent_id": "assistant", "turns": [{"role": "user", "text": "The boiler is out."}]}

    assert api.post("/conversations/c1/turns", body).status_code == 201
    assert Turn.objects.get().text == "The boiler is out."


@pytest.mark.parametrize("given", ["3", "１", True, False, 2.5, 1e300, [], {}, None, 0, 201, 10**30])
def test_a_value_that_is_not_a_whole_number_in_range_is_refused(given: object) -> None:
    assert not Shape(data={"top_k": given}).is_valid()


@pytest.mark.parametrize("given", [3, 3.0])
def test_a_float_without_a_fraction_is_accepted_as_a_whole_number(given: object) -> None:
    shape = Shape(data={"top_k": given})

    assert shape.is_valid()
    assert type(shape.validated_data["top_k"]) is int


@pytest.mark.parametrize("given", ["yes", "true", 1, 0, 1.0, None, [], {}])
def test_a_flag_that_is_not_a_boolean_is_refused(given: object) -> None:
    assert not Shape(data={"wanted": given}).is_valid()


@pytest.mark.parametrize("given", [True, False])
def test_a_flag_accepts_true_and_false(given: bool) -> None:
    shape = Shape(data={"wanted": given})

    assert shape.is_valid()
    assert shape.validated_data["wanted"] is given


def test_a_list_that_is_too_long_is_refused_before_its_elements_are_checked() -> None:
    field = BoundedList(child=Counting(), max_length=3)

    with pytest.raises(serializers.ValidationError):
        field.run_validation(["a"] * 4)

    assert isinstance(field.child, Counting)
    assert field.child.asked == 0


def test_an_invalid_list_names_only_its_first_errors() -> None:
    field = BoundedList(child=Text(), max_length=1_000)

    with pytest.raises(serializers.ValidationError) as refused:
        field.run_validation(["fine", *([5] * 999)])

    mistakes: Any = refused.value.detail
    assert list(mistakes) == list(range(1, MAX_NAMED_ERRORS + 1))
    assert mistakes[1] == [ErrorDetail("Must be a text: a JSON string.", code="invalid")]


@pytest.mark.parametrize("names", [[5] * 200_000, ["a"] * 1_001], ids=["numbers", "one too many"])
def test_too_many_fields_to_delete_are_refused_with_a_short_error(api: ServiceClient, names: list[object]) -> None:
    refused = api.delete("/working-memory/c", {"fields": names})

    assert (refused.status_code, len(refused.content) < 1_000) == (400, True)
    assert "1000" in refused.json()["errors"]["fields"][0]


def test_too_many_items_of_an_episode_are_refused_with_one_error(api: ServiceClient) -> None:
    refused = api.post("/episodic/store", EPISODE | {"key_decisions": [0] * 1_001})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["key_decisions"])


def test_the_lists_of_an_episode_share_one_size_limit(api: ServiceClient) -> None:
    # 3 bytes a letter: bytes are counted, not characters
    half = {"key_decisions": ["愛" * 45_000], "tools_called": [{"name": "x" * 130_000}]}

    refused = api.post("/episodic/store", EPISODE | half)

    assert refused.status_code == 400
    assert "262144 bytes" in refused.json()["errors"]["non_field_errors"][0]


def test_a_list_of_an_episode_may_be_long(api: ServiceClient) -> None:
    assert api.post("/episodic/store", EPISODE | {"key_decisions": ["x" * 260_000]}).status_code == 201


@pytest.mark.parametrize("top_k", ["3", "１", True, 2.5])
def test_a_top_k_that_is_not_a_whole_number_is_refused(api: ServiceClient, top_k: object) -> None:
    refused = api.post("/episodic/search", {"agent_id": "planner", "query": "plans", "top_k": top_k})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["top_k"])


@pytest.mark.parametrize("flag", ["yes", 1])
def test_a_context_request_refuses_a_flag_that_is_not_a_boolean(api: ServiceClient, flag: object) -> None:
    body = {"agent_id": "planner", "conversation_id": "c", "query": "plans", "mark_injected": flag}

    refused = api.post("/context", body)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["mark_injected"])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/conversations/x/messages?limit=-1", "Must be a whole number from 1 to 200."),
        ("/conversations/x/messages?limit=201", "Must be a whole number from 1 to 200."),
        ("/strategies?min_success_rate=5", "Must be a number from 0 to 1, such as 0.75."),
        ("/strategies?min_success_rate=much", "Must be a number from 0 to 1, such as 0.75."),
    ],
)
def test_a_number_in_a_query_is_answered_with_its_range(bound_api: ServiceClient, path: str, sentence: str) -> None:
    bound_api.post("/conversations", {"conversation_id": "x"})

    [said] = bound_api.get(path).json()["errors"].values()

    assert said == [sentence]


@pytest.mark.parametrize("path", ["/memories", "/timeline", "/tool-invocations", "/conversations/x/turns"])
def test_a_range_of_time_ends_after_it_begins(bound_api: ServiceClient, path: str) -> None:
    bound_api.post("/conversations", {"conversation_id": "x"})

    refused = bound_api.get(f"{path}?since=2026-05-04T12:00:00Z&until=2026-05-04T14:00:00%2B02:00")

    assert (refused.status_code, refused.json()["errors"]) == (400, {"until": ["Must be later than `since`."]})


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/pools", {"pool_id": "p", "scope": "team"}, "Team is required for scope team."),
        (
            "/contexts",
            {"name": "c", "scope": "team"},
            "Team is required for scope team, and not allowed for other scopes.",
        ),
        ("/conversations", {"continues": "nope"}, "`continues` names a conversation that does not exist."),
    ],
)
def test_a_rule_is_told_in_the_names_of_the_fields(
    bound_api: ServiceClient, path: str, body: dict[str, Any], sentence: str
) -> None:
    assert bound_api.post(path, body).json()["detail"] == sentence

"""Tests of `/ledger/{conversation_id}`: retrieve, check, mark, evict."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger.journal import flush_journal
from ledger.models import Injection
from memory.models import Account, ApiKey
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient, segment
from tests.memory.conversation_requests import create

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept")]

PATH = "/ledger/c1"
ITEM = {"item_key": "skill:spacing-calculation"}


def test_an_item_is_marked_once(api: ServiceClient) -> None:
    first = api.post(f"{PATH}/mark", ITEM)
    second = api.post(f"{PATH}/mark", ITEM | {"value": "1"})

    assert (first.status_code, first.json()) == (200, ITEM | {"value": "injected", "first": True})
    assert (second.status_code, second.json()) == (200, ITEM | {"value": "injected", "first": False})


def test_a_check_returns_the_value_of_the_mark(api: ServiceClient) -> None:
    before = api.post(f"{PATH}/check", ITEM)
    api.post(f"{PATH}/mark", ITEM | {"value": "1"})
    after = api.post(f"{PATH}/check", ITEM)

    assert before.json() == ITEM | {"injected": False, "value": None}
    assert after.json() == ITEM | {"injected": True, "value": "1"}


def test_an_evicted_item_may_be_injected_again(api: ServiceClient) -> None:
    api.post(f"{PATH}/mark", ITEM)

    evicted = api.post(f"{PATH}/evict", ITEM)
    again = api.post(f"{PATH}/evict", ITEM)

    assert (evicted.json(), again.json()) == (ITEM | {"evicted": True}, ITEM | {"evicted": False})
    assert api.post(f"{PATH}/mark", ITEM).json()["first"] is True


def test_the_whole_ledger_is_returned_as_a_plain_object(api: ServiceClient) -> None:
    api.post(f"{PATH}/mark", {"item_key": "b"})
    api.post(f"{PATH}/mark", {"item_key": "a", "value": "1"})

    assert api.get(PATH).json() == {"a": "1", "b": "injected"}


def test_an_unknown_conversation_has_an_empty_ledger(api: ServiceClient) -> None:
    answer = api.get("/ledger/never-heard-of")

    assert (answer.status_code, answer.json()) == (200, {})


def test_the_ledger_of_another_account_looks_like_an_unknown_one(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    api.post(f"{PATH}/mark", ITEM)

    theirs = stranger_api.get(PATH)
    stranger_api.post(f"{PATH}/evict", ITEM)

    assert (theirs.status_code, theirs.content) == (200, stranger_api.get("/ledger/unknown").content)
    assert api.post(f"{PATH}/check", ITEM).json()["injected"] is True


def test_a_slash_in_an_id_does_not_start_a_sub_path(api: ServiceClient) -> None:
    path = f"/ledger/{segment('c1/check')}"

    api.post(f"{path}/mark", ITEM)

    assert api.get(path).json() == {ITEM["item_key"]: "injected"}
    assert api.get(PATH).json() == {}


@pytest.mark.parametrize("action", ["check", "mark", "evict"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"item_key": ""},
        {"item_key": None},
        {"item_key": 7},
        {"item_key": "k" * 301},
        ITEM | {"agent_id": "a" * 101},
        ITEM | {"unknown": 1},
    ],
)
def test_an_invalid_request_body_is_refused(api: ServiceClient, action: str, body: Any) -> None:
    answer = api.post(f"{PATH}/{action}", body)

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert api.get(PATH).json() == {}


@pytest.mark.parametrize("value", ["", None, 1, "v" * 201])
def test_an_invalid_value_is_refused(api: ServiceClient, value: Any) -> None:
    assert api.post(f"{PATH}/mark", ITEM | {"value": value}).status_code == 400


def test_texts_of_the_maximum_length_are_journalled(api: ServiceClient) -> None:
    body = {"item_key": "ü" * 300, "value": "ä" * 200, "agent_id": "ö" * 100}

    assert api.post(f"/ledger/{segment('c' * 100)}/mark", body).status_code == 200

    assert flush_journal(10).changed == 1


def test_the_journal_stores_the_agent(api: ServiceClient, bound_api: ServiceClient) -> None:
    create(api, "c1")
    api.post(f"{PATH}/mark", ITEM | {"agent_id": "ana"})
    bound_api.post(f"{PATH}/evict", ITEM)

    flush_journal(10)

    events = Injection.objects.in_order().values_list("event", "agent_id", "conversation_id")
    assert list(events) == [("marked", "ana", "c1"), ("evicted", "assistant", "c1")]


def test_a_key_bound_to_one_agent_cannot_use_the_id_of_another(bound_api: ServiceClient) -> None:
    create(bound_api, "c1")
    answers = [bound_api.post(f"{PATH}/{action}", ITEM | {"agent_id": "ben"}) for action in ("check", "mark", "evict")]
    answers.append(bound_api.get(f"{PATH}?agent_id=ben"))

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "wrong_agent")] * 4


def test_a_read_only_key_may_read_and_check_but_not_mark_or_evict(
    account: Account, client_for: Callable[[str], ServiceClient]
) -> None:
    reader = client_for(issue_key(account, scopes=(ApiKey.Scope.READ,)).secret)

    statuses = [reader.post(f"{PATH}/{action}", ITEM).status_code for action in ("check", "mark", "evict")]

    assert (reader.get(PATH).status_code, statuses) == (200, [200, 403, 403])


def test_a_request_without_an_api_key_is_refused() -> None:
    assert ServiceClient().get(PATH).status_code == 401


def test_a_mark_repeated_with_its_idempotency_key_returns_first_again(api: ServiceClient) -> None:
    answers = [api.post(f"{PATH}/mark", ITEM, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2)]

    assert [answer.json()["first"] for answer in answers] == [True, True]

"""Lists of facts: true at a time, as believed at a time, filtered, page by page."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory.models import Fact
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.fact_requests import CLAIM, ME, MUNICH, act, correct, entity_of, learn, listed, read, said_by

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


@pytest.fixture
def fact_id(api: ServiceClient) -> str:
    """Return the id of a fact that `assistant` learned."""
    return str(learn(api).json()["id"])


def test_a_list_contains_the_facts_that_are_true_now_or_at_a_given_time(api: ServiceClient) -> None:
    learn(api, "was", valid_to="2020-01-01T00:00:00Z")
    learn(api, "is", valid_from="2020-01-01T00:00:00Z")
    learn(api, "will be", valid_from="2099-01-01T00:00:00Z")

    assert listed(api) == ["is"]
    assert listed(api, as_of="2019-01-01T00:00:00Z") == ["was"]
    assert listed(api, as_of="2099-01-01T00:00:00Z") == ["will be", "is"]


def test_facts_that_begin_later_are_listed_as_active_and_as_future_ones(api: ServiceClient) -> None:
    learn(api, "is", temporal="future")
    learn(api, "will be", temporal="future", valid_from="2099-01-01T00:00:00Z")
    learn(api, "over", temporal="future", valid_to="2020-01-01T00:00:00Z")
    wrong = learn(api, "wrong", temporal="future", valid_from="2099-01-01T00:00:00Z").json()["id"]
    act(api, wrong, "reject")

    assert listed(api) == ["is"]
    assert listed(api, temporal="future") == listed(api, status="active") == ["will be", "is"]
    assert listed(api, temporal="current") == listed(api, temporal="current", status="active") == []
    assert listed(api, temporal="future", as_of="2026-01-01T00:00:00Z") == []
    assert listed(api, temporal="future", status="ended") == ["over"]
    assert listed(api, temporal="future", min_confidence="0.5") == ["will be", "is"]


def test_a_future_fact_that_was_wrong_all_along_is_no_active_one(api: ServiceClient) -> None:
    old = learn(api, valid_from="2099-01-01T00:00:00Z", valid_to="2099-12-01T00:00:00Z").json()["id"]

    act(api, old, "supersede", claim=MUNICH, valid_from="2098-01-01T00:00:00Z")

    assert listed(api, status="active") == [MUNICH]


def test_facts_that_are_over_have_a_status_of_their_own(api: ServiceClient) -> None:
    ended = learn(api, "was", valid_to="2020-01-01T00:00:00Z").json()
    learn(api, "is", valid_to="2999-01-01T00:00:00Z")
    old = learn(api, CLAIM).json()["id"]
    act(api, old, "supersede", claim=MUNICH)

    assert (ended["status"], read(api, ended["id"])["status"]) == ("ended", "ended")
    assert (listed(api, status="ended"), listed(api, status="superseded")) == (["was"], [CLAIM])
    assert listed(api, status="ended", min_confidence="1", temporal="current") == ["was"]
    assert listed(api, status="ended", as_of="2019-01-01T00:00:00Z") == ["was"]
    assert listed(api, status="active", as_of="2019-01-01T00:00:00Z") == []
    assert listed(api, status="active") == [MUNICH, "is"]


def test_a_list_with_known_at_contains_the_facts_believed_at_that_time(api: ServiceClient, fact_id: str) -> None:
    recorded = read(api, fact_id)["recorded_at"]
    correct(api, fact_id, claim=MUNICH, confidence=0.4, temporal="past")

    [then] = api.get("/facts", {"agent_id": "assistant", "known_at": recorded}).json()["results"]

    assert (then["claim"], then["confidence"], then["belief_number"], then["temporal"]) == (CLAIM, 1.0, 1, "current")
    assert listed(api) == [MUNICH]
    assert listed(api, known_at=recorded, temporal="past") == []
    assert listed(api, known_at=recorded, temporal="current", min_confidence="0.9") == [CLAIM]
    assert listed(api, known_at="2020-01-01T00:00:00Z") == []


def test_a_list_of_facts_is_filtered_by_every_parameter(api: ServiceClient) -> None:
    ana, said = entity_of(api), said_by(api)
    learn(api, "of Ana", entities=[ana], source_turn_id=said)
    learn(api, "unsure", certainty="uncertain")
    learn(api, "past", temporal="past", confidence=0.4)
    learn(api, "of Ana, from elsewhere", source_turn_id=said_by(api, conversation_id="c2"))
    learn(api, "of Ana, from elsewhere", source_turn_id=said)

    assert listed(api, entity=ana) == ["of Ana"]
    assert listed(api, certainty="uncertain") == ["unsure"]
    assert listed(api, temporal="past") == ["past"]
    assert listed(api, min_confidence="0.5") == ["of Ana, from elsewhere", "unsure", "of Ana"]
    assert listed(api, conversation_id="c1") == ["of Ana, from elsewhere", "of Ana"]
    assert listed(api, conversation_id="c2") == ["of Ana, from elsewhere"]
    assert listed(api, source_turn_id=said) == ["of Ana"]
    assert listed(api, entity=str(uuid4())) == []


def test_a_fact_that_is_superseded_from_a_later_day_on_is_active_until_then(api: ServiceClient, fact_id: str) -> None:
    later = (timezone.now() + timedelta(days=30)).isoformat()
    act(api, fact_id, "supersede", claim=MUNICH, valid_from=later)

    listed_status = {row["id"]: row["status"] for row in api.get("/memories?agent_id=assistant").json()["results"]}
    found = api.post("/recall", {"agent_id": "assistant", "query": CLAIM, "as_of": timezone.now().isoformat()}).json()
    recalled = {each["id"]: each["status"] for each in found["results"]}

    assert (listed(api, status="active"), listed(api, status="superseded")) == ([MUNICH, CLAIM], [])
    assert api.get(f"/facts/{fact_id}?agent_id=assistant").json()["status"] == "active"
    assert api.get(f"/memories/{fact_id}?agent_id=assistant").json()["status"] == "active"
    assert (listed_status[fact_id], recalled[fact_id]) == ("active", "active")


def test_facts_of_other_statuses_are_listed_even_if_not_true_now(api: ServiceClient, fact_id: str) -> None:
    act(api, fact_id, "supersede", claim=MUNICH)

    assert (listed(api), listed(api, status="active")) == ([MUNICH], [MUNICH])
    assert listed(api, status="superseded") == [CLAIM]
    assert listed(api, status="superseded", min_confidence="0.5") == [CLAIM]
    assert listed(api, status="superseded", as_of=timezone.now().isoformat()) == []
    assert listed(api, status="rejected") == []


@pytest.mark.parametrize(
    "asked",
    [
        {"as_of": "now"},
        {"as_of": "2026-01-01T00:00:00"},
        {"known_at": ""},
        {"min_confidence": "1.2"},
        {"min_confidence": "nan"},
        {"min_confidence": "1e-1"},
        {"status": "believed"},
        {"temporal": "soon"},
        {"certainty": "sure"},
        {"entity": "Ana"},
        {"source_turn_id": "first"},
        {"surprise": "1"},
    ],
    ids=str,
)
def test_a_list_with_invalid_filters_is_refused(api: ServiceClient, asked: dict[str, str]) -> None:
    answer = api.get("/facts", asked)

    assert (answer.status_code, set(answer.json()["errors"])) == (400, set(asked))


@pytest.mark.parametrize(
    ("as_of", "part"),
    [
        ("2026-05-01T00:00:00+01:00", "%2B"),
        ("2026-05-01T00:00:00.5+0100", "%2B"),
        ("0001-01-01T00:00:00%2B14:00", "from year 1 to year 9999"),
        ("9999-12-31T23:59:59-12:00", "from year 1 to year 9999"),
        ("2026-05-01+01:00", "time zone is missing"),
        ("1+May+2026", "ISO 8601"),
    ],
)
def test_a_refused_time_says_what_is_wrong_with_it(api: ServiceClient, as_of: str, part: str) -> None:
    answer = api.get(f"/facts?agent_id=assistant&as_of={as_of}")

    assert answer.status_code == 400
    assert part in answer.json()["errors"]["as_of"][0]


def test_pages_of_facts_known_at_a_time_neither_skip_nor_repeat(api: ServiceClient) -> None:
    for number in range(5):
        learn(api, f"number {number}")
    moment, seen = timezone.now(), []
    for fact in Fact.objects.all():
        act(api, str(fact.id), "reject")
    url = f"/facts?page_size=2&known_at={moment.isoformat().replace('+', '%2B')}"

    while url:
        page = api.get(url).json()
        seen += [fact["claim"] for fact in page["results"]]
        url = page["next"] and page["next"].split("/api/v1", 1)[1]

    assert seen == [f"number {number}" for number in (4, 3, 2, 1, 0)]


def test_reads_of_facts_use_a_fixed_number_of_queries(
    api: ServiceClient, fact_id: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    moment = (timezone.now() + timedelta(minutes=1)).isoformat()

    for asked in ({}, {"known_at": moment, "as_of": moment}, {"entity": str(uuid4()), "conversation_id": "c1"}):
        with django_assert_num_queries(2):  # the key, and the page
            api.get("/facts", {"agent_id": "assistant", **asked})
    with django_assert_num_queries(5):  # the key, the fact, its versions, its links both ways
        api.get(f"/facts/{fact_id}?{ME}")

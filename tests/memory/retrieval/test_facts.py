"""Search in facts: by meaning and by words, true at a time and as believed at a time."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account
from memory.owner import Owner
from memory.retrieval.kind_searches import search_facts
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact, supersede_fact
from tests.memory.episodes import NOTHING, NOW, query
from tests.memory.facts import CLAIM, day, fact_draft, know
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db


def found(owner: Owner, text: str = "anything", *, angle: float | None = 0.0, **asked: Any) -> list[str]:
    return [hit.claim for hit in search_facts(owner, query(text, angle=angle), **{"now": NOW, **asked}).hits]


def test_the_nearest_come_first(owner: Owner) -> None:
    know(owner, "far", angle=1.0)
    know(owner, "near", angle=0.1)

    assert found(owner) == ["near", "far"]
    assert [hit.claim for hit in search_facts(owner, query(top_k=1), now=NOW).hits] == ["near"]


def test_a_hit_has_the_belief_times_and_source_of_its_fact(owner: Owner) -> None:
    said = say(owner, turn("I live in Berlin.")).turns[0]
    fact = know(owner, angle=0.1, certainty="implied", valid_from=day(-3), turn_ids=[said.id])

    [hit] = search_facts(owner, query(), now=NOW).hits

    assert (hit.id, hit.item_key, hit.claim) == (fact.id, f"fact:{fact.id}", CLAIM)
    assert (hit.confidence, hit.certainty, hit.temporal, hit.status) == (0.85, "implied", "current", "active")
    assert (hit.valid_from, hit.valid_to, hit.recorded_at, hit.retracted_at) == (day(-3), None, NOW, None)
    assert (hit.source_turn_id, hit.conversation_id) == (said.id, "c1")


def test_a_fact_without_a_vector_is_found_by_its_words(owner: Owner) -> None:
    know(owner)
    know(owner, "Bob has a dog.")

    answer = search_facts(owner, query("Berlin", angle=None), now=NOW)

    assert [hit.claim for hit in answer.hits] == [CLAIM]
    assert answer.degraded == ["embedder_unavailable", "embedding_pending"]


@pytest.mark.parametrize("angle", [0.1, None], ids=["by meaning", "by words"])
def test_a_search_finds_facts_that_are_true_at_the_requested_time(owner: Owner, angle: float | None) -> None:
    for claim, times in {
        "rain before": {"valid_to": day(-1)},
        "rain today": {"valid_from": day(-1), "valid_to": day(1)},
        "rain later": {"valid_from": day(1)},
    }.items():
        know(owner, claim, angle=angle, **times)

    found_by_day = {number: found(owner, "rain", as_of=day(number)) for number in (-2, -1, 0, 1)}

    assert found_by_day == {-2: ["rain before"], -1: ["rain today"], 0: ["rain today"], 1: ["rain later"]}
    assert found(owner, "rain today") == ["rain today"]


def test_retracted_rejected_and_superseded_facts_are_not_found(owner: Owner) -> None:
    retract_fact(owner, know(owner, "retracted", angle=0.1).id, now=NOW)
    reject_fact(owner, know(owner, "rejected", angle=0.1).id, now=NOW)
    old = know(owner, "old", angle=0.1)
    supersede_fact(owner, old.id, fact_draft("new", angle=0.2), embedded=NOTHING, now=day(1))

    assert found(owner, now=day(1)) == ["new"]
    assert found(owner, as_of=NOW, now=day(1)) == ["old"]


def test_a_search_with_known_at_finds_a_fact_as_it_was_known_then(owner: Owner) -> None:
    fact = know(owner, angle=0.1, confidence=0.5, now=day(-3))
    changes = {"claim": "Ana lives in Munich.", "confidence": 0.9, "valid_from": day(-9), "temporal": "past"}
    own = fact_draft(angle=0.2).own
    correct_fact(owner, fact.id, changes=changes, embedded=NOTHING, own=own, now=day(-1))

    [before], [after] = (search_facts(owner, query(), known_at=day(number), now=NOW).hits for number in (-3, -1))

    assert (before.claim, before.confidence, before.valid_from, before.temporal) == (CLAIM, 0.5, day(-3), "current")
    assert (before.recorded_at, before.retracted_at) == (day(-3), day(-1))
    assert (after.claim, after.confidence, after.valid_from, after.retracted_at) == (
        *("Ana lives in Munich.", 0.9, day(-9)),
        None,
    )
    assert found(owner, known_at=day(-4)) == []
    assert found(owner, known_at=day(-2), as_of=day(-2)) == [CLAIM]
    assert found(owner, known_at=day(-2), as_of=day(-5)) == []
    assert found(owner, known_at=day(-1), as_of=day(-5)) == ["Ana lives in Munich."]
    assert found(owner, known_at=day(-1), as_of=day(-20)) == []


def test_min_confidence_applies_to_the_confidence_known_then(owner: Owner) -> None:
    know(owner, angle=0.1, confidence=0.5, now=day(-3))
    know(owner, confidence=0.9, now=day(-1))

    assert found(owner, min_confidence=0.9) == [CLAIM]
    assert found(owner, min_confidence=0.91) == []
    assert found(owner, min_confidence=0.6, known_at=day(-2)) == []
    assert found(owner, min_confidence=0.5, known_at=day(-2)) == [CLAIM]


def test_a_search_by_status_finds_retracted_facts(owner: Owner) -> None:
    retract_fact(owner, know(owner, angle=0.1).id, now=NOW)
    know(owner, "active", angle=0.1)

    hits = search_facts(owner, replace(query(), types=("retracted",)), now=NOW).hits

    assert [(hit.claim, hit.status) for hit in hits] == [(CLAIM, "retracted")]


def test_filtered_out_facts_do_not_reduce_the_number_of_results(owner: Owner) -> None:
    for number in range(20):
        know(owner, f"over {number}", angle=0.01, valid_to=day(-1))
    for number in range(3):
        know(owner, f"true {number}", angle=1.0)

    assert len(search_facts(owner, query(top_k=3), now=NOW).hits) == 3


def test_facts_of_other_agents_users_channels_and_accounts_are_not_found(owner: Owner, stranger: Account) -> None:
    know(replace(owner, channel="atlas"), angle=0.1)
    know(replace(owner, user_id="ana"), "Ana's", angle=0.1)

    assert found(owner) == ["Ana's"]
    assert found(replace(owner, agent_id="colleague")) == found(Owner(account_id=stranger.id)) == []
    assert found(replace(owner, agent_id="colleague", user_id="ana")) == ["Ana's"]
    assert found(replace(owner, agent_id="colleague", user_id="bob")) == []


@pytest.mark.parametrize("asked", [{}, {"as_of": day(-1)}, {"known_at": NOW}, {"min_confidence": 0.5}], ids=str)
def test_a_search_is_one_statement(
    owner: Owner, asked: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    know(owner, angle=0.1)

    with django_assert_num_queries(1):
        found(owner, **asked)

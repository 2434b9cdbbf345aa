"""Learning facts about entities from turns, and reading them as of any time."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Entity, Fact, FactVersion, Link, Memory, Participant
from memory.owner import Owner
from memory.services.facts.learn import learn_facts
from memory.services.facts.store import find_fact
from memory.services.memories.correct import mark_memories
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, learn_claim, reread, versions_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


@pytest.fixture
def ana(owner: Owner) -> Entity:
    return entity_of(owner, "Ana")


def links(fact: Fact, link_type: str) -> list[Any]:
    return list(
        Link.objects.filter(source_id=fact.id, type=link_type).order_by("id").values_list("target_id", flat=True)
    )


def test_a_learned_fact_is_believed_and_true_now(owner: Owner) -> None:
    result = learn_claim(owner, confidence=0.8)

    assert result.is_new
    assert claims(owner) == [CLAIM]
    [version] = versions_of(result.fact)
    assert (version.number, version.claim, version.confidence, version.reason) == (1, CLAIM, 0.8, "learned")
    assert (version.recorded_at, version.retracted_at) == (NOW, None)


@pytest.mark.parametrize(
    ("given", "confidence"),
    [
        ({}, 1.0),
        ({"certainty": "explicit"}, 0.95),
        ({"certainty": "implied"}, 0.85),
        ({"certainty": "inferred"}, 0.70),
        ({"certainty": "uncertain"}, 0.50),
        ({"certainty": "uncertain", "confidence": 0.6}, 0.6),
        ({"confidence": 0.0}, 0.0),
    ],
    ids=str,
)
def test_certainty_implies_confidence_unless_that_is_given(
    owner: Owner, given: dict[str, Any], confidence: float
) -> None:
    assert know(owner, **given).confidence == confidence


@pytest.mark.parametrize("again", [CLAIM, "ana lives in  Berlin!", "ANA LIVES IN BERLIN"])
def test_a_known_claim_returns_the_existing_fact(owner: Owner, again: str) -> None:
    first, repeated = learn_claim(owner), learn_claim(owner, again, now=day(1))

    assert (repeated.fact.id, repeated.is_new, repeated.fact.text) == (first.fact.id, False, CLAIM)
    assert Fact.objects.count() == FactVersion.objects.count() == 1


def test_learning_again_with_more_confidence_raises_it(owner: Owner) -> None:
    fact = know(owner, confidence=0.5)

    for confidence in (0.7, 0.6):
        repeated = know(owner, confidence=confidence, now=day(1))

    assert repeated.confidence == reread(owner, fact).confidence == 0.7
    assert [(version.confidence, version.reason) for version in versions_of(fact)] == [
        (0.5, "learned"),
        (0.7, "confirmed"),
    ]
    assert claims(owner, known_at=NOW, min_confidence=0.6) == []
    assert claims(owner, known_at=day(1), min_confidence=0.6) == [CLAIM]


def test_learning_again_with_an_earlier_start_extends_validity(owner: Owner) -> None:
    fact = know(owner, valid_from=day(10))
    assert claims(owner) == []

    know(owner)

    assert (reread(owner, fact).valid_from, claims(owner)) == (NOW, [CLAIM])


def test_a_fact_without_dates_begins_when_it_was_said(owner: Owner) -> None:
    stored = know(owner)
    imported = know(owner, "Ana owns a boat.", event_time=day(-9))
    over = know(owner, "Ana rented a van.", temporal="past", valid_to=day(-3))

    assert [(fact.valid_from, fact.valid_from_source) for fact in (stored, imported, over)] == [
        (NOW, "said"),
        (day(-9), "said"),
        (None, None),
    ]
    assert claims(owner, as_of=day(-1)) == ["Ana owns a boat."]


def test_dated_facts_with_other_times_are_other_facts(owner: Owner) -> None:
    trip: dict[str, Any] = {"temporal": "past", "valid_from": day(-9), "valid_to": day(-8)}

    again = [
        learn_claim(owner, "Ana went to Rome.", **(trip | times)).is_new for times in ({}, {}, {"valid_to": day(-7)})
    ]

    assert again == [True, False, True]


def test_the_same_claim_of_another_holder_or_channel_is_another_fact(owner: Owner, colleague: Owner) -> None:
    owners = [owner, colleague, replace(owner, user_id="ana"), replace(owner, channel="atlas")]

    assert [learn_claim(each).is_new for each in owners] == [True] * 4


def test_a_claim_given_twice_in_one_call_is_one_fact(owner: Owner) -> None:
    drafts = [fact_draft(confidence=0.5), fact_draft("Ana has a dog."), fact_draft(confidence=0.9)]

    learned = learn_facts(owner, drafts, embedded=NOTHING, now=NOW)

    assert [each.is_new for each in learned] == [True, True, False]
    assert learned[0].fact is learned[2].fact
    stored = Fact.objects.get(text=CLAIM)
    assert stored.confidence == 0.9


def test_no_drafts_learn_nothing(owner: Owner) -> None:
    assert learn_facts(owner, [], embedded=NOTHING, now=NOW) == []


def test_a_fact_is_about_entities_and_from_turns(owner: Owner, ana: Entity) -> None:
    turns = say(owner, turn("I moved to Berlin."), turn("Yes, Berlin.")).turns

    fact = know(owner, entity_ids=[ana.id], turn_ids=[each.id for each in turns])

    assert links(fact, "ABOUT") == [ana.id]
    assert set(links(fact, "DERIVED_FROM")) == {each.id for each in turns}
    assert (fact.source_turn_id, fact.conversation_id) == (turns[0].id, "c1")


def test_evidence_grows_when_a_fact_is_learned_again(owner: Owner, ana: Entity) -> None:
    turns = say(owner, turn("I moved to Berlin."), turn("Yes, Berlin.")).turns

    for each in (*turns, turns[0]):
        fact = know(owner, turn_ids=[each.id], entity_ids=[ana.id])

    assert len(links(fact, "DERIVED_FROM")) == 2
    assert (links(fact, "ABOUT"), fact.source_turn_id) == ([ana.id], turns[0].id)


def test_entities_of_others_and_unknown_ids_are_refused(
    owner: Owner, colleague: Owner, stranger: Account, ana: Entity
) -> None:
    theirs = entity_of(Owner(account_id=stranger.id), "Ana")
    users = entity_of(replace(owner, user_id="bob"), "Ana")
    archived = entity_of(owner, "Berlin", type="place")
    mark_memories(owner, [archived.id], mark="archive", now=NOW)

    for entity_id in (theirs.id, users.id, archived.id, know(owner, "Ana has a dog.").id, uuid4()):
        with pytest.raises(Unprocessable, match="there is no entity"):
            know(owner, entity_ids=[entity_id])
    with pytest.raises(Unprocessable, match="there is no entity"):
        know(colleague, entity_ids=[ana.id])

    assert Fact.objects.count() == 1


def test_the_account_may_name_any_entity_of_its_own(whole_account: Owner, ana: Entity) -> None:
    assert links(know(whole_account, entity_ids=[ana.id]), "ABOUT") == [ana.id]


def test_turns_of_conversations_without_the_agent_are_refused(
    owner: Owner, colleague: Owner, stranger: Account, ana: Entity
) -> None:
    source = say(colleague, turn("I moved to Berlin.")).turns[0]
    elsewhere = say(Owner(account_id=stranger.id, agent_id="assistant"), turn("I moved.")).turns[0]

    for turn_id in (source.id, elsewhere.id, ana.id, uuid4()):
        with pytest.raises(Unprocessable, match="there is no turn"):
            know(owner, turn_ids=[turn_id])

    assert not Participant.objects.filter(agent_id="assistant", account_id=owner.account_id).exists()


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    "change",
    [
        {"claim": " \n"},
        {"claim": "x" * 10_001},
        {"claim": "nul\x00"},
        {"confidence": 1.2},
        {"confidence": -0.1},
        {"confidence": float("nan")},
        {"certainty": "sure"},
        {"temporal": "soon"},
        {"valid_from": NAIVE},
        {"valid_to": NAIVE},
        {"valid_from": day(1), "valid_to": day(0)},
        {"valid_from": day(1), "valid_to": day(1)},
    ],
    ids=lambda change: str(change)[:40],
)
def test_invalid_drafts_are_refused(owner: Owner, change: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        learn_facts(owner, [fact_draft("plain"), fact_draft(**change)], embedded=NOTHING, now=NOW)

    assert not Fact.objects.exists()


def test_reads_return_facts_that_were_true_at_the_given_time(owner: Owner) -> None:
    know(owner, "was", valid_to=day(-1))
    know(owner, "is", valid_from=day(-1), valid_to=day(1))
    know(owner, "will be", valid_from=day(1), now=day(-3))

    claims_by_day = {number: claims(owner, as_of=day(number)) for number in (-2, -1, 0, 1)}

    assert claims_by_day == {-2: ["was"], -1: ["is"], 0: ["is"], 1: ["will be"]}
    assert claims(owner, as_of=day(1), known_at=day(-2)) == ["will be"]


def test_reads_look_in_the_channel_and_in_global(owner: Owner) -> None:
    for channel in ("_global", "atlas", "zephyr"):
        know(replace(owner, channel=channel), channel)

    assert claims(owner) == ["_global"]
    assert claims(replace(owner, channel="atlas")) == ["_global", "atlas"]


def test_users_share_their_facts_among_agents_and_agents_keep_theirs(
    owner: Owner, colleague: Owner, whole_account: Owner, stranger: Account
) -> None:
    know(owner, "the agent's")
    know(replace(owner, user_id="ana"), "Ana's")
    know(whole_account, "everybody's")

    assert claims(replace(colleague, user_id="ana")) == ["Ana's", "everybody's"]
    assert claims(replace(owner, user_id="bob")) == ["the agent's", "everybody's"]
    assert claims(replace(colleague, user_id="bob")) == claims(colleague) == ["everybody's"]
    assert claims(Owner(account_id=stranger.id)) == []
    assert claims(whole_account) == claims(owner) == ["the agent's", "Ana's", "everybody's"]


def test_a_fact_is_found_by_its_id_in_any_channel_at_any_time(
    owner: Owner, colleague: Owner, stranger: Account
) -> None:
    fact = know(replace(owner, channel="atlas"), valid_to=day(-1))

    assert find_fact(owner, fact.id).text == CLAIM
    for other in (colleague, Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            find_fact(other, fact.id)


@pytest.mark.parametrize("mark", ["archive", "quarantine"])
def test_a_hidden_fact_is_neither_listed_nor_found(owner: Owner, mark: str) -> None:
    fact = know(owner)

    mark_memories(owner, [fact.id], mark=mark, now=NOW)

    assert claims(owner) == []
    with pytest.raises(NotFound):
        find_fact(owner, fact.id)


def test_learning_again_restores_an_archived_or_expired_fact(owner: Owner) -> None:
    fact, other = know(owner), know(owner, "Ana has a dog.")
    mark_memories(owner, [fact.id], mark="archive", now=NOW)
    Memory.objects.filter(id=other.id).update(expires_at=day(-1))
    assert claims(owner) == []

    for claim in (CLAIM, "Ana has a dog."):
        assert not learn_claim(owner, claim).is_new

    assert claims(owner) == [CLAIM, "Ana has a dog."]


def test_a_quarantined_fact_cannot_be_learned_again(owner: Owner) -> None:
    mark_memories(owner, [know(owner).id], mark="quarantine", now=NOW)

    with pytest.raises(Conflict, match="in quarantine"):
        learn_claim(owner)

    assert claims(owner) == []


def test_the_audit_log_holds_ids_and_no_claim(owner: Owner) -> None:
    fact = know(owner, confidence=0.5)
    know(owner, confidence=0.9)

    entries = AuditEntry.objects.filter(affected_ids=[str(fact.id)]).order_by("id")

    assert list(entries.values_list("operation", "memory_type")) == [("store", "semantic"), ("confirm", "semantic")]
    assert not any("Berlin" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_a_refusal_leaves_nothing_in_a_surrounding_transaction(owner: Owner) -> None:
    with transaction.atomic():
        with pytest.raises(Unprocessable):
            know(owner, entity_ids=[uuid4()])
        know(owner, "Ana has a dog.")

    assert claims(owner) == ["Ana has a dog."]


def test_learning_costs_as_many_queries_as_stated(
    owner: Owner, ana: Entity, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    source = say(owner, turn("I moved to Berlin.")).turns[0]
    evidence: dict[str, Any] = {"entity_ids": [ana.id], "turn_ids": [source.id]}

    with django_assert_num_queries(12):  # two of them the savepoint's
        know(owner, angle=0.0, **evidence)
    with django_assert_num_queries(10):
        know(owner, **evidence)
    with django_assert_num_queries(13):
        drafts = [fact_draft(f"number {number}", angle=0.0, **evidence) for number in range(20)]
        learn_facts(owner, [*drafts, fact_draft()], embedded=NOTHING, now=NOW)

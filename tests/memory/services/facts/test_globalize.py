"""Prominent facts, at the edge of each threshold, and how they are globalized."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import F

from memory.models import AuditEntry, Fact, Link, Memory, Participant
from memory.owner import Owner
from memory.services.facts.globalize import GlobalizeThresholds, find_prominent_facts, globalize_fact, globalize_facts
from memory.services.facts.store import read_fact_history
from memory.services.facts.supersede import reject_fact, retract_fact
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, know, reread
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]

THRESHOLDS = GlobalizeThresholds(promote_confidence=0.85, promote_access_count=5, promote_conversations=2)


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    return replace(owner, channel="atlas")


def turns_in(owner: Owner, *conversation_ids: str) -> list[Any]:
    turns = [say(owner, turn("I live in Berlin."), conversation_id=each).turns[0] for each in conversation_ids]
    return [each.id for each in turns]


def prominent(owner: Owner, claim: str = CLAIM, *, reads: int = 5, **fields: Any) -> Fact:
    """Store a fact that is just prominent, unless `fields` of the draft make it differ."""
    wanted: dict[str, Any] = {"confidence": 0.85, "turn_ids": turns_in(owner, "c1", "c2")} | fields
    fact = know(owner, claim, **wanted)
    Memory.objects.filter(id=fact.id).update(access_count=reads)
    return fact


def found(*, thresholds: GlobalizeThresholds = THRESHOLDS) -> list[Fact]:
    return list(find_prominent_facts(now=NOW, thresholds=thresholds).order_by("id"))


def promote(*facts: Fact) -> Counter[str]:
    return globalize_facts(facts or found(), now=NOW, thresholds=THRESHOLDS)


@pytest.mark.parametrize(
    ("fields", "is_prominent"),
    [
        ({}, True),
        ({"confidence": 0.8499}, False),
        ({"reads": 4}, False),
        ({"valid_from": day(-1), "valid_to": NOW}, False),
        ({"valid_from": NOW, "valid_to": day(1)}, True),
        ({"valid_from": day(1)}, False),
    ],
)
def test_a_fact_is_prominent_from_each_threshold_on(atlas: Owner, fields: dict[str, Any], is_prominent: bool) -> None:
    prominent(atlas, **fields)

    assert bool(found()) is is_prominent


@pytest.mark.parametrize(
    ("conversation_id", "conversation_ids", "is_prominent"),
    [
        ("", ("c1",), False),
        ("", ("c1", "c2"), True),
        ("c1", ("c1",), False),
        ("c1", ("c2",), True),
        ("c1", (), False),
    ],
)
def test_conversations_are_its_own_and_those_of_its_turns(
    atlas: Owner, conversation_id: str, conversation_ids: tuple[str, ...], is_prominent: bool
) -> None:
    fact = prominent(atlas, turn_ids=turns_in(atlas, *conversation_ids))
    Memory.objects.filter(id=fact.id).update(conversation_id=conversation_id)

    assert bool(found()) is is_prominent


def test_facts_need_no_conversation_if_the_threshold_is_zero(atlas: Owner) -> None:
    prominent(atlas, turn_ids=[])

    assert len(found(thresholds=replace(THRESHOLDS, promote_conversations=0))) == 1


def test_only_live_believed_facts_of_a_project_are_prominent(owner: Owner, atlas: Owner) -> None:
    prominent(owner, "It is known everywhere.")
    retracted = prominent(atlas, "It was retracted.")
    retract_fact(atlas, retracted.id, now=NOW)
    for column, value in {"archived": True, "quarantined": True, "expires_at": NOW}.items():
        hidden = prominent(atlas, f"It has {column}.")
        Memory.objects.filter(id=hidden.id).update(**{column: value})

    assert found() == []


def test_a_prominent_fact_is_globalized_once_with_its_evidence(atlas: Owner) -> None:
    of_ana = replace(atlas, user_id="ana")
    fact = prominent(of_ana, entity_ids=[entity_of(of_ana, "Ana").id])

    assert promote() == Counter(facts_promoted=1, links_made=4, versions_made=1)
    assert promote() == Counter()

    copy = Fact.objects.get(channel="_global")
    assert (copy.text, copy.agent_id, copy.user_id, copy.confidence) == (CLAIM, "assistant", "ana", 0.85)
    assert copy.embed_after is None
    history = read_fact_history(reread(of_ana, copy))
    assert (history.promoted_from, set(history.turns)) == ([fact.id], set(read_fact_history(fact).turns))
    assert reread(of_ana, fact).status == "active"


def test_an_agent_that_was_removed_from_the_conversation_does_not_take_part_again(atlas: Owner) -> None:
    opened = turns_in(atlas, "c1")
    cook = replace(atlas, agent_id="cook")
    prominent(cook, turn_ids=[*opened, *turns_in(cook, "c1", "c2")], conversation_id="c1")
    Participant.objects.filter(agent_id="cook", conversation_id="c1").delete()

    assert promote()["facts_promoted"] == 1

    assert not Participant.objects.filter(agent_id="cook", conversation_id="c1").exists()


def test_the_audit_log_has_the_figures_and_the_thresholds(atlas: Owner) -> None:
    prominent(atlas, reads=7)

    globalize_facts(found(), now=NOW, thresholds=replace(THRESHOLDS, promote_access_count=7))

    entry = AuditEntry.objects.get(operation="promote")
    assert (entry.actor, entry.agent_id, entry.promoted_from_channel) == ("job:globalize_facts", "assistant", "atlas")
    assert (entry.promotion_confidence, entry.promotion_access_count) == (0.85, 7)
    assert entry.promotion_conversation_count == 2
    asked = {"promote_confidence": 0.85, "promote_access_count": 7, "promote_conversations": 2}
    assert asked.items() <= entry.config_snapshot.items()


def test_equal_facts_of_two_channels_become_one_copy(owner: Owner, atlas: Owner) -> None:
    prominent(atlas)
    prominent(replace(owner, channel="borea"), confidence=0.95, turn_ids=turns_in(owner, "c3", "c4"))

    done = promote()

    assert done == Counter(facts_promoted=1, facts_known=1, links_made=6, versions_made=2)
    copy = Fact.objects.get(channel="_global")
    assert (copy.confidence, Link.objects.filter(source_id=copy.id, type="PROMOTED_FROM").count()) == (0.95, 2)


def test_an_archived_copy_is_restored(owner: Owner, atlas: Owner) -> None:
    known = know(owner)
    Memory.objects.filter(id=known.id).update(archived=True)
    prominent(atlas)

    assert promote() == Counter(facts_known=1, facts_revived=1, links_made=3)

    assert claims(owner) == [CLAIM]


def test_a_fact_that_global_refuses_does_not_block_others(owner: Owner, atlas: Owner) -> None:
    rejected, hidden = know(owner, "It was rejected."), know(owner, "It is in quarantine.")
    prominent(atlas, "It is in quarantine.")
    reject_fact(owner, rejected.id, now=NOW)
    Memory.objects.filter(id=hidden.id).update(quarantined=True)
    prominent(atlas, "It is fine.")

    assert promote() == Counter(facts_promoted=1, refused=1, links_made=3, versions_made=1)

    assert claims(owner) == ["It is fine."]


def test_a_fact_that_changed_since_it_was_found_is_skipped(atlas: Owner) -> None:
    fact = prominent(atlas)
    stale = found()
    Memory.objects.filter(id=fact.id).update(access_count=F("access_count") - 1)

    assert promote(*stale) == Counter()

    assert not Fact.objects.filter(channel="_global").exists()


@pytest.mark.django_db(transaction=True)
def test_two_workers_and_a_client_make_one_copy(owner: Owner, atlas: Owner) -> None:
    for number in range(4):
        prominent(atlas, f"It is number {number}.")
    facts = found()
    by_hand: list[Any] = [
        lambda fact=fact: globalize_fact(atlas, fact.pk, reason="", embedded=NOTHING, now=NOW) and Counter()
        for fact in reversed(facts)
    ]
    acts = [lambda: promote(*facts), *by_hand, lambda: promote(*reversed(facts))]

    with ThreadPoolExecutor(6) as pool:
        started = [pool.submit(over_own_connection, act) for act in acts]
        done = sum((each.result(PATIENCE_SECONDS) for each in started), Counter[str]())

    assert not done["failed"]
    assert sorted(claims(owner)) == [f"It is number {number}." for number in range(4)]
    assert Link.objects.filter(type="PROMOTED_FROM").count() == 4

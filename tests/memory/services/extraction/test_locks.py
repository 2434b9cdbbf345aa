"""Locks of an extraction: in the order of clients, which lock facts before profiles."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from django.db import transaction

from memory.extraction.knowledge import ExtractedFact, ExtractedPreference, Extraction
from memory.models import Fact, UserProfile
from memory.owner import Owner
from memory.services.extraction.outcomes import ExtractionInput, ItemCounts
from memory.services.extraction.store import store_extractions
from memory.services.facts.globalize import globalize_fact
from memory.services.profiles import learn_preferences
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import know
from tests.memory.knowledge import TURN_TIME, extract_all, say_sentences
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


def learned(claim: str, *, number: int = 1, corrects: tuple[int, ...] = ()) -> ExtractedFact:
    return ExtractedFact(
        number=number, claim=claim, certainty="explicit", temporal="current", corrects=corrects, evidence=(0,)
    )


def store(
    owner: Owner,
    *extractions: Extraction,
    known: Mapping[int, UUID] | None = None,
    said: str = "I like coffee, work at Initech and live in Oslo",
) -> ItemCounts:
    turns = {0: say(owner, turn(said)).turns[0]}
    work = [
        ExtractionInput(owner=owner, turns=turns, extraction=extraction, known=known or {}, embedded=NOTHING, now=NOW)
        for extraction in extractions
    ]
    with transaction.atomic():
        return store_extractions(owner, work, now=NOW)


def test_all_facts_of_several_extractions_are_locked_together_and_before_the_profile(
    owner: Owner, start_concurrently: Start
) -> None:
    ana = replace(owner, user_id="ana")
    home, job = know(ana, "The user lives in Rome"), know(ana, "The user works at Globex")
    learn_preferences(ana, "ana", {"tea": "likes"}, provenance={"fact_id": None, "at": NOW.isoformat()}, now=NOW)
    liking = ExtractedPreference(topic="coffee", value="likes", evidence=(0,))
    hired = Extraction(source="test", facts=(learned("The user works at Initech"),), preferences=(liking,))
    moved = Extraction(source="test", facts=(learned("The user lives in Oslo"),))

    with transaction.atomic():
        Fact.objects.select_for_update().get(id=home.id)
        storing = start_concurrently(lambda: over_own_connection(lambda: store(ana, hired, moved)))
        Fact.objects.select_for_update(nowait=True).get(id=job.id)
        UserProfile.objects.select_for_update(nowait=True).get()
    storing.result(PATIENCE_SECONDS)

    assert UserProfile.objects.get().preferences == {"tea": "likes", "coffee": "likes"}
    assert {fact.id for fact in Fact.objects.filter(status="superseded")} == {home.id, job.id}


def test_the_copies_of_facts_are_locked_with_them_in_one_order(owner: Owner, start_concurrently: Start) -> None:
    ana = replace(owner, user_id="ana", channel="apollo")
    hobby = know(ana, "The user paints")
    copied = globalize_fact(ana, hobby.id, reason="test", embedded=NOTHING, now=NOW)
    job = know(ana, "The user works at Globex")
    meant, hired = learned("The user sings", number=2, corrects=(1,)), learned("The user works at Initech", number=3)
    both = Extraction(source="test", facts=(meant, hired))

    with transaction.atomic():
        Fact.objects.select_for_update().get(id=copied.id)
        storing = start_concurrently(lambda: over_own_connection(lambda: store(ana, both, known={1: hobby.id})))
        Fact.objects.select_for_update(nowait=True).get(id=job.id)
    storing.result(PATIENCE_SECONDS)

    ended = {fact.id for fact in Fact.objects.filter(status="superseded")}
    assert ended == {hobby.id, copied.id, job.id}


def test_what_is_forgotten_is_locked_together_with_what_is_contradicted(
    owner: Owner, start_concurrently: Start
) -> None:
    ana = replace(owner, user_id="ana")
    home = know(ana, "The user lives in Rome")
    say_sentences(ana, "My address is 12 Rose Street.", name="", conversation_id="before", at=TURN_TIME)
    extract_all(NOW)
    address = Fact.objects.exclude(id=home.id).get()
    moved = Extraction(source="test", facts=(learned("The user lives in Oslo"),))

    with transaction.atomic():
        Fact.objects.select_for_update().get(id=home.id)
        storing = start_concurrently(lambda: over_own_connection(lambda: store(ana, moved, said="Forget my address.")))
        Fact.objects.select_for_update(nowait=True).get(id=address.id)
    storing.result(PATIENCE_SECONDS)

    statuses = {fact.id: fact.status for fact in Fact.objects.all()}
    assert (statuses[home.id], statuses[address.id]) == ("superseded", "retracted")

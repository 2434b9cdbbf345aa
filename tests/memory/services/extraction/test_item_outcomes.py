"""Outcomes of extracted items: each is accounted for, whatever a service, the database or staff makes of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import example, given
from hypothesis import strategies as st

from memory import conf
from memory.extraction.knowledge import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
)
from memory.models import AuditEntry, Conversation, Entity, Fact, Link, Turn, UserProfile
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.services.conversations.queue import EXTRACTION, claim_conversations
from memory.services.embedding.embed import embed_texts
from memory.services.extraction.extract import extract_due, request_extraction
from memory.services.extraction.outcomes import ExtractionInput, count_unstored
from memory.services.extraction.store import store_extractions
from memory.services.facts.supersede import reject_fact
from tests.memory.episodes import NOW
from tests.memory.knowledge import claims, entities, extract_all, extracted, say_sentences
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

OUTCOMES = ("learnt", "merged", "refused", "failed")
REFUSED_BY_THE_DATABASE = """
ALTER TABLE memories ADD CHECK (kind <> 'fact' OR text NOT LIKE '%poison%') NOT VALID;
ALTER TABLE memories ADD CHECK (kind <> 'entity' OR text NOT LIKE '%Poison%') NOT VALID;
ALTER TABLE memory_links ADD CHECK (type <> 'POISONS') NOT VALID;
"""

NAMES = st.sampled_from(["Ana", "ana", "Rosa", "Lisbon", "Poison", "", "x" * 600])
NUMBERS = st.integers(1, 4)
EVIDENCE = st.lists(st.integers(0, 2), max_size=2).map(tuple)
"""The third turn is none."""
CLAIMS = st.sampled_from(["Ana sings", "Ana sings poison", "The user sings", "", "\x00", "Ana lives in Lisbon"])
TIMES = st.none() | st.sampled_from([datetime(2025, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)])
ANA = ExtractedEntity(name="Ana", type="person", evidence=(0,))
EXTRACTIONS = st.builds(
    Extraction,
    source=st.just("test"),
    entities=st.lists(
        st.builds(
            ExtractedEntity,
            name=NAMES,
            type=st.sampled_from(["person", "place"]),
            aliases=st.lists(NAMES, max_size=2).map(tuple),
            description=st.just(""),
            evidence=EVIDENCE,
        ),
        max_size=3,
    ).map(tuple),
    facts=st.lists(
        st.builds(
            ExtractedFact,
            number=NUMBERS,
            claim=CLAIMS,
            certainty=st.sampled_from(["explicit", "uncertain"]),
            temporal=st.sampled_from(["current", "past", "never"]),
            entities=st.lists(NAMES, max_size=2).map(tuple),
            valid_from=TIMES,
            valid_to=TIMES,
            contradicts=st.lists(NUMBERS, max_size=2).map(tuple),
            corrects=st.lists(NUMBERS, max_size=1).map(tuple),
            evidence=EVIDENCE,
        ),
        max_size=4,
    ).map(tuple),
    relationships=st.lists(
        st.builds(
            ExtractedRelationship,
            source=NAMES,
            target=NAMES,
            type=st.sampled_from(["KNOWS", "POISONS", "ABOUT", "no type"]),
            certainty=st.just("explicit"),
            evidence=EVIDENCE,
        ),
        max_size=3,
    ).map(tuple),
    preferences=st.lists(
        st.builds(
            ExtractedPreference,
            topic=st.sampled_from(["tea", "Tea", "coffee"]),
            value=st.sampled_from(["likes", "dislikes"]),
            fact=st.none() | NUMBERS,
            evidence=EVIDENCE,
        ),
        max_size=3,
    ).map(tuple),
    dropped=st.dictionaries(st.sampled_from(["evidence", "alias", "ungrounded"]), st.integers(1, 3)),
)


def break_storing() -> None:
    with connection.cursor() as cursor:
        cursor.execute(REFUSED_BY_THE_DATABASE)


def items_in(extraction: Extraction) -> int:
    found = (extraction.entities, extraction.facts, extraction.relationships, extraction.preferences)
    return sum(map(len, found)) + sum(extraction.dropped.values()) - extraction.dropped.get("alias", 0)


def rows() -> dict[str, int]:
    preferences = [profile.preferences for profile in UserProfile.objects.all()]
    return {
        "entities": Entity.objects.count(),
        "facts": Fact.objects.count(),
        "facts ended": Fact.objects.filter(status=Fact.Status.SUPERSEDED).count(),
        "ends audited": AuditEntry.objects.filter(operation="supersede").count(),
        "relationships": Link.objects.filter(type__in=("KNOWS", "POISONS")).count(),
        "topics": sum(map(len, preferences)),
    }


@pytest.mark.slow
def test_every_item_is_learned_merged_refused_or_failed(owner: Owner) -> None:
    break_storing()
    user = Owner(account_id=owner.account_id, agent_id="a", user_id="ana")
    turns = say_sentences(user, "I sing.", "I live in Lisbon.").turns
    met: set[str] = set()

    @examples(60)
    @example(Extraction(source="test", entities=(ANA, ANA)), True, "prefer_new")
    @given(EXTRACTIONS, st.booleans(), st.sampled_from(["prefer_new", "prefer_old", "flag_review"]))
    def account_for(extraction: Extraction, has_user: bool, policy: str) -> None:
        holder = user if has_user else Owner(account_id=owner.account_id, agent_id="a")
        before = rows()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conf, "CONTRADICTIONS", policy)
            counts = store_extractions(holder, [inputs_for(holder, turns, extraction)], now=NOW).figures

        assert counts["in"] == items_in(extraction) == sum(counts[outcome] for outcome in OUTCOMES)
        assert counts["refused"] == sum(count for name, count in counts.items() if name.startswith("refused_"))
        after = rows()
        for noun in ("entities", "facts", "relationships"):
            assert after[noun] - before[noun] == counts[f"{noun}_learnt"], noun
        assert after["facts ended"] - before["facts ended"] == counts["facts_superseded"]
        assert after["ends audited"] - before["ends audited"] == counts["corrections"] + counts["successions"]
        gone = counts["preferences_replaced"] + counts["preferences_withdrawn"]
        assert after["topics"] - before["topics"] == counts["preferences_learnt"] - gone
        assert count_unstored([extraction])["in"] == counts["in"]
        met.update(name for name, count in counts.items() if count)

    account_for()
    assert met >= set(OUTCOMES)


def inputs_for(owner: Owner, turns: Any, extraction: Extraction) -> ExtractionInput:
    return ExtractionInput(
        owner=owner,
        turns={turn.index: turn for turn in turns},
        extraction=extraction,
        known=dict[int, UUID](),
        embedded=embed_texts([]),
        now=NOW,
    )


def conversation() -> Conversation:
    return Conversation.objects.get()


def attempts_until_parked() -> tuple[int, list[BatchReport]]:
    batches, now = list[BatchReport](), NOW
    while (due := conversation().extract_after) is not None and len(batches) < 20:
        now = max(now, due)
        batches.append(extract_due(now=now, limit=4))
    return len(batches), batches


def test_an_item_that_fails_costs_none_of_the_others_and_is_tried_again(owner: Owner) -> None:
    break_storing()
    say_sentences(owner, "I live in Poison.", "I work for Grundfos.")

    batch = extract_all(NOW)

    assert (batch.changed, batch.failed) == (0, 1)
    assert (claims(), set(entities())) == (["Ana works for Grundfos"], {"Ana", "Grundfos"})
    row = conversation()
    wait = timedelta(seconds=conf.EXTRACTION_BACKOFF_SECONDS)
    assert (row.extracted_count, row.extract_after, row.extract_lease_until) == (0, NOW + wait, None)
    # the entity, and what refers to it
    assert row.extract_error == "3 items failed: IntegrityError"
    assert (row.extract_attempts, row.consolidated_at) == (1, None)


def test_repeated_failures_are_parked_with_their_reason(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conf, "EXTRACTION_ATTEMPTS", 3)
    break_storing()
    say_sentences(owner, "I live in Poison.")

    attempts, batches = attempts_until_parked()

    row = conversation()
    assert (attempts, row.extract_attempts, row.extract_error) == (3, 3, "3 items failed: IntegrityError")
    assert [batch.figures.get("conversations_parked", 0) for batch in batches] == [0, 0, 1]
    assert row.extract_parked_at is not None
    assert f"extraction from conversation {row.id} is parked: it failed 3 times in a row" in caplog.messages
    assert "Poison" not in " ".join(caplog.messages)


def test_later_turns_wait_behind_parked_ones_until_a_request(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "EXTRACTION_ATTEMPTS", 1)
    break_storing()
    turns = say_sentences(owner, "I live in Poison.").turns
    extract_all(NOW)
    Turn.objects.filter(id=turns[0].id).update(text="I live in Porto.")

    say_sentences(owner, "I work for Grundfos.")
    assert extract_all(NOW + timedelta(days=30)).examined == 0

    asked = request_extraction(owner, "c1", now=NOW)
    assert (asked.extract_parked_at, asked.extract_attempts, asked.extract_error) == (None, 0, "")
    assert extract_all(NOW).failed == 0
    assert (claims(), extracted()) == (["Ana lives in Porto", "Ana works for Grundfos"], (2, 2))


def test_extracting_the_same_turns_again_learns_nothing_twice(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    break_storing()
    say_sentences(owner, "I live in Poison.", "I work for Grundfos.")
    first = extract_due(now=NOW, limit=1)
    before = rows()
    request_extraction(owner, "c1", now=NOW)

    again = extract_due(now=NOW, limit=1)

    assert rows() == before
    assert (first.figures["learnt"], again.figures["learnt"], again.figures["merged"]) == (4, 0, 4)
    assert first.figures["in"] == again.figures["in"] == 7


def test_items_that_could_not_be_stored_at_all_have_failed(owner: Owner) -> None:
    with connection.cursor() as cursor:
        # the failing statement belongs to no single item
        cursor.execute("ALTER TABLE memory_audit_log ADD CHECK (operation <> 'extract') NOT VALID")
    say_sentences(owner, "I live in Lisbon.")

    figures = extract_once().figures

    assert (figures["in"], figures["failed"], Fact.objects.count()) == (4, 4, 0)


def extract_once() -> BatchReport:
    return extract_due(now=NOW, limit=4)


def test_the_audit_log_has_the_same_figures_as_the_report(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    break_storing()
    say_sentences(owner, "I live in Lisbon.")
    extract_once()
    reject_fact(owner, Fact.objects.get().id, now=NOW)
    say_sentences(owner, "I live in Lisbon.", "I live in Poison.")

    figures = extract_once().figures

    entry = AuditEntry.objects.filter(operation="extract").latest("timestamp", "id")
    assert entry.metadata == dict(figures)
    assert (entry.success, entry.error_message) == (False, "3 items failed: IntegrityError")
    assert (figures["refused_rejected"], figures["failed"]) == (1, 3)


@pytest.mark.parametrize(
    ("said", "event"), [("No, I meant Porto.", "corrections"), ("I live in Porto now.", "successions")]
)
def test_a_superseded_fact_is_counted(owner: Owner, said: str, event: str) -> None:
    say_sentences(owner, "I live in Lisbon.", said)

    figures = extract_once().figures

    assert Fact.objects.get(status=Fact.Status.SUPERSEDED).text == "Ana lives in Lisbon"
    counted = {
        name: figures.get(name, 0) for name in ("facts_learnt", "facts_superseded", "corrections", "successions")
    }
    assert counted == {"facts_learnt": 2, "facts_superseded": 1, "corrections": 0, "successions": 0} | {event: 1}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_preference_is_withdrawn_with_the_fact_that_is_replaced(owner: Owner, is_known: bool) -> None:
    user = replace(owner, user_id="ana")
    turns = say_sentences(user, "I love sushi.", "No, I meant ramen.").turns
    loved = ExtractedFact(
        number=1, claim="The user loves sushi", certainty="explicit", temporal="current", evidence=(0,)
    )
    meant = ExtractedFact(
        number=2, claim="The user eats ramen", certainty="explicit", temporal="current", corrects=(1,), evidence=(1,)
    )
    liking = ExtractedPreference(topic="sushi", value="likes", fact=1, evidence=(0,))
    first = Extraction(source="test", facts=(loved,), preferences=(liking,))
    if is_known:
        store_extractions(user, [inputs_for(user, turns, first)], now=NOW)
        known = {1: Fact.objects.get().id}
        inputs = replace(inputs_for(user, turns, Extraction(source="test", facts=(meant,))), known=known)
    else:
        inputs = inputs_for(user, turns, replace(first, facts=(loved, meant)))

    figures = store_extractions(user, [inputs], now=NOW).figures

    assert UserProfile.objects.get().preferences == {}
    assert (figures["preferences_withdrawn"], figures["facts_superseded"]) == (1, 1)


def test_a_claimed_conversation_is_not_claimed_by_another_worker(owner: Owner) -> None:
    say_sentences(owner, "I live in Lisbon.")

    first = claim_conversations(EXTRACTION, now=NOW, limit=4, account_id=None, target_of=lambda row: row.turn_count)

    assert len(first) == 1
    assert extract_once().examined == 0

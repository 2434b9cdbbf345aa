"""Summaries of conversations: when they are due, and what they change in row, log, buffer and former summary."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory import conf
from memory.errors import NotFound
from memory.models import Account, AuditEntry, Turn
from memory.owner import Owner
from memory.providers.language_models import language_model
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from memory.services.memories.correct import correct_memory, mark_memories
from memory.services.recall.recall import search_episodes_by_text
from memory.services.summaries.summarize import latest_summary, request_summary
from memory.services.turns import get_conversation
from memory.tiers.session_stores import session_store
from memory.tokens import estimate_tokens
from memory_project import redis
from tests.embedding_server import EmbeddingServer
from tests.language_model_server import LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.summaries import (
    NOTHING_DUE,
    ONE_STORED,
    conversation,
    covered,
    progress,
    summaries,
    summarize,
    superseding,
)
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

IDLE = timedelta(minutes=conf.SESSION_IDLE_MINUTES)


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()


@pytest.fixture(autouse=True)
def _no_model_unless_served() -> None:
    language_model.cache_clear()


def test_at_the_threshold_all_but_the_last_ten_are_summarized(owner: Owner) -> None:
    talk(owner, 50)

    assert summarize() == ONE_STORED

    assert progress() == (50, 40, 40)
    (summary,) = summaries()
    assert covered(summary) == (0, 39, 40)
    assert (summary.conversation_id, summary.agent_id, summary.event_time) == ("c1", "assistant", NOW)
    assert summary.metadata["summarizer"] == "extractive"
    assert [each.index for each in session_store().recent(conversation(), 100)] == list(range(40, 50))
    assert len(get_conversation(owner, "c1")) == 50


def test_below_the_threshold_nothing_is_due(owner: Owner) -> None:
    talk(owner, 49)

    assert summarize() == NOTHING_DUE


def test_summarized_turns_are_not_summarized_again(owner: Owner) -> None:
    talk(owner, 50)
    summarize()

    assert summarize(NOW + 10 * IDLE) == NOTHING_DUE
    row = conversation()
    assert (row.summarize_after, row.summary_lease_until, row.summary_attempts) == (None, None, 0)


@pytest.mark.parametrize(("said", "summarized"), [(29, 0), (30, 20)])
def test_an_idle_conversation_is_summarized_from_thirty_messages_on(owner: Owner, said: int, summarized: int) -> None:
    talk(owner, said)

    assert summarize(NOW + IDLE - timedelta(seconds=1)) == NOTHING_DUE
    summarize(NOW + IDLE)

    assert progress() == (said, summarized, summarized)


def test_every_message_postpones_an_idle_summary(owner: Owner) -> None:
    talk(owner, 30)
    talk(owner, 1, start=30, now=NOW + IDLE / 2)

    assert summarize(NOW + IDLE) == NOTHING_DUE
    assert summarize(NOW + 1.5 * IDLE) == ONE_STORED


@pytest.mark.parametrize(("said", "summarized", "claims"), [(10, 0, [0, 0, 0]), (11, 1, [1, 0, 0])])
def test_an_idle_conversation_without_turns_to_summarize_is_not_due(
    owner: Owner, settings: Settings, said: int, summarized: int, claims: list[int]
) -> None:
    settings.SESSION_MAX_MESSAGES_BEFORE_SUMMARY = 5
    talk(owner, said)

    assert [summarize(NOW + days * timedelta(days=1)).examined for days in (1, 2, 3)] == claims

    assert (progress(), conversation().summarize_after) == ((said, summarized, summarized), None)


@pytest.mark.parametrize(("said", "summarized"), [(29, 0), (30, 30)])
def test_at_its_end_a_session_of_thirty_messages_is_summarized_to_the_last(
    owner: Owner, said: int, summarized: int
) -> None:
    talk(owner, said)
    end_conversation(owner, "c1", outcome="", now=NOW)

    summarize()

    assert progress() == (said, summarized, 20 if summarized else 0)


def test_a_requested_summary_covers_everything(owner: Owner) -> None:
    talk(owner, 3)

    request_summary(owner, "c1", now=NOW)
    summarize()

    assert progress() == (3, 3, 0)
    assert covered(summaries()[0]) == (0, 2, 3)
    assert conversation().summarize_to is None


def test_a_request_changes_nothing_if_all_is_summarized(owner: Owner) -> None:
    talk(owner, 3)
    request_summary(owner, "c1", now=NOW)
    summarize()

    asked = request_summary(owner, "c1", now=NOW)

    assert (asked.summarize_to, asked.summarize_after) == (None, None)
    assert summarize() == NOTHING_DUE


def test_an_agent_that_takes_no_part_cannot_request_a_summary(owner: Owner, stranger: Account) -> None:
    talk(owner, 3)

    for nobody in (replace(owner, agent_id="second"), Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            request_summary(nobody, "c1", now=NOW)
    assert summarize() == NOTHING_DUE


def test_a_second_summary_includes_the_first_and_archives_it(owner: Owner) -> None:
    say(owner, turn("We decided to repair the pump of 14 March.", role="user"))
    request_summary(owner, "c1", now=NOW)
    summarize()
    say(owner, turn("Rosa Okafor sent the seal for 84 euros.", role="user"))
    request_summary(owner, "c1", now=NOW)

    summarize()

    first, second = summaries()
    assert (first.archived, second.archived) == (True, False)
    assert superseding() == [(second.id, first.id)]
    assert second.text.splitlines() == [first.text, "user: Rosa Okafor sent the seal for 84 euros."]
    assert second.key_decisions == ["user: We decided to repair the pump of 14 March."]
    assert (covered(first), covered(second)) == ((0, 0, 1), (0, 1, 2))


def test_every_agent_that_takes_part_has_the_summary(owner: Owner) -> None:
    talk(owner, 25)
    talk(replace(owner, agent_id="second"), 25, start=25)
    summarize()
    talk(replace(owner, agent_id="third"), 50, start=50)
    summarize()

    live = summaries(archived=False)
    assert [row.agent_id for row in live] == ["assistant", "second", "third"]
    assert len({row.text for row in live}) == 1
    assert len(superseding()) == 2
    latest = latest_summary(replace(owner, agent_id="third"), conversation())
    assert latest is not None
    assert covered(latest) == (0, 89, 90)


def test_without_an_agent_the_account_has_the_summary(account: Account) -> None:
    owner = Owner(account_id=account.id, user_id="ana", channel="boats")
    talk(owner, 50)

    summarize()

    (summary,) = summaries()
    assert (summary.agent_id, summary.user_id, summary.channel) == ("", "ana", "boats")


def test_a_search_finds_the_summary_by_meaning(owner: Owner) -> None:
    talk(owner, 50)
    summarize()

    found = search_episodes_by_text(owner, text="anything", top_k=5, own=None, now=NOW)

    assert [hit.id for hit in found.hits] == [summaries()[0].id]
    assert found.hits[0].similarity is not None


def test_without_an_embedder_the_summary_waits_for_its_vector(owner: Owner, embedding_server: EmbeddingServer) -> None:
    talk(owner, 50)
    embedding_server.fail()

    assert summarize() == ONE_STORED

    assert summaries()[0].embed_after == NOW


def test_storing_a_summary_is_in_the_audit_log(owner: Owner) -> None:
    talk(owner, 50)
    summarize()
    talk(owner, 50, start=50)
    summarize()

    entries = AuditEntry.objects.filter(actor="job:summarize").order_by("id")
    assert sorted(entries.values_list("operation", flat=True)) == ["archive", "store", "store"]


def test_many_turns_are_summarized_part_by_part(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    talk(owner, 100)
    request_summary(owner, "c1", now=NOW)

    counts = []
    while summarize() == ONE_STORED:
        counts.append(conversation().summarized_count)

    assert counts[-1] == 100
    assert len(counts) > 1
    assert [covered(row) for row in summaries()] == [(0, count - 1, count) for count in counts]
    assert [row.archived for row in summaries()] == [True] * (len(counts) - 1) + [False]


def test_parts_of_the_threshold_end_where_it_did(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 500)
    talk(owner, 50)

    while summarize() == ONE_STORED:
        pass

    assert progress() == (50, 40, 40)
    assert conversation().summarize_to is None


def test_a_message_larger_than_the_input_is_shown_in_pieces(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    say(owner, turn("word " * 2_500), turn("short"))
    request_summary(owner, "c1", now=NOW)

    summarize()

    shown = language_model_server.materials
    assert sum(material.count("word ") for material in shown) == 2_500
    assert ["a summary" in material for material in shown] == [False, *[True] * (len(shown) - 1)]
    # half of what fits: the other half is for the digest of the pieces before
    assert len(shown) == 8
    assert [covered(row) for row in summaries()] == [(0, 0, 1)]


def test_input_fits_together_with_the_former_summary(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    language_model_server.write = lambda asked: write_digest("word " * 1_000)
    talk(owner, 50)
    summarize()
    talk(owner, 200, start=50)
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 3_000)

    summarize()

    material = language_model_server.materials[-1]
    assert "word word" in material
    assert 0.9 * 3_000 < estimate_tokens(material) < 1.1 * 3_000


def write_digest(summary: str) -> dict[str, Any]:
    return {"summary": summary, "key_decisions": [], "entities_mentioned": [], "tools_called": []}


def test_quarantined_turns_are_skipped(owner: Owner, language_model_server: LanguageModelServer) -> None:
    stored = say(owner, turn("harmless"), turn("poisonous"), turn("harmless too")).turns
    mark_memories(owner, [stored[1].id], mark="quarantine", now=NOW)
    request_summary(owner, "c1", now=NOW)

    summarize()

    assert "poisonous" not in language_model_server.materials[0]
    assert progress() == (3, 3, 0)
    assert covered(summaries()[0]) == (0, 2, 2)


def test_turns_without_readable_text_count_as_summarized(owner: Owner) -> None:
    talk(owner, 3)
    Turn.objects.all().delete()
    request_summary(owner, "c1", now=NOW)

    summarize()

    assert progress() == (3, 3, 0)
    assert summaries() == []


def test_a_corrected_summary_is_included_as_corrected(owner: Owner, language_model_server: LanguageModelServer) -> None:
    talk(owner, 50)
    summarize()
    (first,) = summaries()
    changes = {"text": "They met in Lisbon.", "key_decisions": [{"what": "repair"}]}
    correct_memory(owner, first.id, changes=changes, version=first.version, now=NOW)
    talk(owner, 50, start=50)

    summarize()

    assert "They met in Lisbon." in language_model_server.materials[-1]
    assert len(summaries(archived=False)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("store", ["memory", "redis", "hybrid"])
def test_the_buffer_keeps_the_last_ten(owner: Owner, store: str, settings: Settings) -> None:
    settings.SESSION_STORE_TYPE = store
    talk(owner, 60)

    summarize()

    assert [each.index for each in session_store().recent(conversation(), 100)] == list(range(50, 60))


def test_the_latest_summary_is_that_of_the_nearest_resumed_conversation(owner: Owner) -> None:
    for conversation_id, before in (("monday", ""), ("tuesday", "monday"), ("wednesday", "tuesday")):
        create_conversation(owner, conversation_id, defaults=ConversationDefaults(continues=before), now=NOW)
        say(owner, turn(f"said on {conversation_id}"), conversation_id=conversation_id)
    found = []

    for conversation_id in ("monday", "tuesday", "wednesday"):
        request_summary(owner, conversation_id, now=NOW)
        summarize()
        found.append(latest_summary(owner, conversation("wednesday")))

    assert [row and row.text for row in found] == [
        "user: said on monday",
        "user: said on tuesday",
        "user: said on wednesday",
    ]


def test_the_latest_summary_is_the_owners_own(owner: Owner, stranger: Account) -> None:
    talk(owner, 50)
    summarize()

    assert latest_summary(owner, conversation()) == summaries()[0]
    assert latest_summary(Owner(account_id=owner.account_id), conversation()) is not None
    for nobody in (replace(owner, agent_id="second"), Owner(account_id=stranger.id)):
        assert latest_summary(nobody, conversation()) is None
    mark_memories(owner, [summaries()[0].id], mark="quarantine", now=NOW)
    assert latest_summary(owner, conversation()) is None


@pytest.mark.parametrize("store", ["redis", "hybrid"])
def test_a_summary_is_stored_without_redis(
    owner: Owner, settings: Settings, store: str, request: pytest.FixtureRequest
) -> None:
    settings.SESSION_STORE_TYPE = store
    talk(owner, 50)
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    assert summarize() == ONE_STORED
    assert progress() == (50, 40, 40)

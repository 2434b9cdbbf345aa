"""Concurrent workers at the queue of summaries, and changes of a conversation while it is being digested."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from memory import conf
from memory.models import Account, Conversation, ModelUsage
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.providers.language_models import language_model
from memory.services.account_walk import BatchReport
from memory.services.conversations.queue import SUMMARIES, claim_conversations, held_rows, renew_claim
from memory.services.memories.correct import correct_memory, mark_memories
from memory.services.summaries.summarize import request_summary, summarize_due, summary_target
from memory.services.turns import get_conversation
from memory.tiers.session_stores import session_store
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.embedding_server import EmbeddingServer
from tests.language_model_server import Asked, LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.summaries import NOTHING_DUE, ONE_STORED, conversation, covered, progress, summaries, summarize
from tests.memory.turns import numbered_texts, say, talk, turn

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis", "embedding_server"),
]

LEASE = timedelta(seconds=conf.SUMMARY_LEASE_SECONDS)
UNDONE = BatchReport(examined=1, changed=0)
DONE = (11, 1)
"""The small conversation: its summary is stored, and its usage kept."""
claim_due = partial(claim_conversations, SUMMARIES, now=NOW, account_id=None, target_of=summary_target)


def meanwhile(server: LanguageModelServer, act: Callable[[], object]) -> None:
    """Have something happen while the model computes the next answer, which is good."""

    def answer(asked: Asked) -> Any:
        server.recover()
        over_own_connection(act)
        return server.answer_well(asked)

    server.answer = answer


def test_conversations_that_another_worker_is_claiming_are_skipped(owner: Owner) -> None:
    for number in range(6):
        talk(owner, 50, conversation_id=f"c{number}")
    claim = partial(claim_due, limit=3)

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        first = claim()
        second = others.submit(over_own_connection, claim).result(PATIENCE_SECONDS)

    assert (len(first), len(second)) == (3, 3)
    assert not {each.conversation.id for each in first} & {each.conversation.id for each in second}
    assert claim() == []


@pytest.mark.slow
def test_concurrent_workers_summarize_each_turn_once(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 500)
    for number in range(8):
        talk(owner, 50, conversation_id=f"c{number}")
    together = Barrier(4)

    def work() -> list[BatchReport]:
        together.wait(PATIENCE_SECONDS)
        return list(iter(partial(summarize_due, now=NOW, limit=2), NOTHING_DUE))

    with ThreadPoolExecutor(4) as workers:
        working = [workers.submit(over_own_connection, work) for _ in range(4)]
        done = [batch for worker in working for batch in worker.result(PATIENCE_SECONDS)]

    assert sum(batch.changed for batch in done) == sum(batch.examined for batch in done) == len(summaries())
    assert len({(row.conversation_id, row.metadata["last_index"]) for row in summaries()}) == len(summaries())
    assert [covered(row) for row in summaries(archived=False)] == [(0, 39, 40)] * 8


def test_several_due_conversations_are_summarized_in_one_run(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    for number in range(3):
        talk(owner, 50, conversation_id=f"c{number}")

    assert summarize().changed == 3

    assert len(language_model_server.requests) == 3


def test_a_worker_with_an_expired_lease_does_not_overwrite_its_successor(
    owner: Owner, language_model_server: LanguageModelServer, settings: Settings
) -> None:
    talk(owner, 50)
    heirs: list[BatchReport] = []

    def inherit() -> None:
        # the server is busy with the first worker
        settings.SUMMARY_MODEL, settings.EMBEDDING_PROVIDER = "", "tiny"
        settings.MEMORY_ALLOW_TINY_EMBEDDINGS = True
        language_model.cache_clear()
        embedding_provider.cache_clear()
        heirs.append(summarize(NOW + LEASE))

    meanwhile(language_model_server, inherit)

    assert summarize() == UNDONE
    assert heirs == [ONE_STORED]
    assert [row.metadata["summarizer"] for row in summaries()] == ["extractive"]
    assert conversation().summary_attempts == 0


@pytest.mark.slow
def test_a_lease_is_extended_while_a_message_is_summarized_in_pieces(
    owner: Owner, language_model_server: LanguageModelServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LANGUAGE_MODEL_TIMEOUT_SECONDS = PATIENCE_SECONDS
    language_model.cache_clear()
    monkeypatch.setattr(conf, "SUMMARY_LEASE_SECONDS", 12)
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    say(owner, turn("word " * 1_250))
    request_summary(owner, "c1", now=NOW)
    began, ahead = time.monotonic(), list[timedelta]()

    def look() -> None:
        until = conversation().summary_lease_until
        assert until is not None
        ahead.append(until - NOW - timedelta(seconds=time.monotonic() - began))

    def answer(asked: Asked) -> Any:
        time.sleep(3.6)
        over_own_connection(look)
        return language_model_server.answer_well(asked)

    language_model_server.answer = answer

    assert summarize() == ONE_STORED
    assert len(ahead) == 4
    # renewed every third, never for longer than a lease
    assert timedelta(seconds=0.3) < min(ahead) < max(ahead) < timedelta(seconds=12.3)


def test_a_finished_summary_does_not_wait_for_a_message_in_pieces(
    owner: Owner, language_model_server: LanguageModelServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    # the worker looks at all of them each third of it
    monkeypatch.setattr(conf, "SUMMARY_LEASE_SECONDS", 6 * PATIENCE_SECONDS)
    say(owner, turn("word " * 2_500))
    talk(owner, 11, conversation_id="small")
    for conversation_id in ("c1", "small"):
        request_summary(owner, conversation_id, now=NOW)
    seen: list[tuple[int, int]] = []

    def look() -> bool:
        seen.append(over_own_connection(lambda: (progress("small")[1], ModelUsage.objects.count())))
        return seen[-1] == DONE

    def answer(asked: Asked) -> Any:
        # the server answers one at a time: the small one has its answer once the last piece is asked for
        is_last = len(language_model_server.requests) == 8 + 1
        deadline = time.monotonic() + (PATIENCE_SECONDS if is_last else 0.1)
        while not look() and time.monotonic() < deadline:
            time.sleep(0.05)
        return language_model_server.answer_well(asked)

    language_model_server.answer = answer
    settings.LANGUAGE_MODEL_TIMEOUT_SECONDS = 2 * PATIENCE_SECONDS
    language_model.cache_clear()

    assert summarize().changed == 2
    assert seen[-1] == DONE


def test_messages_that_arrive_meanwhile_are_kept_and_numbered_on(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    meanwhile(language_model_server, lambda: talk(owner, 5, start=50))

    assert summarize() == ONE_STORED

    assert progress() == (55, 40, 40)
    assert numbered_texts(get_conversation(owner, "c1")) == [(number, f"message {number}") for number in range(55)]
    assert [each.index for each in session_store().recent(conversation(), 100)] == list(range(40, 55))
    assert covered(summaries()[0]) == (0, 39, 40)


def test_many_messages_that_arrive_meanwhile_are_due_immediately(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    meanwhile(language_model_server, lambda: talk(owner, 50, start=50))

    assert [summarize(), summarize(), summarize()] == [ONE_STORED, ONE_STORED, NOTHING_DUE]

    assert progress() == (100, 90, 90)
    assert [covered(row) for row in summaries()] == [(0, 39, 40), (0, 89, 90)]


def test_a_summary_requested_meanwhile_is_made_next(owner: Owner, language_model_server: LanguageModelServer) -> None:
    talk(owner, 50)
    meanwhile(language_model_server, lambda: request_summary(owner, "c1", now=NOW))

    assert [summarize(), summarize(), summarize()] == [ONE_STORED, ONE_STORED, NOTHING_DUE]

    assert progress() == (50, 50, 40)


def test_a_conversation_deleted_meanwhile_stays_deleted(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    meanwhile(language_model_server, Conversation.objects.all().delete)

    assert summarize() == UNDONE
    assert summaries() == []


def test_an_account_deleted_meanwhile_delays_no_other_summary(
    owner: Owner, stranger: Account, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    talk(Owner(account_id=stranger.id), 50)
    meanwhile(language_model_server, stranger.delete)

    done = summarize()

    assert done == BatchReport(examined=2, changed=1)
    assert [row.account_id for row in summaries()] == [owner.account_id]


def test_a_summary_corrected_meanwhile_is_included_again(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    summarize()
    talk(owner, 50, start=50)
    (first,) = summaries()
    changes = {"text": "Corrected."}
    correct = partial(correct_memory, owner, first.id, changes=changes, version=first.version, now=NOW)
    meanwhile(language_model_server, correct)

    assert [summarize(), summarize(NOW + LEASE)] == [UNDONE, ONE_STORED]

    assert "Corrected." in language_model_server.materials[-1]
    assert [row.archived for row in summaries()] == [True, False]


def test_an_embedder_is_asked_outside_the_transaction(owner: Owner, embedding_server: EmbeddingServer) -> None:
    talk(owner, 50)
    locked: list[bool] = []

    def look() -> None:
        rows = Conversation.objects.select_for_update(nowait=True)
        with transaction.atomic():
            locked.append(not rows.filter(conversation_id="c1").exists())

    def answer(texts: list[str]) -> Any:
        over_own_connection(look)
        return embedding_server.answer_well(texts)

    embedding_server.answer = answer
    summarize()

    assert locked == [False]


def test_a_message_corrected_meanwhile_is_read_again(owner: Owner, language_model_server: LanguageModelServer) -> None:
    turn_row = talk(owner, 50).turns[3]
    changes = {"text": "redacted"}
    meanwhile(language_model_server, partial(correct_memory, owner, turn_row.id, changes=changes, version=1, now=NOW))

    assert summarize() == UNDONE
    assert (summaries(), progress(), conversation().summary_lease_until) == ([], (50, 0, 0), None)

    # due again immediately
    assert summarize() == ONE_STORED
    assert "redacted" in language_model_server.materials[-1]
    assert '"message 3"' not in language_model_server.materials[-1]


@pytest.mark.parametrize(("before", "then", "shown"), [("release", "quarantine", 0), ("quarantine", "release", 1)])
def test_a_message_quarantined_or_released_meanwhile_is_considered(
    owner: Owner, language_model_server: LanguageModelServer, before: str, then: str, shown: int
) -> None:
    turn_row = talk(owner, 50).turns[3]
    mark_memories(owner, [turn_row.id], mark=before, now=NOW)
    meanwhile(language_model_server, partial(mark_memories, owner, [turn_row.id], mark=then, now=NOW))

    assert [summarize(), summarize()] == [UNDONE, ONE_STORED]

    assert language_model_server.materials[-1].count('"message 3"') == shown


def test_a_claim_does_not_load_the_saved_session(owner: Owner) -> None:
    talk(owner, 50)

    (claim,) = claim_due(limit=1)

    assert claim.conversation.get_deferred_fields() == {"saved_session"}
    assert held_rows(claim).get().get_deferred_fields() == {"saved_session"}


def test_a_lease_is_renewed_once_a_third_has_passed_and_lasts_from_then(owner: Owner) -> None:
    talk(owner, 50)
    (claim,) = claim_due(limit=1)

    fresh, old = renew_claim(claim), renew_claim(replace(claim, started=claim.started - 150))

    assert (fresh, claim.leased_until) == (claim, NOW + LEASE)
    assert old.leased_until - NOW - LEASE - timedelta(seconds=150) < timedelta(seconds=5)
    assert conversation().summary_lease_until == old.leased_until

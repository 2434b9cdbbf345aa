"""A failing language model: nothing is stored, the work stays queued and visible, and is done once it recovers."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from memory import conf
from memory.models import Conversation, ModelUsage, Turn
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.services.conversations.end import end_conversation
from memory.services.memories.correct import correct_memory
from memory.services.sessions import MemoryManager
from memory.services.summaries.summarize import request_summary
from tests.language_model_server import COMPLETION_TOKENS, PROMPT_TOKENS, Answer, LanguageModelServer, failing, writing
from tests.memory.episodes import NOW
from tests.memory.summaries import NOTHING_DUE, ONE_STORED, conversation, progress, summaries, summarize
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ONE_FAILED = BatchReport(examined=1, changed=0, failed=1, stopped=True)
GARBAGE = writing("no JSON at all")
BACKOFF = timedelta(seconds=conf.SUMMARY_BACKOFF_SECONDS)


def only_for(word: str, answer: Answer, server: LanguageModelServer) -> Answer:
    """Answer this if the material holds the word, else well."""
    return lambda asked: (answer if word in asked["messages"][1]["content"] else server.answer_well)(asked)


def test_a_model_writes_the_summary(owner: Owner, language_model_server: LanguageModelServer) -> None:
    talk(owner, 50)

    assert summarize() == ONE_STORED

    (summary,) = summaries()
    assert (summary.text, summary.key_decisions) == ("a summary", ["a key_decisions"])
    assert (summary.entities_mentioned, summary.tools_called) == (["a entities_mentioned"], [])
    assert summary.metadata["summarizer"] == "served-language-model"
    assert language_model_server.materials[0].count('"text": "message') == 40


@pytest.mark.parametrize(
    ("answer", "error"),
    [(GARBAGE, "provider_reply_invalid"), (failing(500), "provider_unavailable"), (failing(401), "provider_refused")],
)
def test_a_failing_model_leaves_the_work_queued_and_visible(
    owner: Owner, language_model_server: LanguageModelServer, answer: Answer, error: str
) -> None:
    talk(owner, 50)
    language_model_server.answer = answer

    assert summarize() == ONE_FAILED

    row = conversation()
    assert summaries() == []
    assert (row.summarized_count, row.summary_error, row.summary_attempts) == (0, error, 1)
    assert (row.summarize_after, row.summary_lease_until) == (NOW + BACKOFF, None)


def test_a_model_that_hangs_fails_in_time(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "SUMMARY_TIMEOUT_SECONDS", 1)
    talk(owner, 50)
    language_model_server.hang()

    assert summarize() == ONE_FAILED

    assert conversation().summary_error == "provider_unavailable"


def test_a_failed_summary_is_stored_once_the_model_recovers(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    language_model_server.answer_next(GARBAGE, GARBAGE)
    summarize()

    assert summarize(NOW + BACKOFF / 2) == NOTHING_DUE
    assert summarize(NOW + BACKOFF) == ONE_STORED

    row = conversation()
    assert (row.summarized_count, row.summary_error, row.summary_attempts) == (40, "", 0)
    assert len(summaries()) == 1


def test_every_failure_doubles_the_wait(owner: Owner, language_model_server: LanguageModelServer) -> None:
    talk(owner, 50)
    language_model_server.fail(401)
    now, waits = NOW, list[timedelta]()

    for _ in range(9):
        summarize(now)
        due = conversation().summarize_after
        assert due is not None
        waits.append(due - now)
        now = due

    assert [wait.total_seconds() for wait in waits] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_messages_do_not_shorten_the_wait_after_a_failure(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    language_model_server.fail(401)
    summarize()

    talk(owner, 5, start=50)
    end_conversation(owner, "c1", outcome="", now=NOW)

    assert conversation().summarize_after == NOW + BACKOFF
    language_model_server.recover()
    summarize(NOW + BACKOFF)
    assert progress() == (55, 55, 45)


def test_a_request_ends_the_wait_after_a_failure(owner: Owner, language_model_server: LanguageModelServer) -> None:
    talk(owner, 50)
    language_model_server.answer_next(failing(401))
    summarize()

    request_summary(owner, "c1", now=NOW)

    assert summarize() == ONE_STORED
    assert progress() == (50, 50, 40)


def test_the_usage_of_a_failed_model_is_kept(
    owner: Owner, language_model_server: LanguageModelServer, settings: Settings
) -> None:
    settings.LANGUAGE_MODEL_PROMPT_PRICE = 1_000.0
    talk(owner, 50)
    language_model_server.answer_next(GARBAGE, GARBAGE)
    summarize()

    usage = ModelUsage.objects.get()

    assert (usage.account_id, usage.use, usage.day) == (owner.account_id, "summary", NOW.date())
    assert (usage.calls, usage.failed_calls) == (2, 2)
    assert (usage.prompt_tokens, usage.completion_tokens) == (2 * PROMPT_TOKENS, 2 * COMPLETION_TOKENS)
    assert usage.cost == Decimal("2.4")


def test_a_failing_conversation_does_not_delay_the_others(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    for number in range(3):
        talk(owner, 50, conversation_id=f"c{number}", start=1_000 * number)
    language_model_server.answer = only_for("message 1000", GARBAGE, language_model_server)

    done = summarize()

    assert done == BatchReport(examined=3, changed=2, failed=1)
    summarized = Conversation.objects.order_by("conversation_id").values_list("summarized_count", flat=True)
    assert list(summarized) == [40, 0, 40]


def test_a_failure_in_a_later_part_keeps_the_parts_before(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    talk(owner, 100)
    request_summary(owner, "c1", now=NOW)
    language_model_server.answer = only_for("a summary", failing(401), language_model_server)

    assert [summarize(), summarize(), summarize()] == [ONE_STORED, ONE_FAILED, NOTHING_DUE]

    row = conversation()
    assert 0 < row.summarized_count < 100
    assert row.summarize_to == 100


def test_no_text_reaches_the_log(
    owner: Owner, language_model_server: LanguageModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    talk(owner, 50)
    language_model_server.answer_next(GARBAGE, GARBAGE)
    summarize()

    messages = [record.getMessage() for record in caplog.records if record.name.startswith("memory")]
    assert any("provider" in message or "answer" in message for message in messages)
    assert not any("message 1" in message or "no JSON" in message for message in messages)


def test_an_unforeseen_error_does_not_delay_other_conversations(
    owner: Owner, language_model_server: LanguageModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        talk(owner, 50, conversation_id=f"c{number}")
    # nothing that a client can bring about
    turns = Turn.objects.filter(conversation_id="c1", index=3)
    turns.update(payload={"tool_calls": 5})

    assert summarize() == BatchReport(examined=3, changed=2, failed=1)

    row = conversation("c1")
    assert (row.summarized_count, row.summary_error, row.summarize_after) == (0, "TypeError", NOW + BACKOFF)
    assert f"summary of conversation {row.id} failed: TypeError" in caplog.messages
    assert "message" not in " ".join(record.getMessage() for record in caplog.records if record.levelname == "ERROR")


def test_a_summary_that_cannot_be_stored_delays_no_others_and_its_usage_is_kept(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memories ADD CHECK (kind <> 'episode' OR conversation_id <> 'c1') NOT VALID")
    for number in range(3):
        talk(owner, 50, conversation_id=f"c{number}")

    assert summarize() == BatchReport(examined=3, changed=2, failed=1)

    assert (conversation("c1").summary_error, progress("c1")) == ("IntegrityError", (50, 0, 0))
    assert ModelUsage.objects.get().calls == 3


def test_attempts_are_counted_up_to_the_limit_of_their_column(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    Conversation.objects.update(summary_attempts=32_767)
    language_model_server.answer_next(failing(401))

    assert summarize() == ONE_FAILED

    row = conversation()
    limit = timedelta(seconds=conf.SUMMARY_BACKOFF_LIMIT_SECONDS)
    assert (row.summary_attempts, row.summarize_after) == (32_767, NOW + limit)


@pytest.mark.parametrize("lists", [5, {"what": "repair"}, [5, {"what": "repair"}]])
def test_lists_that_staff_corrected_to_other_types_are_read(owner: Owner, lists: Any) -> None:
    talk(owner, 50)
    summarize()
    row = summaries()[0]
    correct_memory(owner, row.id, changes={"key_decisions": lists}, version=row.version, now=NOW)
    talk(owner, 50, start=50)

    assert summarize() == ONE_STORED


def fail_often(owner: Owner, server: LanguageModelServer, *answers: Answer) -> Conversation:
    """Return the conversation after each answer was given in an attempt of its own, as soon as that is due."""
    now = NOW
    for answer in answers:
        server.answer = answer
        due = conversation().summarize_after
        assert due is not None
        now = max(now, due)
        summarize(now)
    server.recover()
    return conversation()


@pytest.fixture
def _two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SUMMARY_ATTEMPTS", 2)


@pytest.mark.usefixtures("_two_attempts")
@pytest.mark.parametrize(("answer", "error"), [(GARBAGE, "provider_reply_invalid"), (failing(400), "request_refused")])
def test_a_conversation_that_the_model_cannot_summarize_is_parked(
    owner: Owner, language_model_server: LanguageModelServer, answer: Answer, error: str
) -> None:
    talk(owner, 50)
    request_summary(owner, "c1", now=NOW)

    row = fail_often(owner, language_model_server, answer, answer)

    assert row.summary_parked_at == NOW + BACKOFF
    assert (row.summary_error, row.summary_attempts) == (error, 2)
    assert (row.summarize_after, row.summarize_to, row.summary_lease_until) == (None, None, None)


@pytest.mark.usefixtures("_two_attempts")
def test_external_failures_never_park_and_begin_no_series(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)

    row = fail_often(owner, language_model_server, failing(401), failing(500), failing(429), GARBAGE)
    assert (row.summary_parked_at, row.summary_attempts) == (None, 1)

    row = fail_often(owner, language_model_server, failing(503), GARBAGE)
    assert (row.summary_parked_at, row.summary_attempts) == (None, 1)


@pytest.mark.usefixtures("_two_attempts")
def test_a_parked_conversation_stays_parked_until_a_request(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    fail_often(owner, language_model_server, GARBAGE, GARBAGE)

    talk(owner, 60, start=50)
    end_conversation(owner, "c1", outcome="", now=NOW)
    assert MemoryManager(owner).summarize_if_needed("c1", now=NOW) is False
    assert summarize(NOW + timedelta(days=30)) == NOTHING_DUE

    request_summary(owner, "c1", now=NOW)
    assert summarize() == ONE_STORED
    row = conversation()
    assert (row.summarized_count, row.summary_parked_at, row.summary_error, row.summary_attempts) == (110, None, "", 0)

"""Importing conversations again, bad lines, interruptions and archives."""

import io
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import DjangoAssertNumQueries, Settings

from memory.extraction.imported import ImportedConversation
from memory.models import Account, AuditEntry, Conversation, EpisodicMemory, Turn
from memory.models.writer import MIN_ROWS_TO_PLAN_ONCE
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.retrieval.search import MemoryQuery, search_episodes
from memory.services.conversations import import_files as imports
from memory.services.conversations.import_files import ImportCounts, draft_conversation, import_conversations
from memory.services.conversations.lifecycle import find_conversation
from memory.services.turns import get_conversation
from tests.memory.episodes import NOTHING
from tests.memory.extraction import chatgpt_chats as chatgpt
from tests.memory.extraction import claude_chats as claude
from tests.memory.extraction.archived import zipped
from tests.memory.management.imports import NOW, WriteLines, conversation, run, spoken
from tests.memory.management.imports import tiny_embedder as tiny_embedder
from tests.memory.management.imports import write_lines as write_lines

pytestmark = pytest.mark.django_db


def test_a_longer_conversation_takes_no_more_queries(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in (2, 200):
        imported = replace(spoken(f"c{number}"), messages=spoken("c").messages * number)
        drafted = draft_conversation(imported, now=NOW)

        # one more for many: plans are made once
        with django_assert_num_queries(16 + (number >= MIN_ROWS_TO_PLAN_ONCE)):
            imports.store_conversation(account.id, drafted, embedded=NOTHING, now=NOW)


def test_embedding_stops_when_its_time_budget_is_used_up(account: Account, write_lines: WriteLines) -> None:
    figures, _, _ = run(write_lines(conversation()), "--embed-seconds=0")

    assert (figures["imported"], figures["pending"]) == (1, 4)
    assert Turn.objects.awaiting_embedding().exclude(embed_error="").count() == 0


def test_an_imported_conversation_is_found_by_its_agent(account: Account, write_lines: WriteLines) -> None:
    run(
        write_lines(conversation("pumps"), conversation("other", messages=[{"role": "user", "content": "Bake bread."}]))
    )

    provider = embedding_provider()
    vector = provider.embed(["the pump broke"], deadline_seconds=None)[0]
    query = MemoryQuery(text="the pump broke", top_k=1, model=provider.model, width=provider.width, vector=vector)
    found = search_episodes(Owner(account_id=account.id, agent_id="assistant"), query, now=NOW)

    assert [hit.conversation_id for hit in found.hits] == ["pumps"]


def test_a_second_run_stores_nothing_twice(account: Account, write_lines: WriteLines) -> None:
    path = write_lines(conversation("c1"), conversation("c2"))
    run(path)
    recorded = AuditEntry.objects.count()

    figures, _, code = run(path)

    assert (figures["imported"], figures["already_there"], code) == (0, 2, 0)
    assert EpisodicMemory.objects.filter(account=account).count() == 2
    assert AuditEntry.objects.count() == recorded


def test_a_conversation_listed_twice_in_a_file_is_imported_once(account: Account, write_lines: WriteLines) -> None:
    path = write_lines(conversation("c1"), conversation("c1"))

    assert run(path, "--dry-run")[0]["imported"] == 1
    assert run(path)[0] | {"seconds": 0} == {
        "imported": 1,
        "turns": 3,
        "empty": 0,
        "already_there": 1,
        "bad": 0,
        "pending": 0,
        "seconds": 0,
        "dry_run": False,
    }


def test_another_account_does_not_count_as_already_there(
    account: Account, stranger: Account, write_lines: WriteLines
) -> None:
    path = write_lines(conversation())
    call_command("import_conversations", str(path), "--account", stranger.name, stdout=io.StringIO())

    assert run(path)[0]["imported"] == 1


def test_a_bad_line_is_named_and_does_not_stop_the_rest(account: Account, write_lines: WriteLines) -> None:
    figures, errors, code = run(write_lines(conversation("c1"), "{", conversation(""), conversation("c4")))

    assert (figures["imported"], figures["bad"], code) == (2, 2, 1)
    assert [line.split(":")[0] for line in errors.splitlines()] == ["line 2", "line 3"]


def test_a_conversation_that_ends_in_the_future_is_a_bad_line(account: Account, write_lines: WriteLines) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    messages = [{"role": "user", "content": "See you.", "timestamp": tomorrow}]

    figures, errors, code = run(write_lines(conversation("c1"), conversation("c2", messages=messages)))

    assert (figures["imported"], figures["bad"], code) == (1, 1, 1)
    assert errors.strip() == "line 2: conversation 'c2' ends in the future"


def test_a_conversation_with_nothing_to_quote_has_no_episode(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    # one character with 3,000 accents: not even its opening fits a summary
    accents = [{"role": "user", "content": "\u0301" * 3_000}]
    path = write_lines(conversation("c1", messages=accents))

    assert run(path)[0]["imported"] == 1
    assert not EpisodicMemory.objects.exists()
    assert find_conversation(owner, "c1").summarized_count == 1
    assert run(path)[0]["already_there"] == 1


def test_a_session_that_ends_in_the_future_is_reported_with_its_sample_number(account: Account, tmp_path: Path) -> None:
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "I planted beans."}]
    past, future = "1:56 pm on 8 May, 2023", "1:56 pm on 8 May, 9023"
    sessions = {f"session_{number}": turns for number in (1, 2)}
    times = {"session_1_date_time": past, "session_2_date_time": future}
    samples = [{"sample_id": "farm", "conversation": sessions | times, "qa": []}]
    (tmp_path / "samples.json").write_text(json.dumps(samples))

    _, errors, _ = run(tmp_path / "samples.json", "--format=locomo")

    assert errors.strip() == "sample 1: conversation 'farm-2' ends in the future"


def test_a_dry_run_counts_and_stores_nothing(account: Account, write_lines: WriteLines) -> None:
    figures, _, code = run(write_lines(conversation("c1"), conversation("c2")), "--dry-run")

    assert (figures["imported"], figures["dry_run"], code) == (2, True, 0)
    assert not EpisodicMemory.objects.exists()


def test_an_unknown_account_is_created_only_with_the_option(db: None, write_lines: WriteLines) -> None:
    path = write_lines(conversation())

    with pytest.raises(CommandError, match="--create-account"):
        call_command("import_conversations", str(path), "--account=new")
    call_command("import_conversations", str(path), "--account=new", "--create-account", stdout=io.StringIO())

    assert EpisodicMemory.objects.filter(account__name="new").count() == 1


def test_a_pipe_is_read_like_a_file(account: Account) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(json.dumps(conversation()) + "\n")

    assert run(Path(f"/dev/fd/{reading}"))[0]["imported"] == 1
    os.close(reading)


def test_a_missing_file_is_a_one_line_error(account: Account, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("import_conversations", str(tmp_path / "none.jsonl"), "--account=workshop", "--json")


def test_a_locomo_sample_becomes_one_episode_a_session(account: Account, tmp_path: Path) -> None:
    session = [{"speaker": "Ana", "dia_id": "D1:1", "text": "I planted beans.", "blip_caption": "a bed of beans"}]
    path = tmp_path / "samples.json"
    path.write_text(
        json.dumps(
            [
                {
                    "sample_id": "farm",
                    "conversation": {
                        "session_1": session,
                        "session_1_date_time": "1:56 pm on 8 May, 2023",
                        "session_2": session,
                        "session_2_date_time": "noon",
                    },
                    "qa": [],
                }
            ]
        )
    )

    figures, errors, code = run(path, "--format=locomo")

    episode = EpisodicMemory.objects.get(account=account)
    assert (figures["imported"], figures["bad"], code) == (1, 1, 1)
    assert (episode.agent_id, episode.conversation_id) == ("farm", "farm-1")
    assert episode.event_time == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert errors.startswith("sample 1: session_2: ")
    (turn,) = get_conversation(Owner(account_id=account.id, agent_id="farm"), "farm-1")
    assert (turn.name, turn.client_id) == ("Ana", "D1:1")


def interrupted_after(count: int) -> Iterator[ImportedConversation]:
    for number in range(count):
        yield spoken(str(number))
    raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_import_resumes_after_its_stored_batches(account: Account) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(import_conversations(account.id, interrupted_after(imports.BATCH_CONVERSATIONS + 7), now=NOW))

    resumed = list(import_conversations(account.id, map(spoken, map(str, range(60))), now=NOW))

    assert resumed == [ImportCounts(already_there=50), ImportCounts(imported=10, turns=10)]
    assert EpisodicMemory.objects.filter(account=account).count() == 60


def test_a_failing_embedder_leaves_its_rows_for_the_embed_job(account: Account, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER, settings.OPENAI_API_KEY = "openai", "unused"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    settings.EMBEDDING_TIMEOUT_SECONDS = 0.2
    embedding_provider.cache_clear()

    [figures] = import_conversations(account.id, [spoken("1")], now=NOW)

    assert figures == ImportCounts(imported=1, turns=1, pending=2)


ARCHIVES = {
    "chatgpt": [
        chatgpt.chat(chatgpt.said("user", "What broke?"), chatgpt.said("assistant", "A seal.")),
        chatgpt.chat(),
    ],
    "claude": [claude.chat(claude.said("human", "What broke?"), claude.said("assistant", "A seal.")), claude.chat()],
}


@pytest.mark.parametrize("service", ARCHIVES)
@pytest.mark.parametrize("is_zipped", [True, False])
def test_an_archive_is_imported_as_it_was_sent(account: Account, tmp_path: Path, service: str, is_zipped: bool) -> None:
    document = json.dumps(ARCHIVES[service]).encode()
    (tmp_path / "archive").write_bytes(zipped({"conversations.json": document}) if is_zipped else document)

    figures, errors, code = run(tmp_path / "archive", f"--format={service}", "--user=ana")

    row = Conversation.objects.get(account=account)
    assert (figures["imported"], figures["turns"], figures["empty"], errors, code) == (1, 2, 1, "", 0)
    assert (row.conversation_id, row.title, row.agent_id, row.user_id) == ("chat-1", "Pumps", service, "ana")
    turns = get_conversation(Owner(account_id=account.id, agent_id=service), "chat-1")
    assert [(turn.role, turn.text) for turn in turns] == [("user", "What broke?"), ("assistant", "A seal.")]


def test_the_agent_of_an_archive_can_be_named(account: Account, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(ARCHIVES["claude"]))

    run(tmp_path / "conversations.json", "--format=claude", "--agent=helper")

    assert Conversation.objects.get(account=account).agent_id == "helper"


def test_a_bad_entry_of_an_archive_is_reported_with_its_number(account: Account, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{}, *ARCHIVES["claude"]]))

    figures, errors, code = run(tmp_path / "conversations.json", "--format=claude")

    assert (figures["imported"], figures["bad"], code) == (1, 1, 1)
    assert errors.startswith("conversation 1: uuid is missing")


def test_agent_and_user_are_for_archives_only(account: Account, write_lines: WriteLines) -> None:
    with pytest.raises(CommandError, match="for archives"):
        call_command("import_conversations", str(write_lines()), "--account=workshop", "--agent=helper")

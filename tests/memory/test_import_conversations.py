"""`manage.py import_conversations`: one episode a conversation, bad lines reported, resumable, nothing stored twice."""

import io
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from memory.extraction.conversations import ImportedConversation
from memory.models import Account, AuditEntry, EpisodicMemory, Participant
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.providers.summaries import Message
from memory.retrieval.episodes import search_episodes
from memory.retrieval.search import MemoryQuery
from memory.services import imports
from memory.services.imports import Imported, import_conversations

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WriteLines = Callable[..., Path]


@pytest.fixture(autouse=True)
def tiny_embedder(settings: Settings) -> Iterator[None]:
    settings.EMBEDDING_PROVIDER, settings.MEMORY_ALLOW_TINY_EMBEDDINGS = "tiny", True
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


@pytest.fixture
def write_lines(tmp_path: Path) -> WriteLines:
    """A file of lines; what is no text becomes JSON."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "conversations.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    return write


def conversation(conversation_id: str = "c1", **fields: Any) -> dict[str, Any]:
    messages = [
        {
            "role": "user",
            "name": "Ana",
            "content": "The pump in the north field broke.",
            "timestamp": "2026-03-14T09:00Z",
        },
        {"role": "assistant", "content": "We will order a new seal.", "timestamp": "2026-03-14T09:05:00+01:00"},
        {"role": "user", "name": "Ana", "content": "We agreed on the Grundfos seal.", "timestamp": "2026-03-14T09:10Z"},
    ]
    return {"id": conversation_id, "agent": "assistant", "messages": messages} | fields


def run(path: Path, *arguments: str) -> tuple[dict[str, Any], str, int]:
    """The figures, standard error and exit code of an import into the account of the tests."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command(
            "import_conversations", str(path), "--account=workshop", "--json", *arguments, stdout=out, stderr=err
        )
    except SystemExit as stop:
        code = int(stop.code or 0)
    return json.loads(out.getvalue()), err.getvalue(), code


def test_a_conversation_becomes_one_episode(account: Account, write_lines: WriteLines) -> None:
    figures, errors, code = run(write_lines(conversation(user="ana", channel="farm")))

    episode = EpisodicMemory.objects.get(account=account)
    assert (figures["imported"], figures["bad"], figures["pending"], errors, code) == (1, 0, 0, "", 0)
    assert (episode.agent_id, episode.user_id, episode.channel) == ("assistant", "ana", "farm")
    assert (episode.identity, episode.conversation_id) == ("conversation:c1", "c1")
    assert episode.text.splitlines()[0] == "Ana: The pump in the north field broke."
    assert episode.key_decisions == ["assistant: We will order a new seal.", "Ana: We agreed on the Grundfos seal."]
    assert episode.entities_mentioned == ["Ana", "Grundfos"]
    assert episode.event_time == datetime(2026, 3, 14, 9, 10, tzinfo=UTC)
    assert Participant.objects.filter(account=account, conversation_id="c1", agent_id="assistant").exists()


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


def test_a_conversation_told_twice_in_a_file_counts_once(account: Account, write_lines: WriteLines) -> None:
    path = write_lines(conversation("c1"), conversation("c1"))

    assert run(path, "--dry-run")[0]["imported"] == 1
    assert run(path)[0] | {"seconds": 0} == {
        "imported": 1,
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
    figures, errors, code = run(write_lines(conversation("c1"), "{", conversation("c3", agent=""), conversation("c4")))

    assert (figures["imported"], figures["bad"], code) == (2, 2, 1)
    assert [line.split(":")[0] for line in errors.splitlines()] == ["line 2", "line 3"]


def test_a_conversation_that_ends_in_the_future_is_a_bad_line(account: Account, write_lines: WriteLines) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    told = [{"role": "user", "content": "See you.", "timestamp": tomorrow}]

    figures, errors, code = run(write_lines(conversation("c1"), conversation("c2", messages=told)))

    assert (figures["imported"], figures["bad"], code) == (1, 1, 1)
    assert errors.strip() == "line 2: conversation 'c2' ends in the future"


def test_a_conversation_with_nothing_to_quote_is_a_bad_line(account: Account, write_lines: WriteLines) -> None:
    # one character with 3,000 accents: not even its opening fits a summary
    accents = [{"role": "user", "content": "\u0301" * 3_000}]
    path = write_lines(conversation("c1"), conversation("c2", messages=accents), conversation("c3"))

    figures, errors, code = run(path)

    assert (figures["imported"], figures["bad"], code) == (2, 1, 1)
    assert errors.strip() == "line 2: conversation 'c2' has nothing to quote"
    assert run(path)[0]["already_there"] == 2


def test_a_session_that_ends_in_the_future_is_told_by_its_sample(account: Account, tmp_path: Path) -> None:
    turns = [{"speaker": "Ana", "dia_id": "D1:1", "text": "I planted beans."}]
    past, future = "1:56 pm on 8 May, 2023", "1:56 pm on 8 May, 9023"
    sessions = {f"session_{number}": turns for number in (1, 2)}
    times = {"session_1_date_time": past, "session_2_date_time": future}
    samples = [{"sample_id": "farm", "conversation": sessions | times, "qa": []}]
    (tmp_path / "samples.json").write_text(json.dumps(samples))

    _, errors, _ = run(tmp_path / "samples.json", "--format=locomo")

    assert errors.strip() == "sample 1: conversation 'farm-2' ends in the future"


def test_a_rehearsal_counts_and_stores_nothing(account: Account, write_lines: WriteLines) -> None:
    figures, _, code = run(write_lines(conversation("c1"), conversation("c2")), "--dry-run")

    assert (figures["imported"], figures["dry_run"], code) == (2, True, 0)
    assert not EpisodicMemory.objects.exists()


def test_an_unknown_account_is_made_only_when_asked(db: None, write_lines: WriteLines) -> None:
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


def test_a_missing_file_is_one_sentence(account: Account, tmp_path: Path) -> None:
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


def spoken(conversation_id: str) -> ImportedConversation:
    messages = (Message(role="user", content=f"We planted beans in bed {conversation_id}."),)
    return ImportedConversation(number=1, conversation_id=conversation_id, agent_id="assistant", messages=messages)


def interrupted_after(count: int) -> Iterator[ImportedConversation]:
    for number in range(count):
        yield spoken(str(number))
    raise KeyboardInterrupt


def test_what_was_stored_before_an_interruption_is_resumed_from(account: Account) -> None:
    with pytest.raises(KeyboardInterrupt):
        list(import_conversations(account.id, interrupted_after(imports.BATCH_CONVERSATIONS + 7), now=NOW))

    resumed = list(import_conversations(account.id, map(spoken, map(str, range(60))), now=NOW))

    assert resumed == [Imported(already_there=50), Imported(imported=10)]
    assert EpisodicMemory.objects.filter(account=account).count() == 60


def test_a_failing_embedder_leaves_its_rows_for_the_embed_job(account: Account, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER, settings.OPENAI_API_KEY = "openai", "unused"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    settings.EMBEDDING_TIMEOUT_SECONDS = 0.2
    embedding_provider.cache_clear()

    [figures] = import_conversations(account.id, [spoken("1")], now=NOW)

    assert figures == Imported(imported=1, pending=1)

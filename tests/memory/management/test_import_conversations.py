"""`manage.py import_conversations`: turns and one episode a conversation, bad lines told, resumable, nothing twice."""

import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memory import conf
from memory.extraction.imported import ImportedConversation, ImportedMessage
from memory.extraction.messages import ChatMessage
from memory.models import Account, AuditEntry, Conversation, EpisodicMemory, Participant, Turn
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.retrieval.episodes import search_episodes
from memory.retrieval.search import MemoryQuery
from memory.services.conversations import import_files as imports
from memory.services.conversations.import_files import ImportCounts, draft_conversation, import_conversations
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation, find_conversation
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.summaries.summarize import latest_summary, summarize_due
from memory.services.turns.store import get_conversation
from tests.memory.episodes import NOTHING
from tests.memory.extraction import chatgpt_chats as chatgpt
from tests.memory.extraction import claude_chats as claude
from tests.memory.extraction.archived import zipped
from tests.memory.turns import talk

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
    row = find_conversation(Owner(account_id=account.id), "c1")
    assert (episode.identity, episode.conversation_id) == (f"import:{row.id}:assistant", "c1")
    assert episode.metadata["log"] == str(row.id)
    assert episode.text.splitlines()[0] == "Ana: The pump in the north field broke."
    assert episode.key_decisions == ["assistant: We will order a new seal.", "Ana: We agreed on the Grundfos seal."]
    assert episode.entities_mentioned == ["Ana", "Grundfos"]
    assert episode.event_time == datetime(2026, 3, 14, 9, 10, tzinfo=UTC)
    assert Participant.objects.filter(account=account, conversation_id="c1", agent_id="assistant").exists()


def test_a_conversation_is_stored_with_its_turns(account: Account, owner: Owner, write_lines: WriteLines) -> None:
    figures, _, _ = run(write_lines(conversation(user="ana", channel="farm", title="Pumps")))

    row, turns = find_conversation(owner, "c1"), get_conversation(owner, "c1")
    assert figures["turns"] == 3
    assert (row.agent_id, row.user_id, row.channel, row.title, row.turn_count) == (
        "assistant",
        "ana",
        "farm",
        "Pumps",
        3,
    )
    assert (row.started_at, row.last_turn_at) == (turns[1].event_time, turns[2].event_time)
    assert [(turn.index, turn.role, turn.name) for turn in turns] == [
        (0, "user", "Ana"),
        (1, "assistant", ""),
        (2, "user", "Ana"),
    ]
    assert {(turn.agent_id, turn.user_id, turn.channel, turn.source) for turn in turns} == {
        ("assistant", "ana", "farm", "import")
    }
    assert turns[1].event_time == datetime(2026, 3, 14, 8, 5, tzinfo=UTC)


@pytest.mark.parametrize(("count", "buffer_from"), [(3, 0), (10, 0), (60, 50)])
def test_an_imported_conversation_is_not_summarized_again(
    owner: Owner, write_lines: WriteLines, count: int, buffer_from: int
) -> None:
    run(write_lines(conversation(messages=[{"role": "user", "content": f"Bean {number}."} for number in range(count)])))

    row = find_conversation(owner, "c1")
    assert (row.turn_count, row.summarized_count, row.buffer_from) == (count, count, buffer_from)
    assert (row.summarize_after, row.summarize_to, row.ended_at) == (None, None, None)


def test_turns_added_after_an_import_are_due_for_summary_as_ever(owner: Owner, write_lines: WriteLines) -> None:
    run(write_lines(conversation(messages=[{"role": "user", "content": f"Bean {number}."} for number in range(60)])))

    early = talk(owner, conf.SUMMARY_THRESHOLD - 1, now=NOW).conversation
    due = talk(owner, 1, now=NOW).conversation

    assert early.summarize_after == NOW + timedelta(minutes=conf.SESSION_IDLE_MINUTES)
    assert (due.turn_count - due.summarized_count, due.summarize_after) == (conf.SUMMARY_THRESHOLD, NOW)


def test_the_episode_of_an_import_is_its_summary_until_the_next_one_takes_it_in(
    owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation()))
    imported = latest_summary(owner, find_conversation(owner, "c1"))
    start = find_conversation(owner, "c1").turn_count

    talk(owner, conf.SUMMARY_THRESHOLD, start=start, now=timezone.now())
    summarize_due(now=timezone.now(), limit=1)

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert imported is not None
    assert latest is not None
    assert imported.text.splitlines()[0] in latest.text
    assert EpisodicMemory.objects.get(id=imported.id).archived


def test_how_a_conversation_ended_is_kept_and_nothing_of_it_is_live(owner: Owner, write_lines: WriteLines) -> None:
    run(write_lines(conversation(outcome="success", ended_at="2026-03-14T10:00:00Z", metadata={"ticket": 7})))

    row = find_conversation(owner, "c1")
    assert (row.outcome, row.metadata) == ("success", {"ticket": 7})
    assert row.ended_at == datetime(2026, 3, 14, 10, tzinfo=UTC)
    assert not Conversation.objects.ended_uncleared().exists()


def test_a_turn_of_another_agent_is_that_agents(account: Account, owner: Owner, write_lines: WriteLines) -> None:
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello.", "agent": "second"}]

    run(write_lines(conversation(messages=[*messages, {"role": "user", "content": "Bye."}])))

    assert [turn.agent_id for turn in get_conversation(owner, "c1")] == ["assistant", "second", "assistant"]
    assert Participant.objects.filter(account=account, agent_id="second", conversation_id="c1").exists()


def test_every_agent_that_wrote_in_it_gets_the_episode(account: Account, write_lines: WriteLines) -> None:
    path = write_lines(conversation(messages=[said_by("y"), said_by("x"), said_by("y")]))
    run(path)
    run(path)

    episodes = EpisodicMemory.objects.filter(account=account).order_by("agent_id")
    assert [row.agent_id for row in episodes] == ["assistant", "x", "y"]
    assert len({row.text for row in episodes}) == 1


def test_without_an_agent_of_its_own_it_is_told_to_those_that_wrote_in_it(account: Account) -> None:
    told = ImportedConversation(
        number=1, size_bytes=1, conversation_id="c1", agent_id="", messages=tuple(message_by(each) for each in "yx")
    )

    list(import_conversations(account.id, [told], now=NOW))

    episodes = EpisodicMemory.objects.order_by("agent_id")
    assert [row.agent_id for row in episodes] == ["x", "y"]


def said_by(agent_id: str) -> dict[str, str]:
    return {"role": "assistant", "content": "We agreed on the Grundfos seal.", "agent": agent_id}


def message_by(agent_id: str) -> ImportedMessage:
    message = ChatMessage(role="assistant", name="", text="We agreed on the seal.", payload=None)
    return ImportedMessage(message=message, agent_id=agent_id)


def test_a_message_without_a_time_was_said_with_the_one_before(owner: Owner, write_lines: WriteLines) -> None:
    times = [None, "2026-03-14T09:00:00Z", None, "2026-03-14T09:30:00Z"]
    messages = [{"role": "user", "content": "Hi.", "timestamp": moment} for moment in times]

    run(write_lines(conversation(messages=messages)))

    turns = get_conversation(owner, "c1")
    assert [turn.event_time.minute for turn in turns] == [0, 0, 0, 30]
    assert [turn.payload for turn in turns] == [{"timestamp": None}, None, {"timestamp": None}, None]


def test_what_tools_and_instructions_say_is_not_quoted(account: Account, write_lines: WriteLines) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"part": "seal 7"}'}}
    messages = [
        {"role": "system", "content": "Always answer within 20 words."},
        {"role": "user", "content": "What does the seal cost?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "price 4 EUR, stock 17"},
        {"role": "assistant", "content": "The seal costs 4 EUR."},
    ]

    run(write_lines(conversation(messages=messages)))

    episode = EpisodicMemory.objects.get(account=account)
    assert set(episode.text.splitlines()) <= {"user: What does the seal cost?", "assistant: The seal costs 4 EUR."}
    assert episode.tools_called == ["look_up"]


def test_a_conversation_of_an_older_import_gets_its_turns(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    episode = draft_conversation(spoken("c1"), now=NOW).episode
    assert episode is not None
    older = replace(episode, identity="conversation:c1", metadata={"messages": 3})
    store_episodes(owner, drafts=[older], embedded=NOTHING, now=NOW)

    figures, _, _ = run(write_lines(conversation("c1")))

    row = find_conversation(owner, "c1")
    assert (figures["imported"], figures["turns"], row.summarized_count) == (1, 3, 3)
    (adopted,) = EpisodicMemory.objects.filter(account=account)
    assert (adopted.id, latest_summary(owner, row)) == (episode.id, adopted)
    assert adopted.metadata["last_index"] == 2


def test_the_episode_of_an_older_import_for_another_user_is_left_alone(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    episode = draft_conversation(spoken("c1"), now=NOW).episode
    assert episode is not None
    older = replace(episode, identity="conversation:c1", metadata={"messages": 3})
    store_episodes(replace(owner, user_id="bob"), drafts=[older], embedded=NOTHING, now=NOW)

    run(write_lines(conversation("c1", user="ana")))

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert latest is not None
    assert (latest.id == episode.id, latest.user_id) == (False, "ana")


def test_a_conversation_imported_again_after_it_was_deleted_has_an_episode_of_its_own(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation("c1")))
    delete_conversation(Owner(account_id=account.id), "c1")

    run(write_lines(conversation("c1", messages=[{"role": "user", "content": "Bake bread."}])))

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert latest is not None
    assert latest.text == "user: Bake bread."
    assert EpisodicMemory.objects.count() == 2


def test_an_import_whose_episode_cannot_be_stored_is_a_bad_line(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    row = create_conversation(owner, "c1", defaults=ConversationDefaults(), now=NOW)
    taken = EpisodeDraft(conversation_id="c1", summary="Taken.", identity=f"import:{row.id}:assistant")
    store_episodes(owner, drafts=[taken], embedded=NOTHING, now=NOW)

    figures, errors, _ = run(write_lines(conversation("c1")))

    assert (figures["imported"], figures["bad"]) == (0, 1)
    assert errors.strip() == "line 1: conversation 'c1' has an imported episode already"
    assert not Turn.objects.exists()


def test_a_conversation_that_goes_on_here_is_left_alone(owner: Owner, write_lines: WriteLines) -> None:
    talk(owner, 2)

    figures, _, _ = run(write_lines(conversation("c1")))

    assert (figures["imported"], figures["already_there"]) == (0, 1)
    assert len(get_conversation(owner, "c1")) == 2
    assert not EpisodicMemory.objects.exists()


def test_a_conversation_may_continue_one_that_comes_later_or_never(owner: Owner, write_lines: WriteLines) -> None:
    path = write_lines(conversation("c1", continues="c2"), conversation("c2", continues="lost"))

    assert run(path)[2] == 0
    assert [find_conversation(owner, name).continues for name in ("c1", "c2")] == ["c2", "lost"]


def test_a_ring_of_conversations_is_a_bad_line(owner: Owner, write_lines: WriteLines) -> None:
    path = write_lines(
        conversation("c1", continues="c2"), conversation("c2", continues="c3"), conversation("c3", continues="c1")
    )

    figures, errors, _ = run(path)

    assert (figures["imported"], figures["bad"]) == (2, 1)
    assert errors.strip() == "line 3: conversation 'c3' continues one that continues it"
    assert not Conversation.objects.filter(conversation_id="c3").exists()


def test_a_quicker_import_of_the_same_conversation_wins(account: Account, owner: Owner) -> None:
    drafted = draft_conversation(spoken("c1"), now=NOW)
    talk(owner, 1)

    with pytest.raises(imports.StoredMeanwhile):
        imports.store_conversation(account.id, drafted, embedded=NOTHING, now=NOW)

    assert len(get_conversation(owner, "c1")) == 1


def test_an_import_leaves_sessions_alone(
    owner: Owner, write_lines: WriteLines, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        run(write_lines(conversation()))

    assert callbacks == []


def test_a_longer_conversation_takes_no_more_queries(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in (2, 200):
        told = replace(spoken(f"c{number}"), messages=spoken("c").messages * number)
        drafted = draft_conversation(told, now=NOW)

        with django_assert_num_queries(18):
            imports.store_conversation(account.id, drafted, embedded=NOTHING, now=NOW)


def test_embedding_stops_when_its_time_is_over(account: Account, write_lines: WriteLines) -> None:
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


def test_a_conversation_told_twice_in_a_file_counts_once(account: Account, write_lines: WriteLines) -> None:
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
    told = [{"role": "user", "content": "See you.", "timestamp": tomorrow}]

    figures, errors, code = run(write_lines(conversation("c1"), conversation("c2", messages=told)))

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
    (turn,) = get_conversation(Owner(account_id=account.id, agent_id="farm"), "farm-1")
    assert (turn.name, turn.client_id) == ("Ana", "D1:1")


def spoken(conversation_id: str) -> ImportedConversation:
    message = ImportedMessage(message=ChatMessage(role="user", text=f"We planted beans in bed {conversation_id}."))
    return ImportedConversation(
        number=1, size_bytes=1, conversation_id=conversation_id, agent_id="assistant", messages=(message,)
    )


def interrupted_after(count: int) -> Iterator[ImportedConversation]:
    for number in range(count):
        yield spoken(str(number))
    raise KeyboardInterrupt


def test_what_was_stored_before_an_interruption_is_resumed_from(account: Account) -> None:
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


def test_a_bad_entry_of_an_archive_is_told_by_its_place(account: Account, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{}, *ARCHIVES["claude"]]))

    figures, errors, code = run(tmp_path / "conversations.json", "--format=claude")

    assert (figures["imported"], figures["bad"], code) == (1, 1, 1)
    assert errors.startswith("conversation 1: uuid is missing")


def test_agent_and_user_are_for_archives_only(account: Account, write_lines: WriteLines) -> None:
    with pytest.raises(CommandError, match="for archives"):
        call_command("import_conversations", str(write_lines()), "--account=workshop", "--agent=helper")

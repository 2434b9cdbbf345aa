"""`manage.py export_conversations`: imported files are exported byte for byte, streamed, never half a file."""

import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from memory.extraction.imported import canonical_time
from memory.models import Account, Turn
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.conversations.export import ExportCounts, ExportSelection, export_conversations
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from tests.memory.episodes import NOW
from tests.memory.management.exports import (
    canonical,
    export,
    load,
)
from tests.memory.management.exports import tiny_embedder as tiny_embedder
from tests.memory.turns import say, talk, turn

pytestmark = pytest.mark.django_db


SAMPLE = Path(__file__).parents[3] / "docs" / "sample" / "conversations.jsonl"


CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"b": 1, "a": 2}'}}


def exported(account: Account, **selection: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export(account, **selection).splitlines()]


def ids(account: Account, **selection: Any) -> list[str]:
    return [each["id"] for each in exported(account, **selection)]


def test_the_imported_sample_is_exported_byte_for_byte(account: Account) -> None:
    load(account, SAMPLE.read_bytes())

    assert export(account) == SAMPLE.read_bytes()


def test_turns_recorded_here_are_exported_in_the_canonical_form(account: Account, owner: Owner) -> None:
    say(owner, turn("Grüße", timestamp=NOW, client_id="m-1", model="some-model", metadata={"b": 1, "a": [0.5]}))

    assert export(account).decode() == (
        '{"id": "c1", "agent": "assistant", "messages": [{"role": "user", "content": "Grüße", '
        f'"timestamp": "{canonical_time(NOW)}", "model": "some-model", "client_id": "m-1", '
        '"metadata": {"a": [0.5], "b": 1}}]}\n'
    )


def test_all_fields_of_the_format_survive_a_round_trip(account: Account, stranger: Account) -> None:
    full = {
        "id": "c1",
        "agent": "assistant",
        "user": "ana",
        "channel": "farm",
        "title": "Pumps",
        "continues": "c0",
        "metadata": {"a": 1},
        "outcome": "failure",
        "ended_at": "2026-03-14T10:00:00.250000Z",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "Ana", "content": [{"type": "text", "text": "Hi"}, {"z": 1, "type": "image_url"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL], "timestamp": "2026-03-14T10:00:00+01:00"},
            {"role": "tool", "content": "", "tool_call_id": "call_1", "timestamp": "2026-03-14T09:00:00Z"},
            {"role": "assistant", "content": "4", "annotations": [], "model": "m", "client_id": "7", "agent": "second"},
            {"role": "assistant", "content": "No.", "refusal": "No.", "metadata": {"b": None}, "agent": ""},
        ],
    }

    load(account, canonical(full))
    load(stranger, export(account))

    assert export(account) == export(stranger) == canonical(full)


def test_a_conversation_of_several_agents_survives_a_round_trip(account: Account, stranger: Account) -> None:
    first = Owner(account_id=account.id, agent_id="first", user_id="ana", channel="farm")
    create_conversation(first, "c1", defaults=ConversationDefaults(title="Pumps", metadata={"n": 1}), now=NOW)
    for agent_id in ("first", "second", ""):
        say(Owner(account_id=account.id, agent_id=agent_id), turn(f"I am {agent_id}."), now=NOW)
    end_conversation(first, "c1", outcome="success", now=NOW)

    load(stranger, export(account))

    assert [message.get("agent") for message in exported(account)[0]["messages"]] == [None, "second", ""]
    assert export(stranger) == export(account)


def test_turns_keep_their_user_and_channel_in_a_round_trip(account: Account, stranger: Account) -> None:
    ana = Owner(account_id=account.id, agent_id="assistant", user_id="ana", channel="slack")
    ben = Owner(account_id=account.id, agent_id="assistant", user_id="ben", channel="mail")
    for owner in (ana, ben, ana):
        say(owner, turn("hello"), conversation_id=" ")

    load(stranger, export(account))

    rows = Turn.objects.filter(account=stranger)
    assert [(row.user_id, row.channel) for row in rows.order_by("index")] == [
        ("ana", "slack"),
        ("ben", "mail"),
        ("ana", "slack"),
    ]
    assert export(stranger) == export(account)


def test_conversations_come_in_the_order_in_which_they_were_stored(account: Account) -> None:
    names = [f"c{number}" for number in (*range(30, 0, -1), *range(31, 60))]
    message = {"role": "user", "content": "Hi."}
    load(account, canonical(*({"id": name, "agent": "a", "messages": [message]} for name in names)))

    assert ids(account) == names


def test_a_conversation_in_which_nothing_was_said_is_left_out(account: Account, owner: Owner) -> None:
    create_conversation(owner, "c1", defaults=ConversationDefaults(title="Nothing yet"), now=NOW)

    assert export(account) == b""


def test_conversations_of_another_account_are_not_exported(account: Account, stranger: Account, owner: Owner) -> None:
    talk(owner, 2)

    assert export(stranger) == b""


def test_conversations_are_selected(account: Account) -> None:
    for name, user_id, channel in (("c1", "ana", "farm"), ("c2", "ben", "farm"), ("c3", "ana", "_global")):
        talk(Owner(account_id=account.id, agent_id="a", user_id=user_id, channel=channel), 1, conversation_id=name)

    assert ids(account, conversation_ids=["c3", "c1"]) == ["c1", "c3"]
    assert ids(account, user_id="ana") == ["c1", "c3"]
    assert ids(account, channel="farm") == ["c1", "c2"]
    assert ids(account, user_id="ana", channel="farm") == ["c1"]


def test_since_looks_at_the_latest_turn(account: Account, owner: Owner) -> None:
    for name, days in (("old", 3), ("new", 1)):
        say(owner, turn("Hi.", timestamp=NOW - timedelta(days=days)), conversation_id=name)

    assert ids(account, since=NOW - timedelta(days=1)) == ["new"]
    assert ids(account, since=NOW) == []


def test_the_counts_match_what_was_written(account: Account, owner: Owner) -> None:
    talk(owner, 3)
    written = io.BytesIO()

    (figures,) = export_conversations(account.id, ExportSelection(), write=written.write)

    assert figures == ExportCounts(conversations=1, turns=3, size_bytes=len(written.getvalue()))


@pytest.mark.django_db(transaction=True)
def test_an_export_is_a_consistent_snapshot_written_in_pieces(account: Account, owner: Owner) -> None:
    talk(owner, 2, conversation_id="c1")
    talk(owner, 2, conversation_id="c2")
    pieces: list[bytes] = []
    steps = export_conversations(account.id, ExportSelection(), write=pieces.append)

    next(steps)
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        isolation = cursor.fetchone()
    list(steps)

    assert isolation == ("repeatable read",)
    assert len(pieces) == 2 * (1 + 2 + 1)


def run(*arguments: str) -> tuple[str, dict[str, Any], int]:
    """Standard output, the figures, and the exit code of an export of the tests' account."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("export_conversations", *arguments, "--account=workshop", "--json", stdout=out, stderr=err)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return out.getvalue(), json.loads(err.getvalue()), code


def test_lines_go_to_standard_output_and_figures_to_standard_error(account: Account, owner: Owner) -> None:
    talk(owner, 2)

    out, figures, code = run()

    assert out.encode() == export(account)
    assert (figures["conversations"], figures["turns"], figures["size_bytes"], code) == (1, 2, len(out), 0)


def test_standard_output_is_utf_8_whatever_the_terminal_is(account: Account, owner: Owner) -> None:
    say(owner, turn("Grüße 𝒳"))
    raw = io.BytesIO()
    terminal = io.TextIOWrapper(raw, "ascii")

    call_command("export_conversations", "--account=workshop", stdout=terminal, stderr=io.StringIO())

    assert raw.getvalue() == export(account)
    terminal.detach()


def test_a_file_is_replaced_by_a_complete_export_if_that_is_asked_for(
    account: Account, owner: Owner, tmp_path: Path
) -> None:
    talk(owner, 2)
    path = tmp_path / "backup.jsonl"
    path.write_text("older\n")

    with pytest.raises(CommandError, match=r"backup\.jsonl exists: name another file, or give --replace\.$"):
        run(str(path))
    assert path.read_text() == "older\n"
    out, _, _ = run(str(path), "--replace")

    assert (out, path.read_bytes()) == ("", export(account))
    assert os.listdir(tmp_path) == ["backup.jsonl"]


def test_a_failing_export_leaves_the_file_as_it_was(account: Account, owner: Owner, tmp_path: Path) -> None:
    talk(owner, 1)
    Turn.objects.update(payload={"timestamp": "\ud800"})
    path = tmp_path / "backup.jsonl"
    path.write_text("older\n")

    with pytest.raises(UnicodeEncodeError):
        run(str(path), "--replace")

    assert path.read_text() == "older\n"
    assert os.listdir(tmp_path) == ["backup.jsonl"]


def test_options_select(account: Account, owner: Owner) -> None:
    for name in ("c1", "c2", "c3"):
        talk(owner, 1, conversation_id=name)

    assert run("--conversation=c1", "--conversation=c3")[1]["conversations"] == 2
    assert run("--user=nobody")[1]["conversations"] == 0
    assert run("--channel=_global", "--since=2020-01-01T00:00:00Z")[1]["conversations"] == 3
    assert run("--since=2999-01-01T00:00:00Z")[1]["conversations"] == 0


def test_an_unknown_conversation_is_an_error(account: Account, owner: Owner, tmp_path: Path) -> None:
    talk(owner, 1)

    with pytest.raises(CommandError, match="some of the conversations do not exist"):
        run(str(tmp_path / "backup.jsonl"), "--conversation=c1", "--conversation=lost")

    assert os.listdir(tmp_path) == []


def test_an_unknown_account_is_an_error(db: None) -> None:
    with pytest.raises(CommandError, match="There is no account"):
        run()


def test_an_unwritable_path_is_a_one_line_error(account: Account, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written: No such file"):
        run(str(tmp_path / "nowhere" / "backup.jsonl"))


def test_an_export_is_imported_by_its_own_command(account: Account, owner: Owner, tmp_path: Path) -> None:
    talk(owner, 40)
    path = str(tmp_path / "backup.jsonl")
    run(path)

    call_command("import_conversations", path, "--account=copy", "--create-account", stdout=io.StringIO())

    assert export(Account.objects.get(name="copy")) == export(account)


def test_times_are_exported_to_the_microsecond(account: Account, owner: Owner) -> None:
    say(owner, turn("Hi.", timestamp=datetime(2026, 3, 14, 9, 0, 0, 1, tzinfo=UTC)))

    assert exported(account)[0]["messages"][0]["timestamp"] == "2026-03-14T09:00:00.000001Z"

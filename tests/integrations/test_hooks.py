"""Hooks of coding agents, as the agent runs them."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from agent_memory_client import Client

from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.integrations.environments import OURS


@pytest.fixture
def environ(url: str, api_key: str) -> dict[str, str]:
    paths = os.pathsep.join(map(str, OURS))
    named = {"AGENT_MEMORY_AGENT_ID": "assistant", "AGENT_MEMORY_USER_ID": "ana"}
    return {"PYTHONPATH": paths, "AGENT_MEMORY_BASE_URL": url, "AGENT_MEMORY_API_KEY": api_key, **named}


def answer_hook(environ: dict[str, str], event: str, given: Any) -> Any:
    """Return the JSON that the hook answers, None for no output."""
    command = [sys.executable, "-m", "agent_memory_integrations.hooks", "hook", event]
    done = subprocess.run(
        command, input=json.dumps(given), env=environ, capture_output=True, text=True, timeout=180, check=True
    )
    return json.loads(done.stdout) if done.stdout else None


def run_hook(environ: dict[str, str], event: str, **given: Any) -> str:
    answer = answer_hook(environ, event, given)
    return str(answer["hookSpecificOutput"]["additionalContext"]) if answer else ""


def test_a_session_starts_with_what_is_open(environ: dict[str, str], client: Client) -> None:
    client.add_goal("Mend the flaky test of the parser.")

    assert "Mend the flaky test of the parser." in run_hook(environ, "session-start", session_id="s1")


def test_a_prompt_gets_what_bears_on_it_once(environ: dict[str, str], client: Client) -> None:
    client.remember("The parser is tested with pytest -k parser.")
    asked = {"session_id": "s1", "prompt": "How is the parser tested?"}

    first, second = run_hook(environ, "prompt", **asked), run_hook(environ, "prompt", **asked)

    assert "pytest -k parser" in first
    assert "pytest -k parser" not in second


def test_a_stop_stores_the_transcript_once(environ: dict[str, str], client: Client, tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Use tabs from now on."}},
        {
            "type": "assistant",
            "uuid": "2",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        },
        {"type": "summary", "summary": "x"},
    ]
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("\n".join(map(json.dumps, lines)))

    for _ in range(2):
        run_hook(environ, "stop", session_id="s1", transcript_path=str(transcript))

    assert [(turn.role, turn.content) for turn in client.turns("s1")] == [
        ("user", "Use tabs from now on."),
        ("assistant", "Done."),
    ]


def test_a_transcript_is_stored_with_its_times_and_without_what_nobody_said(
    environ: dict[str, str], client: Client, tmp_path: Path
) -> None:
    said = {"type": "user", "uuid": "1", "timestamp": "2026-02-03T04:05:06.789Z"}
    lines = [
        {**said, "message": {"role": "user", "content": "Use tabs from now on."}},
        {**said, "uuid": "2", "isMeta": True, "message": {"role": "user", "content": "Stop hook feedback: no"}},
        {**said, "uuid": "3", "isSidechain": True, "message": {"role": "user", "content": "Find all parsers."}},
        {**said, "uuid": "4", "isCompactSummary": True, "message": {"role": "user", "content": "The session so far"}},
        {**said, "uuid": "5", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
        {**said, "uuid": "6", "message": {"role": "user", "content": [{"type": "tool_result", "content": "42"}]}},
    ]
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("\n".join(map(json.dumps, lines)))

    for _ in range(2):
        run_hook(environ, "stop", session_id="s1", transcript_path=str(transcript))

    [turn] = client.turns("s1")
    assert turn.content == "Use tabs from now on."
    assert str(turn.timestamp).startswith("2026-02-03")


def test_a_message_with_odd_characters_loses_neither_itself_nor_others(
    environ: dict[str, str], client: Client, tmp_path: Path
) -> None:
    said = ["one\u2028two\x85three", "a NUL \x00 and half a pair \ud83d", "Use tabs."]
    transcript = tmp_path / "transcript.jsonl"
    lines = [json.dumps({"role": "user", "content": said[0]}, ensure_ascii=False)]
    lines += [json.dumps({"role": "user", "content": text}) for text in said[1:]]
    transcript.write_text("\n".join(lines), encoding="utf-8")

    run_hook(environ, "stop", session_id="s1", transcript_path=str(transcript))

    assert [turn.content for turn in client.turns("s1")] == [said[0], "a NUL  and half a pair", "Use tabs."]


def test_a_hook_reads_and_writes_utf_8_in_every_locale(environ: dict[str, str], client: Client) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}
    client.remember("Café Ümlaut opens at nine, says Zoë \u2615.")
    asked = {**PROMPTS["Claude Code"], "prompt": "When does the Café Ümlaut open?"}
    command = [sys.executable, "-m", "agent_memory_integrations.hooks", "hook", "prompt"]

    done = subprocess.run(
        command,
        input=json.dumps(asked, ensure_ascii=False).encode(),
        env=environ | locale,
        capture_output=True,
        timeout=60,
        check=True,
    )

    told = json.loads(done.stdout.decode())["hookSpecificOutput"]["additionalContext"]
    assert "Café Ümlaut opens at nine, says Zoë \u2615." in told


def test_a_clock_that_is_ahead_of_the_service_loses_no_turn(
    environ: dict[str, str], client: Client, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    lines = [
        {
            "type": "user",
            "uuid": name,
            "timestamp": (now + ahead).isoformat(),
            "message": {"role": "user", "content": name},
        }
        for name, ahead in {"Use tabs.": timedelta(0), "Use spaces.": timedelta(minutes=6)}.items()
    ]
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("\n".join(map(json.dumps, lines)))

    for _ in range(2):
        run_hook(environ, "stop", session_id="s1", transcript_path=str(transcript))

    turns = list(client.turns("s1"))
    assert [turn.content for turn in turns] == ["Use tabs.", "Use spaces."]
    assert all(datetime.fromisoformat(str(turn.timestamp)) < now + timedelta(minutes=2) for turn in turns)


def test_a_service_that_is_away_does_not_stop_the_agent(environ: dict[str, str]) -> None:
    assert run_hook(environ | {"AGENT_MEMORY_BASE_URL": "http://127.0.0.1:9"}, "prompt", prompt="hello") == ""


@pytest.mark.slow
def test_a_transcript_without_ids_that_is_written_anew_is_stored_once(
    environ: dict[str, str], client: Client, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript.jsonl"
    said = [{"role": "user", "content": text} for text in ("yes", "x" * 20_000, "yes")]

    for lines in (said[:2], [{"role": "system"}, *said]):
        transcript.write_text("\n".join(map(json.dumps, lines)))
        run_hook(environ, "stop", session_id="s1", transcript_path=str(transcript))
    transcript.write_text("\n".join(json.dumps({"role": "user", "content": f"{n}" * 20_000}) for n in range(100)))
    run_hook(environ, "stop", session_id="s2", transcript_path=str(transcript))

    assert [turn.content for turn in client.turns("s1")] == [each["content"] for each in said]
    assert [turn.content[:2] for turn in client.turns("s2")][-1] == "99"


def test_a_bound_key_names_the_agent(environ: dict[str, str], account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE, agent_id="tester").secret
    bound = {"AGENT_MEMORY_API_KEY": key, "AGENT_MEMORY_AGENT_ID": ""}
    with Client(environ["AGENT_MEMORY_BASE_URL"], key) as client:
        client.add_goal("Mend the flaky test of the parser.")

    assert "Mend the flaky test" in run_hook(environ | bound, "session-start")


def test_what_is_no_object_is_refused_with_a_sentence(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "agent_memory_integrations.hooks", "hook", "prompt"]
    done = subprocess.run(command, input="[]", env=environ, capture_output=True, text=True, timeout=180, check=True)

    assert (done.stdout, done.stderr) == ("", "agent-memory: The hook reads a JSON object on stdin.\n")


CODEX = {"session_id": "s1", "transcript_path": None, "cwd": "/src", "model": "gpt", "permission_mode": "default"}
GEMINI = {"session_id": "s1", "transcript_path": "/nowhere/session.json", "cwd": "/src"}
CURSOR = {
    "conversation_id": "s1", "generation_id": "g1", "model": "m", "cursor_version": "3.0", "workspace_roots": ["/src"],
    "user_email": None, "transcript_path": None,
}  # fmt: skip
PROMPTS: dict[str, dict[str, Any]] = {
    "Claude Code": {
        "session_id": "s1", "transcript_path": "/nowhere/s1.jsonl", "cwd": "/src", "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
    },
    "Codex CLI": {**CODEX, "hook_event_name": "UserPromptSubmit", "turn_id": "t1"},
    "Gemini CLI": {**GEMINI, "hook_event_name": "BeforeAgent", "timestamp": "2026-11-28T10:00:00Z"},
}  # fmt: skip
STARTS: dict[str, dict[str, Any]] = {
    "Claude Code": {**PROMPTS["Claude Code"], "hook_event_name": "SessionStart", "source": "startup"},
    "Codex CLI": {**CODEX, "hook_event_name": "SessionStart", "source": "startup"},
    "Gemini CLI": {
        **GEMINI,
        "hook_event_name": "SessionStart",
        "source": "startup",
        "timestamp": "2026-11-28T10:00:00Z",
    },
}
ASKED = "How is the parser tested?"
ANSWERED = "With pytest -k parser."


@pytest.mark.parametrize("agent", PROMPTS)
def test_each_agent_reads_the_evidence_in_the_answer_to_its_own_event(
    environ: dict[str, str], client: Client, agent: str
) -> None:
    client.remember("The parser is tested with pytest -k parser.")

    answer = answer_hook(environ, "prompt", {**PROMPTS[agent], "prompt": ASKED})

    told = answer.pop("hookSpecificOutput")
    assert "pytest -k parser" in told.pop("additionalContext")
    assert (answer, told) == ({}, {"hookEventName": PROMPTS[agent]["hook_event_name"]})


@pytest.mark.parametrize("agent", STARTS)
def test_each_agent_reads_what_is_open_at_the_start_of_a_session(
    environ: dict[str, str], client: Client, agent: str
) -> None:
    client.add_goal("Mend the flaky test of the parser.")

    told = answer_hook(environ, "session-start", STARTS[agent])["hookSpecificOutput"]

    assert told["hookEventName"] == "SessionStart"
    assert "Mend the flaky test of the parser." in told["additionalContext"]


def test_a_long_prompt_is_asked_for_and_stored(environ: dict[str, str], client: Client) -> None:
    client.remember("The parser is tested with pytest -k parser.")
    prompt = f"{ASKED} {'The log is clean. ' * 900}{ASKED}"

    answer = answer_hook(environ, "prompt", {**PROMPTS["Codex CLI"], "turn_id": "t1", "prompt": prompt})

    assert "pytest -k parser" in answer["hookSpecificOutput"]["additionalContext"]
    assert [turn.content for turn in client.turns("s1")] == [prompt]


@pytest.mark.slow
def test_codex_stores_each_prompt_and_each_answer_once(environ: dict[str, str], client: Client) -> None:
    stop = {**CODEX, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": ANSWERED}

    for turn in ("t1", "t1", "t2"):
        answer_hook(environ, "prompt", {**PROMPTS["Codex CLI"], "turn_id": turn, "prompt": ASKED})
        assert answer_hook(environ, "stop", {**stop, "turn_id": turn}) is None

    said = [("user", ASKED), ("assistant", ANSWERED)]
    assert [(turn.role, turn.content) for turn in client.turns("s1")] == said * 2


@pytest.mark.slow
def test_gemini_stores_the_prompt_of_a_retried_answer_once(environ: dict[str, str], client: Client) -> None:
    after = {**GEMINI, "hook_event_name": "AfterAgent", "prompt": ASKED}
    first = {"timestamp": "2026-11-28T10:00:00Z", "prompt_response": "I do not know.", "stop_hook_active": False}
    retried = {"timestamp": "2026-11-28T10:00:09Z", "prompt_response": ANSWERED, "stop_hook_active": True}

    for each in (first, retried, retried):
        assert answer_hook(environ, "stop", {**after, **each}) == {}

    expected = [("user", ASKED), ("assistant", "I do not know."), ("assistant", ANSWERED)]
    assert [(turn.role, turn.content) for turn in client.turns("s1")] == expected


@pytest.mark.slow
def test_cursor_reads_what_is_open_and_stores_what_is_said(environ: dict[str, str], client: Client) -> None:
    client.add_goal("Mend the flaky test of the parser.")
    start = {**CURSOR, "hook_event_name": "sessionStart", "session_id": "s1", "composer_mode": "agent"}

    [told] = answer_hook(environ, "session-start", start).values()
    for _ in range(2):
        asked = {**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": ASKED, "attachments": []}
        assert answer_hook(environ, "prompt", asked) == {"continue": True}
        answered = {**CURSOR, "hook_event_name": "afterAgentResponse", "text": ANSWERED}
        assert answer_hook(environ, "stop", answered) == {}

    assert "Mend the flaky test of the parser." in told
    assert [(turn.role, turn.content) for turn in client.turns("s1")] == [("user", ASKED), ("assistant", ANSWERED)]


def test_agents_that_want_an_answer_get_one_from_a_service_that_is_away(environ: dict[str, str]) -> None:
    away = environ | {"AGENT_MEMORY_BASE_URL": "http://127.0.0.1:9"}

    assert answer_hook(away, "prompt", {**CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": ASKED}) == {
        "continue": True
    }
    assert answer_hook(away, "prompt", {**PROMPTS["Gemini CLI"], "prompt": ASKED}) == {}
    assert answer_hook(away, "prompt", {**PROMPTS["Codex CLI"], "prompt": ASKED}) is None

"""Hooks of coding agents, as the agent runs them."""

import json
import os
import subprocess
import sys
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


def run_hook(environ: dict[str, str], event: str, **given: Any) -> str:
    command = [sys.executable, "-m", "agent_memory_integrations.hooks", "hook", event]
    done = subprocess.run(
        command, input=json.dumps(given), env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    if not done.stdout:
        return ""
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


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


def test_a_service_that_is_away_does_not_stop_the_agent(environ: dict[str, str]) -> None:
    assert run_hook(environ | {"AGENT_MEMORY_BASE_URL": "http://127.0.0.1:9"}, "prompt", prompt="hello") == ""


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
    done = subprocess.run(command, input="[]", env=environ, capture_output=True, text=True, timeout=60, check=True)

    assert (done.stdout, done.stderr) == ("", "agent-memory: The hook reads a JSON object on stdin.\n")

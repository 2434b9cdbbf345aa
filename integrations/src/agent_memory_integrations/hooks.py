"""Hooks for coding agents: `agent-memory hook session-start|prompt|stop` reads the agent's JSON on stdin.

- `session-start` answers what a successor must know to go on, as text for the model.
- `prompt` answers what bears on the prompt and is not in the conversation yet.
- `stop` stores what was said since the last time.

Which agent calls is seen by the fields that it sends (`coding_agents`). A hook never stops the agent: failures go to
stderr, and the command succeeds.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from agent_memory_client import AgentMemoryError, BadRequestError, Client

from agent_memory_integrations.coding_agents import CLAUDE_EVENTS, HookCall, identify_agent
from agent_memory_integrations.transcripts import read_last_turns
from agent_memory_integrations.turns import cut_query

DEFAULT_AGENT = "coding-agent"
MAX_TOKENS = 1_500


def run_hook(client: Client, event: str, given: Mapping[str, Any]) -> str:
    """Run a hook and return what it tells the model; nothing if it has nothing to tell."""
    agent = identify_agent(given)
    call = agent.read(event, given)
    if event == "stop":
        store_said(client, call)
        return ""
    if event == "session-start":
        return str(client.resume(max_tokens=MAX_TOKENS).text)
    text = find_evidence(client, call) if event in agent.reads_context_at else ""
    if call.said:
        # after the question, or the prompt would be its own evidence
        client.add_turns(call.conversation_id, call.said)
    return text


def find_evidence(client: Client, call: HookCall) -> str:
    """Return what bears on the prompt and was not given to the conversation before."""
    if not call.prompt:
        return ""
    options = {"max_tokens": MAX_TOKENS, "mark_injected": True, "suppress_injected": True}
    made = client.context(call.conversation_id, cut_query(call.prompt), **options)
    return "" if made.abstained or not made.items else str(made.context)


def store_said(client: Client, call: HookCall) -> None:
    """Store what was said, and have knowledge extracted from it. What is stored already is known by its `client_id`."""
    turns = call.said or read_last_turns(call.transcript_path)
    if not turns:
        return
    try:
        client.infer(turns, conversation_id=call.conversation_id)
    except BadRequestError as err:
        if not any(name.endswith(".timestamp") for name in err.errors):
            raise
        # the clock here is ahead of the service's, which then says itself when it was
        untimed = [{name: value for name, value in turn.items() if name != "timestamp"} for turn in turns]
        client.infer(untimed, conversation_id=call.conversation_id)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="agent-memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    hook = commands.add_parser("hook", help="Run a hook of a coding agent.")
    hook.add_argument("event", choices=sorted(CLAUDE_EVENTS))
    event = parser.parse_args().event
    given: dict[str, Any] = {}
    text = ""
    try:
        given = read_input()
        with Client(max_retries=0, timeout=10) as client:
            agent_id = client.settings.agent_id or client.get_key().agent_id or DEFAULT_AGENT
            with Client(agent_id=agent_id, max_retries=0, timeout=10) as named:
                text = run_hook(named, event, given)
    except (AgentMemoryError, OSError, ValueError) as err:
        sys.stderr.write(f"agent-memory: {err}\n")
    answer = identify_agent(given).answer(event, text)
    if answer is not None:
        # UTF-8 whatever the locale is, as agents read and write it
        sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode(errors="replace"))


def read_input() -> dict[str, Any]:
    """Return the JSON object on stdin. Raises ValueError for anything else."""
    given = json.loads(sys.stdin.buffer.read().decode(errors="replace") or "{}")
    if not isinstance(given, dict):
        raise ValueError("The hook reads a JSON object on stdin.")
    return given


if __name__ == "__main__":
    main()

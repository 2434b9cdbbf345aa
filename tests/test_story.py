"""The README's ten lines, over a real socket: import the sample, ask it, and inject nothing twice."""

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key

SAMPLE = Path(__file__).parent.parent / "docs" / "sample"
QUESTIONS = json.loads((SAMPLE / "questions.json").read_text())


class Agent:
    """An agent runtime that knows a URL and a key."""

    def __init__(self, url: str, secret: str) -> None:
        self.url, self.secret = f"{url}/api/v1", secret

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data=data, method=method, headers=headers), timeout=30) as answer:
            return json.loads(answer.read())


@pytest.fixture
def agent(live_server: LiveServer) -> Agent:
    account = Account.objects.create(name="default")
    call_command("import_conversations", str(SAMPLE / "conversations.jsonl"))
    return Agent(live_server.url, issue_key(account, scopes=READ_WRITE_OPERATE).secret)


@pytest.mark.django_db(transaction=True)
def test_an_agent_remembers_recalls_and_injects_nothing_twice(agent: Agent) -> None:
    now = {"agent_id": "ops-assistant", "conversation_id": "chat-1", "query": "the ticket archive"}
    agent.ask("PUT", "/working-memory/chat-1", {"agent_id": "ops-assistant", "data": {"scratchpad": "look it up"}})

    first = agent.ask("POST", "/context", {**now, "mark_injected": True})
    second = agent.ask("POST", "/context", {**now, "suppress_injected": True})

    assert "Scratchpad: look it up" in first["context"]
    injected, later = ({item["item_key"] for item in answer["items"]} for answer in (first, second))
    assert {item["conversation_id"] for item in first["items"]} == {"archive-move-2026"}
    assert (first["items"][0]["kind"], "Scratchpad: look it up" in second["context"]) == ("episode", True)
    assert (set(agent.ask("GET", "/ledger/chat-1")), injected & later) == (injected, set())


@pytest.mark.django_db(transaction=True)
def test_each_sample_question_finds_only_the_conversation_of_its_agent(agent: Agent) -> None:
    for question in QUESTIONS:
        asked = {"agent_id": question["agent"], "query": question["question"]}

        found = agent.ask("POST", "/episodic/search", asked)["results"]

        assert [hit["conversation_id"] for hit in found] == [question["conversation"]]

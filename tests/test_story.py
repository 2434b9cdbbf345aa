"""The README's ten lines, over a real socket: import the sample, ask it, and inject nothing twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.core.management import call_command

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.pooler import needs_pgbouncer
from tests.web_server import serve

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


@pytest.fixture(params=["direct", pytest.param("pooled", marks=needs_pgbouncer)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server; of a pooled one, all transactions share three sessions of PostgreSQL."""
    if request.param == "direct":
        yield request.getfixturevalue("live_server").url
        return
    own = {"DATABASE_POOLER_URL": request.getfixturevalue("pooler_url"), "EMBEDDING_PROVIDER": "local"}
    with serve(own) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def agent(url: str) -> Agent:
    account = Account.objects.create(name="default")
    call_command("import_conversations", str(SAMPLE / "conversations.jsonl"))
    return Agent(url, issue_key(account, scopes=READ_WRITE_OPERATE).secret)


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

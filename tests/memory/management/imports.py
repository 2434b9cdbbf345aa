"""Files of conversations and runs of their import."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from memory.extraction.imported import ImportedConversation, ImportedMessage
from memory.extraction.messages import ChatMessage
from memory.providers.embeddings import embedding_provider

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


def spoken(conversation_id: str) -> ImportedConversation:
    message = ImportedMessage(message=ChatMessage(role="user", text=f"We planted beans in bed {conversation_id}."))
    return ImportedConversation(
        number=1, size_bytes=1, conversation_id=conversation_id, agent_id="assistant", messages=(message,)
    )

"""Loading, exporting and drawing conversations of every shape that the format knows."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from pytest_django import Settings

from memory.extraction.conversations import read_conversations
from memory.extraction.imported import BadLine, canonical_time
from memory.models import Account
from memory.providers.embeddings import embedding_provider
from memory.services.conversations.export import ExportSelection, export_conversations
from memory.services.conversations.import_files import import_conversations
from tests.memory.episodes import NOW

LATER = NOW + timedelta(days=1_000)


@pytest.fixture(autouse=True)
def tiny_embedder(settings: Settings) -> Iterator[None]:
    settings.EMBEDDING_PROVIDER, settings.MEMORY_ALLOW_TINY_EMBEDDINGS = "tiny", True
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


def load(account: Account, document: bytes) -> None:
    items = read_conversations(io.BytesIO(document))
    assert not any(isinstance(step, BadLine) for step in import_conversations(account.id, items, now=LATER))


def export(account: Account, **selection: Any) -> bytes:
    written = io.BytesIO()
    list(export_conversations(account.id, ExportSelection(**selection), write=written.write))
    return written.getvalue()


def canonical(*conversations: dict[str, Any]) -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in conversations).encode()


ANY_CHARACTER = st.characters(exclude_characters="\x00", codec="utf-8")


HOSTILE = ["\u202e", "\u2028", '"', "\\", "\ufeff", "𝒳", "e\u0301", "\x1f", "</script>", "\\u0000", "{}", "'; --"]


TEXT = st.text(ANY_CHARACTER, max_size=20) | st.lists(st.sampled_from(HOSTILE), max_size=5).map("".join)


SPOKEN = TEXT.filter(lambda text: bool(text.strip()))


NAME = SPOKEN.filter(lambda text: len(text) <= 100)
"""Ids and names."""


def in_canonical_order(value: Any) -> Any:
    """Order the keys of objects as `jsonb` does."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return {name: in_canonical_order(value[name]) for name in names}
    return [in_canonical_order(part) for part in value] if isinstance(value, list) else value


def json_values(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | numbers | TEXT
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=5
    )


VERBATIM = json_values(st.integers() | st.floats(allow_nan=False, allow_infinity=False))


METADATA = st.dictionaries(TEXT, json_values(st.integers()), min_size=1, max_size=3).map(in_canonical_order)


PARTS = st.lists(
    st.fixed_dictionaries({"type": NAME}, optional={"text": SPOKEN, "image_url": VERBATIM}), min_size=1, max_size=3
)


CALLS = st.lists(
    st.fixed_dictionaries(
        {"id": TEXT, "type": st.just("function")},
        optional={"extra": VERBATIM},
    ).flatmap(
        lambda call: st.builds(
            lambda name, arguments: call | {"function": {"name": name, "arguments": arguments}}, NAME, TEXT
        )
    ),
    min_size=1,
    max_size=2,
)


MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2026, 1, 1), timezones=st.timezones())  # noqa: DTZ001


TIMES = MOMENTS.map(datetime.isoformat) | MOMENTS.map(canonical_time) | st.just("20260101T0000+0130")


def in_order(fields: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda record: {name: record[name] for name in fields if name in record}


HEAD = ("id", "agent", "user", "channel", "title", "continues", "metadata", "outcome", "ended_at", "messages")


BODY = (
    *("role", "name", "content", "tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio"),
    *("timestamp", "model", "client_id", "metadata", "agent"),
)


MARKS = {"timestamp": TIMES, "model": NAME, "metadata": METADATA, "agent": NAME.map(lambda name: f"other {name}"[:100])}


SAID = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user"]), "content": SPOKEN | PARTS},
    optional={"name": NAME, **MARKS},
)


ANSWERED = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": SPOKEN | st.none(), "tool_calls": CALLS},
    optional={"refusal": SPOKEN, "annotations": st.lists(VERBATIM), "audio": st.dictionaries(TEXT, VERBATIM), **MARKS},
)


RETURNED = st.fixed_dictionaries(
    {"role": st.sampled_from(["tool", "function"]), "content": TEXT, "tool_call_id": TEXT},
    optional={"name": NAME, **MARKS},
)


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    record = draw(
        st.fixed_dictionaries(
            {"id": NAME, "agent": TEXT.filter(lambda text: not text or bool(text.strip()))},
            optional={
                "user": NAME,
                "channel": NAME,
                "title": SPOKEN,
                "continues": NAME,
                "metadata": METADATA,
                "outcome": st.sampled_from(["success", "failure"]),
                "ended_at": MOMENTS.map(canonical_time),
            },
        ).filter(lambda record: record.get("continues") != record["id"])
    )
    messages = draw(st.lists(SAID | ANSWERED | RETURNED, min_size=1, max_size=4))
    named = draw(st.sets(st.integers(0, len(messages) - 1)))
    for position in named:
        messages[position]["client_id"] = f"m-{position}"
    return in_order(HEAD)(record | {"messages": [in_order(BODY)(message) for message in messages]})


FILES = st.lists(conversations(), min_size=1, max_size=3, unique_by=lambda record: record["id"]).filter(
    lambda records: len({each.get("continues") for each in records} & {each["id"] for each in records}) == 0
)

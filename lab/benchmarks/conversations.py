"""Conversations: a turn stored, the latest messages read. Vectors are given, so no text is embedded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection

from lab.benchmarks.measure import BenchmarkVariant
from lab.benchmarks.scratch import CONVERSATION, Scratch, clustered_vectors
from lab.benchmarks.web import KeepAliveClient, encode
from memory import conf
from memory.extraction.messages import read_message
from memory.models.statements import Embedding, HalfVectors, binary_cursor, half_vector
from memory.services.conversations.lifecycle import find_conversation
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from memory.services.sessions import MemoryManager
from memory.services.turns import TurnDraft, store_turns
from memory.tiers.session_stores import session_ref
from memory_project.http.streams import NDJSON
from memory_project.ids import uuid7
from memory_project.redis import client as redis_client
from memory_project.redis import session_key

TURNS = f"/api/v1/conversations/{CONVERSATION}/turns"
MESSAGES = f"/api/v1/conversations/{CONVERSATION}/messages"
VECTORS = 50
STREAMED = 1_000
STREAM_ROUNDS = 10
TEXT = "The seal of the pump in the north field is on order and arrives by Friday."

MAKE_LOG = """
CREATE TABLE IF NOT EXISTS bench_log (
    id uuid PRIMARY KEY, turn_index bigint GENERATED ALWAYS AS IDENTITY, role text, content text, embedding halfvec
)
"""
APPEND = "INSERT INTO bench_log (id, role, content, embedding) VALUES (%s, 'user', %s, %s)"
APPEND_MANY = """
INSERT INTO bench_log (id, role, content, embedding)
SELECT id, 'user', content, embedding FROM unnest(%s::uuid[], %s::text[], %s::halfvec[]) AS new (id, content, embedding)
"""


@contextmanager
def bare_log() -> Iterator[None]:
    """Make a table with the minimal columns of a turn, to compare with."""
    with connection.cursor() as cursor:
        cursor.execute(MAKE_LOG)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS bench_log")


def store_one_turn(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    vectors = clustered_vectors(VECTORS, scratch.width)
    bodies = [encode(turn_body(scratch, vector)) for vector in vectors]

    def insert_bare(number: int) -> None:
        with binary_cursor() as cursor:
            parameters: list[Any] = [uuid7(), TEXT, half_vector(vectors[number % VECTORS])]
            cursor.execute(APPEND, parameters)

    return [
        BenchmarkVariant(name="psycopg, one INSERT", run=insert_bare),
        BenchmarkVariant(name="in process", run=append_one(scratch, vectors, now=now)),
        BenchmarkVariant(name="over HTTP", run=lambda number: client.request("POST", TURNS, bodies[number % VECTORS])),
    ]


def append_one(scratch: Scratch, vectors: Embedding, *, now: datetime) -> Callable[[int], object]:
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    message = read_message({"role": "user", "content": TEXT})

    def append(number: int) -> object:
        own = ClientVector(model=scratch.model, vector=vectors[number % VECTORS])
        draft = TurnDraft(message=message, own=own)
        return store_turns(scratch.owner(), CONVERSATION, drafts=[draft], embedded=nothing, now=now)

    return append


def store_stream(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure STREAMED turns with vectors, as NDJSON over HTTP, into another conversation in each round."""
    vectors = clustered_vectors(STREAMED, scratch.width)
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    turns = [turn_body(scratch, vector, f"{TEXT} Note {row}.")["turns"][0] for row, vector in enumerate(vectors)]
    body = b"\n".join(map(encode, turns))

    def insert_bare(_round: int) -> None:
        ids, texts = [uuid7() for _ in turns], [turn["content"] for turn in turns]
        with binary_cursor() as cursor:
            parameters: list[Any] = [ids, texts, HalfVectors(list(vectors))]
            cursor.execute(APPEND_MANY, parameters)

    def append_many(number: int) -> object:
        drafts = [
            TurnDraft(message=read_message(turn), own=ClientVector(model=scratch.model, vector=vector))
            for turn, vector in zip(turns, vectors, strict=True)
        ]
        owner, name = scratch.owner(number), f"process-{number}"
        return store_turns(owner, name, drafts=drafts, embedded=nothing, now=now)

    def post(number: int) -> object:
        path = f"/api/v1/conversations/stream-{number}/turns?agent_id={scratch.owner(number).agent_id}"
        return client.request("POST", path, body, content_type=NDJSON)

    return [
        BenchmarkVariant(name="psycopg, arrays", run=insert_bare),
        BenchmarkVariant(name="in process", run=append_many),
        BenchmarkVariant(name="over HTTP", run=post),
    ]


def turn_body(scratch: Scratch, vector: Embedding, text: str = TEXT) -> dict[str, Any]:
    embedding = {"embedding": np.round(vector, 6).tolist(), "embedding_model": scratch.model}
    return {"agent_id": scratch.owner().agent_id, "turns": [{"role": "user", "content": text, **embedding}]}


def read_messages(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure reading a buffer with as many messages as a context takes in."""
    append = append_one(scratch, clustered_vectors(VECTORS, scratch.width), now=now)
    for number in range(conf.MAX_CONTEXT_MESSAGES):
        append(number)
    owner = scratch.owner()
    key = session_key(session_ref(find_conversation(owner, CONVERSATION)), "turns")
    manager, path = MemoryManager(owner), f"{MESSAGES}?agent_id={owner.agent_id}"
    latest = -conf.MAX_CONTEXT_MESSAGES
    return [
        BenchmarkVariant(name="redis-py, LRANGE", run=lambda _round: redis_client().lrange(key, latest, -1)),
        BenchmarkVariant(name="in process", run=lambda _round: manager.find_memory(CONVERSATION).get_messages()),
        BenchmarkVariant(name="over HTTP", run=lambda _round: client.request("GET", path)),
    ]

"""Tiers: a keyed value read by the router, a pool merged into, a context searched. Vectors are given."""

from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection

from lab.benchmarks.measure import BenchmarkVariant
from lab.benchmarks.scratch import Scratch, clustered_vectors
from lab.benchmarks.web import KeepAliveClient, encode
from memory import conf
from memory.models import Vector
from memory.models.statements import binary_cursor, half_vector
from memory.services.contexts.entries import EntryDraft, store_entries
from memory.services.contexts.manage import ensure_own_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from memory.services.pools.data import merge_data
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.router import MemoryRouter
from memory.services.short_term import ShortTermDraft, store_entry

SESSION, KEY, POOL = "bench", "plan", "bench"
ENTRIES, QUESTIONS, TOP_K = 1_000, 50, 10
VALUE = {"steps": ["order the seal", "book the crew", "stop the pump"], "field": 7}
ROUTED = f"/api/v1/memories/{KEY}?session_id={SESSION}"
POOL_DATA = f"/api/v1/pools/{POOL}/data"
SEARCH = "/api/v1/keyed-memories/search"

TOUCH = """
UPDATE agent_short_term_memories SET access_count = access_count + 1, last_accessed_at = now()
WHERE account_id = %s AND agent_id = %s AND session_id = %s AND memory_key = %s AND expires_at > now()
RETURNING memory_value
"""
MERGE = """
UPDATE memory_pools SET data = (data::jsonb || %s::jsonb)::json, version = version + 1
WHERE account_id = %s AND id = %s
"""
NEAREST = """
SELECT memory_id, text FROM (
    SELECT account_id, memory_id, vector <=> %s::halfvec AS distance FROM memory_vectors
    WHERE account_id = %s AND context_id = %s AND model = %s AND live ORDER BY distance LIMIT %s
) AS nearest JOIN memories m ON m.account_id = nearest.account_id AND m.id = memory_id
"""


def read_routed(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure a read from the second tier, which asks the first one too."""
    owner = scratch.owner()
    lasting = conf.SHORT_TERM_TTL_SECONDS
    store_entry(
        owner, ShortTermDraft(memory_key=KEY, memory_value=VALUE, session_id=SESSION, ttl_seconds=lasting), now=now
    )
    router, path = MemoryRouter(owner), f"{ROUTED}&agent_id={owner.agent_id}"

    def touch_bare(_round: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(TOUCH, [owner.account_id, owner.agent_id, SESSION, KEY])

    return [
        BenchmarkVariant(name="psycopg, one UPDATE", run=touch_bare),
        BenchmarkVariant(name="in process", run=lambda _round: router.read(KEY, session_id=SESSION, now=now)),
        BenchmarkVariant(name="over HTTP", run=lambda _round: client.request("GET", path)),
    ]


def merge_pool(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Merge into ten names in turn."""
    owner = scratch.owner()
    pool = create_pool(owner, PoolDraft(pool_id=POOL), now=now)

    def changes(number: int) -> dict[str, Any]:
        return {f"step-{number % 10}": {"number": number}}

    def merge_bare(number: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(MERGE, [encode(changes(number)).decode(), owner.account_id, pool.id])

    def merge_over_http(number: int) -> None:
        client.request("PATCH", POOL_DATA, encode({"agent_id": owner.agent_id, "data": changes(number)}))

    return [
        BenchmarkVariant(name="psycopg, one UPDATE", run=merge_bare),
        BenchmarkVariant(
            name="in process",
            run=lambda number: merge_data(owner, POOL, data=changes(number), expected=None, now=now),
        ),
        BenchmarkVariant(name="over HTTP", run=merge_over_http),
    ]


def search_context(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Search the entries of an agent's own context, with another question in every round."""
    owner = scratch.owner()
    context = ensure_own_context(owner, now=now)
    fill_context(scratch, now=now)
    vectors = clustered_vectors(QUESTIONS, scratch.width)
    questions = [
        EntryQuestion(
            text="which pump?",
            top_k=TOP_K,
            own=ClientVector(model=scratch.model, vector=vector),
            contexts=[context.id],
        )
        for vector in vectors
    ]
    bodies = [
        encode(
            {
                "agent_id": owner.agent_id,
                "query": "which pump?",
                "top_k": TOP_K,
                "query_embedding": np.round(vector, 6).tolist(),
                "embedding_model": scratch.model,
            }
        )
        for vector in vectors
    ]

    def search_bare(number: int) -> None:
        vector = half_vector(vectors[number % QUESTIONS])
        with binary_cursor() as cursor:
            parameters: list[Any] = [vector, owner.account_id, context.id, scratch.model, TOP_K]
            cursor.execute(NEAREST, parameters)
            cursor.fetchall()

    return [
        BenchmarkVariant(name="psycopg", run=search_bare),
        BenchmarkVariant(
            name="in process", run=lambda number: find_entries(owner, questions[number % QUESTIONS], now=now)
        ),
        BenchmarkVariant(
            name="over HTTP", run=lambda number: client.request("POST", SEARCH, bodies[number % QUESTIONS])
        ),
    ]


def fill_context(scratch: Scratch, *, now: datetime) -> None:
    owner = scratch.owner()
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    drafts = [
        EntryDraft(
            content=f"Entry {number}: the pump in field {number % 97} was serviced.",
            own=ClientVector(model=scratch.model, vector=vector),
        )
        for number, vector in enumerate(clustered_vectors(ENTRIES, scratch.width))
    ]
    store_entries(owner, ensure_own_context(owner, now=now).id, drafts=drafts, embedded=nothing, now=now)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Vector._meta.db_table}, memories, persistent_contexts")

"""The measured cases: each operation of the service bare, in process, and over HTTP; and a view that does nothing."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import psycopg
from django.db import connection

from lab.benchmarks.conversations import STREAM_ROUNDS, STREAMED, read_messages, store_one_turn, store_stream
from lab.benchmarks.facts import learn_one, read_true_now
from lab.benchmarks.graph import walk_links
from lab.benchmarks.measure import BenchmarkVariant, Case
from lab.benchmarks.recall import recall_by_vectors, recall_conversation, recall_large
from lab.benchmarks.scratch import CONVERSATION, Scratch, clustered_vectors
from lab.benchmarks.tiers import merge_pool, read_routed, search_context
from lab.benchmarks.web import KeepAliveClient, encode
from ledger import store as ledger
from ledger.journal import ledger_keys
from memory import conf
from memory.models.statements import Embedding
from memory.retrieval.search import MemoryQuery, search_episodes
from memory.tiers import working
from memory.tiers.base import to_json
from memory.tiers.working import WorkingMemory, refused_above_bytes
from memory_project.redis import conversation_key, once_arguments, script

TOP_K = 10
QUESTIONS = 50
EMPTY_VIEW = "/health/live"
WORKING_MEMORY = f"/api/v1/working-memory/{CONVERSATION}"
LEDGER_MARK = f"/api/v1/ledger/{CONVERSATION}/mark"
EPISODIC_SEARCH = "/api/v1/episodic/search"

FIELDS: dict[str, Any] = {
    "scratchpad": "The pump in the north field broke; a seal is on order and arrives by Friday. " * 4,
    "entities": [{"type": "well", "id": str(number), "name": f"Well {number}"} for number in range(10)],
    "well_api": "42-501-20130",
    "entity_id": "well-7",
    "entity_type_key": "well",
}
"""About 1 KB, as the documents' helpers leave it behind."""


def all_cases(scratch: Scratch, client: KeepAliveClient, *, memories: int, now: datetime) -> Iterator[Case]:
    """Yield the cases, each with an empty view as its last way: the cost of the web server and Django alone.

    The last one, where `memories` are asked for, fills the account with as many more.
    """
    for name, ways in (
        ("working memory, GET", read_working_memory(scratch, client)),
        ("working memory, PUT", write_working_memory(scratch, client)),
        ("ledger, mark", mark_ledger(scratch, client)),
        ("episodic search", search_episodic(scratch, client, now=now)),
        ("turn, POST", store_one_turn(scratch, client, now=now)),
        ("messages, GET", read_messages(scratch, client, now=now)),
        ("router, GET from short_term", read_routed(scratch, client, now=now)),
        ("pool, PATCH", merge_pool(scratch, client, now=now)),
        ("long-term search, 1,000 entries", search_context(scratch, client, now=now)),
        ("fact, POST", learn_one(scratch, client, now=now)),
        ("facts true now of one entity, GET", read_true_now(scratch, client, now=now)),
        ("recall, 600 turns", recall_conversation(scratch, client, now=now)),
        ("recall by vectors alone, 1,000 memories", recall_by_vectors(scratch, client, now=now)),
        ("graph, depth 2 of 25,000 links", walk_links(scratch, client, now=now)),
    ):
        nothing = BenchmarkVariant(
            name="a view that does nothing", run=lambda _round: client.request("GET", EMPTY_VIEW)
        )
        yield Case(name=name, ways=[*ways, nothing])
    name = f"{STREAMED:,} turns as NDJSON"
    yield Case(name=name, ways=store_stream(scratch, client, now=now), most_rounds=STREAM_ROUNDS)
    if memories:
        yield Case(name=f"recall, {memories:,} memories", ways=recall_large(scratch, memories, now=now))


def read_working_memory(scratch: Scratch, client: KeepAliveClient) -> list[BenchmarkVariant]:
    owner = scratch.owner()
    memory = WorkingMemory(owner)
    memory.set(CONVERSATION, FIELDS)
    keys = [conversation_key(working.KEY_NAME, scratch.place)]
    bare, path = script(working.READ), f"{WORKING_MEMORY}?agent_id={owner.agent_id}"
    return [
        BenchmarkVariant(name="redis-py", run=lambda _round: bare(keys=keys, args=[conf.WORKING_MEMORY_TTL_SECONDS])),
        BenchmarkVariant(name="in process", run=lambda _round: memory.get(CONVERSATION)),
        BenchmarkVariant(name="over HTTP", run=lambda _round: client.request("GET", path)),
    ]


def write_working_memory(scratch: Scratch, client: KeepAliveClient) -> list[BenchmarkVariant]:
    owner = scratch.owner()
    memory = WorkingMemory(owner)
    keys = [conversation_key(working.KEY_NAME, scratch.place)]
    pairs = [text for name, value in FIELDS.items() for text in (name, to_json(value))]
    args = [conf.WORKING_MEMORY_TTL_SECONDS, owner.agent_id, refused_above_bytes(), *pairs]
    bare, body = script(working.MERGE), encode({"data": FIELDS, "agent_id": owner.agent_id})
    return [
        BenchmarkVariant(name="redis-py", run=lambda _round: bare(keys=keys, args=args)),
        BenchmarkVariant(name="in process", run=lambda _round: memory.set(CONVERSATION, FIELDS)),
        BenchmarkVariant(name="over HTTP", run=lambda _round: client.request("PUT", WORKING_MEMORY, body)),
    ]


def mark_ledger(scratch: Scratch, client: KeepAliveClient) -> list[BenchmarkVariant]:
    """Mark another item in every round, so that each mark is a first one."""
    owner, place = scratch.owner(), scratch.place
    bare, keys = script(ledger.MARK), ledger_keys(place)
    shared = [str(place.account_id), place.conversation_id, owner.agent_id]
    # the first call of all finds out whether this Redis knows the ledger, and restores it where it does not
    ledger.mark(place, "skill:first")

    def mark_bare(number: int) -> None:
        once_keys, once_seconds = once_arguments(keys[0])
        args = [*shared, f"skill:bare-{number}", ledger.DEFAULT_VALUE, once_seconds]
        bare(keys=[*keys, *once_keys], args=args)

    def mark_over_http(number: int) -> None:
        client.request("POST", LEDGER_MARK, encode({"item_key": f"skill:http-{number}", "agent_id": owner.agent_id}))

    return [
        BenchmarkVariant(name="redis-py", run=mark_bare),
        BenchmarkVariant(
            name="in process",
            run=lambda number: ledger.mark(place, f"skill:process-{number}", agent_id=owner.agent_id),
        ),
        BenchmarkVariant(name="over HTTP", run=mark_over_http),
    ]


def search_episodic(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Search with given vectors, so that no text is embedded: another question per round, by the agents in turn."""
    vectors = clustered_vectors(QUESTIONS, scratch.width)
    queries = [make_search_query(scratch, vector) for vector in vectors]
    statements = [statement_of(scratch, number, query, now=now) for number, query in enumerate(queries)]
    bodies = [encode(search_body(scratch, number, vector)) for number, vector in enumerate(vectors)]

    def search_bare(number: int) -> None:
        statement, parameters = statements[number % QUESTIONS]
        with psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(statement, parameters).fetchall()

    return [
        BenchmarkVariant(name="psycopg", run=search_bare),
        BenchmarkVariant(
            name="in process",
            run=lambda number: search_episodes(scratch.owner(number), queries[number % QUESTIONS], now=now),
        ),
        BenchmarkVariant(
            name="over HTTP", run=lambda number: client.request("POST", EPISODIC_SEARCH, bodies[number % QUESTIONS])
        ),
    ]


def make_search_query(scratch: Scratch, vector: Embedding) -> MemoryQuery:
    return MemoryQuery(text="which pump?", top_k=TOP_K, model=scratch.model, width=scratch.width, vector=vector)


def search_body(scratch: Scratch, number: int, vector: Embedding) -> dict[str, Any]:
    return {
        "agent_id": scratch.owner(number).agent_id,
        "query": "which pump?",
        "top_k": TOP_K,
        "query_embedding": np.round(vector, 6).tolist(),
        "embedding_model": scratch.model,
    }


def statement_of(scratch: Scratch, number: int, query: MemoryQuery, *, now: datetime) -> tuple[Any, Any]:
    """Return the statement that a search sends, with its parameters, caught on its way to psycopg."""
    caught: list[tuple[Any, Any]] = []

    def catch(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        caught.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(catch):
        search_episodes(scratch.owner(number), query, now=now)
    return caught[-1]

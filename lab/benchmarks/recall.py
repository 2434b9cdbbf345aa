"""Recall: over one conversation, by vectors alone for owners of 1,000, and over a large account.

Questions bring their vectors, so none is embedded. The bare way is the least that could be done: one exact statement
over the agent's own rows.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

import numpy as np
from django.core.management import call_command
from django.db import connection

from lab.benchmarks.measure import BenchmarkVariant
from lab.benchmarks.scratch import BATCH_ROWS, Scratch, agent_name, clustered_vectors
from lab.benchmarks.web import KeepAliveClient, encode
from memory.extraction.messages import read_message
from memory.models.statements import Embedding, binary_cursor, half_vector
from memory.owner import Owner
from memory.retrieval.queries import Query
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.turns import TurnDraft, store_turns

RECALL = "/api/v1/recall"
READER = "reader"
LIBRARIAN = "librarian"
TURNS = 600
TOP_K = 10
QUESTIONS = 50
WORDS = 20
WORDS_ASKED = 8
VOCABULARY = 20_000

NEAREST = """
SELECT m.id, m.kind, m.text, m.event_time, m.conversation_id, m.channel, 1 - near.distance AS similarity FROM (
    SELECT account_id, memory_id, vector <=> %s AS distance FROM memory_vectors
    WHERE account_id = %s AND agent_id = %s AND model = %s AND live ORDER BY distance LIMIT %s
) AS near JOIN memories m ON m.account_id = near.account_id AND m.id = near.memory_id ORDER BY near.distance
"""


def zipf_texts(count: int, words: int, *, seed: int) -> list[str]:
    """Return texts whose words have frequencies as unequal as those of a language (Zipf's law)."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, VOCABULARY + 1)
    drawn = random.choice(VOCABULARY, size=(count, words), p=shares / shares.sum())
    return [" ".join(f"w{word}" for word in row) for row in drawn]


def recall_conversation(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure all stages over a conversation of 600 turns."""
    owner = Owner(account_id=scratch.account.id, agent_id=READER)
    fill_turns(scratch, owner, now=now)
    bodies = recall_bodies(scratch)
    over_http = BenchmarkVariant(
        name="over HTTP", run=lambda number: client.request("POST", RECALL, bodies[number % QUESTIONS])
    )
    return [*in_process(scratch, owner, now=now), over_http]


def recall_bodies(scratch: Scratch, techniques: Sequence[str] = ()) -> list[bytes]:
    """Return the questions of `make_requests` about the conversation as bodies of requests."""
    return [
        encode(
            {
                "agent_id": READER,
                "query": request.query.text,
                "top_k": TOP_K,
                **({"techniques": list(techniques)} if techniques else {}),
                "query_embedding": np.round(request.own.vector, 6).tolist(),
                "embedding_model": scratch.model,
            }
        )
        for request in make_requests(scratch)
        if request.own is not None
    ]


def recall_large(scratch: Scratch, memories: int, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure all stages over everything in the account, after the job `vector_indexes` has run."""
    librarian = Owner(account_id=scratch.account.id, agent_id=LIBRARIAN)
    fill_library(scratch, librarian, memories, now=now)
    return in_process(scratch, Owner(account_id=scratch.account.id), now=now)


def in_process(scratch: Scratch, owner: Owner, *, now: datetime) -> list[BenchmarkVariant]:
    requests = make_requests(scratch)
    bare = bare_search(scratch, owner)
    return [
        BenchmarkVariant(name="psycopg, by meaning", run=bare),
        BenchmarkVariant(name="in process", run=lambda number: recall(owner, requests[number % QUESTIONS], now=now)),
    ]


def make_requests(scratch: Scratch) -> list[RecallRequest]:
    vectors = clustered_vectors(QUESTIONS, scratch.width)
    texts = zipf_texts(QUESTIONS, WORDS_ASKED, seed=11)
    return [
        RecallRequest(query=Query(text=text, top_k=TOP_K), own=ClientVector(model=scratch.model, vector=vector))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def recall_by_vectors(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure recall by vectors alone, for agents with 1,000 episodes each, in turn."""
    vectors = clustered_vectors(QUESTIONS, scratch.width)
    requests = [
        RecallRequest(
            query=Query(text="which pump?", top_k=TOP_K),
            techniques=["vector"],
            own=ClientVector(model=scratch.model, vector=vector),
        )
        for vector in vectors
    ]
    bodies = [encode(recall_body(scratch, number, vector)) for number, vector in enumerate(vectors)]
    searches = [bare_search(scratch, scratch.owner(number)) for number in range(QUESTIONS)]
    return [
        BenchmarkVariant(name="psycopg", run=lambda number: searches[number % QUESTIONS](number)),
        BenchmarkVariant(
            name="in process",
            run=lambda number: recall(scratch.owner(number), requests[number % QUESTIONS], now=now),
        ),
        BenchmarkVariant(
            name="over HTTP", run=lambda number: client.request("POST", RECALL, bodies[number % QUESTIONS])
        ),
    ]


def recall_body(scratch: Scratch, number: int, vector: Embedding) -> dict[str, Any]:
    return {
        "agent_id": agent_name(number),
        "query": "which pump?",
        "techniques": ["vector"],
        "top_k": TOP_K,
        "query_embedding": np.round(vector, 6).tolist(),
        "embedding_model": scratch.model,
    }


def bare_search(scratch: Scratch, owner: Owner) -> Callable[[int], None]:
    vectors = clustered_vectors(QUESTIONS, scratch.width)
    agent_id = owner.agent_id or LIBRARIAN

    def search(number: int) -> None:
        vector = half_vector(vectors[number % QUESTIONS])
        with binary_cursor() as cursor:
            parameters: list[Any] = [vector, owner.account_id, agent_id, scratch.model, TOP_K]
            cursor.execute(NEAREST, parameters)
            cursor.fetchall()

    return search


def fill_turns(scratch: Scratch, owner: Owner, *, now: datetime) -> None:
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    texts, vectors = zipf_texts(TURNS, WORDS, seed=3), clustered_vectors(TURNS, scratch.width)
    drafts = [
        TurnDraft(
            message=read_message({"role": "user", "content": text}),
            own=ClientVector(model=scratch.model, vector=vector),
        )
        for text, vector in zip(texts, vectors, strict=True)
    ]
    store_turns(owner, READER, drafts=drafts, embedded=nothing, now=now)
    analyze()


def fill_library(scratch: Scratch, owner: Owner, count: int, *, now: datetime) -> None:
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    for start, some in batches(clustered_vectors(count, scratch.width)):
        texts = zipf_texts(len(some), WORDS, seed=start + 1)
        drafts = [
            EpisodeDraft(
                conversation_id=f"library-{start}", summary=text, own=ClientVector(model=scratch.model, vector=vector)
            )
            for text, vector in zip(texts, some, strict=True)
        ]
        store_episodes(owner, drafts=drafts, embedded=nothing, now=now)
    analyze()
    for name in ("recall_statistics", "vector_indexes"):
        call_command("run_job", name, account=scratch.account.name, json=True, stdout=StringIO())


def batches(vectors: Embedding) -> Iterator[tuple[int, Embedding]]:
    for start in range(0, len(vectors), BATCH_ROWS):
        yield start, vectors[start : start + BATCH_ROWS]


def analyze() -> None:
    """Analyze the tables, or the planner would rely on statistics from before they were filled."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories, memory_vectors, memory_terms")

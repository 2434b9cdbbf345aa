"""Memories with vectors of a model that was trained for prefixes, and the nearest of them, computed without SQL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from memory.models import Participant
from memory.models.statements import Embedding
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.gathering import GatheredCandidates, gather_candidates
from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.retrievers.vector import INDEX_PREFIX
from memory_project.ids import uuid7
from tests.memory.crowds import of_kinds
from tests.memory.episodes import NOW
from tests.memory.partitions import table_of
from tests.memory.rows import make_log

MODEL, PLAIN_MODEL = "text-embedding-3-nested", "not-nested"
CLUSTERS = 50
K = 10
KINDS = ("goal", *["episode"] * 10, *["turn"] * 49, *["entity"] * 40)
"""Of a hundred memories."""

OWN = {
    "log_id": {"turn": "%(log)s::uuid"},
    "index": {"turn": "number"},
    "role": {"turn": "'user'"},
    "model": {"turn": "''"},
    "client_id": {"turn": "''"},
    "name": {"turn": "''", "entity": "'thing'"},
    "type": {"entity": "'thing'"},
    "aliases": {"entity": "'[]'::jsonb"},
    "description": {"entity": "''"},
    "properties": {"entity": "'{}'::jsonb"},
    "key_decisions": {"episode": "'[]'::jsonb"},
    "entities_mentioned": {"episode": "'[]'::jsonb"},
    "tools_called": {"episode": "'[]'::jsonb"},
    "status": {"goal": "'active'"},
    "priority": {"goal": "0"},
    "result": {"goal": "''"},
}
"""The SQL of the columns that not all kinds have, by kind."""

MEMORIES = f"""
INSERT INTO memories (id, account_id, kind, identity, agent_id, user_id, channel, conversation_id, text, language,
    content_hash, token_count, salience, access_count, event_time, archived, quarantined, buried, pinned, source, trust,
    version, metadata, embed_attempts, embed_error, {", ".join(OWN)})
SELECT id, %(account)s, kind, id::text, %(agent)s, user_id, '_global', conversation_id, 'text', '', '', 1, 0.5, 0,
    event_time, false, false, false, false, '', 1, 1, '{{}}', 0, '', {", ".join(map(of_kinds, OWN.values()))}
FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(users)s::text[], %(conversations)s::text[], %(times)s::timestamptz[])
    WITH ORDINALITY AS given (id, kind, user_id, conversation_id, event_time, number)"""


class Nested:
    """Seeded unit vectors in clusters, whose variance falls with the dimension as Matryoshka training makes it."""

    def __init__(self, width: int, *, seed: int = 7) -> None:
        self.random = np.random.default_rng(seed)
        self.scale = 1 / np.sqrt(1 + np.arange(width) / 16)
        self.centres = np.random.default_rng(3).normal(size=(CLUSTERS, width)) * self.scale

    def draw(self, count: int) -> Embedding:
        noise = 0.7 * self.random.normal(size=(count, len(self.scale))) * self.scale
        rows = self.centres[self.random.integers(CLUSTERS, size=count)] + noise
        unit: Embedding = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Memorized:
    """One memory as it was stored."""

    id: UUID
    kind: str
    user_id: str
    conversation_id: str
    event_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """An agent's memories with their vectors."""

    owner: Owner
    memories: Sequence[Memorized]
    vectors: Embedding

    def nearest(self, question: Embedding, is_wanted: Callable[[Memorized], bool] = lambda _memory: True) -> set[UUID]:
        """The ids of the ten nearest that are wanted."""
        order = np.argsort(-(self.vectors @ question))
        wanted = [self.memories[place].id for place in order if is_wanted(self.memories[place])]
        return set(wanted[:K])


def fill_shelf(owner: Owner, vectors: Embedding, *, model: str = MODEL) -> Shelf:
    """A minute apart, the newest first; in ten, ana's is the second and bo's one of a hundred, the others cy's."""
    memories = [
        Memorized(
            id=uuid7(),
            kind=KINDS[number % 100],
            user_id="bo" if number % 100 == 7 else "ana" if number % 10 == 1 else "cy",
            conversation_id=f"{owner.agent_id}-{number * 7 % 100}",
            event_time=NOW - timedelta(minutes=number),
        )
        for number in range(len(vectors))
    ]
    given: dict[str, Any] = {
        "account": owner.account_id,
        "agent": owner.agent_id,
        "log": make_log(owner.account_id).id,
        "ids": [memory.id for memory in memories],
        "kinds": [memory.kind for memory in memories],
        "users": [memory.user_id for memory in memories],
        "conversations": [memory.conversation_id for memory in memories],
        "times": [memory.event_time for memory in memories],
    }
    with connection.cursor() as cursor:
        cursor.execute(MEMORIES, given)
    insert_vectors(owner.account_id, model=model, vectors=list(zip(given["ids"], vectors, strict=True)))
    Participant.objects.bulk_create(
        Participant(account_id=owner.account_id, agent_id=owner.agent_id, conversation_id=conversation_id)
        for conversation_id in {memory.conversation_id for memory in memories}
    )
    return Shelf(owner=owner, memories=memories, vectors=vectors)


def gather_nearest(owner: Owner, question: Embedding, **asked: Any) -> GatheredCandidates:
    """Gather what the vector retriever finds, by an index or exactly, whichever the owner has."""
    fields: dict[str, Any] = {"text": "", "model": MODEL, "is_nested": True, "vector": question} | asked
    query = Query(**fields)
    context = RecallContext(owner=owner, now=NOW, deadline=Deadline.after(60))
    return gather_candidates(owner, query, analyze_query(owner, query, context), [RETRIEVERS["vector"]], context)


def find_nearest(owner: Owner, question: Embedding, **asked: Any) -> list[UUID]:
    """The ids of the ten that it puts first."""
    candidates = gather_nearest(owner, question, **asked).candidates
    ranked = sorted(candidates, key=lambda candidate: -(candidate.similarity or 0))
    return [candidate.id for candidate in ranked[:K]]


def share_found(found: Sequence[UUID], nearest: set[UUID]) -> float:
    """Recall: how much of what is nearest was found."""
    return len(nearest & set(found)) / len(nearest) if nearest else 1.0


def tables_read_through(owner: Owner, question: Embedding) -> set[str]:
    """The tables that a search by meaning reads sequentially, as PostgreSQL counts."""
    statement = "SELECT relname, seq_scan FROM pg_stat_xact_user_tables"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        before = dict(cursor.fetchall())
        find_nearest(owner, question)
        cursor.execute(statement)
        return {table_of(name) for name, scans in cursor.fetchall() if scans > before[name]}


def indexes_of_accounts() -> list[str]:
    """Return the names of all indexes over the vectors of accounts, valid or not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'i' AND starts_with(relname, %s)", [INDEX_PREFIX])
        return [row[0] for row in cursor.fetchall()]

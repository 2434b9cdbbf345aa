"""Facts: one learned about an entity, and what is true now of it. Vectors are given, so no text is embedded."""

from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection, transaction

from lab.benchmarks.conversations import VECTORS
from lab.benchmarks.measure import BenchmarkVariant
from lab.benchmarks.scratch import Scratch, clustered_vectors
from lab.benchmarks.web import KeepAliveClient, encode
from memory.models import Entity
from memory.models.statements import binary_cursor, half_vector
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.facts.store import filter_about_entity, visible_facts
from memory.services.memories.store import ClientVector
from memory_project.ids import uuid7

FACTS = "/api/v1/facts"
PAGE = 50
FACTS_OF_ONE = 200

APPEND = "INSERT INTO bench_log (id, role, content, embedding) VALUES (%s, 'fact', %s, %s)"
TRUE_NOW = """
SELECT m.id, m.text, m.confidence, m.valid_from, m.valid_to FROM memory_links l
JOIN memories m ON m.account_id = l.account_id AND m.id = l.source_id AND m.kind = 'fact'
WHERE l.account_id = %s AND l.target_id = %s AND l.type = 'ABOUT' AND NOT m.archived AND m.retracted_at IS NULL
    AND (m.valid_to IS NULL OR m.valid_to > now()) ORDER BY m.id DESC LIMIT %s
"""


def meet_pump(scratch: Scratch, *, name: str, now: datetime) -> Entity:
    draft = EntityDraft(name=name, type="product")
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    return upsert_entity(scratch.owner(), draft, embedded=nothing, now=now).entity


def learn_one(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Learn another fact about one entity in every round."""
    owner, pump = scratch.owner(), meet_pump(scratch, name="north pump", now=now)
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    vectors = clustered_vectors(VECTORS, scratch.width)

    def insert_bare(number: int) -> None:
        with transaction.atomic(), binary_cursor() as cursor:
            parameters: list[Any] = [uuid7(), f"The pump ran {number} hours.", half_vector(vectors[number % VECTORS])]
            cursor.execute(APPEND, parameters)

    def learn(number: int) -> object:
        own = ClientVector(model=scratch.model, vector=vectors[number % VECTORS])
        draft = FactDraft(claim=f"The pump ran {number} hours here.", entity_ids=[pump.id], own=own)
        return learn_fact(owner, draft, embedded=nothing, now=now)

    def learn_over_http(number: int) -> object:
        body = {
            "agent_id": owner.agent_id,
            "claim": f"The pump ran {number} hours there.",
            "entities": [str(pump.id)],
            "embedding": np.round(vectors[number % VECTORS], 6).tolist(),
            "embedding_model": scratch.model,
        }
        return client.request("POST", FACTS, encode(body))

    return [
        BenchmarkVariant(name="psycopg, one INSERT", run=insert_bare),
        BenchmarkVariant(name="in process", run=learn),
        BenchmarkVariant(name="over HTTP", run=learn_over_http),
    ]


def read_true_now(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure reading the latest page of facts that are true now about one entity."""
    owner, pump = scratch.owner(), meet_pump(scratch, name="south pump", now=now)
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    for number in range(FACTS_OF_ONE):
        draft = FactDraft(claim=f"The south pump stopped {number} times.", entity_ids=[pump.id])
        learn_fact(owner, draft, embedded=nothing, now=now)
    path = f"{FACTS}?entity={pump.id}&page_size={PAGE}&agent_id={owner.agent_id}"

    def read_bare(_round: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(TRUE_NOW, [owner.account_id, pump.id, PAGE])
            cursor.fetchall()

    def read(_round: int) -> object:
        rows = filter_about_entity(visible_facts(owner, now=now), owner.account_id, pump.id)
        return list(rows.order_by("-id")[:PAGE])

    return [
        BenchmarkVariant(name="psycopg", run=read_bare),
        BenchmarkVariant(name="in process", run=read),
        BenchmarkVariant(name="over HTTP", run=lambda _round: client.request("GET", path)),
    ]

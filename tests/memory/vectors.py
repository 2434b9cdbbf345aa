"""Many vectors for tests: clustered as embeddings are, seeded, and stored with their episodes by a few statements."""

from typing import Any

import numpy as np
from django.db import connection

from memory.models import EpisodicMemory
from memory.models.statements import Embedding
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.embedding.vector_index import BuiltIndex, IndexedVectors, IndexMethod, build_index
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory_project.ids import uuid7
from tests.memory.episodes import NOW

MODEL, WIDTH = "clustered", 64
INDEXED = IndexedVectors(model=MODEL, width=WIDTH)
NOTHING = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={})
CLUSTERS = 200


class Clusters:
    """Seeded unit vectors around common centres, as texts on common topics have them."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.centres = self.random.normal(size=(CLUSTERS, WIDTH))

    def draw(self, count: int) -> Embedding:
        rows = self.centres[self.random.integers(CLUSTERS, size=count)]
        rows = rows + 0.7 * self.random.normal(size=rows.shape)
        unit: Embedding = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def fill(owner: Owner, vectors: Embedding) -> None:
    """An episode for each vector; every tenth is about the user `ana`. Stored as a copy of one that is, for speed."""
    [model] = store_episodes(
        owner, drafts=[EpisodeDraft(conversation_id="", summary="text")], embedded=NOTHING, now=NOW
    )
    ids = [uuid7() for _vector in vectors]
    given = {
        "ids": ids,
        "users": ["ana" if number % 10 == 0 else "" for number in range(len(ids))],
        "model": model.id,
    }
    copy_episodes(given)
    insert_vectors(owner.account_id, model=MODEL, vectors=list(zip(ids, vectors, strict=True)))
    model.delete()


def copy_episodes(given: dict[str, Any]) -> None:
    """Insert episodes with these ids and users that are like the `model` in all other columns."""
    own = {"id": "given.id", "identity": "given.id::text", "user_id": "given.user_id", "embed_after": "NULL"}
    columns = [str(field.column) for field in EpisodicMemory._meta.concrete_fields]
    values = [own.get(column, f"model.{column}") for column in columns]
    with connection.cursor() as cursor:
        cursor.execute(
            f"""INSERT INTO memories ({", ".join(columns)}) SELECT {", ".join(values)}
            FROM memories AS model, unnest(%(ids)s::uuid[], %(users)s::text[]) AS given (id, user_id)
            WHERE model.id = %(model)s""",
            given,
        )


def build(method: IndexMethod) -> BuiltIndex:
    steps = build_index(INDEXED, method)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            built: BuiltIndex = end.value
            return built

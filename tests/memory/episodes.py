"""Episodes for tests: stored through the service, with vectors whose neighbourhood is known beforehand."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from memory.models import EpisodicMemory
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.retrieval.search import MemoryQuery
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from memory.services.summaries.store import EpisodeDraft, store_episodes

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
MODEL = "test-model"
WIDTH = 8
NOTHING = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={})


def direction(angle: float, *, width: int = WIDTH) -> Embedding:
    """A unit vector at `angle` (radians) to the first axis: its similarity to `direction(0)` is cos(angle)."""
    vector = np.zeros(width, dtype=np.float32)
    vector[0], vector[1] = np.cos(angle), np.sin(angle)
    return vector


def draft(summary: str, *, angle: float | None = None, conversation_id: str = "c1") -> EpisodeDraft:
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return EpisodeDraft(conversation_id=conversation_id, summary=summary, own=own)


def store(owner: Owner, *drafts: EpisodeDraft, now: datetime = NOW) -> Sequence[EpisodicMemory]:
    return store_episodes(owner, drafts=drafts, embedded=NOTHING, now=now)


def query(text: str = "anything", *, angle: float | None = 0.0, top_k: int = 10) -> MemoryQuery:
    vector = None if angle is None else direction(angle)
    return MemoryQuery(text=text, top_k=top_k, model=MODEL, width=WIDTH, vector=vector)

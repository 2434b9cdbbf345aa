"""The documented storage concerns (P10) in one class: experiences, facts, learnings and pools of one owner."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import ContextEntry, EpisodicMemory, Learning, MemoryPool
from memory.owner import Owner
from memory.retrieval.kind_searches import EntryResults
from memory.retrieval.search import EpisodeResults, LearningResults
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.search import search_facts, store_fact
from memory.services.embedding.embed import embed_texts
from memory.services.learnings import LearningDraft, find_learnings, publish_learning, vote_on_learning
from memory.services.pools.data import PoolData, merge_data, read_data, write_data
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.recall.recall import search_episodes_by_text
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers.base import time_of_call


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageService:
    """Each method is one call into the service of its noun. Do not call it in a transaction: it may embed a text."""

    owner: Owner

    def store_experience(self, draft: EpisodeDraft, *, now: datetime | None = None) -> list[EpisodicMemory]:
        embedded = embed_texts([] if draft.own else [draft.summary])
        return store_episodes(self.owner, drafts=[draft], embedded=embedded, now=time_of_call(now))

    def recall_experiences(self, query: str, *, top_k: int = 3, now: datetime | None = None) -> EpisodeResults:
        return search_episodes_by_text(self.owner, text=query, top_k=top_k, own=None, now=time_of_call(now))

    def store_fact(self, draft: EntryDraft, *, now: datetime | None = None) -> ContextEntry:
        return store_fact(self.owner, draft, now=time_of_call(now))

    def find_facts(self, query: str, *, top_k: int = 10, now: datetime | None = None) -> EntryResults:
        return search_facts(self.owner, query, top_k=top_k, now=time_of_call(now))

    def publish_learning(self, draft: LearningDraft, *, now: datetime | None = None) -> Learning:
        return publish_learning(
            self.owner, draft, embedded=embed_texts([] if draft.own else [draft.insight]), now=time_of_call(now)
        )

    def vote_on_learning(self, learning_id: UUID, *, helpful: bool, now: datetime | None = None) -> Learning:
        return vote_on_learning(self.owner, learning_id, helpful=helpful, now=time_of_call(now))

    def find_learnings(self, query: str, *, top_k: int = 10, now: datetime | None = None) -> LearningResults:
        return find_learnings(self.owner, text=query, top_k=top_k, own=None, now=time_of_call(now))

    def create_pool(self, draft: PoolDraft, *, now: datetime | None = None) -> MemoryPool:
        return create_pool(self.owner, draft, now=time_of_call(now))

    def read_pool(self, pool_id: str, *, path: str = "", now: datetime | None = None) -> PoolData:
        return read_data(self.owner, pool_id, path=path, now=time_of_call(now))

    def write_pool(self, pool_id: str, data: Any, *, path: str = "", now: datetime | None = None) -> PoolData:
        return write_data(self.owner, pool_id, path=path, data=data, expected=None, now=time_of_call(now))

    def merge_pool(self, pool_id: str, data: Any, *, path: str = "", now: datetime | None = None) -> PoolData:
        return merge_data(self.owner, pool_id, path=path, data=data, expected=None, now=time_of_call(now))

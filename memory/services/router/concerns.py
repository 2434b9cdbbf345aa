"""The documented storage concerns (P10) in one place: experiences, facts, what teams learnt, pools.

They use the services of their nouns and do what callers in the same process would otherwise have to do: they embed
texts before any transaction begins, keep facts in the agent's long-term memory, and log reads of them. HTTP uses the
services directly, because it stores an answer with each write.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import ContextEntry, EpisodicMemory, Learning, MemoryPool, PersistentContext
from memory.owner import Owner
from memory.retrieval.entries import EntryResults
from memory.retrieval.episodes import EpisodeResults
from memory.retrieval.learnings import LearningResults
from memory.retrieval.search import SearchResults
from memory.services.accounts.access import ExpectedVersions
from memory.services.contexts.access_log import Action, entry_reference, log_reads
from memory.services.contexts.entries import EntryDraft, store_entries, visible_entries
from memory.services.contexts.manage import ensure_own_context, find_own_context, lock_context, lock_keyed_entries
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.learnings import publish as learnings
from memory.services.learnings.publish import LearningDraft
from memory.services.memories.store import ClientVector
from memory.services.pools.data import PoolData, merge_data, read_data, write_data
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.recall.search import search_episodes_by_text
from memory.services.summaries.store import EpisodeDraft, store_episodes

FACT = ContextEntry.EntryType.FACT.value


class Concern:
    """Base of the concerns, for one owner."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner


class Experiential(Concern):
    """Summaries of past conversations: episodes, private to their agent."""

    def store_experience(self, draft: EpisodeDraft, *, now: datetime) -> EpisodicMemory | None:
        """Store an episode; return None if one with its identity was stored before."""
        stored = store_episodes(
            self._owner, drafts=[draft], embedded=embed_unless_given(draft.summary, draft.own), now=now
        )
        return stored[0] if stored else None

    def recall_experiences(
        self, query: str, *, top_k: int = 3, own: ClientVector | None = None, now: datetime
    ) -> EpisodeResults:
        """Return the most similar episodes (see `search_episodes_by_text`)."""
        return search_episodes_by_text(self._owner, text=query, top_k=top_k, own=own, now=now)


class Factual(Concern):
    """Facts that the agent holds to be true: entries of type fact in its own context, `agent_memory`.

    Methods raise Unprocessable without an agent.
    """

    def store_fact(self, draft: EntryDraft, *, now: datetime) -> ContextEntry:
        """Store a fact; an existing key gets its next version.

        Raises Conflict if an entry of another type has the key, and while the context is archived; TooLarge.
        """
        fact = replace(draft, entry_type=FACT, memory_type=ContextEntry.MemoryType.FACTUAL.value)
        made = embed_unless_given(fact.text, fact.own)
        with transaction.atomic():
            context = lock_context(self._owner, ensure_own_context(self._owner, now=now).id)
            taken = lock_keyed_entries(context, [fact.key] if fact.key else [])
            if any(entry.entry_type != FACT for entry in taken.values()):
                raise Conflict("an entry of another type has this key: choose another key, or remove that entry first")
            [stored] = store_entries(self._owner, context.id, drafts=[fact], embedded=made, now=now)
        return stored

    def find_fact(self, key: str, *, now: datetime) -> ContextEntry:
        """Return the fact under a key. Raises NotFound, also for an entry of another type."""
        fact = self._facts(now).filter(key=key).first() if key else None
        if fact is None:
            raise NotFound("no such fact")
        log_reads(self._owner, [entry_reference(fact)], action=Action.READ, now=now)
        return fact

    def list_facts(self, *, now: datetime) -> list[ContextEntry]:
        """Return all facts ordered by key, those without a key first."""
        found = list(self._facts(now))
        log_reads(self._owner, [entry_reference(fact) for fact in found], action=Action.READ, now=now)
        return found

    def find_facts(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime
    ) -> EntryResults:
        """Return the facts that answer the query best; entries of other types do not compete."""
        contexts = list(self._contexts().values_list("id", flat=True))
        if not contexts:
            return SearchResults(hits=[], degraded=[])
        asked = EntryQuestion(text=query, top_k=top_k, own=own, contexts=contexts, types=[FACT])
        return find_entries(self._owner, asked, now=now)

    def _facts(self, now: datetime) -> QuerySet[ContextEntry]:
        rows = visible_entries(self._owner, now=now).filter(context__in=self._contexts(), entry_type=FACT)
        return rows.order_by("key", "id")

    def _contexts(self) -> QuerySet[PersistentContext]:
        """Return the agent's own context as a queryset, empty if it does not exist yet."""
        if not self._owner.agent_id:
            raise Unprocessable("long-term memory belongs to an agent: name an agent_id")
        return find_own_context(self._owner)


class SharedLearning(Concern):
    """Learnings that agents publish to their teams, and the votes on them."""

    def publish_learning(self, draft: LearningDraft, *, now: datetime) -> Learning:
        """Publish a learning.

        Raises Unprocessable for a team that the agent is not in, Conflict if its context is archived.
        """
        made = embed_unless_given(draft.insight, draft.own)
        return learnings.publish_learning(self._owner, draft, embedded=made, now=now)

    def vote_on_learning(self, learning_id: UUID, *, helpful: bool, now: datetime) -> Learning:
        """Store the agent's vote, replacing its earlier one (see `learnings.vote_on_learning`)."""
        return learnings.vote_on_learning(self._owner, learning_id, helpful=helpful, now=now)

    def find_learnings(
        self,
        query: str,
        *,
        top_k: int = 10,
        own: ClientVector | None = None,
        team_id: UUID | None = None,
        now: datetime,
    ) -> LearningResults:
        """Return the most similar learnings of one or all of the agent's teams (`learnings.find_learnings`)."""
        return learnings.find_learnings(self._owner, text=query, top_k=top_k, own=own, team_id=team_id, now=now)


class PoolOperations(Concern):
    """JSON that agents share, through the services of pools. Nothing is embedded."""

    def create_pool(self, draft: PoolDraft, *, now: datetime) -> MemoryPool:
        return create_pool(self._owner, draft, now=now)

    def read_pool(self, pool_id: str, *, path: str = "", now: datetime) -> PoolData:
        """Return all data of a pool, or the part under a JSON Pointer."""
        return read_data(self._owner, pool_id, path=path, now=now)

    def write_pool(
        self, pool_id: str, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime
    ) -> PoolData:
        """Replace data of a pool."""
        return write_data(self._owner, pool_id, path=path, data=data, expected=expected, now=now)

    def merge_pool(
        self, pool_id: str, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime
    ) -> PoolData:
        """Merge data into that of a pool, at every depth."""
        return merge_data(self._owner, pool_id, path=path, data=data, expected=expected, now=now)


class StorageService(Experiential, Factual, SharedLearning, PoolOperations):
    """All concerns of one owner. Do not call its methods in a transaction: they embed texts first."""


def embed_unless_given(text: str, own: ClientVector | None) -> EmbeddedTexts:
    """Embed the text unless the client brought its vector. Call it outside transactions: it may take seconds."""
    return embed_texts([] if own else [text])

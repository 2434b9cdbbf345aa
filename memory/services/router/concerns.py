"""The documented storage concerns (P10) in one place: what agents lived through, facts, what teams learnt, pools.

They stand on the services of their nouns, and add to them what a caller in the same process would have to see to: texts
are embedded before any transaction begins, facts are kept and looked for where the agent's long-term memory is, and
reads of them are in its access log. HTTP uses the services themselves, since it stores an answer with each write.
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
from memory.retrieval.entries import EntriesFound
from memory.retrieval.episodes import EpisodesFound
from memory.retrieval.learnings import LearningsFound
from memory.retrieval.search import Found
from memory.services.accounts.access import Versions
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.entries import EntryDraft, store_entries, touched, visible_entries
from memory.services.contexts.keys import lock_keyed
from memory.services.contexts.manage import lock_context, own_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.learnings import publish as learnings
from memory.services.learnings.publish import LearningDraft
from memory.services.memories.store import OwnVector
from memory.services.pools.data import PoolData, merge_data, read_data, write_data
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.recall.search import find_episodes
from memory.services.router.tiers import find_own_context
from memory.services.summaries.store import EpisodeDraft, store_episodes

FACT = ContextEntry.EntryType.FACT.value


class Concern:
    """One of the things that an owner's memory is for."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner


class Experiential(Concern):
    """What past conversations came to: episodes, private to their agent."""

    def store_experience(self, draft: EpisodeDraft, *, now: datetime) -> EpisodicMemory | None:
        """None where an episode of its identity was stored before."""
        stored = store_episodes(self._owner, drafts=[draft], embedded=embedded(draft.summary, draft.own), now=now)
        return stored[0] if stored else None

    def recall_experiences(
        self, query: str, *, top_k: int = 3, own: OwnVector | None = None, now: datetime
    ) -> EpisodesFound:
        """The most similar ones (see `find_episodes`)."""
        return find_episodes(self._owner, text=query, top_k=top_k, own=own, now=now)


class Factual(Concern):
    """What the agent holds to be true: entries of type fact in its own context, `agent_memory`.

    Raises Unprocessable without an agent.
    """

    def store_fact(self, draft: EntryDraft, *, now: datetime) -> ContextEntry:
        """Under a key that a fact has, that fact's next version.

        Raises Conflict where an entry of another type has the key, and while the context is archived; TooLarge.
        """
        fact = replace(draft, entry_type=FACT, memory_type=ContextEntry.MemoryType.FACTUAL.value)
        made = embedded(fact.text, fact.own)
        with transaction.atomic():
            context = lock_context(self._owner, own_context(self._owner, now=now).id)
            taken = lock_keyed(context, [fact.key] if fact.key else [])
            if any(entry.entry_type != FACT for entry in taken.values()):
                raise Conflict("an entry of another type has this key")
            [stored] = store_entries(self._owner, context.id, drafts=[fact], embedded=made, now=now)
        return stored

    def find_fact(self, key: str, *, now: datetime) -> ContextEntry:
        """Raises NotFound, for an entry of another type too."""
        fact = self._facts(now).filter(key=key).first() if key else None
        if fact is None:
            raise NotFound("no such fact")
        log_reads(self._owner, [touched(fact)], action=Action.READ, now=now)
        return fact

    def list_facts(self, *, now: datetime) -> list[ContextEntry]:
        """All of them, by key, those without one first."""
        found = list(self._facts(now))
        log_reads(self._owner, [touched(fact) for fact in found], action=Action.READ, now=now)
        return found

    def find_facts(self, query: str, *, top_k: int = 10, own: OwnVector | None = None, now: datetime) -> EntriesFound:
        """The facts that answer the query best, however many other entries answer it better."""
        contexts = list(self._contexts().values_list("id", flat=True))
        if not contexts:
            return Found(hits=[], degraded=[])
        asked = EntryQuestion(text=query, top_k=top_k, own=own, contexts=contexts, types=[FACT])
        return find_entries(self._owner, asked, now=now)

    def _facts(self, now: datetime) -> QuerySet[ContextEntry]:
        rows = visible_entries(self._owner, now=now).filter(context__in=self._contexts(), entry_type=FACT)
        return rows.order_by("key", "id")

    def _contexts(self) -> QuerySet[PersistentContext]:
        """The agent's own, or none: reading makes none."""
        if not self._owner.agent_id:
            raise Unprocessable("long-term memory is an agent's: name one")
        return find_own_context(self._owner)


class SharedLearning(Concern):
    """What agents learnt for their teams, and how it served them."""

    def publish_learning(self, draft: LearningDraft, *, now: datetime) -> Learning:
        """Raises Unprocessable for a team that the agent is not in, Conflict where its context is archived."""
        made = embedded(draft.insight, draft.own)
        return learnings.publish_learning(self._owner, draft, embedded=made, now=now)

    def vote_on_learning(self, learning_id: UUID, *, helpful: bool, now: datetime) -> Learning:
        """The agent's vote, in place of its earlier one (see `learnings.vote_on_learning`)."""
        return learnings.vote_on_learning(self._owner, learning_id, helpful=helpful, now=now)

    def find_learnings(
        self,
        query: str,
        *,
        top_k: int = 10,
        own: OwnVector | None = None,
        team_id: UUID | None = None,
        now: datetime,
    ) -> LearningsFound:
        """The most similar ones of one team, or of all that the agent is in (see `learnings.find_learnings`)."""
        return learnings.find_learnings(self._owner, text=query, top_k=top_k, own=own, team_id=team_id, now=now)


class PoolOperations(Concern):
    """JSON that agents share. There is nothing to embed: the services of pools as they stand, for one owner."""

    def create_pool(self, draft: PoolDraft, *, now: datetime) -> MemoryPool:
        return create_pool(self._owner, draft, now=now)

    def read_pool(self, pool_id: str, *, path: str = "", now: datetime) -> PoolData:
        """All of its data, or what a JSON Pointer leads to."""
        return read_data(self._owner, pool_id, path=path, now=now)

    def write_pool(
        self, pool_id: str, data: Any, *, path: str = "", expected: Versions = None, now: datetime
    ) -> PoolData:
        """In place of what is there."""
        return write_data(self._owner, pool_id, path=path, data=data, expected=expected, now=now)

    def merge_pool(
        self, pool_id: str, data: Any, *, path: str = "", expected: Versions = None, now: datetime
    ) -> PoolData:
        """Into what is there, however deep."""
        return merge_data(self._owner, pool_id, path=path, data=data, expected=expected, now=now)


class StorageService(Experiential, Factual, SharedLearning, PoolOperations):
    """All concerns of one owner. None of its calls belongs in a transaction: they embed first."""


def embedded(text: str, own: OwnVector | None) -> Embedded:
    """The text's vector, unless the client brought one; outside of transactions, since it may take seconds."""
    return embed_texts([] if own else [text])

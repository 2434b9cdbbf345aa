"""Services of the tier and cognitive documents: router, working memory of a task, embeddings, maintenance, storage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from memory.agent_tiers import AgentRouter
from memory.documented.owners import owner_of_agent
from memory.errors import ProviderUnavailable
from memory.maintenance import find_job, runner
from memory.models import Account, Agent, ContextEntry, EpisodicMemory, JobRun, Learning, MemoryPool
from memory.models.statements import Embedding
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
from memory.services.router import RoutedValue
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import time_of_call


class RouterService(AgentRouter):
    """The documented router: keyed values by account and agent, in whichever tier they are."""

    def __init__(self, *, account: Account | str = "default", agent: Agent | str) -> None:
        super().__init__(owner_of_agent(account, agent), timezone.now)

    def read(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime | None = None
    ) -> Any:
        """Return the value of the first tier that has one; `find` says which. Raises NotFound."""
        return self.find(key, session_id=session_id, pool_id=pool_id, tier=tier, now=now).value

    def find(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime | None = None
    ) -> RoutedValue:
        """Return the value with its tier. Raises NotFound."""
        return super().read(key, session_id=session_id, pool_id=pool_id, tier=tier, now=now)


class TaskWorkingMemory(WorkingMemoryService):
    """The documented working memory: that of an agent for a task, by account and agent."""

    def __init__(
        self, *, agent: Agent | str, account: Account | str = "default", task: str = "", workflow_run: str = ""
    ) -> None:
        super().__init__(owner_of_agent(account, agent), task_id=task, workflow_run_id=workflow_run)


class EmbeddingService:
    """Embeddings by the configured model, each at unit length, from the cache where it has them."""

    def embed(self, text: str) -> Embedding:
        """Return the embedding of a text. Raises ProviderUnavailable if the model gave none."""
        return self.embed_many([text])[0]

    def embed_many(self, texts: Sequence[str]) -> list[Embedding]:
        """Return the embeddings of texts, in their order. Raises ProviderUnavailable if the model gave not all."""
        embedded = embed_texts(texts)
        missing = sum(text not in embedded.vectors for text in texts)
        if missing:
            raise ProviderUnavailable(f"{missing} of {len(texts)} texts were not embedded: {embedded.error or 'empty'}")
        return [embedded.vectors[text] for text in texts]


class MaintenanceService:
    """The documented maintenance of memory for one account: each call runs a job to its end, now."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def consolidate(self) -> JobRun:
        """Keep for good what was read often enough (`promote_short_term`)."""
        return self.run("promote_short_term")

    def deduplicate(self) -> JobRun:
        """Merge memories that say the same."""
        return self.run("deduplicate")

    def cleanup_expired(self) -> JobRun:
        """Delete what has expired (`expire`)."""
        return self.run("expire")

    def detect_context_rot(self) -> JobRun:
        """Archive stale context entries."""
        return self.run("context_rot")

    def run(self, job: str) -> JobRun:
        """Run a job by its name or documented name. Raises NotFound; Conflict if another run is on."""
        return run_job_now(job, account=Account.objects.get(id=self._owner.account_id))


def run_job_now(name: str, *, account: Account | None = None) -> JobRun:
    """Run a job in this process, for one account or for all. Raises NotFound; Conflict if another run is on."""
    job = find_job(name)
    return runner.run_at_once(job, JobRun(job=job.name, account=account, requested_by="python"), clock=timezone.now)


@dataclass(frozen=True, slots=True)
class ConsolidationJob:
    """A scheduled job as the worker lists it. Called, it runs for all accounts."""

    name: str

    def __call__(self) -> JobRun:
        return run_job_now(self.name)


class ConsolidationWorker:
    """The documented list of scheduled jobs: `jobs[name]` has `func`, and `interval_minutes` (None: off)."""

    names = ("consolidate", "patterns", "decay", "cleanup", "promote", "audit_partitions")

    @property
    def jobs(self) -> Mapping[str, Mapping[str, Callable[[], JobRun] | int | None]]:
        return {
            name: {"func": ConsolidationJob(name), "interval_minutes": interval_minutes(name)} for name in self.names
        }


def interval_minutes(name: str) -> int | None:
    """Return the minutes between two runs of a job: a day for one at a time of day."""
    every = find_job(name).every
    if every is None:
        return None
    return int(every.total_seconds() // 60) if isinstance(every, timedelta) else 1_440


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

"""The in-process API over everything that is remembered (X1): what the HTTP API offers, for Python in the same process.

The clock is read here, unless a call brings `now`. What is not found, refused or unreachable raises what `errors.py`
draws, and RedisError where Redis alone has it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Self
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.agent_contexts import AgentContext, AgentEntry, AgentFacts, AgentLearnings
from memory.agent_knowledge import AgentKnowledge
from memory.agent_sessions import AgentSession, InjectionLedger, Message, append_messages
from memory.agent_tiers import (
    AgentBlackboard,
    AgentPool,
    AgentRouter,
    AgentShortTerm,
    AgentToolCache,
    AgentWorkflowRun,
)
from memory.models import Conversation, EpisodicMemory, MemoryPool, PersistentContext, Turn, WorkflowRun
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.episodes import EpisodeResults
from memory.retrieval.queries import Query
from memory.retrieval.timeline import TimelineCursor, TimelineFilter, TimelineItem, read_timeline
from memory.retrieval.turns import TurnResults
from memory.services.accounts.register import find_account
from memory.services.contexts.manage import ContextDraft, create_context, ensure_own_context
from memory.services.conversations.lifecycle import ConversationDefaults, end_conversation
from memory.services.memories.store import ClientVector
from memory.services.pools.manage import PoolDraft
from memory.services.pools.workflow_runs import RunDraft, start_run
from memory.services.prompt_context.build import (
    PromptContext,
    PromptContextRequest,
    build_prompt_context,
    conclude_prompt_context,
)
from memory.services.recall.recall import RecallRequest
from memory.services.recall.search import search_turns_by_text
from memory.services.replay.replay import ReplaySlice, conclude_replay, replay
from memory.services.replay.targets import ReplayRequest
from memory.services.resume.read import ResumeRequest
from memory.services.resume.resume import ResumePacket, conclude_resume, resume_work
from memory.services.router.concerns import StorageService
from memory.services.sessions.hybrid import MemoryManager
from memory.services.summaries.store import EpisodeDraft
from memory.services.summaries.summarize import request_summary
from memory.services.turns import store as turns
from memory.services.turns.store import StoredTurns
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.working import WorkingMemory

ACTOR = "python"


class AgentMemory(AgentKnowledge):
    """Everything that one agent remembers, for one user and in one channel.

    >>> memory = AgentMemory.open(agent_id="assistant", user_id="ana")
    >>> memory.store_turn("chat-1", {"role": "user", "content": "Where is the key?"}).index
    0
    >>> memory.store_turn("chat-1", {"role": "assistant", "content": "Under the mat."}).index
    1
    >>> [turn.text for turn in memory.get_conversation("chat-1")]
    ['Where is the key?', 'Under the mat.']
    >>> memory.search_turns("Under the mat.", top_k=1).hits[0].index
    1
    >>> session = memory.session("chat-1")
    >>> session.set_active_goal("g1", "find the key")
    >>> session.get_active_goal()
    {'goal_id': 'g1', 'goal_description': 'find the key'}
    >>> memory.ledger("chat-1").mark("skill:locksmith").first
    True
    >>> memory.end_conversation("chat-1", outcome="success").outcome
    'success'
    >>> from memory.tiers.base import NewValue
    >>> memory.router.write("colour", NewValue(value="green")).tier
    'short_term'
    >>> plan = memory.create_pool(PoolDraft(pool_id="plan", data={"steps": {"one": "look"}}))
    >>> memory.pool("plan").merge({"steps": {"two": "dig"}}).version
    2
    >>> from memory.services.contexts.entries import EntryDraft
    >>> memory.factual.store(EntryDraft(key="mat", content="The key is under the mat.")).content_version
    1
    >>> [hit.key for hit in memory.factual.search("Where is the key?").hits]
    ['mat']
    >>> from memory.services.facts.learn import FactDraft
    >>> memory.learn_fact(FactDraft(claim="Ana keeps her key under the mat.", certainty="explicit")).fact.confidence
    0.95
    >>> [fact.text for fact in memory.remember("Where does Ana keep the key?").facts]
    ['Ana keeps her key under the mat.']
    >>> with memory.task("find the key") as task:
    ...     task.result = "it was under the mat"
    >>> memory.get_goal(task.goal.id).goal.status
    'completed'
    """

    def __init__(self, owner: Owner, *, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(owner, clock=clock)
        self._storage = StorageService(owner)

    @classmethod
    def open(cls, account: str = "default", *, agent_id: str, user_id: str = "", channel: str = GLOBAL_CHANNEL) -> Self:
        """Open the memory of an agent, created with its first write. Raises NotFound for an unknown account."""
        found = find_account(account)
        return cls(
            Owner(
                account_id=found.id,
                agent_id=agent_id,
                user_id=user_id,
                channel=channel,
                actor=ACTOR,
                audit_level=found.audit_level,
            )
        )

    @property
    def memory_manager(self) -> MemoryManager:
        """The hybrid memories of sessions: get, save, summarize if needed."""
        return MemoryManager(self._owner)

    @property
    def working_memory(self) -> WorkingMemory:
        """Return the agent's working memory, by conversation."""
        return WorkingMemory(self._owner)

    def agent_working_memory(self, task_id: str = "", workflow_run_id: str = "") -> WorkingMemoryService:
        """Return the agent's own working memory, or that for a task or a workflow run."""
        return WorkingMemoryService(self._owner, task_id=task_id, workflow_run_id=workflow_run_id)

    @property
    def router(self) -> AgentRouter:
        """Keyed values, in whichever tier they are."""
        return AgentRouter(self._owner, self.moment)

    def short_term(self, session_id: str = "") -> AgentShortTerm:
        """Short-term entries of a session, or of none in particular."""
        return AgentShortTerm(self._owner, self.moment, session_id=session_id)

    def create_pool(self, draft: PoolDraft, *, now: datetime | None = None) -> MemoryPool:
        """Create a pool. Raises Conflict, Unprocessable, TooLarge."""
        return self._storage.create_pool(draft, now=self.moment(now))

    def pool(self, pool_id: str) -> AgentPool:
        return AgentPool(self._owner, self.moment, pool_id=pool_id)

    def start_run(self, draft: RunDraft, *, now: datetime | None = None) -> WorkflowRun:
        """Start a workflow run. Raises Conflict, Unprocessable."""
        return start_run(self._owner, draft, now=self.moment(now))

    def workflow_run(self, workflow_run_id: str) -> AgentWorkflowRun:
        return AgentWorkflowRun(self._owner, self.moment, workflow_run_id=workflow_run_id)

    def blackboard(self, pool_id: str) -> AgentBlackboard:
        """Return a workflow run's blackboard."""
        return AgentBlackboard(self._owner, self.moment, pool_id=pool_id)

    def tool_cache(self, pool_id: str) -> AgentToolCache:
        """Return a workflow run's tool cache."""
        return AgentToolCache(self._owner, self.moment, pool_id=pool_id)

    def create_context(self, draft: ContextDraft) -> PersistentContext:
        """Create a context. Raises Conflict for a name that the agent has used, and Unprocessable."""
        return create_context(self._owner, draft)

    def own_context(self, *, now: datetime | None = None) -> AgentContext:
        """Return the context of the agent's long-term memory, which is created if it is new."""
        return self.context_of(ensure_own_context(self._owner, now=self.moment(now)).id)

    def context_of(self, context_id: UUID) -> AgentContext:
        return AgentContext(self._owner, self.moment, context_id=context_id)

    def entry(self, entry_id: UUID) -> AgentEntry:
        """Return an entry of a context."""
        return AgentEntry(self._owner, self.moment, entry_id=entry_id)

    @property
    def factual(self) -> AgentFacts:
        """Return the facts in the agent's own context."""
        return AgentFacts(self._owner, self.moment)

    @property
    def learnings(self) -> AgentLearnings:
        """Return the learnings of the agent's teams."""
        return AgentLearnings(self._owner, self.moment)

    def session(self, conversation_id: str) -> AgentSession:
        """Return the live session of a conversation."""
        return AgentSession(self._owner, self.moment, conversation_id)

    def ledger(self, conversation_id: str) -> InjectionLedger:
        """Return the injection ledger of a conversation."""
        return InjectionLedger(self._owner, conversation_id)

    def store_turn(self, conversation_id: str, message: Message, *, now: datetime | None = None) -> Turn:
        """`store_turns` of one."""
        return self.store_turns(conversation_id, [message], now=now).turns[0]

    def store_turns(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        opening: ConversationDefaults | None = None,
        now: datetime | None = None,
    ) -> StoredTurns:
        """Append to the conversation, which is made with its first turn (see `services.turns.store_turns`).

        Raises MalformedMessage, a ValueError, for what is no chat message.
        """
        return append_messages(self._owner, conversation_id, messages, now=self.moment(now), opening=opening)

    def get_conversation(self, conversation_id: str) -> list[Turn]:
        """Return the whole log, first turn first. Raises NotFound."""
        return turns.get_conversation(self._owner, conversation_id)

    def get_recent_turns(
        self, hours: float = 24, limit: int = conf.MAX_CONTEXT_MESSAGES, *, now: datetime | None = None
    ) -> list[Turn]:
        """Return the latest turns of all conversations in the last `hours`, newest first."""
        return turns.get_recent_turns(self._owner, hours=hours, limit=limit, now=self.moment(now))

    def search_turns(
        self,
        query: str,
        *,
        top_k: int = 10,
        time_window_hours: float | None = None,
        own: ClientVector | None = None,
        now: datetime | None = None,
    ) -> TurnResults:
        """Return the turns of all conversations nearest to `query`, or to a vector of one's own (`validate_vector`)."""
        return search_turns_by_text(
            self._owner, text=query, top_k=top_k, time_window_hours=time_window_hours, own=own, now=self.moment(now)
        )

    def store_episode(self, draft: EpisodeDraft, *, now: datetime | None = None) -> EpisodicMemory | None:
        """Store what a conversation came to; None where its identity was stored before."""
        return self._storage.store_experience(draft, now=self.moment(now))

    def search_episodes(
        self, query: str, *, top_k: int = 3, own: ClientVector | None = None, now: datetime | None = None
    ) -> EpisodeResults:
        """Return the episodes nearest to `query`, or to a vector of one's own."""
        return self._storage.recall_experiences(query, top_k=top_k, own=own, now=self.moment(now))

    def context(
        self,
        conversation_id: str,
        query: str = "",
        *,
        suppress_injected: bool = False,
        mark_injected: bool = False,
        max_tokens: int = conf.CONTEXT_TOKENS,
        now: datetime | None = None,
    ) -> PromptContext:
        """Return the memory node: what to see before answering, as one system message (see `build_prompt_context`)."""
        asked = RecallRequest(
            query=Query(text=query, conversation_id=conversation_id, top_k=conf.CONTEXT_RESULTS),
            suppress_injected=suppress_injected,
        )
        request = PromptContextRequest(recall_request=asked, max_tokens=max_tokens, mark_injected=mark_injected)
        return self.gather(request, now=now)

    def gather(self, request: PromptContextRequest, *, now: datetime | None = None) -> PromptContext:
        """Return the memory node for any options of a recall, and count the reads of what it holds."""
        moment = self.moment(now)
        context = build_prompt_context(self._owner, request, now=moment)
        conclude_prompt_context(self._owner, context, now=moment)
        return context

    def timeline(
        self,
        stretch: TimelineFilter | None = None,
        *,
        beyond: TimelineCursor | None = None,
        newest_first: bool = True,
        limit: int = 50,
        now: datetime | None = None,
    ) -> Sequence[TimelineItem]:
        """Return memories of all kinds and channels by the time when they happened (see `retrieval.timeline`).

        `beyond`: continue after the memory of this time and id.
        """
        asked, moment = stretch or TimelineFilter(), self.moment(now)
        return read_timeline(self._owner, asked, beyond=beyond, newest_first=newest_first, limit=limit, now=moment)

    def replay(self, request: ReplayRequest, *, deep: bool = False, now: datetime | None = None) -> ReplaySlice:
        """Return the smallest slice of what was done that answers (see `services.replay`), and count its reads.

        `deep` stands for the scope deep_replay: it permits raw traces, if the request asks for them.
        """
        moment = self.moment(now)
        told = replay(self._owner, replace(request, has_scope=deep), now=moment)
        conclude_replay(self._owner, told, now=moment)
        return told

    def resume(self, request: ResumeRequest | None = None, *, now: datetime | None = None) -> ResumePacket:
        """Return what a successor needs for the next move (see `services.resume`), and count its reads."""
        moment = self.moment(now)
        packet = resume_work(self._owner, request or ResumeRequest(), now=moment)
        conclude_resume(self._owner, packet, now=moment)
        return packet

    def request_summary(self, conversation_id: str, *, now: datetime | None = None) -> Conversation:
        """Queue a summary of everything that was said so far. Raises NotFound."""
        return request_summary(self._owner, conversation_id, now=self.moment(now))

    def end_conversation(self, conversation_id: str, *, outcome: str = "", now: datetime | None = None) -> Conversation:
        """End the session: summary queued where it is long enough, live side cleared. `outcome`: success, failure.

        Raises NotFound.
        """
        return end_conversation(self._owner, conversation_id, outcome=outcome, now=self.moment(now))

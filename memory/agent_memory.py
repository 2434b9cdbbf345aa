"""The in-process API over everything that is remembered (X1): what the HTTP API offers, for Python in the same process.

The clock is read here, unless a call brings `now`, and texts are embedded before any transaction begins. What is not
found, refused or unreachable raises what `errors.py` draws, and RedisError where Redis alone has it.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Self
from uuid import UUID

from django.utils import timezone

from memory import conf
from memory.agent_goals import AgentGoals
from memory.agent_tiers import (
    AgentFacts,
    AgentPool,
    AgentRouter,
    AgentSession,
    AgentShortTerm,
    AgentToolCache,
    Clock,
    InjectionLedger,
    Message,
    append_messages,
)
from memory.models import Conversation, Fact, Link, MemoryPool, Strategy, ToolInvocation, Turn
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.graph import Graph
from memory.retrieval.kind_searches import StrategyResults
from memory.retrieval.queries import Query
from memory.retrieval.search import TurnResults
from memory.retrieval.timeline import TimelineCursor, TimelineFilter, TimelineItem
from memory.retrieval.timeline_events import Event, read_timeline_with_events
from memory.services import turns
from memory.services.accounts.register import find_account
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.custody.marks import refuse_erased_user
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, ResolvedEntity, upsert_entity
from memory.services.entities.relate import RelationshipDraft, create_relationship, explore_graph
from memory.services.facts.contradict import learn_consistent_fact
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.learn import FactDraft, LearnedFact
from memory.services.memories.store import ClientVector
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.prompt_context.build import (
    PromptContext,
    PromptContextRequest,
    build_prompt_context,
    conclude_prompt_context,
)
from memory.services.recall.recall import RecallRequest, conclude_recall, recall, search_turns_by_text
from memory.services.replay.candidates import ReplayRequest
from memory.services.replay.replay import ReplaySlice, conclude_replay, replay
from memory.services.resume.resume import ResumePacket, ResumeRequest, conclude_resume, resume_work
from memory.services.sessions import MemoryManager
from memory.services.strategies.learn import StrategyDraft, find_strategies, learn_strategy, reinforce_strategy
from memory.services.tools import InvocationDraft, ToolStats, get_tool_stats, record_invocation
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.working import WorkingMemory

ACTOR = "python"


class AgentMemory(AgentGoals):
    """Everything that one agent remembers, for one user and in one channel.

    These are the calls of the documents. Everything else is a function of `memory.services` that takes `memory.owner`
    first; docs/guides/python.md says which.

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
    >>> memory.router.write("colour", "green").tier
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
    >>> from memory.services.goals.store import active_goals
    >>> list(active_goals(memory.owner, now=timezone.now()))
    []
    """

    def __init__(self, owner: Owner, *, clock: Clock = timezone.now) -> None:
        super().__init__(owner, clock)

    @classmethod
    def open(cls, account: str = "default", *, agent_id: str, user_id: str = "", channel: str = GLOBAL_CHANNEL) -> Self:
        """Open the memory of an agent, created with its first write. Raises NotFound for an unknown account.

        Raises Conflict for a user that was erased.
        """
        found = find_account(account)
        if found.has_erasures:
            refuse_erased_user(found.id, user_id)
        return cls(
            Owner(
                account_id=found.id,
                agent_id=agent_id,
                user_id=user_id,
                channel=channel,
                actor=ACTOR,
                audit_level=found.audit_level,
                marks_secrets=found.secrets == "mark",
                masks_secrets=found.secrets == "mask",
            )
        )

    @property
    def owner(self) -> Owner:
        """Return whose memory it is: the first argument of every service."""
        return self._owner

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
        return AgentRouter(self._owner, self._clock)

    def short_term(self, session_id: str = "") -> AgentShortTerm:
        """Return the short-term entries of a session, or those of no particular session."""
        return AgentShortTerm(self._owner, self._clock, session_id)

    def create_pool(self, draft: PoolDraft, *, now: datetime | None = None) -> MemoryPool:
        """Create a pool. Raises Conflict, Unprocessable, TooLarge."""
        return create_pool(self._owner, draft, now=self._moment(now))

    def pool(self, pool_id: str) -> AgentPool:
        return AgentPool(self._owner, self._clock, pool_id)

    def tool_cache(self, pool_id: str) -> AgentToolCache:
        """Return a workflow run's tool cache."""
        return AgentToolCache(self._owner, self._clock, pool_id)

    @property
    def factual(self) -> AgentFacts:
        """Return the facts in the agent's own context."""
        return AgentFacts(self._owner, self._clock)

    def session(self, conversation_id: str) -> AgentSession:
        """Return the live session of a conversation."""
        return AgentSession(self._owner, self._clock, conversation_id)

    def ledger(self, conversation_id: str) -> InjectionLedger:
        """Return the injection ledger of a conversation."""
        return InjectionLedger(self._owner, conversation_id)

    def store_turn(self, conversation_id: str, message: Message, *, now: datetime | None = None) -> Turn:
        """Store one turn (see `store_turns`)."""
        return self.store_turns(conversation_id, [message], now=now).turns[0]

    def store_turns(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        opening: ConversationDefaults | None = None,
        now: datetime | None = None,
    ) -> turns.StoredTurns:
        """Append to the conversation, which is made with its first turn (see `services.turns.store_turns`).

        Raises MalformedMessage, a ValueError, for what is no chat message.
        """
        return append_messages(self._owner, conversation_id, messages, now=self._moment(now), opening=opening)

    def get_conversation(self, conversation_id: str) -> list[Turn]:
        """Return the whole log, first turn first. Raises NotFound."""
        return turns.get_conversation(self._owner, conversation_id)

    def get_recent_turns(
        self, hours: float = 24, limit: int | None = None, *, now: datetime | None = None
    ) -> list[Turn]:
        """Return the latest turns of all conversations in the last `hours`, newest first.

        There are at most `limit`, by default MEMORY_MAX_CONTEXT_MESSAGES.
        """
        most = conf.MAX_CONTEXT_MESSAGES if limit is None else limit
        return turns.get_recent_turns(self._owner, hours=hours, limit=most, now=self._moment(now))

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
            self._owner, text=query, top_k=top_k, time_window_hours=time_window_hours, own=own, now=self._moment(now)
        )

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
        moment = self._moment(now)
        context = build_prompt_context(self._owner, request, now=moment)
        conclude_prompt_context(self._owner, context, now=moment)
        return context

    def timeline(
        self,
        filters: TimelineFilter | None = None,
        *,
        beyond: TimelineCursor | None = None,
        newest_first: bool = True,
        limit: int = 50,
        now: datetime | None = None,
    ) -> Sequence[TimelineItem]:
        """Return memories of all kinds and channels by the time when they happened (see `retrieval.timeline`).

        Unless the filter names kinds, calls of tools and changes of pools are among them. `beyond`: continue after the
        item of this time and id.
        """
        asked, moment = filters or TimelineFilter(), self._moment(now)
        return read_timeline_with_events(
            self._owner,
            asked,
            events=() if asked.kinds else tuple(Event),
            beyond=beyond,
            newest_first=newest_first,
            limit=limit,
            now=moment,
        )

    def replay(self, request: ReplayRequest, *, deep: bool = False, now: datetime | None = None) -> ReplaySlice:
        """Return the smallest slice of what was done that answers (see `services.replay`), and count its reads.

        `deep` stands for the scope deep_replay: it permits raw traces, if the request asks for them.
        """
        moment = self._moment(now)
        answer = replay(self._owner, replace(request, has_scope=deep), now=moment)
        conclude_replay(self._owner, answer, now=moment)
        return answer

    def resume(self, request: ResumeRequest | None = None, *, now: datetime | None = None) -> ResumePacket:
        """Return what a successor needs for the next move (see `services.resume`), and count its reads."""
        moment = self._moment(now)
        packet = resume_work(self._owner, request or ResumeRequest(), now=moment)
        conclude_resume(self._owner, packet, now=moment)
        return packet

    def end_conversation(
        self,
        conversation_id: str,
        *,
        outcome: str = "",
        event_time: datetime | None = None,
        now: datetime | None = None,
    ) -> Conversation:
        """End the session: summary queued where it is long enough, live side cleared. `outcome`: success, failure.

        It ended at `event_time`, by default now. Raises NotFound; Unprocessable for an end before the last turn.
        """
        moment = self._moment(now)
        return end_conversation(self._owner, conversation_id, outcome=outcome, event_time=event_time, now=moment)

    def remember(
        self,
        query: str,
        *,
        top_k: int = 10,
        time_window_hours: float | None = None,
        min_confidence: float = 0.0,
        as_of: datetime | None = None,
        techniques: Sequence[str] = (),
        own: ClientVector | None = None,
        now: datetime | None = None,
    ) -> Bundle:
        """Return what is relevant to the query: turns, episodes, facts, entities, strategies, goals and the profile."""
        asked = Query(text=query, top_k=top_k, min_confidence=min_confidence, as_of=as_of)
        request = RecallRequest(query=asked, techniques=techniques, own=own, time_window_hours=time_window_hours)
        return self.recall(request, now=now)

    def recall(self, request: RecallRequest, *, now: datetime | None = None) -> Bundle:
        """Return the memories of all kinds that answer a question best, and count their reads."""
        moment = self._moment(now)
        bundle = recall(self._owner, request, now=moment)
        conclude_recall(self._owner, request, bundle, now=moment)
        return bundle

    def upsert_entity(self, draft: EntityDraft, *, now: datetime | None = None) -> ResolvedEntity:
        """Find the entity with this name and add to it, or create it (see `services.entities`)."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return upsert_entity(self._owner, draft, embedded=embedded, now=self._moment(now))

    def create_relationship(self, draft: RelationshipDraft, *, now: datetime | None = None) -> Link:
        """Relate two entities; the same relationship again adds its properties."""
        return create_relationship(self._owner, draft, now=self._moment(now)).link

    def get_entity_graph(
        self, entity_ids: Sequence[UUID], depth: int = 1, *, types: Collection[str] = (), now: datetime | None = None
    ) -> Graph:
        """Return what these are linked to, up to three links away (see `retrieval.graph`). Raises NotFound."""
        return explore_graph(self._owner, entity_ids, depth=depth, types=types, now=self._moment(now))

    def learn_fact(self, draft: FactDraft, *, on_contradiction: str = "", now: datetime | None = None) -> LearnedFact:
        """Learn a fact, and end what it contradicts unless `on_contradiction` or the account says otherwise.

        Raises Conflict if it was rejected before, or contradicts others and the account prefers old facts.
        """
        embedded, now = embed_texts([draft.claim]), self._moment(now)
        return learn_consistent_fact(self._owner, draft, on_contradiction=on_contradiction, embedded=embedded, now=now)

    def promote_to_global(self, fact_id: UUID, reason: str, *, now: datetime | None = None) -> Fact:
        """Copy the fact to the channel `_global`, and return the copy."""
        # its claim was embedded before: the copy takes the vector from the cache, or waits for one
        return globalize_fact(self._owner, fact_id, reason=reason, embedded=embed_texts([]), now=self._moment(now))

    def record_invocation(self, draft: InvocationDraft, *, now: datetime | None = None) -> ToolInvocation:
        """Record a use of a tool in a conversation, which is created if it is new."""
        return record_invocation(self._owner, draft, now=self._moment(now))

    def get_tool_stats(
        self, task_type: str = "", channel: str = "", *, since: datetime | None = None, now: datetime | None = None
    ) -> list[ToolStats]:
        """Return counts, success and latency, tool by tool."""
        return get_tool_stats(self._owner, task_type=task_type, channel=channel, since=since, now=self._moment(now))

    def learn_strategy(self, draft: StrategyDraft, *, now: datetime | None = None) -> Strategy:
        """Learn a way of doing something, or count one more use of a known one."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return learn_strategy(self._owner, draft, embedded=embedded, now=self._moment(now))

    def find_strategies(
        self, task_description: str, *, top_k: int = 5, task_type: str = "", now: datetime | None = None
    ) -> StrategyResults:
        """Return the strategies that fit the task and often succeed."""
        moment = self._moment(now)
        return find_strategies(
            self._owner, task_description=task_description, top_k=top_k, task_type=task_type, now=moment
        )

    def reinforce_strategy(
        self, strategy_id: UUID, *, success: bool, conversation_id: str = "", now: datetime | None = None
    ) -> Strategy:
        """Record how a use of the strategy went. Raises NotFound."""
        return reinforce_strategy(
            self._owner, strategy_id, success=success, conversation_id=conversation_id, now=self._moment(now)
        )

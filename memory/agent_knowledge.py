"""Knowledge of an agent in the in-process API (`agent_memory`): the documented methods, each one service call.

Texts are embedded before any transaction begins. Errors are the services' own, which `errors.py` draws.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.agent_artifacts import AgentArtifacts, AgentWorkEpisodes
from memory.agent_goals import AgentGoals, Task
from memory.agent_work import AgentRecords
from memory.models import Conversation, Fact, Goal, Link, Strategy, ToolInvocation, UserProfile
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.graph import Graph
from memory.retrieval.queries import Query
from memory.retrieval.strategies import StrategyResults
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, ResolvedEntity, upsert_entity
from memory.services.entities.relate import RelationshipDraft, create_relationship, explore_graph
from memory.services.extraction.extract import request_extraction
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.learn import FactDraft, LearnedFact, learn_fact
from memory.services.facts.store import visible_facts
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact, supersede_fact
from memory.services.goals.plan import EndedGoal
from memory.services.goals.store import GoalView
from memory.services.memories.store import ClientVector
from memory.services.profiles import ProfileChanges, get_profile, update_profile
from memory.services.recall.recall import RecallRequest, conclude_recall, recall
from memory.services.strategies.learn import StrategyDraft, find_strategies, learn_strategy, reinforce_strategy
from memory.services.tools import InvocationDraft, ToolStats, get_tool_stats, record_invocation


class AgentKnowledge:
    """Entities, facts, relationships, procedures, goals and profiles of one agent, for one user and in one channel."""

    def __init__(self, owner: Owner, *, clock: Callable[[], datetime]) -> None:
        self._owner = owner
        self._clock = clock

    @property
    def owner(self) -> Owner:
        return self._owner

    def moment(self, now: datetime | None) -> datetime:
        """`now` where a call brings it, else the clock's."""
        return self._clock() if now is None else now

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
        """Everything that bears on the query: turns, episodes, facts, entities, strategies; goals and the profile."""
        asked = Query(text=query, top_k=top_k, min_confidence=min_confidence, as_of=as_of)
        request = RecallRequest(query=asked, techniques=techniques, own=own, time_window_hours=time_window_hours)
        return self.recall(request, now=now)

    def recall(self, request: RecallRequest, *, now: datetime | None = None) -> Bundle:
        """Return the memories of all kinds that answer a question best, and count their reads."""
        moment = self.moment(now)
        bundle = recall(self._owner, request, now=moment)
        conclude_recall(self._owner, request, bundle, now=moment)
        return bundle

    def upsert_entity(self, draft: EntityDraft, *, now: datetime | None = None) -> ResolvedEntity:
        """Find the entity with this name and add to it, or create it (see `services.entities`)."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return upsert_entity(self._owner, draft, embedded=embedded, now=self.moment(now))

    def create_relationship(self, draft: RelationshipDraft, *, now: datetime | None = None) -> Link:
        """Relate two entities; the same relationship again adds its properties."""
        return create_relationship(self._owner, draft, now=self.moment(now)).link

    def get_entity_graph(
        self, entity_ids: Sequence[UUID], depth: int = 1, *, types: Collection[str] = (), now: datetime | None = None
    ) -> Graph:
        """Return what these are linked to, up to three links away (see `retrieval.graph`). Raises NotFound."""
        return explore_graph(self._owner, entity_ids, depth=depth, types=types, now=self.moment(now))

    def learn_fact(self, draft: FactDraft, *, now: datetime | None = None) -> LearnedFact:
        """Hold something to be true. Raises Conflict for what was rejected."""
        return learn_fact(self._owner, draft, embedded=embed_texts([draft.claim]), now=self.moment(now))

    def known_facts(
        self, *, as_of: datetime | None = None, known_at: datetime | None = None, now: datetime | None = None
    ) -> list[Fact]:
        """Return the facts true now, or at `as_of`, as believed now, or at `known_at`; the latest first."""
        moment = self.moment(now)
        return list(visible_facts(self._owner, now=moment, as_of=as_of, known_at=known_at).order_by("-id"))

    def supersede_fact(self, fact_id: UUID, draft: FactDraft, *, now: datetime | None = None) -> Fact:
        """Supersede a fact, since the world changed: it ends where the new one begins."""
        embedded = embed_texts([draft.claim])
        return supersede_fact(self._owner, fact_id, draft, embedded=embedded, now=self.moment(now))

    def correct_fact(self, fact_id: UUID, *, now: datetime | None = None, **changes: Any) -> Fact:
        """We were wrong about its `claim`, `confidence`, `temporal`, `valid_from` or `valid_to`."""
        embedded = embed_texts([changes["claim"]] if "claim" in changes else [])
        return correct_fact(self._owner, fact_id, changes=changes, embedded=embedded, now=self.moment(now))

    def retract_fact(self, fact_id: UUID, *, now: datetime | None = None) -> Fact:
        """Retract a fact: it is no longer believed."""
        return retract_fact(self._owner, fact_id, now=self.moment(now))

    def reject_fact(self, fact_id: UUID, *, now: datetime | None = None) -> Fact:
        """Reject a fact: it is no longer believed, and never extracted again."""
        return reject_fact(self._owner, fact_id, now=self.moment(now))

    def promote_to_global(self, fact_id: UUID, reason: str, *, now: datetime | None = None) -> Fact:
        """Copy the fact to the channel `_global`, and return the copy."""
        # its claim was embedded before: the copy takes the vector from the cache, or waits for one
        return globalize_fact(self._owner, fact_id, reason=reason, embedded=embed_texts([]), now=self.moment(now))

    def consolidate(self, conversation_id: str, *, now: datetime | None = None) -> Conversation:
        """Queue the turns that nobody looked through yet for extraction. Raises NotFound."""
        return request_extraction(self._owner, conversation_id, now=self.moment(now))

    def record_invocation(self, draft: InvocationDraft, *, now: datetime | None = None) -> ToolInvocation:
        """Record a use of a tool in a conversation, which is created if it is new."""
        return record_invocation(self._owner, draft, now=self.moment(now))

    def get_tool_stats(
        self, task_type: str = "", channel: str = "", *, since: datetime | None = None, now: datetime | None = None
    ) -> list[ToolStats]:
        """Return counts, success and latency, tool by tool."""
        return get_tool_stats(self._owner, task_type=task_type, channel=channel, since=since, now=self.moment(now))

    def learn_strategy(self, draft: StrategyDraft, *, now: datetime | None = None) -> Strategy:
        """Learn a way of doing something, or count one more use of a known one."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return learn_strategy(self._owner, draft, embedded=embedded, now=self.moment(now))

    def find_strategies(
        self, task_description: str, *, top_k: int = 5, task_type: str = "", now: datetime | None = None
    ) -> StrategyResults:
        """Return the strategies that fit the task and often succeed."""
        moment = self.moment(now)
        return find_strategies(
            self._owner, task_description=task_description, top_k=top_k, task_type=task_type, now=moment
        )

    def reinforce_strategy(
        self, strategy_id: UUID, *, success: bool, conversation_id: str = "", now: datetime | None = None
    ) -> Strategy:
        """Say how it did. Raises NotFound."""
        return reinforce_strategy(
            self._owner, strategy_id, success=success, conversation_id=conversation_id, now=self.moment(now)
        )

    @property
    def artifacts(self) -> AgentArtifacts:
        """Return the artifacts that work produces or uses, revision by revision."""
        return AgentArtifacts(self._owner, self.moment)

    @property
    def work_episodes(self) -> AgentWorkEpisodes:
        """Return the work episodes: merged structured turns of one goal."""
        return AgentWorkEpisodes(self._owner, self.moment)

    @property
    def records(self) -> AgentRecords:
        """Structured turns."""
        return AgentRecords(self._owner, self.moment)

    @property
    def goals(self) -> AgentGoals:
        """All that is done with goals."""
        return AgentGoals(self._owner, self.moment)

    def add_goal(
        self,
        description: str,
        *,
        priority: int = 0,
        deadline: datetime | None = None,
        parent_id: UUID | None = None,
        blocked_by: Sequence[UUID] = (),
        now: datetime | None = None,
    ) -> Goal:
        """Add a goal. The greater the priority, the more it matters."""
        return self.goals.add_goal(
            description, priority=priority, deadline=deadline, parent_id=parent_id, blocked_by=blocked_by, now=now
        )

    def get_goal(self, goal_id: UUID, *, now: datetime | None = None) -> GoalView:
        """Return a goal with its parent, children and blockers. Raises NotFound."""
        return self.goals.get_goal(goal_id, now=now)

    def complete_goal(
        self, goal_id: UUID, status: str = "completed", result: str = "", *, now: datetime | None = None
    ) -> EndedGoal:
        """`completed` or `abandoned`; what waited for it alone is unblocked."""
        return self.goals.complete_goal(goal_id, status=status, result=result, now=now)

    def task(self, description: str, *, conversation_id: str = "") -> AbstractContextManager[Task]:
        """Add a goal for as long as a block runs: completed at its end, abandoned on an exception."""
        return self.goals.task(description, conversation_id=conversation_id)

    def get_profile(self, user_id: str = "") -> UserProfile:
        """Return the profile of this memory's user, or of another one. Raises NotFound."""
        return get_profile(self._owner, user_id or self._owner.user_id)

    def update_profile(
        self,
        user_id: str = "",
        *,
        preferences: Mapping[str, Any] | None = None,
        expertise_areas: Sequence[str] | None = None,
        communication_style: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        now: datetime | None = None,
    ) -> UserProfile:
        """Update a profile with new values by name, where None deletes one; it is created if it does not exist."""
        changes = ProfileChanges(
            preferences=preferences,
            expertise_areas=expertise_areas,
            communication_style=communication_style,
            metadata=metadata,
        )
        return update_profile(self._owner, user_id or self._owner.user_id, changes, now=self.moment(now))

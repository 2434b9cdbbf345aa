"""What an agent knows, in the in-process API (`agent_memory`): the documented methods, each one service call.

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
from memory.retrieval.strategies import StrategiesFound
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, Resolved, upsert_entity
from memory.services.entities.relate import RelationshipDraft, create_relationship, explore_graph
from memory.services.extraction.extract import request_extraction
from memory.services.facts.learn import FactDraft, Learnt, learn_fact, visible_facts
from memory.services.facts.supersede import correct_fact, promote_fact, reject_fact, retract_fact, supersede_fact
from memory.services.goals.plan import Completed, GoalView
from memory.services.memories.store import OwnVector
from memory.services.profiles import ProfileChanges, get_profile, update_profile
from memory.services.recall.recall import RecallRequest, conclude, recall
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
        own: OwnVector | None = None,
        now: datetime | None = None,
    ) -> Bundle:
        """Everything that bears on the query: turns, episodes, facts, entities, strategies; goals and the profile."""
        asked = Query(text=query, top_k=top_k, min_confidence=min_confidence, as_of=as_of)
        request = RecallRequest(query=asked, techniques=techniques, own=own, time_window_hours=time_window_hours)
        return self.recall(request, now=now)

    def recall(self, request: RecallRequest, *, now: datetime | None = None) -> Bundle:
        """The memories of all kinds that answer a question best (see `services.recall`), and count their reads."""
        moment = self.moment(now)
        bundle = recall(self._owner, request, now=moment)
        conclude(self._owner, request, bundle, now=moment)
        return bundle

    def upsert_entity(self, draft: EntityDraft, *, now: datetime | None = None) -> Resolved:
        """Find the entity that goes by this name, and add to it, or make it (see `services.entities`)."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return upsert_entity(self._owner, draft, embedded=embedded, now=self.moment(now))

    def create_relationship(self, draft: RelationshipDraft, *, now: datetime | None = None) -> Link:
        """Between two entities; the same again adds its properties."""
        return create_relationship(self._owner, draft, now=self.moment(now)).link

    def get_entity_graph(
        self, entity_ids: Sequence[UUID], depth: int = 1, *, types: Collection[str] = (), now: datetime | None = None
    ) -> Graph:
        """What these are linked to, up to three links away (see `retrieval.graph`). Raises NotFound."""
        return explore_graph(self._owner, entity_ids, depth=depth, types=types, now=self.moment(now))

    def learn_fact(self, draft: FactDraft, *, now: datetime | None = None) -> Learnt:
        """Hold something to be true. Raises Conflict for what was rejected."""
        return learn_fact(self._owner, draft, embedded=embed_texts([draft.claim]), now=self.moment(now))

    def known_facts(
        self, *, as_of: datetime | None = None, known_at: datetime | None = None, now: datetime | None = None
    ) -> list[Fact]:
        """What is true now, or at `as_of`, as it is believed now, or was at `known_at`; the latest first."""
        moment = self.moment(now)
        return list(visible_facts(self._owner, now=moment, as_of=as_of, known_at=known_at).order_by("-id"))

    def supersede_fact(self, fact_id: UUID, draft: FactDraft, *, now: datetime | None = None) -> Fact:
        """The world changed: the fact ends where the new one begins."""
        embedded = embed_texts([draft.claim])
        return supersede_fact(self._owner, fact_id, draft, embedded=embedded, now=self.moment(now))

    def correct_fact(self, fact_id: UUID, *, now: datetime | None = None, **changes: Any) -> Fact:
        """We were wrong about its `claim`, `confidence`, `temporal`, `valid_from` or `valid_to`."""
        embedded = embed_texts([changes["claim"]] if "claim" in changes else [])
        return correct_fact(self._owner, fact_id, changes=changes, embedded=embedded, now=self.moment(now))

    def retract_fact(self, fact_id: UUID, *, now: datetime | None = None) -> Fact:
        """It is believed no longer."""
        return retract_fact(self._owner, fact_id, now=self.moment(now))

    def reject_fact(self, fact_id: UUID, *, now: datetime | None = None) -> Fact:
        """It is believed no longer, and never to be extracted again."""
        return reject_fact(self._owner, fact_id, now=self.moment(now))

    def promote_to_global(self, fact_id: UUID, reason: str, *, now: datetime | None = None) -> Fact:
        """A copy of the fact in the channel `_global`."""
        # its claim was embedded before: the copy takes the vector from the cache, or waits for one
        return promote_fact(self._owner, fact_id, reason=reason, embedded=embed_texts([]), now=self.moment(now))

    def consolidate(self, conversation_id: str, *, now: datetime | None = None) -> Conversation:
        """Queue the turns that nobody looked through yet for extraction. Raises NotFound."""
        return request_extraction(self._owner, conversation_id, now=self.moment(now))

    def record_invocation(self, draft: InvocationDraft, *, now: datetime | None = None) -> ToolInvocation:
        """A use of a tool in a conversation, which is made where it is new."""
        return record_invocation(self._owner, draft, now=self.moment(now))

    def get_tool_stats(
        self, task_type: str = "", channel: str = "", *, since: datetime | None = None, now: datetime | None = None
    ) -> list[ToolStats]:
        """Counts, success and latency, tool by tool."""
        return get_tool_stats(self._owner, task_type=task_type, channel=channel, since=since, now=self.moment(now))

    def learn_strategy(self, draft: StrategyDraft, *, now: datetime | None = None) -> Strategy:
        """A way of doing something, or one more use of one that is known."""
        embedded = embed_texts([] if draft.own else [draft.text])
        return learn_strategy(self._owner, draft, embedded=embedded, now=self.moment(now))

    def find_strategies(
        self, task_description: str, *, top_k: int = 5, task_type: str = "", now: datetime | None = None
    ) -> StrategiesFound:
        """Those that are near to the task and often succeed."""
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
        """What work produces or goes by, revision by revision."""
        return AgentArtifacts(self._owner, self.moment)

    @property
    def work_episodes(self) -> AgentWorkEpisodes:
        """What structured turns of one goal came to, once they are merged."""
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
        """The greater the priority, the more it matters."""
        return self.goals.add_goal(
            description, priority=priority, deadline=deadline, parent_id=parent_id, blocked_by=blocked_by, now=now
        )

    def get_goal(self, goal_id: UUID, *, now: datetime | None = None) -> GoalView:
        """With its parent, children and blockers. Raises NotFound."""
        return self.goals.get_goal(goal_id, now=now)

    def complete_goal(
        self, goal_id: UUID, status: str = "completed", result: str = "", *, now: datetime | None = None
    ) -> Completed:
        """`completed` or `abandoned`; what waited for it alone is unblocked."""
        return self.goals.complete_goal(goal_id, status=status, result=result, now=now)

    def task(self, description: str, *, conversation_id: str = "") -> AbstractContextManager[Task]:
        """A goal for as long as something runs: completed at its end, abandoned on an exception."""
        return self.goals.task(description, conversation_id=conversation_id)

    def get_profile(self, user_id: str = "") -> UserProfile:
        """Of the user whom this memory is for, or of another. Raises NotFound."""
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
        """New values by name, None deletes one; made where there is none."""
        changes = ProfileChanges(
            preferences=preferences,
            expertise_areas=expertise_areas,
            communication_style=communication_style,
            metadata=metadata,
        )
        return update_profile(self._owner, user_id or self._owner.user_id, changes, now=self.moment(now))

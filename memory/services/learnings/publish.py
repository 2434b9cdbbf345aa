"""Learnings (P10): insights that agents publish to their teams, voted on by those who used them, found by meaning.

Every write locks the team's context first, then the learning, as writes of entries do: votes count one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from memory.audit import record
from memory.errors import Forbidden, NotFound, Unprocessable
from memory.models import Kind, Learning, LearningVote, Memory, PersistentContext
from memory.models.contexts import TEAM_CONTEXT
from memory.owner import Owner
from memory.retrieval.learnings import LearningsFound, search_learnings
from memory.retrieval.search import Found
from memory.scoring import wilson_lower_bound
from memory.services.contexts.manage import lock_context, team_context
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import OwnVector, store_memories
from memory.services.recall.search import make_query, record_search
from memory_project.ids import uuid7


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningDraft:
    """An insight before it is published. `own` is a vector that the client brought."""

    team_id: UUID
    insight: str
    event_time: datetime | None = None
    source: str = "agent"
    metadata: dict[str, Any] = field(default_factory=dict)
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)


def publish_learning(owner: Owner, draft: LearningDraft, *, embedded: Embedded, now: datetime) -> Learning:
    """Share an insight with a team that the acting agent is in; the account may publish to any.

    Embed it first (`embed_texts`), outside transactions. Raises Unprocessable for another team, Conflict where the
    team's shared context is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, team_context(owner, draft.team_id, now=now).id)
        learning = Learning(
            id=draft.id,
            kind=Kind.LEARNING,
            context=context,
            text=draft.insight,
            event_time=draft.event_time or now,
            source=draft.source,
            metadata=draft.metadata,
        )
        own = {draft.id: draft.own} if draft.own is not None else {}
        store_memories(owner, [learning], embedded=embedded, own=own, now=now)
    return learning


def visible_learnings(owner: Owner, *, now: datetime) -> QuerySet[Learning]:
    """Those of the teams that the acting agent is in, with their contexts."""
    rows = Learning.objects.visible_to(owner, Kind.LEARNING).live(now)
    found: QuerySet[Learning] = rows.select_related("context")  # type: ignore[assignment]
    return found


def find_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> Learning:
    """Raises NotFound."""
    learning = visible_learnings(owner, now=now).filter(id=learning_id).first()
    if learning is None:
        raise NotFound("no such learning")
    return learning


def lock_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> Learning:
    """The team's context, then the learning, until the transaction ends.

    Raises NotFound, Forbidden where it may only be read, Conflict where the context is archived.
    """
    found = find_learning(owner, learning_id, now=now)
    context = lock_context(owner, context_id_of(found))
    rows: Any = visible_learnings(owner, now=now).filter(id=learning_id).select_related(None)
    # memories before what their kinds hold, as everybody locks them
    learning: Learning | None = rows.select_for_update(of=("memory_ptr", "self")).first()
    if learning is None:
        raise NotFound("no such learning")
    learning.context = context
    return learning


def context_id_of(learning: Learning) -> UUID:
    """Learnings have contexts: the database sees to it."""
    return learning.context_id  # type: ignore[return-value]


def vote_on_learning(owner: Owner, learning_id: UUID, *, helpful: bool, now: datetime) -> Learning:
    """Say whether it helped the acting agent; its earlier vote is replaced. Comes back with counts and score.

    Raises NotFound, Forbidden and Conflict as `lock_learning` does; Unprocessable without an agent, and for an insight
    of its own.
    """
    if not owner.agent_id:
        raise Unprocessable("a vote is an agent's: name one")
    with transaction.atomic():
        learning = lock_learning(owner, learning_id, now=now)
        if learning.agent_id == owner.agent_id:
            raise Unprocessable("an agent does not vote on its own insight")
        put_vote(owner, learning, helpful=helpful, now=now)
        count_votes(learning)
        record(owner, operation="vote", memory_type="semantic", affected_ids=[learning.id])
    return learning


def put_vote(owner: Owner, learning: Learning, *, helpful: bool, now: datetime) -> None:
    vote = LearningVote(
        account_id=learning.account_id,
        learning_id=learning.id,
        agent_id=owner.agent_id,
        helpful=helpful,
        created_at=now,
        updated_at=now,
    )
    LearningVote.objects.bulk_create(
        [vote],
        update_conflicts=True,
        unique_fields=["account", "learning", "agent_id"],
        update_fields=["helpful", "updated_at"],
    )


def count_votes(learning: Learning) -> None:
    """Bring the counts and the score of a locked learning up to its votes."""
    votes = LearningVote.objects.filter(account_id=learning.account_id, learning_id=learning.id)
    counted = votes.aggregate(helpful=Count("id", filter=Q(helpful=True)), total=Count("id"))
    learning.helpful_count = counted["helpful"]
    learning.unhelpful_count = counted["total"] - counted["helpful"]
    learning.score = wilson_lower_bound(counted["helpful"], counted["total"])
    columns = {name: getattr(learning, name) for name in ("helpful_count", "unhelpful_count", "score")}
    rows: Any = Learning.objects.filter(pk=learning.id)
    rows.update(**columns)


def remove_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> None:
    """Take it out of reads and searches; its votes stay. For who published it, and for the account.

    Raises NotFound, Forbidden, Conflict where the team's context is archived.
    """
    with transaction.atomic():
        learning = lock_learning(owner, learning_id, now=now)
        if owner.agent_id not in ("", learning.agent_id):
            raise Forbidden("who published a learning removes it, or the account")
        Memory.objects.filter(id=learning.id).update(archived=True, version=learning.version + 1, updated_at=now)
        record(owner, operation="archive", memory_type="semantic", affected_ids=[learning.id])


def find_learnings(
    owner: Owner, *, text: str, top_k: int, own: OwnVector | None, team_id: UUID | None = None, now: datetime
) -> LearningsFound:
    """The learnings nearest to `text`, or to the client's own vector, of one team or of all that the agent is in.

    A team that it is not in has none. Says when meaning could not be had.
    """
    contexts = () if team_id is None else contexts_of_team(owner, team_id)
    if team_id is not None and not contexts:
        return Found(hits=[], degraded=[])
    query = replace(make_query(text, top_k=top_k, own=own), contexts=contexts)
    found = search_learnings(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k, memory_type="semantic")
    return found


def contexts_of_team(owner: Owner, team_id: UUID) -> Sequence[UUID]:
    """Where the team's learnings are: one, or none while it has no learning (or is not the agent's)."""
    shared = PersistentContext.objects.visible_to(owner).filter(team_id=team_id, agent_id="", name=TEAM_CONTEXT)
    return tuple(shared.values_list("id", flat=True))


def delete_vote(owner: Owner, vote_id: UUID) -> None:
    """Also on a learning that was removed. Raises NotFound."""
    with transaction.atomic():
        votes = LearningVote.objects.filter(account_id=owner.account_id, id=vote_id)
        rows: Any = Learning.objects.filter(account_id=owner.account_id, pk__in=votes.values("learning_id"))
        # as who votes does: counts are kept one by one
        learning = rows.select_for_update(of=("self", "memory_ptr")).first()
        if learning is None or not votes.delete()[0]:
            raise NotFound("no such vote")
        count_votes(learning)
        record(owner, operation="delete_vote", memory_type="semantic", affected_ids=[learning.id, vote_id])

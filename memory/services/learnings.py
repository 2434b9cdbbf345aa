"""Learnings (P10): insights that agents publish to their teams, and the votes on them.

`publish_learning`, `vote_on_learning`, `remove_learning` and, for staff, `delete_vote` write, and `move_votes` in a
merge; `visible_learnings`, `find_learning` and `find_learnings` read. Every write locks the team's context first, then
the learning (`lock_learning`), as writes of entries do, so that votes are counted (`count_votes`) one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from memory.audit import record_audit
from memory.errors import Forbidden, NotFound, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Kind, Learning, LearningVote, PersistentContext
from memory.models.contexts import TEAM_CONTEXT
from memory.owner import Owner
from memory.retrieval.search import LearningResults, SearchResults, search_learnings
from memory.scoring import wilson_lower_bound
from memory.services.audit import write_waiting_reads
from memory.services.contexts.manage import ensure_team_context, lock_context
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector, MemoryDraft, own_vectors, store_memories
from memory.services.recall.recall import embed_search_query, record_search


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningDraft(MemoryDraft):
    """An insight before it is published."""

    team_id: UUID
    insight: str


@masks_secrets
def publish_learning(owner: Owner, draft: LearningDraft, *, embedded: EmbeddedTexts, now: datetime) -> Learning:
    """Share an insight with a team of the acting agent; the account may publish to any team.

    Embed it first (`embed_texts`), outside transactions. Raises Unprocessable for another team, Conflict where the
    team's shared context is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, ensure_team_context(owner, draft.team_id, now=now).id)
        learning = Learning(kind=Kind.LEARNING, context=context, text=draft.insight, **draft.shared_columns(now=now))
        store_memories(owner, [learning], embedded=embedded, own=own_vectors([draft]), now=now)
    return learning


def visible_learnings(owner: Owner, *, now: datetime) -> QuerySet[Learning]:
    """Return the learnings of the acting agent's teams, with their contexts."""
    return Learning.objects.visible_to(owner, Kind.LEARNING).live(now).select_related("context")


def find_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> Learning:
    return require_found(visible_learnings(owner, now=now).filter(id=learning_id).first(), "learning")


def lock_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> Learning:
    """Lock the team's context, then the learning, until the transaction ends.

    Raises NotFound, Forbidden where it may only be read, Conflict where the context is archived.
    """
    found = find_learning(owner, learning_id, now=now)
    context = lock_context(owner, found.context_id)  # type: ignore[arg-type]  # a constraint: learnings have one
    rows = visible_learnings(owner, now=now).filter(id=learning_id).select_related(None)
    learning = require_found(rows.select_for_update().first(), "learning")
    learning.context = context
    return learning


def vote_on_learning(owner: Owner, learning_id: UUID, *, helpful: bool, now: datetime) -> Learning:
    """Store whether a learning helped the acting agent, replacing its earlier vote. Returns it with counts and score.

    Raises NotFound, Forbidden and Conflict as `lock_learning` does; Unprocessable without an agent, and for the agent's
    own insight.
    """
    if not owner.agent_id:
        raise Unprocessable("only agents vote: name the voting agent")
    with transaction.atomic():
        learning = lock_learning(owner, learning_id, now=now)
        if learning.agent_id == owner.agent_id:
            raise Unprocessable("an agent cannot vote on its own insight")
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
        count_votes(learning)
        record_audit(owner, operation="vote", memory_type="semantic", affected_ids=[learning.id])
    return learning


def count_votes(learning: Learning) -> None:
    """Update counts and score of a locked learning from its votes."""
    votes = LearningVote.objects.filter(account_id=learning.account_id, learning_id=learning.id)
    counted = votes.aggregate(helpful=Count("id", filter=Q(helpful=True)), total=Count("id"))
    learning.helpful_count = counted["helpful"]
    learning.unhelpful_count = counted["total"] - counted["helpful"]
    learning.score = wilson_lower_bound(counted["helpful"], counted["total"])
    rows = Learning.objects.filter(account_id=learning.account_id, id=learning.id)
    rows.update(helpful_count=learning.helpful_count, unhelpful_count=learning.unhelpful_count, score=learning.score)


def move_votes(giver: Learning, taker: Learning, ids: Sequence[str] | None) -> list[UUID]:
    """Move the votes on a locked learning to another: all, or those with these ids. Returns the ids of moved votes.

    A vote stays if its agent has voted on the other learning as well, or published that one.
    """
    votes = LearningVote.objects.filter(account_id=giver.account_id)
    given = votes.filter(learning_id=giver.pk) if ids is None else votes.filter(learning_id=giver.pk, id__in=ids)
    voters = votes.filter(learning_id=taker.pk).values("agent_id")
    movable = given.exclude(agent_id__in=voters).exclude(agent_id=taker.agent_id)
    found = list(movable.order_by("id").values_list("id", flat=True))
    LearningVote.objects.filter(id__in=found).update(learning_id=taker.pk)
    for learning in (giver, taker):
        count_votes(learning)
    return found


def remove_learning(owner: Owner, learning_id: UUID, *, now: datetime) -> None:
    """Archive a learning for good; its votes stay. For its publisher and the account.

    Raises NotFound, Forbidden, Conflict where the team's context is archived.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        learning = lock_learning(owner, learning_id, now=now)
        if owner.agent_id not in ("", learning.agent_id):
            raise Forbidden("a learning can be removed only by the agent that published it or by the account")
        rows = Learning.objects.filter(account_id=learning.account_id, id=learning.id)
        erase_traces_of_deleted(owner, [learning.id])
        rows.update(archived=True, version=learning.version + 1, updated_at=now)
        record_audit(owner, operation="archive", memory_type="semantic", affected_ids=[learning.id])


def find_learnings(
    owner: Owner, *, text: str, top_k: int, own: ClientVector | None, team_id: UUID | None = None, now: datetime
) -> LearningResults:
    """Return the learnings nearest to `text`, or to the client's own vector, of one team or of all the agent's teams.

    Another team has none. The result says when no vector could be used.
    """
    contexts: Sequence[UUID] = ()
    if team_id is not None:
        shared = PersistentContext.objects.visible_to(owner).filter(team_id=team_id, agent_id="", name=TEAM_CONTEXT)
        contexts = tuple(shared.values_list("id", flat=True))
    if team_id is not None and not contexts:
        return SearchResults(hits=[], degraded=[])
    query = replace(embed_search_query(text, top_k=top_k, own=own), contexts=contexts)
    found = search_learnings(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k, memory_type="semantic")
    return found


def delete_vote(owner: Owner, vote_id: UUID) -> None:
    """Delete a vote, for staff, also on a removed learning. Raises NotFound."""
    with transaction.atomic():
        votes = LearningVote.objects.filter(account_id=owner.account_id, id=vote_id)
        rows = Learning.objects.filter(account_id=owner.account_id, pk__in=votes.values("learning_id"))
        # locked as for voting, since votes are counted one after the other
        learning = rows.select_for_update().first()
        if learning is None or not votes.delete()[0]:
            raise NotFound("no such vote")
        count_votes(learning)
        record_audit(owner, operation="delete_vote", memory_type="semantic", affected_ids=[learning.id, vote_id])

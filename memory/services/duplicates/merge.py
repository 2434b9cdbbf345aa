"""Merging a memory into one that says the same, and taking that back.

The one that goes is archived, DUPLICATE_OF the other, which takes over what it had: its links to and from third ones
(copies: its own stay), its reads, uses and votes (moved, so that their sum stays), the greater weights. What was given
is written down in the link's properties; so is what was there before, and a merge is undone whatever was merged or read
since. Where two who were merged into the same had given the same, the one that is left has given it from then on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Greatest, Least

from memory.audit import record
from memory.errors import Conflict, NotFound
from memory.models import (
    ContextEntry,
    Fact,
    FactVersion,
    Kind,
    Learning,
    LearningVote,
    Link,
    Memory,
    Strategy,
    StrategyUse,
)
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.manage import lock_context
from memory.services.duplicates.compare import MODELS, ranked, read_subjects, same_pairs
from memory.services.facts.beliefs import renew_beliefs
from memory.services.facts.learn import confirm_facts
from memory.services.facts.references import lock_alone
from memory.services.learnings.publish import count_votes
from memory.services.memories.links import DUPLICATE_OF, NOT_DUPLICATE_OF, NewLink, insert_links
from memory.services.memories.store import MEMORY_TYPES
from memory_project.ids import uuid7

OWN_TYPES = (DUPLICATE_OF, NOT_DUPLICATE_OF)
MOST_COUNTED = 2_147_483_647

COUNTED: Mapping[str, tuple[str, ...]] = {Kind.STRATEGY: ("success_count", "failure_count")}
"""By kind: columns of its child that are added up. Of every kind: `access_count`."""


def greater(one: Any, other: Any) -> Any:
    return max((value for value in (one, other) if value is not None), default=None)


def longer(one: datetime | None, other: datetime | None) -> datetime | None:
    """Of two times of expiry: none is never."""
    return None if one is None or other is None else max(one, other)


Unite = Callable[[Any, Any], Any]

SHARED: Mapping[str, Unite] = {"last_accessed": greater, "expires_at": longer, "pinned": greater}
OF_KIND: Mapping[str, Mapping[str, Unite]] = {
    Kind.CONTEXT_ENTRY: {"importance": greater, "confidence": greater},
    Kind.STRATEGY: {"last_used": greater},
}
"""Columns of which the one that stays has the better, and how that is found."""
SALIENCE, CONFIDENCE, VALID_FROM = "salience", "confidence", "valid_from"
TIMES = frozenset({"last_accessed", "expires_at", "last_used", VALID_FROM})


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge made: links (the one that says so among them), versions of a fact, lines of the access log."""

    survivor_id: UUID
    loser_id: UUID
    kind: str
    links: int
    versions: int
    lines: int


def merge_pair(owner: Owner, ids: tuple[UUID, UUID], *, similarity: float, now: datetime) -> Merged | None:
    """Merge two memories of one account into one, if they still are what `same_pairs` says; else None.

    In a transaction of its own, or the caller's. The owner acts for the account.
    """
    with transaction.atomic():
        if not hold_pair(owner, ids, now=now):
            return None
        subjects = read_subjects(owner.account_id, ids, now=now)
        if not same_pairs(subjects, [ids]):
            return None
        survivor, loser = (subject.row for subject in ranked(*(subjects[memory_id] for memory_id in ids)))
        return merge_rows(owner, survivor, loser, similarity=similarity, now=now)


def hold_pair(owner: Owner, ids: Sequence[UUID], *, now: datetime) -> bool:
    """Lock them, alone, and what they are linked to, behind the context that they are in. False where that is
    archived, or gone."""
    contexts = set(Memory.objects.filter(account_id=owner.account_id, id__in=ids).values_list("context_id", flat=True))
    try:
        for context_id in sorted(contexts - {None}):
            lock_context(owner, context_id)
    except (NotFound, Conflict):
        return False
    thirds = {end for link in third_links(owner.account_id, ids) for end in (link.source_id, link.target_id)}
    lock_alone(owner, ids, shared=thirds - set(ids), now=now)
    return True


def third_links(account_id: UUID, ids: Sequence[UUID]) -> list[Link]:
    """The links of these memories, first made first, but those that say who was merged into whom."""
    ends = Q(source_id__in=ids) | Q(target_id__in=ids)
    return list(Link.objects.filter(ends, account_id=account_id).exclude(type__in=OWN_TYPES).order_by("id"))


def merge_rows(owner: Owner, survivor: Any, loser: Any, *, similarity: float, now: datetime) -> Merged:
    """Of two locked rows of one kind."""
    # one that came back by another way than by `undo_merge` may have such a link still
    stale = Link.objects.filter(account_id=owner.account_id, source_id=loser.pk, type=DUPLICATE_OF).delete()[0]
    copies = copy_links(survivor, loser)
    versions = survivor.belief_number if isinstance(survivor, Fact) else 0
    properties = {
        "similarity": round(similarity, 6),
        "merged_at": now.isoformat(),
        "links": [str(link.id) for link in copies],
        **hand_over(survivor, loser),
        "raised": raise_columns(owner, survivor, loser, now=now),
    }
    merged = NewLink(
        source_id=loser.pk, type=DUPLICATE_OF, target_id=survivor.pk, weight=similarity, properties=properties
    )
    insert_links(owner.account_id, [merged])
    Memory.objects.filter(pk=survivor.pk).update(version=F("version") + 1)
    Memory.objects.filter(pk=loser.pk).update(archived=True, version=F("version") + 1, updated_at=now)
    lines = log_entry(owner, loser, action=Action.ARCHIVE, now=now)
    record_merge(owner, "deduplicate", survivor, loser)
    return Merged(
        survivor_id=survivor.pk,
        loser_id=loser.pk,
        kind=survivor.kind,
        links=len(copies) + 1 - stale,
        versions=survivor.belief_number - versions if isinstance(survivor, Fact) else 0,
        lines=lines,
    )


def log_entry(owner: Owner, row: Any, *, action: Action, now: datetime) -> int:
    """The line of an entry in its context's access log; how many lines."""
    if not isinstance(row, ContextEntry):
        return 0
    log_writes(owner, [(row.context_id, row.pk)], action=action, now=now)  # type: ignore[list-item]  # entries have one
    return 1


def record_merge(owner: Owner, operation: str, survivor: Any, loser: Any) -> None:
    memory_type = MEMORY_TYPES.get(survivor.kind, "semantic")
    record(owner, operation=operation, memory_type=memory_type, affected_ids=[survivor.pk, loser.pk])


def copy_links(survivor: Any, loser: Any) -> list[Link]:
    """Links of the survivor to the third ones that only the loser is linked to; those that were made."""
    there = {place_beside(link, survivor.pk) for link in third_links(survivor.account_id, [survivor.pk])}
    copies: dict[Any, Link] = {}
    for link in third_links(survivor.account_id, [loser.pk]):
        place = place_beside(link, loser.pk)
        is_out, type_, other = place
        if place in there or other == survivor.pk:
            continue
        ends = (survivor.pk, other) if is_out else (other, survivor.pk)
        copies[place] = Link(
            id=uuid7(),
            account_id=link.account_id,
            source_id=ends[0],
            target_id=ends[1],
            type=type_,
            weight=link.weight,
            properties=link.properties,
        )
    return Link.objects.bulk_create(copies.values())


def place_beside(link: Link, memory_id: UUID) -> tuple[bool, str, UUID]:
    """A link as seen from one of its ends: whether it leads away, its type, and the other end."""
    is_out = link.source_id == memory_id
    return is_out, link.type, link.target_id if is_out else link.source_id


def hand_over(survivor: Any, loser: Any) -> dict[str, Any]:
    """Move what is counted, and what it counts."""
    moved = {name: getattr(loser, name) for name in ("access_count", *COUNTED.get(loser.kind, ()))}
    move_counts(loser, survivor, moved)
    uses, votes = move_uses(loser, survivor), move_votes(loser, survivor)
    return {"moved": moved, "uses": [str(use) for use in uses], "votes": [str(vote) for vote in votes]}


def move_counts(giver: Any, taker: Any, counts: Mapping[str, int]) -> None:
    """Counts end at the largest number that a column holds, and at none."""
    for names, model in ((("access_count",), Memory), (COUNTED.get(giver.kind, ()), MODELS[giver.kind])):
        rows: Any = model._default_manager
        if not names:
            continue
        given = {name: Greatest(F(name) - counts[name], Value(0)) for name in names}
        taken = {name: Least(F(name) + counts[name], Value(MOST_COUNTED)) for name in names}
        rows.filter(pk=giver.pk).update(**given)
        rows.filter(pk=taker.pk).update(**taken)


def move_uses(giver: Any, taker: Any, ids: Sequence[str] | None = None) -> list[UUID]:
    """Of a strategy: all of them, or these."""
    if not isinstance(giver, Strategy):
        return []
    uses = StrategyUse.objects.filter(account_id=giver.account_id, strategy_id=giver.pk)
    found = list((uses if ids is None else uses.filter(id__in=ids)).order_by("id").values_list("id", flat=True))
    StrategyUse.objects.filter(id__in=found).update(strategy_id=taker.pk)
    return found


def move_votes(giver: Any, taker: Any, ids: Sequence[str] | None = None) -> list[UUID]:
    """Of a learning: all of them, or these. Who has voted on both has said what it says of the other one; nobody votes
    on its own insight."""
    if not isinstance(giver, Learning):
        return []
    votes = LearningVote.objects.filter(account_id=giver.account_id)
    given = votes.filter(learning_id=giver.pk) if ids is None else votes.filter(learning_id=giver.pk, id__in=ids)
    there = votes.filter(learning_id=taker.pk).values("agent_id")
    movable = given.exclude(agent_id__in=there).exclude(agent_id=taker.agent_id)
    found = list(movable.order_by("id").values_list("id", flat=True))
    LearningVote.objects.filter(id__in=found).update(learning_id=taker.pk)
    for learning in (giver, taker):
        count_votes(learning)
    return found


def raise_columns(owner: Owner, survivor: Any, loser: Any, *, now: datetime) -> dict[str, list[Any]]:
    """Give the survivor the better of both; by column, what it had and what it has now, where that is another."""
    raised: dict[str, list[Any]] = {}
    for columns, model in ((SHARED, Memory), (OF_KIND.get(survivor.kind, {}), MODELS[survivor.kind])):
        united = {name: unite(getattr(survivor, name), getattr(loser, name)) for name, unite in columns.items()}
        better = {name: value for name, value in united.items() if value != getattr(survivor, name)}
        raised |= {name: [told(getattr(survivor, name)), told(value)] for name, value in better.items()}
        rows: Any = model._default_manager.filter(pk=survivor.pk)
        if better:
            rows.update(**better)
    raised |= raise_salience(survivor, loser)
    return raised | (raise_belief(owner, survivor, loser, now=now) if isinstance(survivor, Fact) else {})


def raise_salience(survivor: Any, loser: Any) -> dict[str, list[Any]]:
    """By what they were before they faded; it comes with how far it has."""
    was, made = survivor.unfaded_salience, loser.unfaded_salience
    if made <= was:
        return {}
    faded = {name: getattr(loser, name) for name in (SALIENCE, "base_salience", "faded_salience")}
    Memory.objects.filter(pk=survivor.pk).update(**faded)
    return {SALIENCE: [was, made]}


def raise_belief(owner: Owner, survivor: Fact, loser: Fact, *, now: datetime) -> dict[str, list[Any]]:
    """The survivor is confirmed, as if the loser had been told again."""
    was = believed(survivor)
    survivor.confidence, loser.confidence = survivor.unfaded_confidence, loser.unfaded_confidence
    number = survivor.belief_number
    confirm_facts(owner, [(survivor, loser)], now=now)
    if survivor.belief_number == number:
        return {}
    made = believed(survivor)
    return {name: [was[name], made[name]] for name in was if was[name] != made[name]}


def believed(fact: Fact) -> dict[str, Any]:
    return {CONFIDENCE: fact.unfaded_confidence, VALID_FROM: told(fact.valid_from)}


def told(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def read(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in TIMES and value is not None else value


def undo_merge(owner: Owner, memory_id: UUID, *, now: datetime) -> Memory:
    """Bring back a memory that was merged into another, with its counts, and take what it gave from that one again.

    What came since stays where it is. The two are not merged again. Answers the one that is back. Raises NotFound for
    one that was merged into none, Conflict where the other one was merged itself since (undo that first), or its
    context is archived.
    """
    with transaction.atomic():
        link = find_merge(owner, memory_id)
        hold_for_undo(owner, link, now=now)
        link = find_merge(owner, memory_id)
        model: Any = MODELS[Memory.objects.values_list("kind", flat=True).get(pk=memory_id)]
        survivor, loser = (model.objects.get(pk=pk) for pk in (link.target_id, link.source_id))
        others = merges_into(survivor)
        take_links_back(survivor, link, others)
        lower_columns(owner, survivor, link, others, now=now)
        take_counts_back(survivor, loser, link.properties)
        Link.objects.bulk_update([each for each in others if each.pk != link.pk], ["properties"])
        link.delete()
        apart = NewLink(source_id=loser.pk, type=NOT_DUPLICATE_OF, target_id=survivor.pk, weight=0.0)
        insert_links(owner.account_id, [apart])
        Memory.objects.filter(pk=survivor.pk).update(version=F("version") + 1)
        Memory.objects.filter(pk=loser.pk).update(archived=False, version=F("version") + 1, updated_at=now)
        log_entry(owner, loser, action=Action.RESTORE, now=now)
        record_merge(owner, "undo_deduplicate", survivor, loser)
    loser.refresh_from_db()
    return loser  # type: ignore[no-any-return]


def find_merge(owner: Owner, memory_id: UUID) -> Link:
    """The link that says so. Raises NotFound, Conflict."""
    links = Link.objects.filter(account_id=owner.account_id, type=DUPLICATE_OF)
    is_seen = Memory.objects.visible_to(owner).filter(id=memory_id).exists()
    link = links.filter(source_id=memory_id).order_by("-id").first() if is_seen else None
    if link is None:
        raise NotFound("this memory was merged into no other")
    if links.filter(source_id=link.target_id, source__archived=True).exists():
        raise Conflict("the one that it was merged into was merged itself since: undo that first")
    return link


def hold_for_undo(owner: Owner, link: Link, *, now: datetime) -> None:
    """Lock both, behind their context. Raises NotFound, Forbidden, Conflict for that."""
    context_id = Memory.objects.values_list("context_id", flat=True).get(pk=link.source_id)
    if context_id is not None:
        lock_context(owner, context_id)
    lock_alone(owner, [link.source_id, link.target_id], now=now)


def merges_into(survivor: Any) -> list[Link]:
    """First made first."""
    links = Link.objects.filter(account_id=survivor.account_id, target_id=survivor.pk, type=DUPLICATE_OF)
    return list(links.order_by("id"))


def take_links_back(survivor: Any, link: Link, others: Sequence[Link]) -> None:
    """Delete the copies that were made for this one, unless another one that was merged has such a link, too."""
    made = set(link.properties.get("links", ()))
    rest = [each for each in others if each.pk != link.pk]
    told_by = {
        place_beside(theirs, each.source_id): each
        for each in rest
        for theirs in third_links(survivor.account_id, [each.source_id])
    }
    for copy in Link.objects.filter(account_id=survivor.account_id, id__in=made):
        other = told_by.get(place_beside(copy, survivor.pk))
        if other is None:
            copy.delete()
        else:
            other.properties.setdefault("links", []).append(str(copy.id))


def lower_columns(owner: Owner, survivor: Any, link: Link, others: Sequence[Link], *, now: datetime) -> None:
    """Give columns that were raised their former value, unless they were changed since; a later merge that raised one
    further has raised it from there."""
    lowered: dict[str, Any] = {}
    for name, (was, made) in link.properties.get("raised", {}).items():
        later = next((each for each in others if starts_from(each, name, made) and each.pk != link.pk), None)
        if later is not None:
            later.properties["raised"][name][0] = was
        elif current(survivor, name) == made:
            lowered[name] = read(name, was)
    store_lowered(owner, survivor, lowered, now=now)


def starts_from(link: Link, name: str, value: Any) -> bool:
    raised = link.properties.get("raised", {}).get(name)
    return raised is not None and raised[0] == value


def current(row: Any, name: str) -> Any:
    is_fading = name == SALIENCE or (name == CONFIDENCE and isinstance(row, Fact))
    return getattr(row, f"unfaded_{name}") if is_fading else told(getattr(row, name))


def store_lowered(owner: Owner, survivor: Any, lowered: Mapping[str, Any], *, now: datetime) -> None:
    # one that nobody believes any more is not believed anew
    of_belief = {CONFIDENCE, VALID_FROM} if isinstance(survivor, Fact) and survivor.retracted_at is None else set()
    if beliefs := {name: value for name, value in lowered.items() if name in of_belief}:
        survivor.confidence = survivor.unfaded_confidence
        for name, value in beliefs.items():
            setattr(survivor, name, value)
        renew_beliefs(owner, [survivor], reason=FactVersion.Reason.CORRECTED, now=now)
    shared = {name: value for name, value in lowered.items() if name in (*SHARED, SALIENCE)}
    if shared:
        Memory.objects.filter(pk=survivor.pk).update(**shared)
    own = {name: value for name, value in lowered.items() if name in OF_KIND.get(survivor.kind, {})}
    if own:
        rows: Any = type(survivor)._default_manager.filter(pk=survivor.pk)
        rows.update(**own)


def take_counts_back(survivor: Any, loser: Any, properties: Mapping[str, Any]) -> None:
    """As many as were given, of those that are there still."""
    here = {name: getattr(survivor, name) for name in properties.get("moved", {})}
    counts = {name: min(count, here[name]) for name, count in properties.get("moved", {}).items()}
    if counts:
        move_counts(survivor, loser, counts)
    move_uses(survivor, loser, properties.get("uses", ()))
    move_votes(survivor, loser, properties.get("votes", ()))

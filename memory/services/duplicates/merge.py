"""Merging a memory into one that says the same, and undoing that.

The loser is archived and linked DUPLICATE_OF to the survivor, which takes over what it had: links with third memories
(as copies, the loser keeps its own), reads, uses and votes (moved, so that their sum stays), and the greater weights.
The link's properties note what was given and what was there before, so that a merge can be undone whatever was merged
or read since. Where two losers gave a survivor the same, the one that stays merged counts as its giver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Greatest, Least
from django.utils.module_loading import import_string

from memory.audit import record_audit
from memory.errors import Conflict, NotFound, require_found
from memory.kinds import all_kinds, spec_of
from memory.models import Fact, FactVersion, Link, Memory, MemoryRow
from memory.models.memory import model_of
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.manage import lock_context
from memory.services.duplicates.compare import filter_duplicate_pairs, merging_of, rank_pair, read_merge_candidates
from memory.services.facts.learn import confirm_facts
from memory.services.facts.store import lock_for_change, revise_beliefs
from memory.services.memories.links import DUPLICATE_OF, NOT_DUPLICATE_OF, NewLink, insert_links
from memory_project.ids import uuid7

OWN_TYPES = (DUPLICATE_OF, NOT_DUPLICATE_OF)
MAX_COUNT = 2_147_483_647


def greater_value(one: Any, other: Any) -> Any:
    return max((value for value in (one, other) if value is not None), default=None)


def later_expiry(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two times of expiry, where None is never."""
    return None if one is None or other is None else max(one, other)


COMBINED_COLUMNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "last_accessed": greater_value,
    "expires_at": later_expiry,
    "pinned": greater_value,
}
"""Columns of every kind of which the survivor gets the better value, and the function that finds it."""
SALIENCE, CONFIDENCE, VALID_FROM = "salience", "confidence", "valid_from"
TIMES = frozenset({"last_accessed", "expires_at", "last_used", VALID_FROM})


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """Numbers of rows that a merge created: links, DUPLICATE_OF included, versions of a fact, access log lines."""

    survivor_id: UUID
    loser_id: UUID
    kind: str
    links: int
    versions: int
    lines: int


def merge_pair(owner: Owner, ids: tuple[UUID, UUID], *, similarity: float, now: datetime) -> MergeResult | None:
    """Merge two memories of one account if `filter_duplicate_pairs` still accepts them; else return None.

    Runs in a transaction of its own, or the caller's. The owner acts for the account.
    """
    with transaction.atomic():
        if not lock_pair(owner, ids, now=now):
            return None
        candidates = read_merge_candidates(owner.account_id, ids, now=now)
        if not filter_duplicate_pairs(candidates, [ids]):
            return None
        survivor, loser = (each.row for each in rank_pair(*(candidates[memory_id] for memory_id in ids)))
        return merge_rows(owner, survivor, loser, similarity=similarity, now=now)


def lock_pair(owner: Owner, ids: Sequence[UUID], *, now: datetime) -> bool:
    """Lock two memories alone, and what they are linked to, after their context. False if that is archived or gone."""
    contexts = set(Memory.objects.filter(account_id=owner.account_id, id__in=ids).values_list("context_id", flat=True))
    try:
        for context_id in sorted(contexts - {None}):
            lock_context(owner, context_id)
    except (NotFound, Conflict):
        return False
    thirds = {end for link in read_other_links(owner.account_id, ids) for end in (link.source_id, link.target_id)}
    lock_for_change(owner, ids, shared=thirds - set(ids), now=now)
    return True


def read_other_links(account_id: UUID, ids: Sequence[UUID]) -> list[Link]:
    """Return the links of these memories, oldest first, except those between losers and survivors."""
    ends = Q(source_id__in=ids) | Q(target_id__in=ids)
    return list(Link.objects.filter(ends, account_id=account_id).exclude(type__in=OWN_TYPES).order_by("id"))


def merge_rows(owner: Owner, survivor: Any, loser: Any, *, similarity: float, now: datetime) -> MergeResult:
    """Merge two locked rows of one kind."""
    # a loser that was restored without `undo_merge` may still have such a link
    stale = Link.objects.filter(account_id=owner.account_id, source_id=loser.pk, type=DUPLICATE_OF).delete()[0]
    copies = copy_links(survivor, loser)
    spec = spec_of(survivor.kind)
    versions = survivor.belief_number if spec.has_beliefs else 0
    moved = {name: getattr(loser, name) for name in ("access_count", *merging_of(survivor.kind).sums)}
    move_counts(loser, survivor, moved)
    properties = {
        "similarity": round(similarity, 6),
        "merged_at": now.isoformat(),
        "links": [str(link.id) for link in copies],
        "moved": moved,
        **move_rows(loser, survivor),
        "raised": raise_columns(owner, survivor, loser, now=now),
    }
    merged = NewLink(
        source_id=loser.pk, type=DUPLICATE_OF, target_id=survivor.pk, weight=similarity, properties=properties
    )
    insert_links(owner.account_id, [merged])
    row_of(survivor).update(version=F("version") + 1)
    row_of(loser).update(archived=True, version=F("version") + 1, updated_at=now)
    record_merge(owner, "deduplicate", survivor, loser, action=Action.ARCHIVE, now=now)
    return MergeResult(
        survivor_id=survivor.pk,
        loser_id=loser.pk,
        kind=survivor.kind,
        links=len(copies) + 1 - stale,
        versions=survivor.belief_number - versions if spec.has_beliefs else 0,
        lines=int(spec.has_access_log),
    )


def record_merge(owner: Owner, operation: str, survivor: Any, loser: Any, *, action: Action, now: datetime) -> None:
    """Record a merge or its undoing in the audit log, and that of an entry in its context's access log as well."""
    spec = spec_of(survivor.kind)
    if spec.has_access_log:
        log_writes(owner, [(loser.context_id, loser.pk)], action=action, now=now)
    record_audit(owner, operation=operation, memory_type=spec.memory_type, affected_ids=[survivor.pk, loser.pk])


def copy_links(survivor: Any, loser: Any) -> list[Link]:
    """Copy the loser's links with third memories that the survivor lacks to the survivor. Returns the copies."""
    present = {link_seen_from(link, survivor.pk) for link in read_other_links(survivor.account_id, [survivor.pk])}
    copies: dict[Any, Link] = {}
    for link in read_other_links(survivor.account_id, [loser.pk]):
        key = link_seen_from(link, loser.pk)
        is_out, type_, other = key
        if key in present or other == survivor.pk:
            continue
        ends = (survivor.pk, other) if is_out else (other, survivor.pk)
        copies[key] = Link(
            id=uuid7(),
            account_id=link.account_id,
            source_id=ends[0],
            target_id=ends[1],
            type=type_,
            weight=link.weight,
            properties=link.properties,
        )
    return Link.objects.bulk_create(copies.values())


def link_seen_from(link: Link, memory_id: UUID) -> tuple[bool, str, UUID]:
    """Return a link as seen from one of its ends: whether it leads away, its type, and the other end."""
    is_out = link.source_id == memory_id
    return is_out, link.type, link.target_id if is_out else link.source_id


def row_of(memory: MemoryRow) -> QuerySet[MemoryRow]:
    """Return the row of a memory, for updates of columns that its kind has."""
    return type(memory).objects.filter(account_id=memory.account_id, pk=memory.pk)


def move_counts(giver: Any, taker: Any, counts: Mapping[str, int]) -> None:
    """Move counts, limited to the range of their columns: 0 to MAX_COUNT."""
    names = ("access_count", *merging_of(giver.kind).sums)
    row_of(giver).update(**{name: Greatest(F(name) - counts[name], Value(0)) for name in names})
    row_of(taker).update(**{name: Least(F(name) + counts[name], Value(MAX_COUNT)) for name in names})


def move_rows(giver: Any, taker: Any, noted: Mapping[str, Any] | None = None) -> dict[str, list[str]]:
    """Move the rows that count for a memory, as its kind declares: all, or those that a merge noted.

    Returns the ids of those that moved by name, with no ids for the names of other kinds.
    """
    moved: dict[str, list[str]] = {}
    for kind in all_kinds():
        for name, path in merging_of(kind).moves.items():
            ids = None if noted is None else noted.get(name, ())
            moved[name] = [str(each) for each in import_string(path)(giver, taker, ids)] if kind == giver.kind else []
    return moved


def raise_columns(owner: Owner, survivor: Any, loser: Any, *, now: datetime) -> dict[str, list[Any]]:
    """Give the survivor the better value of each column. Returns the former and the new value of changed columns."""
    columns = {**COMBINED_COLUMNS, **dict.fromkeys(merging_of(survivor.kind).maxima, greater_value)}
    best = {name: combine(getattr(survivor, name), getattr(loser, name)) for name, combine in columns.items()}
    better = {name: value for name, value in best.items() if value != getattr(survivor, name)}
    raised = {
        name: [serialize_column(getattr(survivor, name)), serialize_column(value)] for name, value in better.items()
    }
    # the salience that was greater before fading, together with how far that one has faded
    if loser.unfaded_salience > survivor.unfaded_salience:
        raised[SALIENCE] = [survivor.unfaded_salience, loser.unfaded_salience]
        better |= {name: getattr(loser, name) for name in (SALIENCE, "base_salience", "faded_salience")}
    if better:
        row_of(survivor).update(**better)
    has_beliefs = spec_of(survivor.kind).has_beliefs
    return raised | (confirm_survivor(owner, survivor, loser, now=now) if has_beliefs else {})


def confirm_survivor(owner: Owner, survivor: Fact, loser: Fact, *, now: datetime) -> dict[str, list[Any]]:
    """Confirm the survivor as if the loser had been learned again."""
    was = belief_values(survivor)
    survivor.confidence, loser.confidence = survivor.unfaded_confidence, loser.unfaded_confidence
    number = survivor.belief_number
    confirm_facts(owner, [(survivor, loser)], now=now)
    if survivor.belief_number == number:
        return {}
    made = belief_values(survivor)
    return {name: [was[name], made[name]] for name in was if was[name] != made[name]}


def belief_values(fact: Fact) -> dict[str, Any]:
    return {CONFIDENCE: fact.unfaded_confidence, VALID_FROM: serialize_column(fact.valid_from)}


def serialize_column(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def undo_merge(owner: Owner, memory_id: UUID, *, now: datetime) -> MemoryRow:
    """Restore a memory that was merged into another, with its counts, and remove from that one what it gave.

    What was added since stays where it is. The two are not merged again. Returns the restored memory. Raises NotFound
    for one that was not merged, Conflict where the survivor was merged itself since (undo that first), or its context
    is archived.
    """
    with transaction.atomic():
        link = find_merge(owner, memory_id)
        rows = Memory.objects.filter(account_id=owner.account_id)
        context_id, kind = rows.values_list("context_id", "kind").get(pk=link.source_id)
        if context_id is not None:
            lock_context(owner, context_id)
        lock_for_change(owner, [link.source_id, link.target_id], now=now)
        link = find_merge(owner, memory_id)
        both = model_of(kind).objects.filter(account_id=owner.account_id).in_bulk([link.target_id, link.source_id])
        survivor, loser = both[link.target_id], both[link.source_id]
        merges = Link.objects.filter(account_id=owner.account_id, target_id=survivor.pk, type=DUPLICATE_OF)
        others = list(merges.exclude(pk=link.pk).order_by("id"))
        remove_copied_links(survivor, link, others)
        restore_columns(owner, survivor, link, others, now=now)
        move_usage_back(survivor, loser, link.properties)
        merges.bulk_update(others, ["properties"])
        link.delete()
        apart = NewLink(source_id=loser.pk, type=NOT_DUPLICATE_OF, target_id=survivor.pk, weight=0.0)
        insert_links(owner.account_id, [apart])
        row_of(survivor).update(version=F("version") + 1)
        row_of(loser).update(archived=False, version=F("version") + 1, updated_at=now)
        record_merge(owner, "undo_deduplicate", survivor, loser, action=Action.RESTORE, now=now)
    loser.refresh_from_db()
    return loser


def confirm_merge(owner: Owner, memory_id: UUID, *, now: datetime) -> None:
    """Record on the link of a merged memory that somebody has confirmed the merge. Raises NotFound and Conflict."""
    with transaction.atomic():
        link = find_merge(owner, memory_id)
        links = Link.objects.filter(account_id=owner.account_id, pk=link.pk)
        properties = require_found(links.select_for_update().first(), "merge").properties
        links.update(properties=properties | {"confirmed_by": owner.actor, "confirmed_at": now.isoformat()})
        ids = [link.source_id, link.target_id]
        record_audit(owner, operation="confirm_merge", memory_type="link", affected_ids=ids)


def find_merge(owner: Owner, memory_id: UUID) -> Link:
    """Return the DUPLICATE_OF link of a merged memory. Raises NotFound, Conflict."""
    links = Link.objects.filter(account_id=owner.account_id, type=DUPLICATE_OF)
    is_seen = Memory.objects.visible_to(owner).filter(id=memory_id).exists()
    link = links.filter(source_id=memory_id).order_by("-id").first() if is_seen else None
    if link is None:
        raise NotFound("this memory was not merged into another one")
    rows = Memory.objects.filter(account_id=owner.account_id, id=link.target_id, archived=True)
    if links.filter(source_id__in=rows.values("id")).exists():
        raise Conflict("the memory that it was merged into was merged itself since: undo that merge first")
    return link


def remove_copied_links(survivor: Any, link: Link, others: Sequence[Link]) -> None:
    """Delete the links that were copied for this merge, except those that another merged memory has as well.

    Such a link is noted on the other merge from then on.
    """
    other_givers = {
        link_seen_from(theirs, each.source_id): each
        for each in others
        for theirs in read_other_links(survivor.account_id, [each.source_id])
    }
    copied = set(link.properties.get("links", ()))
    for copy in Link.objects.filter(account_id=survivor.account_id, id__in=copied):
        other = other_givers.get(link_seen_from(copy, survivor.pk))
        if other is None:
            copy.delete()
        else:
            other.properties.setdefault("links", []).append(str(copy.id))


def restore_columns(owner: Owner, survivor: Any, link: Link, others: Sequence[Link], *, now: datetime) -> None:
    """Give raised columns their former values, unless they changed since.

    Where a later merge raised a column further, that one is noted as having raised it from the former value.
    """
    restored: dict[str, Any] = {}
    for name, (was, made) in link.properties.get("raised", {}).items():
        notes = (each.properties.get("raised", {}).get(name) for each in others)
        later = next((note for note in notes if note is not None and note[0] == made), None)
        is_fading = name == SALIENCE or (name == CONFIDENCE and spec_of(survivor.kind).has_beliefs)
        value = getattr(survivor, f"unfaded_{name}" if is_fading else name)
        if later is not None:
            later[0] = was
        elif serialize_column(value) == made:
            restored[name] = datetime.fromisoformat(was) if name in TIMES and was is not None else was
    store_restored_columns(owner, survivor, restored, now=now)


def store_restored_columns(owner: Owner, survivor: Any, restored: Mapping[str, Any], *, now: datetime) -> None:
    # a retracted fact gets no new version
    is_believed = spec_of(survivor.kind).has_beliefs and survivor.retracted_at is None
    of_belief = {CONFIDENCE, VALID_FROM} if is_believed else set()
    if beliefs := {name: value for name, value in restored.items() if name in of_belief}:
        survivor.confidence = survivor.unfaded_confidence
        for name, value in beliefs.items():
            setattr(survivor, name, value)
        revise_beliefs(owner, [survivor], reason=FactVersion.Reason.CORRECTED, now=now)
    others = {*COMBINED_COLUMNS, SALIENCE, *merging_of(survivor.kind).maxima}
    if columns := {name: value for name, value in restored.items() if name in others}:
        row_of(survivor).update(**columns)


def move_usage_back(survivor: Any, loser: Any, properties: Mapping[str, Any]) -> None:
    """Move back what was given, as far as it is still there."""
    counts = {name: min(count, getattr(survivor, name)) for name, count in properties.get("moved", {}).items()}
    if counts:
        move_counts(survivor, loser, counts)
    move_rows(survivor, loser, properties)

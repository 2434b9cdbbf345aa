"""What restoring a snapshot would change, to look at: the first entries of each sort, with excerpts of what differs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import OuterRef, Subquery, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left
from django.urls import reverse

from memory.admin.diffs import EXCERPT, Diff, compare
from memory.admin.text import mark_invisible, shorten
from memory.models import ContextEntry, ContextEntryVersion, ContextSnapshot, SnapshotEntry
from memory.services.contexts.snapshots import Preview, Step

MOST_SHOWN = 100
"""Entries of each sort."""

MOST_COMPARED = 20_000
"""Characters of each side that are looked at for what differs."""


LABELS = ("entry_type", "source_type", "memory_type", "source", "metadata")
"""What a snapshot notes of an entry beside content and weights."""


class Side(NamedTuple):
    """An entry on one side: `value` and `labels` (see LABELS) as text, None where it has none, as far as compared."""

    entry_id: UUID | None = None
    text: str = ""
    value: str | None = None
    importance: float = 0.0
    confidence: float = 0.0
    labels: Sequence[str | None] = ()


GONE = Side()
"""Of an entry that somebody deleted while the page was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """What would happen to an entry. `diff` is what its content or value is now and then; None where that stays.

    `told`: what else changes.
    """

    name: str
    excerpt: str
    entry_id: UUID
    diff: Diff | None = None
    is_value: bool = False
    told: Sequence[str] = ()
    compare_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Entries of one sort; `count` of them, of which `steps` are shown."""

    name: str
    told: str
    count: int
    steps: Sequence[ShownStep]

    @property
    def left_out(self) -> int:
        return self.count - len(self.steps)


def show_preview(snapshot: ContextSnapshot, preview: Preview) -> list[Section]:
    """Changed, returned, removed entries. Two queries, of no more than is shown."""
    changed, returned, removed = (steps[:MOST_SHOWN] for steps in (preview.changed, preview.returned, preview.removed))
    now = read_now([*changed, *returned, *removed])
    then = read_then(snapshot, [*changed, *returned])
    return [
        Section(
            name="Changed",
            told="Get back what they said, as a new version, and what they weighed and were labelled.",
            count=len(preview.changed),
            steps=[show_change(step, now, then) for step in changed],
        ),
        Section(
            name="Brought back",
            told="Were removed since.",
            count=len(preview.returned),
            steps=[show_step(step, then) for step in returned],
        ),
        Section(
            name="Archived",
            told="Were made since. Their versions stay.",
            count=len(preview.removed),
            steps=[show_step(step, now) for step in removed],
        ),
    ]


def read_now(steps: Sequence[Step]) -> dict[UUID, Side]:
    """What entries say as they are."""
    rows: Any = ContextEntry.objects.filter(pk__in=[step.entry_id for step in steps])
    columns = ("id", beginning_of("text"), beginning_of("value"), "importance", "confidence")
    return read_sides(rows.values_list(*columns, *(beginning_of(name) for name in LABELS)))


def read_then(snapshot: ContextSnapshot, steps: Sequence[Step]) -> dict[UUID, Side]:
    """What they said in the snapshot."""
    version = ContextEntryVersion.objects.filter(
        account_id=snapshot.account_id, entry_id=OuterRef("entry_id"), number=OuterRef("number")
    )
    text, value = (Subquery(version.values(beginning=beginning_of(column))[:1]) for column in ("content", "value"))
    rows = SnapshotEntry.objects.filter(
        account_id=snapshot.account_id, snapshot=snapshot, entry_id__in=[step.entry_id for step in steps]
    )
    labels = (Left(KeyTextTransform(name, "attributes"), MOST_COMPARED) for name in LABELS)
    return read_sides(rows.values_list("entry_id", text, value, "importance", "confidence", *labels))


def beginning_of(column: str) -> Left:
    return Left(Cast(column, TextField()), MOST_COMPARED)


def read_sides(rows: Iterable[Sequence[Any]]) -> dict[UUID, Side]:
    """Rows of what a side has, in its order, the labels one by one."""
    return {row[0]: Side._make((row[0], row[1] or "", *row[2:5], row[5:])) for row in rows}


def show_step(step: Step, sides: Mapping[UUID, Side]) -> ShownStep:
    """An entry that comes or goes."""
    side = sides.get(step.entry_id, GONE)
    return ShownStep(name=mark_invisible(step.key), excerpt=shorten(side.text), entry_id=step.entry_id)


def show_change(step: Step, before: Mapping[UUID, Side], after: Mapping[UUID, Side]) -> ShownStep:
    now, then = before.get(step.entry_id, GONE), after.get(step.entry_id, GONE)
    is_value = now.text == then.text and now.value != then.value
    sides = (now.value or "", then.value or "") if is_value else (now.text, then.text)
    return ShownStep(
        name=mark_invisible(step.key),
        excerpt=shorten(now.text),
        entry_id=step.entry_id,
        diff=compare(*sides, extent=EXCERPT) if step.is_reworded else None,
        is_value=is_value,
        told=list(tell_changes(now, then)),
        compare_url=compare_url(step) if step.is_reworded else "",
    )


def tell_changes(now: Side, then: Side) -> Iterator[str]:
    """Weights and labels that differ. Snapshots of before there were labels have none of them."""
    for name in ("importance", "confidence"):
        if getattr(now, name) != getattr(then, name):
            yield f"{name} {getattr(now, name):g} → {getattr(then, name):g}"
    for name, before, after in zip(LABELS, now.labels, then.labels, strict=False):
        if after is not None and before != after:
            yield f"{name.replace('_', ' ')} {shorten(before or '')} → {shorten(after)}"


def compare_url(step: Step) -> str:
    """Where the two versions stand side by side, whole."""
    page = reverse("admin:memory_contextentry_versions", args=[step.entry_id])
    return f"{page}?left={step.to_version}&right={step.from_version}"

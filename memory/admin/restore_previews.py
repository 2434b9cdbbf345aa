"""What restoring a snapshot would change, to look at: the first entries of each sort, with excerpts of what differs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery, TextField
from django.db.models.functions import Cast, Left
from django.urls import reverse

from memory.admin.diffs import EXCERPT, Diff, compare
from memory.admin.text import mark_invisible, shorten
from memory.models import ContextEntry, ContextEntryVersion, ContextSnapshot, SnapshotEntry
from memory.services.snapshots import Preview, Step

MOST_SHOWN = 100
"""Entries of each sort."""

MOST_COMPARED = 20_000
"""Characters of each side that are looked at for what differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What an entry says on one side, as far as it is compared; `value` as JSON."""

    text: str
    value: str
    importance: float
    confidence: float


GONE = Side(text="", value="", importance=0.0, confidence=0.0)
"""Of an entry that somebody deleted while the page was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """What would happen to an entry. `diff` is what differs between now and then; None where it only comes or goes."""

    name: str
    excerpt: str
    entry_id: UUID
    diff: Diff | None = None
    is_value: bool = False
    weights: Sequence[str] = ()
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
            told="Get back what they said, as a new version, and their weights.",
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
    return {row[0]: make_side(row) for row in rows.values_list(*columns)}


def read_then(snapshot: ContextSnapshot, steps: Sequence[Step]) -> dict[UUID, Side]:
    """What they said in the snapshot."""
    version = ContextEntryVersion.objects.filter(
        account_id=snapshot.account_id, entry_id=OuterRef("entry_id"), number=OuterRef("number")
    )
    text, value = (Subquery(version.values(beginning=beginning_of(column))[:1]) for column in ("content", "value"))
    rows = SnapshotEntry.objects.filter(
        account_id=snapshot.account_id, snapshot=snapshot, entry_id__in=[step.entry_id for step in steps]
    )
    return {row[0]: make_side(row) for row in rows.values_list("entry_id", text, value, "importance", "confidence")}


def beginning_of(column: str) -> Left:
    return Left(Cast(column, TextField()), MOST_COMPARED)


def make_side(row: Sequence[Any]) -> Side:
    _, text, value, importance, confidence = row
    return Side(text=text or "", value=value or "", importance=importance, confidence=confidence)


def show_step(step: Step, sides: Mapping[UUID, Side]) -> ShownStep:
    """An entry that comes or goes."""
    side = sides.get(step.entry_id, GONE)
    return ShownStep(name=mark_invisible(step.key), excerpt=shorten(side.text), entry_id=step.entry_id)


def show_change(step: Step, before: Mapping[UUID, Side], after: Mapping[UUID, Side]) -> ShownStep:
    now, then = before.get(step.entry_id, GONE), after.get(step.entry_id, GONE)
    is_value = now.text == then.text and now.value != then.value
    sides = (now.value, then.value) if is_value else (now.text, then.text)
    return ShownStep(
        name=mark_invisible(step.key),
        excerpt=shorten(now.text),
        entry_id=step.entry_id,
        diff=compare(*sides, extent=EXCERPT) if step.is_reworded else None,
        is_value=is_value,
        weights=list(tell_weights(now, then)),
        compare_url=compare_url(step) if step.is_reworded else "",
    )


def tell_weights(now: Side, then: Side) -> Iterator[str]:
    if now.importance != then.importance:
        yield f"importance {now.importance:g} → {then.importance:g}"
    if now.confidence != then.confidence:
        yield f"confidence {now.confidence:g} → {then.confidence:g}"


def compare_url(step: Step) -> str:
    """Where the two versions stand side by side, whole."""
    page = reverse("admin:memory_contextentry_versions", args=[step.entry_id])
    return f"{page}?left={step.to_version}&right={step.from_version}"

"""Structured turns as cards: the four slots, what tools did, what was used and what came of it.

A raw trace is never read here: a card says that there is one. What tools were given and gave back stays sealed, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Func, IntegerField, TextField, When
from django.db.models.functions import Cast, Left
from django.http import HttpRequest
from django.urls import reverse

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.admin.tools import tell_latency, tell_success
from memory.admin.transcripts import Piece, folded, plain
from memory.models import CompressionLevel, Kind, Link, ToolInvocation, TurnRecord, TurnSlot
from memory.reasoning import is_deeper
from memory.services.memories.links import PRODUCED, USED
from memory_project.fields import VerbatimJSONField

TEXT_CHARACTERS = 3_000
DATA_BYTES = 8_000
MOST_PIECES = 30
MOST_USES = 500
MOST_LINKS = 1_000
MARKS = ("archived", "quarantined", "pinned", "buried")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What somebody may look at, each by the permission for the pages of its own that it has."""

    turns: bool
    slots: bool
    episodes: bool
    artifacts: bool
    tools: bool
    memories: bool

    @classmethod
    def of(cls, request: HttpRequest) -> "Sight":
        models = ("turnrecord", "turnslot", "workepisode", "artifact", "toolinvocation", "memory")
        names = ("turns", "slots", "episodes", "artifacts", "tools", "memories")
        may = (request.user.has_perm(f"memory.view_{model}") for model in models)
        return cls(**dict(zip(names, may, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSlot:
    """A slot as it is told now; `before` is how it came, where it was shortened since."""

    id: UUID
    name: str
    remarks: Sequence[str]
    pieces: Sequence[Piece]
    before: Sequence[Piece] = ()
    is_hidden: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A use of a tool; what went in and came out is read on its own page."""

    id: UUID
    tool: str
    outcome: str
    took: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A memory that a turn went by."""

    id: UUID
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCard:
    """A structured turn, ready for a page. `place` is its conversation, `page` the address of the messages in it.

    `trace` says what is kept of a raw trace. `day` is set where a new day begins.
    """

    id: UUID
    number: int
    at: datetime
    status: str
    agent: str
    place: str
    page: str
    messages: str
    remarks: Sequence[str]
    trace: str
    slots: Sequence[ShownSlot]
    uses: Sequence[ToolUse]
    produced: Sequence[ArtifactCard]
    used: Sequence[ArtifactCard]
    evidence: Sequence[Named]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What stands around turns, by the record's id."""

    slots: Mapping[UUID, Sequence[Any]]
    uses: Mapping[UUID, Sequence[ToolUse]]
    links: Mapping[UUID, Sequence[tuple[str, Named]]]
    artifacts: Mapping[UUID, ArtifactCard]


def read_turn_cards(account_id: UUID, record_ids: Sequence[UUID], sight: Sight) -> dict[UUID, TurnCard]:
    """By id. Five statements at most, however many there are."""
    if not record_ids or not sight.turns:
        return {}
    around = read_around(account_id, record_ids, sight)
    rows = TurnRecord.objects.filter(account_id=account_id, pk__in=record_ids).annotate(trace_tokens=F("trace__tokens"))
    lean = rows.select_related("log", "account").defer("metadata", "log__metadata", "log__saved_session")
    return {row.pk: turn_card(row, around) for row in lean}


def read_around(account_id: UUID, record_ids: Sequence[UUID], sight: Sight) -> Surroundings:
    slots = read_slots(record_ids) if sight.slots else {}
    links = read_links(account_id, slots)
    named = [other.id for ends in links.values() for _, other in ends if other.kind == Kind.ARTIFACT]
    return Surroundings(
        slots=slots,
        uses=read_uses(account_id, record_ids) if sight.tools else {},
        links=links if sight.memories else without_memories(links),
        artifacts=read_artifacts(account_id, artifact_ids=named, record_ids=record_ids) if sight.artifacts else {},
    )


def without_memories(links: Mapping[UUID, Sequence[tuple[str, Named]]]) -> dict[UUID, list[tuple[str, Named]]]:
    return {record_id: [end for end in ends if end[1].kind == Kind.ARTIFACT] for record_id, ends in links.items()}


def read_slots(record_ids: Sequence[UUID]) -> dict[UUID, list[Any]]:
    """Of all levels, the deepest compressed last. The database sends no more of a slot than a card shows."""
    size = Func(Cast("data", TextField()), function="octet_length", output_field=IntegerField())
    slots: Any = TurnSlot.objects
    rows = (
        slots.filter(record_id__in=record_ids)
        .defer("text", "metadata", "data")
        .annotate(
            beginning=Left("text", TEXT_CHARACTERS + 1),
            data_bytes=size,
            small_data=Case(When(data_bytes__lte=DATA_BYTES, then=F("data")), output_field=VerbatimJSONField()),
        )
        .order_by("level")
    )
    found: dict[UUID, list[Any]] = {}
    for row in rows:
        found.setdefault(row.record_id, []).append(row)
    return found


def read_uses(account_id: UUID, record_ids: Sequence[UUID]) -> dict[UUID, list[ToolUse]]:
    rows = ToolInvocation.objects.filter(account_id=account_id, record_id__in=record_ids).order_by("timestamp", "id")
    found: dict[UUID, list[ToolUse]] = {}
    columns = ("record_id", "id", "tool_name", "success", "latency_ms")
    for record_id, use_id, name, success, latency in rows.values_list(*columns)[:MOST_USES]:
        use = ToolUse(id=use_id, tool=shorten(name), outcome=tell_success(success), took=tell_latency(latency))
        found.setdefault(record_id, []).append(use)
    return found


def read_links(account_id: UUID, slots: Mapping[UUID, Sequence[Any]]) -> dict[UUID, list[tuple[str, Named]]]:
    """What the slots say that they produced and used, each once a record."""
    record_of = {row.pk: record_id for record_id, rows in slots.items() for row in rows}
    if not record_of:
        return {}
    links = Link.objects.filter(account_id=account_id, source_id__in=record_of, type__in=(PRODUCED, USED))
    columns = ("source_id", "type", "target_id", "target__kind", Left("target__text", EXCERPT_CHARACTERS + 1))
    found: dict[UUID, dict[tuple[str, UUID], Named]] = {}
    for source_id, type_, target_id, kind, text in links.order_by("id").values_list(*columns)[:MOST_LINKS]:
        named = Named(id=target_id, kind=kind, text=shorten(text))
        found.setdefault(record_of[source_id], {})[type_, target_id] = named
    return {record_id: [(type_, named) for (type_, _), named in ends.items()] for record_id, ends in found.items()}


def turn_card(row: Any, around: Surroundings) -> TurnCard:
    """`row` with its conversation and account, and the tokens of its trace."""
    ends = around.links.get(row.pk, ())
    produced = {card.id: card for card in around.artifacts.values() if card.record_id == row.pk}
    for type_, named in ends:
        if type_ == PRODUCED and named.id in around.artifacts:
            produced[named.id] = around.artifacts[named.id]
    used = [named for type_, named in ends if type_ == USED]
    return TurnCard(
        id=row.pk,
        number=row.number,
        at=row.event_time,
        status=row.status,
        agent=mark_invisible(row.agent_id) or "the account",
        place=shorten(row.log.title or row.conversation_id),
        page=page_of_messages(row),
        messages=tell_messages(row),
        remarks=list(remarks_on(row)),
        trace=tell_trace(row.trace_tokens),
        slots=show_slots(row, around.slots.get(row.pk, ())),
        uses=around.uses.get(row.pk, ()),
        produced=list(produced.values()),
        used=[around.artifacts[named.id] for named in used if named.id in around.artifacts],
        evidence=[named for named in used if named.kind != Kind.ARTIFACT],
    )


def page_of_messages(row: TurnRecord) -> str:
    page = reverse("admin:memory_conversation_change", args=[row.log_id])
    return page if row.first_index is None else f"{page}?turn={row.first_index}#turn-{row.first_index}"


def tell_messages(row: TurnRecord) -> str:
    if row.first_index is None:
        return ""
    if row.first_index == row.last_index:
        return f"message {row.first_index}"
    return f"messages {row.first_index}–{row.last_index}"


def tell_level(level: int) -> str:
    return CompressionLevel(level).label.replace("_", " ")


def remarks_on(row: TurnRecord) -> Iterator[str]:
    if row.level:
        yield tell_level(row.level)
    yield f"{row.tokens:,} tokens" + (f" of {row.raw_tokens:,}" if row.raw_tokens > row.tokens else "")
    if row.compress_error:
        yield f"not compressed: {shorten(row.compress_error)} ({row.compress_attempts}×)"


def tell_trace(tokens: int | None) -> str:
    """What is said of a raw trace; empty where none is kept."""
    return "" if tokens is None else f"raw trace kept, {tokens:,} tokens, sealed"


def show_slots(record: TurnRecord, rows: Iterable[Any]) -> list[ShownSlot]:
    """In the order of a turn; `rows` by their level."""
    by_slot: dict[str, list[Any]] = {}
    for row in rows:
        by_slot.setdefault(row.slot, []).append(row)
    return [show_slot(record, by_slot[slot]) for slot in TurnSlot.Slot.values if slot in by_slot]


def show_slot(record: TurnRecord, rows: Sequence[Any]) -> ShownSlot:
    row = rows[-1]
    before = pieces_of_slot(rows[0]) if len(rows) > 1 else []
    left_out = row.small_data is None and bool(row.data_bytes)
    pieces = pieces_of_slot(row)
    return ShownSlot(
        id=row.pk,
        name=row.get_slot_display(),
        remarks=list(remarks_on_slot(record, row)),
        pieces=pieces,
        before=before,
        is_hidden=row.quarantined,
        is_cut=left_out or any(piece.is_cut for piece in (*pieces, *before)),
    )


def remarks_on_slot(record: TurnRecord, row: Any) -> Iterator[str]:
    if row.tier:
        yield row.get_tier_display()
        yield row.get_provenance_display()
        if is_deeper(row.tier, record.account.reasoning_tier):
            yield "deeper than the account tells"
    if row.level:
        yield tell_level(row.level)
    # the slots of what is merged are all archived
    is_merged = record.level >= CompressionLevel.MERGED
    yield from (name for name in MARKS if getattr(row, name) and not (is_merged and name == "archived"))
    if row.embed_error:
        yield f"no vector: {shorten(row.embed_error)}"


def pieces_of_slot(row: Any) -> list[Piece]:
    """What it says, and what it holds beyond words, folded. A reasoning's text tells all that its data holds."""
    data = dict(row.small_data) if isinstance(row.small_data, dict) else {}
    if row.slot == TurnSlot.Slot.REASONING:
        return [plain(row.beginning, TEXT_CHARACTERS)]
    calls, said = data.pop("calls", None), data.pop("text", None)
    calls = calls if isinstance(calls, list) else []
    # the text of an action repeats its calls
    text = said if calls and row.level == CompressionLevel.RAW and isinstance(said, str) else row.beginning
    pieces = [plain(text, TEXT_CHARACTERS)] if text else []
    pieces += [folded_call(call) for call in calls]
    pieces += [folded(name.replace("_", " ").capitalize(), value, TEXT_CHARACTERS) for name, value in data.items()]
    return pieces[:MOST_PIECES]


def folded_call(call: Any) -> Piece:
    """A tool's name; its arguments, result and error below it."""
    if not isinstance(call, dict):
        return folded("Calls", call, TEXT_CHARACTERS)
    rest = {name: value for name, value in call.items() if name != "tool"}
    failed = " (failed)" if call.get("error") else ""
    return folded(f"Calls {call.get('tool', '')}{failed}", rest, TEXT_CHARACTERS)

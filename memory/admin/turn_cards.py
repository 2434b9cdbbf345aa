"""Structured turns as cards: the four slots, the uses of tools, what was used and what was produced.

A raw trace is never read here; a card only mentions it. The input and output of tools stay sealed, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Left
from django.http import HttpRequest

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.columns import change_url, turn_url
from memory.admin.memories import MARK_COLUMNS
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.admin.tools import format_latency, format_success
from memory.admin.transcripts import TextBlock, folded_block, small_json, text_block
from memory.models import CompressionLevel, Kind, Link, ToolInvocation, TurnRecord, TurnSlot
from memory.reasoning import is_deeper
from memory.services.memories.links import PRODUCED, USED

CARD_CHARACTERS = 3_000
MAX_DATA_BYTES = 8_000
MAX_BLOCKS = 30
MAX_USES = 500
MAX_CARD_LINKS = 1_000
DEEPER_THAN_POLICY = "deeper than the account's policy returns"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleModels:
    """The models that the user may look at, by the permissions to view them."""

    turns: bool
    slots: bool
    episodes: bool
    artifacts: bool
    tools: bool
    memories: bool

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        models = {
            "turns": "turnrecord",
            "slots": "turnslot",
            "episodes": "workepisode",
            "artifacts": "artifact",
            "tools": "toolinvocation",
            "memories": "memory",
        }
        return cls(**{name: request.user.has_perm(f"memory.view_{model}") for name, model in models.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCard:
    """A slot as it reads now. `original` is how it was recorded, if it was compressed since."""

    id: UUID
    name: str
    remarks: Sequence[str]
    blocks: Sequence[TextBlock]
    original: Sequence[TextBlock] = ()
    is_hidden: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A use of a tool. Its input and output are read on its own page."""

    id: UUID
    tool: str
    outcome: str
    latency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMemory:
    """A memory that a turn used or produced."""

    id: UUID
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCard:
    """A structured turn, ready for a page.

    `place` names its conversation and `page` is the address of its messages there. `trace` describes the raw trace
    that is kept, if any.
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
    slots: Sequence[SlotCard]
    uses: Sequence[ToolUse]
    produced: Sequence[ArtifactCard]
    used: Sequence[ArtifactCard]
    evidence: Sequence[TurnMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRows:
    """Rows that belong to turns, by the record's id; artifacts by their own id."""

    slots: Mapping[UUID, Sequence[Any]]
    uses: Mapping[UUID, Sequence[ToolUse]]
    links: Mapping[UUID, Sequence[tuple[str, TurnMemory]]]
    artifacts: Mapping[UUID, ArtifactCard]


def read_turn_cards(account_id: UUID, record_ids: Sequence[UUID], visible: VisibleModels) -> dict[UUID, TurnCard]:
    """Return cards by id. Issue at most five statements, however many cards there are."""
    if not record_ids or not visible.turns:
        return {}
    related = read_related_rows(account_id, record_ids, visible)
    rows = TurnRecord.objects.filter(account_id=account_id, pk__in=record_ids).select_related("log", "account")
    lean = rows.annotate(trace_tokens=F("traces__tokens")).defer("metadata", "log__metadata", "log__saved_session")
    return {row.pk: turn_card(row, related) for row in lean}


def read_related_rows(account_id: UUID, record_ids: Sequence[UUID], visible: VisibleModels) -> RelatedRows:
    slots = read_slot_rows(record_ids) if visible.slots else {}
    links = read_turn_memories(account_id, slots)
    artifact_ids = [other.id for ends in links.values() for _, other in ends if other.kind == Kind.ARTIFACT]
    if not visible.memories:
        links = {id_: [end for end in ends if end[1].kind == Kind.ARTIFACT] for id_, ends in links.items()}
    return RelatedRows(
        slots=slots,
        uses=read_tool_uses(account_id, record_ids) if visible.tools else {},
        links=links,
        artifacts=read_artifacts(account_id, artifact_ids=artifact_ids, record_ids=record_ids)
        if visible.artifacts
        else {},
    )


def read_slot_rows(record_ids: Sequence[UUID]) -> dict[UUID, list[Any]]:
    """Return the slots of turns, the most compressed last. The database sends no more of a slot than a card shows."""
    slots = TurnSlot.objects
    rows = (
        slots.filter(record_id__in=record_ids)
        .defer("text", "metadata", "data")
        .annotate(beginning=Left("text", CARD_CHARACTERS + 1), **small_json("data", MAX_DATA_BYTES))
        .order_by("level")
    )
    found: dict[UUID, list[Any]] = {}
    for row in rows:
        found.setdefault(row.record_id, []).append(row)
    return found


def read_tool_uses(account_id: UUID, record_ids: Sequence[UUID]) -> dict[UUID, list[ToolUse]]:
    rows = ToolInvocation.objects.filter(account_id=account_id, record_id__in=record_ids).order_by("timestamp", "id")
    found: dict[UUID, list[ToolUse]] = {}
    columns = ("record_id", "id", "tool_name", "success", "latency_ms")
    for record_id, use_id, name, success, latency_ms in rows.values_list(*columns)[:MAX_USES]:
        outcome, latency = format_success(success), format_latency(latency_ms)
        found.setdefault(record_id, []).append(
            ToolUse(id=use_id, tool=excerpt_of(name), outcome=outcome, latency=latency)
        )
    return found


def read_turn_memories(
    account_id: UUID, slots: Mapping[UUID, Sequence[Any]]
) -> dict[UUID, list[tuple[str, TurnMemory]]]:
    """Return what the slots of each turn produced and used, with the type of the link, each memory once per turn."""
    record_of = {row.pk: record_id for record_id, rows in slots.items() for row in rows}
    if not record_of:
        return {}
    links = Link.objects.filter(account_id=account_id, source_id__in=record_of, type__in=(PRODUCED, USED))
    columns = ("source_id", "type", "target_id", "target__kind", text_excerpt("target__text"))
    found: dict[UUID, dict[tuple[str, UUID], TurnMemory]] = {}
    for source_id, type_, target_id, kind, text in links.order_by("id").values_list(*columns)[:MAX_CARD_LINKS]:
        memory = TurnMemory(id=target_id, kind=kind, text=excerpt_of(text))
        found.setdefault(record_of[source_id], {})[type_, target_id] = memory
    return {record_id: [(type_, memory) for (type_, _), memory in ends.items()] for record_id, ends in found.items()}


def turn_card(row: Any, related: RelatedRows) -> TurnCard:
    """Return the card of a record that was read with its conversation, its account and the tokens of its trace."""
    ends = related.links.get(row.pk, ())
    produced = {card.id: card for card in related.artifacts.values() if card.record_id == row.pk}
    for type_, memory in ends:
        if type_ == PRODUCED and memory.id in related.artifacts:
            produced[memory.id] = related.artifacts[memory.id]
    used = [memory for type_, memory in ends if type_ == USED]
    has_messages = row.first_index is not None
    return TurnCard(
        id=row.pk,
        number=row.number,
        at=row.event_time,
        status=row.status,
        agent=mark_invisible(row.agent_id) or "the account",
        place=excerpt_of(row.log.title or row.conversation_id),
        page=turn_url(row.log_id, row.first_index) if has_messages else change_url("conversation", row.log_id),
        messages=format_range("message", row.first_index, row.last_index) if has_messages else "",
        remarks=list(record_remarks(row)),
        trace="" if row.trace_tokens is None else f"A raw trace of {row.trace_tokens:,} tokens is kept, sealed.",
        slots=slot_cards(row, related.slots.get(row.pk, ())),
        uses=related.uses.get(row.pk, ()),
        produced=list(produced.values()),
        used=[related.artifacts[memory.id] for memory in used if memory.id in related.artifacts],
        evidence=[memory for memory in used if memory.kind != Kind.ARTIFACT],
    )


def format_range(noun: str, first: int, last: int) -> str:
    """Return a number or a range of numbers, such as "turn 3" or "turns 3–5"."""
    return f"{noun} {first}" if first == last else f"{noun}s {first}–{last}"


def format_level(level: int) -> str:
    return CompressionLevel(level).label.replace("_", " ")


def record_remarks(row: TurnRecord) -> Iterator[str]:
    if row.level:
        yield format_level(row.level)
    yield f"{row.tokens:,} tokens" + (f" of {row.raw_tokens:,}" if row.raw_tokens > row.tokens else "")
    if row.compress_error:
        yield f"not compressed: {excerpt_of(row.compress_error)} ({row.compress_attempts}×)"


def slot_cards(record: TurnRecord, rows: Iterable[Any]) -> list[SlotCard]:
    """Return a card for each slot in the order of a turn. `rows` come in order of their level."""
    by_slot: dict[str, list[Any]] = {}
    for row in rows:
        by_slot.setdefault(row.slot, []).append(row)
    return [slot_card(record, by_slot[slot]) for slot in TurnSlot.Slot.values if slot in by_slot]


def slot_card(record: TurnRecord, rows: Sequence[Any]) -> SlotCard:
    row = rows[-1]
    original = slot_blocks(rows[0]) if len(rows) > 1 else []
    is_left_out = row.small_json is None and bool(row.json_bytes)
    blocks = slot_blocks(row)
    return SlotCard(
        id=row.pk,
        name=row.get_slot_display(),
        remarks=list(slot_remarks(record, row)),
        blocks=blocks,
        original=original,
        is_hidden=row.quarantined,
        is_cut=is_left_out or any(block.is_cut for block in (*blocks, *original)),
    )


def slot_remarks(record: TurnRecord, row: Any) -> Iterator[str]:
    if row.tier:
        yield row.get_tier_display()
        yield row.get_provenance_display()
        if is_deeper(row.tier, record.account.reasoning_tier):
            yield DEEPER_THAN_POLICY
    if row.level:
        yield format_level(row.level)
    # all slots of a merged turn are archived
    is_merged = record.level >= CompressionLevel.MERGED
    yield from (name for name in MARK_COLUMNS if getattr(row, name) and not (is_merged and name == "archived"))
    if row.embed_error:
        yield f"no vector: {excerpt_of(row.embed_error)}"


def slot_blocks(row: Any) -> list[TextBlock]:
    """Return the text of a slot, and its data folded. The text of a reasoning repeats all of its data."""
    data = dict(row.small_json) if isinstance(row.small_json, dict) else {}
    if row.slot == TurnSlot.Slot.REASONING:
        return [text_block(row.beginning, CARD_CHARACTERS)]
    calls, own_text = data.pop("calls", None), data.pop("text", None)
    calls = calls if isinstance(calls, list) else []
    # the text of an action repeats its calls
    text = own_text if calls and row.level == CompressionLevel.RAW and isinstance(own_text, str) else row.beginning
    blocks = [text_block(text, CARD_CHARACTERS)] if text else []
    blocks += [tool_call_block(call) for call in calls]
    blocks += [
        folded_block(name.replace("_", " ").capitalize(), value, CARD_CHARACTERS) for name, value in data.items()
    ]
    return blocks[:MAX_BLOCKS]


def tool_call_block(call: Any) -> TextBlock:
    """Return a call with the tool's name as label and its arguments, result and error folded."""
    if not isinstance(call, dict):
        return folded_block("Calls", call, CARD_CHARACTERS)
    rest = {name: value for name, value in call.items() if name != "tool"}
    failed = " (failed)" if call.get("error") else ""
    return folded_block(f"Calls {call.get('tool', '')}{failed}", rest, CARD_CHARACTERS)

"""Turns as a chat shows them: text as text, and calls, results and other parts folded under a label.

Turns are written by strangers. Texts leave this module marked (`mark_invisible`) and cut, and templates escape them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Func, IntegerField, TextField, When
from django.db.models.functions import Cast, Left

from memory.admin.memories import MARK_COLUMNS
from memory.admin.text import excerpt_of, indent_json, mark_invisible
from memory.models import Conversation, Turn
from memory_project.fields import VerbatimJSONField

PAGE_TURNS = 100
TURNS_BEFORE_CHOSEN = 5
MAX_TEXT_CHARACTERS = 10_000
MAX_PAYLOAD_BYTES = 50_000
MAX_WHOLE_CHARACTERS = 2_000_000
PREVIEW_CHARACTERS = 80
RESULT_ROLES = ("tool", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """A part of a turn. With a `label` it is folded under it, next to `preview`. `is_cut` if there is more of it."""

    text: str
    label: str = ""
    preview: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptTurn:
    """A turn, ready for a page. `remarks` are small print; `day` is set if a new day begins."""

    id: UUID
    index: int
    role: str
    speaker: str
    at: datetime
    blocks: Sequence[TextBlock]
    remarks: Sequence[str]
    day: date | None = None
    is_hidden: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptWindow:
    """The turns from `start` to `end` (excluded), of `count`."""

    start: int
    end: int
    count: int

    @property
    def last_start(self) -> int:
        return max(0, self.count - PAGE_TURNS)

    @property
    def earlier(self) -> int | None:
        return max(0, self.start - PAGE_TURNS) if self.start else None

    @property
    def later(self) -> int | None:
        return min(self.end, self.last_start) if self.end < self.count else None

    @property
    def is_part(self) -> bool:
        return self.end - self.start < self.count

    @property
    def last(self) -> int:
        return self.end - 1


def choose_window(conversation: Conversation, *, start: int | None, turn: int | None) -> TranscriptWindow:
    """Return the page that begins at `start`, else the one around `turn`, else the last one."""
    count = conversation.turn_count
    last_start = max(0, count - PAGE_TURNS)
    if start is None and turn is not None:
        start = max(0, turn - TURNS_BEFORE_CHOSEN)
    start = last_start if start is None else min(start, last_start)
    return TranscriptWindow(start=start, end=min(start + PAGE_TURNS, count), count=count)


def small_json(column: str, max_bytes: int) -> dict[str, Any]:
    """Return annotations for the size of a JSON column, and for its value if it has at most `max_bytes`."""
    size = Func(Cast(column, TextField()), function="octet_length", output_field=IntegerField())
    value = Case(When(json_bytes__lte=max_bytes, then=F(column)), output_field=VerbatimJSONField())
    return {"json_bytes": size, "small_json": value}


def read_transcript(conversation: Conversation, window: TranscriptWindow) -> list[TranscriptTurn]:
    """Return the turns of a page in order. The database sends no more of a turn than the page shows."""
    turns = Turn.objects
    rows = (
        turns.filter(log=conversation, index__gte=window.start, index__lt=window.end)
        .defer("text", "metadata", "payload")
        .annotate(beginning=Left("text", MAX_TEXT_CHARACTERS + 1), **small_json("payload", MAX_PAYLOAD_BYTES))
        .order_by("index")
    )
    return list(describe_turns(rows))


def describe_turns(rows: Iterable[Any]) -> Iterator[TranscriptTurn]:
    day: date | None = None
    for row in rows:
        is_left_out = row.small_json is None and bool(row.json_bytes)
        blocks = turn_blocks(row.role, row.beginning, row.small_json, characters=MAX_TEXT_CHARACTERS)
        today = row.event_time.date()
        is_cut = is_left_out or any(block.is_cut for block in blocks)
        yield transcript_turn(row, blocks, day=today if today != day else None, is_cut=is_cut)
        day = today


def whole_turn(turn: Turn) -> TranscriptTurn:
    """Return a turn for a page of its own."""
    blocks = turn_blocks(turn.role, turn.text, turn.payload, characters=MAX_WHOLE_CHARACTERS)
    return transcript_turn(turn, blocks, day=turn.event_time.date(), is_cut=False)


def transcript_turn(turn: Turn, blocks: Sequence[TextBlock], *, day: date | None, is_cut: bool) -> TranscriptTurn:
    return TranscriptTurn(
        id=turn.pk,
        index=turn.index,
        role=turn.role,
        speaker=mark_invisible(turn.name or (turn.agent_id if turn.role == "assistant" else "")),
        at=turn.event_time,
        blocks=blocks,
        remarks=list(turn_remarks(turn)),
        day=day,
        is_hidden=turn.archived or turn.quarantined,
        is_cut=is_cut,
    )


def turn_remarks(turn: Turn) -> Iterator[str]:
    if turn.model:
        yield mark_invisible(turn.model)
    yield f"{turn.token_count} tokens"
    if turn.embed_error:
        yield f"no vector: {turn.embed_error}"
    yield from (name for name in MARK_COLUMNS if getattr(turn, name))
    if turn.version > 1:
        yield "corrected"


def turn_blocks(role: str, text: str, payload: Mapping[str, Any] | None, *, characters: int) -> list[TextBlock]:
    """Return the parts of a turn in a chat's order: content, calls, then everything else that came with it."""
    rest = dict(payload or {})
    blocks = list(content_blocks(rest.pop("content", text), characters))
    call_id = rest.pop("tool_call_id", "")
    if role in RESULT_ROLES:
        label = f"Result {call_id}".rstrip()
        blocks = [folded_block(block.label or label, block.text, characters) for block in blocks]
    for name, value in rest.items():
        if name == "tool_calls" and isinstance(value, list):
            blocks += [call_block(call, characters) for call in value]
        elif name == "function_call":
            blocks.append(call_block(value, characters))
        else:
            blocks.append(folded_block(name, value, characters))
    return blocks


def content_blocks(content: Any, characters: int) -> Iterator[TextBlock]:
    if isinstance(content, str):
        yield text_block(content, characters)
    elif isinstance(content, list):
        for part in content:
            yield from part_blocks(part, characters)
    elif content is not None:
        yield folded_block("content", content, characters)


def part_blocks(part: Any, characters: int) -> Iterator[TextBlock]:
    """Yield the text of a content part as it is, and what else the part has folded under its type."""
    if not isinstance(part, dict):
        yield folded_block("part", part, characters)
        return
    rest = dict(part)
    name = str(rest.pop("type", "part"))
    for field in ("text", "refusal"):
        if isinstance(rest.get(field), str):
            yield text_block(rest.pop(field), characters)
            break
    if rest:
        yield folded_block(name, rest, characters)


def call_block(call: Any, characters: int) -> TextBlock:
    """Return a tool call of any type of OpenAI's, or one of the older function calls."""
    if not isinstance(call, dict):
        return folded_block("Calls", call, characters)
    kind = call.get("type")
    function = call.get(kind) if isinstance(kind, str) else call.get("function")
    function = function if isinstance(function, dict) else call
    arguments = function.get("arguments", function.get("input", ""))
    return folded_block(f"Calls {function.get('name', '')} {call.get('id', '')}".rstrip(), arguments, characters)


def text_block(text: str, characters: int) -> TextBlock:
    return TextBlock(text=mark_invisible(text[:characters]), is_cut=len(text) > characters)


def folded_block(label: str, value: Any, characters: int) -> TextBlock:
    text = indent_value(value, characters=characters)
    return TextBlock(
        text=mark_invisible(text[:characters]),
        label=excerpt_of(label),
        preview=excerpt_of(text, characters=PREVIEW_CHARACTERS),
        is_cut=len(text) > characters,
    )


def indent_value(value: Any, *, characters: int) -> str:
    """Return a value, or a text that is a JSON object or list, as indented JSON. Any other text stays as it is."""
    if not isinstance(value, str):
        return indent_json(value, characters=characters)
    try:
        parsed = json.loads(value, object_pairs_hook=object_without_repeats)
        return indent_json(parsed, characters=characters) if isinstance(parsed, (dict, list)) else value
    except (ValueError, RecursionError):
        return value


def object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raise ValueError for a name that occurs twice, since only one value would be shown."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("A name occurs twice.")
    return found

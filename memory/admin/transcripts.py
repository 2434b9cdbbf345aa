"""Turns as people read them: what was said as text, what came beside it (calls, results, parts) folded.

Everything in a turn was written by strangers: texts leave here marked (`mark_invisible`) and cut to a length, and
templates escape them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Func, IntegerField, TextField, When
from django.db.models.functions import Cast, Left

from memory.admin.memories import MARKED
from memory.admin.text import mark_invisible, shorten
from memory.models import Conversation, Turn
from memory_project.fields import VerbatimJSONField

PAGE_TURNS = 100
TURNS_BEFORE_A_CHOSEN_ONE = 5
TEXT_CHARACTERS = 10_000
PAYLOAD_BYTES = 50_000
WHOLE_CHARACTERS = 2_000_000
PREVIEW_CHARACTERS = 80
RESULT_ROLES = ("tool", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something said. With a `label` it is folded under it, `preview` beside it. `is_cut`: there is more of it."""

    text: str
    label: str = ""
    preview: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurn:
    """A turn, ready for a page. `remarks` are small print; `day` is set where a new day begins."""

    id: UUID
    index: int
    role: str
    speaker: str
    at: datetime
    pieces: Sequence[Piece]
    remarks: Sequence[str]
    day: date | None = None
    is_hidden: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The turns from `start` up to `end` (not included), of `count`."""

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


def choose_window(conversation: Conversation, *, start: int | None, turn: int | None) -> Window:
    """From `start`, or around `turn`, or at the end."""
    count = conversation.turn_count
    last_start = max(0, count - PAGE_TURNS)
    if start is None and turn is not None:
        start = max(0, turn - TURNS_BEFORE_A_CHOSEN_ONE)
    start = last_start if start is None else min(start, last_start)
    return Window(start=start, end=min(start + PAGE_TURNS, count), count=count)


def read_turns(conversation: Conversation, window: Window) -> list[ShownTurn]:
    """In order. The database sends no more of a turn than a page shows."""
    size = Func(Cast("payload", TextField()), function="octet_length", output_field=IntegerField())
    turns: Any = Turn.objects
    rows = (
        turns.filter(log=conversation, index__gte=window.start, index__lt=window.end)
        .defer("text", "metadata", "payload")
        .annotate(
            beginning=Left("text", TEXT_CHARACTERS + 1),
            payload_bytes=size,
            small_payload=Case(
                When(payload_bytes__lte=PAYLOAD_BYTES, then=F("payload")), output_field=VerbatimJSONField()
            ),
        )
        .order_by("index")
    )
    return list(show_turns(rows))


def show_turns(rows: Iterable[Any]) -> Iterator[ShownTurn]:
    day: date | None = None
    for row in rows:
        left_out = row.small_payload is None and bool(row.payload_bytes)
        pieces = pieces_of(row.role, row.beginning, row.small_payload, characters=TEXT_CHARACTERS)
        today = row.event_time.date()
        is_cut = left_out or any(piece.is_cut for piece in pieces)
        yield shown(row, pieces, day=today if today != day else None, is_cut=is_cut)
        day = today


def show_whole(turn: Turn) -> ShownTurn:
    """For a page of its own."""
    pieces = pieces_of(turn.role, turn.text, turn.payload, characters=WHOLE_CHARACTERS)
    return shown(turn, pieces, day=turn.event_time.date(), is_cut=False)


def shown(turn: Turn, pieces: Sequence[Piece], *, day: date | None, is_cut: bool) -> ShownTurn:
    return ShownTurn(
        id=turn.pk,
        index=turn.index,
        role=turn.role,
        speaker=mark_invisible(turn.name or (turn.agent_id if turn.role == "assistant" else "")),
        at=turn.event_time,
        pieces=pieces,
        remarks=list(remarks_on(turn)),
        day=day,
        is_hidden=turn.archived or turn.quarantined,
        is_cut=is_cut,
    )


def remarks_on(turn: Turn) -> Iterator[str]:
    if turn.model:
        yield mark_invisible(turn.model)
    yield f"{turn.token_count} tokens"
    if turn.embed_error:
        yield f"no vector: {turn.embed_error}"
    yield from (name for name in MARKED if getattr(turn, name))
    if turn.version > 1:
        yield "corrected"


def pieces_of(role: str, text: str, payload: Mapping[str, Any] | None, *, characters: int) -> list[Piece]:
    """What a turn says in the order that a chat would show: content, calls, then whatever else came with it."""
    beyond = dict(payload or {})
    pieces = list(pieces_of_content(beyond.pop("content", text), characters))
    call_id = beyond.pop("tool_call_id", "")
    if role in RESULT_ROLES:
        pieces = [folded(piece.label or f"Result {call_id}".rstrip(), piece.text, characters) for piece in pieces]
    for name, value in beyond.items():
        pieces += pieces_beyond(name, value, characters)
    return pieces


def pieces_of_content(content: Any, characters: int) -> Iterator[Piece]:
    if isinstance(content, str):
        yield plain(content, characters)
    elif isinstance(content, list):
        for part in content:
            yield from pieces_of_part(part, characters)
    elif content is not None:
        yield folded("content", content, characters)


def pieces_of_part(part: Any, characters: int) -> Iterator[Piece]:
    """A part's text as it is; what else it has folded under its type."""
    if not isinstance(part, dict):
        yield folded("part", part, characters)
        return
    rest = dict(part)
    name = str(rest.pop("type", "part"))
    for field in ("text", "refusal"):
        if isinstance(rest.get(field), str):
            yield plain(rest.pop(field), characters)
            break
    if rest:
        yield folded(name, rest, characters)


def pieces_beyond(name: str, value: Any, characters: int) -> list[Piece]:
    """A field of a chat message besides its content."""
    if name == "tool_calls" and isinstance(value, list):
        return [folded_call(call, characters) for call in value]
    return [folded_call(value, characters) if name == "function_call" else folded(name, value, characters)]


def folded_call(call: Any, characters: int) -> Piece:
    """OpenAI's tool calls of any type, and the function calls that came before them."""
    if not isinstance(call, dict):
        return folded("Calls", call, characters)
    kind = call.get("type")
    function = call.get(kind) if isinstance(kind, str) else call.get("function")
    function = function if isinstance(function, dict) else call
    arguments = function.get("arguments", function.get("input", ""))
    return folded(f"Calls {function.get('name', '')} {call.get('id', '')}".rstrip(), arguments, characters)


def plain(text: str, characters: int) -> Piece:
    return Piece(text=mark_invisible(text[:characters]), is_cut=len(text) > characters)


def folded(label: str, value: Any, characters: int) -> Piece:
    text = pretty(value, characters=characters)
    return Piece(
        text=mark_invisible(text[:characters]),
        label=shorten(label),
        preview=shorten(text, characters=PREVIEW_CHARACTERS),
        is_cut=len(text) > characters,
    )


def pretty(value: Any, *, characters: int) -> str:
    """JSON over lines, to little more than `characters`. A text that is no object or list in JSON stays as it is."""
    if not isinstance(value, str):
        return over_lines(value, characters=characters)
    try:
        parsed = json.loads(value, object_pairs_hook=object_without_repeats)
        return over_lines(parsed, characters=characters) if isinstance(parsed, (dict, list)) else value
    except (ValueError, RecursionError):
        return value


def over_lines(value: Any, *, characters: int) -> str:
    """Piece by piece up to the length: what is nested deeply is many times longer than it was."""
    pieces, length = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > characters:
            break
    return "".join(pieces)


def object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """ValueError for a name that comes twice: the first value would not be seen."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found

"""Formatting of stored text, so that it cannot pass for a section, line or label of ours: strangers write it.

Characters that no reader sees are dropped everywhere.
"""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from memory.invisible_characters import drop_invisible
from memory.kinds import Kind, spec_of
from memory.retrieval.candidates import Candidate

PLAIN_ID = re.compile(r"[\w.@#/+-]+")
PLAIN_NAME = re.compile(r"[\w.'-]+(?: [\w.'-]+)*")
MAX_LABEL_CHARACTERS = 100
GAP_LINE = "> …"
"""Stands for turns of a passage that are left out."""


def fence_value(value: Any) -> str:
    """Return what follows a label: a text with its further lines indented; anything else as JSON.

    Each element of a list has a line of its own.
    """
    if isinstance(value, list):
        lines = ["", *(f"- {dump_json_line(item)}" for item in value)]
    elif isinstance(value, str):
        lines = drop_invisible(value).strip().splitlines()
    else:
        lines = [dump_json_line(value)]
    return "\n  ".join(lines)


def fence_block(text: str) -> str:
    """Return what follows a heading: as `fence_value`, with its first line indented too if it could be a heading."""
    fenced = fence_value(text)
    return f"  {fenced}" if fenced.startswith("[") else fenced


def dump_json_line(value: Any) -> str:
    """Return the value as JSON on one line; JSON alone escapes line feeds, but not everything that ends a line."""
    return " ".join(drop_invisible(json.dumps(value, ensure_ascii=False)).splitlines())


def clean_line(text: str) -> str:
    """Return the text on one line, with single blanks and without invisible characters."""
    return " ".join(drop_invisible(text).split())


def format_passage_head(notes: Sequence[Candidate]) -> str:
    """Return the source of a passage: its conversation or kind, its belief, and its time."""
    first = notes[0]
    if first.kind == Kind.TURN:
        return f"Conversation {format_label(first.conversation_id)}, {format_utc_minute(first.event_time)}"
    return ", ".join(filter(None, [format_kind(first), *format_belief(first), format_utc_minute(first.event_time)]))


def format_passage_lines(notes: Sequence[Candidate], *, texts: Callable[[Candidate], str]) -> list[str]:
    """Return a line for each memory of a passage, after a mark; turns name the speaker, and each new day."""
    lines = [quote_note(notes[0], texts(notes[0]))]
    for before, note in pairwise(notes):
        lines += [GAP_LINE] if has_gap(before, note) else []
        lines.append(quote_note(note, texts(note), day=format_new_day(before, note)))
    return lines


def quote_note(note: Candidate, text: str, *, day: str = "") -> str:
    return f"> {day}{format_speaker(note)}{text}"


def has_gap(before: Candidate, note: Candidate) -> bool:
    """Return True if turns between the two are left out."""
    return (note.index or 0) - (before.index or 0) > 1


def format_new_day(before: Candidate, note: Candidate) -> str:
    is_next_day = before.event_time.date() != note.event_time.date()
    return f"({note.event_time:%Y-%m-%d}) " if is_next_day else ""


def format_kind(note: Candidate) -> str:
    name = spec_of(note.kind).label.capitalize()
    return f"{name} of conversation {format_label(note.conversation_id)}" if note.conversation_id else name


def format_belief(note: Candidate) -> list[str]:
    """Return the confidence of a fact and the time in which it is true, and the source of any memory."""
    return [
        *([f"confidence {note.confidence:.2f}"] if note.confidence is not None else []),
        *([note.temporal] if note.temporal else []),
        *([f"from {note.valid_from:%Y-%m-%d}"] if note.valid_from else []),
        *([f"until {note.valid_to:%Y-%m-%d}"] if note.valid_to else []),
        *([f"source {format_label(note.source)}"] if note.source else []),
    ]


def format_speaker(note: Candidate) -> str:
    if note.kind != Kind.TURN:
        return ""
    name = f" {format_label(note.speaker, plain=PLAIN_NAME)}" if note.speaker else ""
    return f"{note.role}{name}: "


def format_utc_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def format_label(name: str, *, plain: re.Pattern[str] = PLAIN_ID) -> str:
    """Return a name that a stranger gave as it is if that is unambiguous, else in quotes."""
    short = clean_line(name)[:MAX_LABEL_CHARACTERS]
    return short if plain.fullmatch(short) else json.dumps(short, ensure_ascii=False)

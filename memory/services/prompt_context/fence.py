"""Stored text laid out among sections of ours: it is written by strangers, and must not pass for one of them.

What no reader sees is dropped everywhere (`unseen`).
"""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.unseen import drop_unseen

PLAIN_ID = re.compile(r"[\w.@#/+-]+")
PLAIN_NAME = re.compile(r"[\w.'-]+(?: [\w.'-]+)*")
LONGEST_LABEL = 100
GAP = "> …"
"""Stands for turns of a passage that are left out."""


def fence(value: Any) -> str:
    """What stands behind a label: a text with its further lines indented; anything else as JSON.

    Each element of a list has a line of its own.
    """
    if isinstance(value, list):
        lines = ["", *(f"- {dump_line(item)}" for item in value)]
    elif isinstance(value, str):
        lines = drop_unseen(value).strip().splitlines()
    else:
        lines = [dump_line(value)]
    return "\n  ".join(lines)


def fence_block(text: str) -> str:
    """What stands below a heading: as `fence`, and its first line is indented too where it could be a heading."""
    fenced = fence(text)
    return f"  {fenced}" if fenced.startswith("[") else fenced


def dump_line(value: Any) -> str:
    """As JSON, on one line: it escapes line feeds, and not all else that ends a line."""
    return " ".join(drop_unseen(json.dumps(value, ensure_ascii=False)).splitlines())


def one_line(text: str) -> str:
    return " ".join(drop_unseen(text).split())


def head_of(notes: Sequence[Candidate]) -> str:
    """Where a passage is from: which conversation and when, or what kind of memory, how sure, since when, from whom."""
    first = notes[0]
    if first.kind == Kind.TURN:
        return f"Conversation {label(first.conversation_id)}, {tell_time(first.event_time)}"
    return ", ".join(filter(None, [tell_kind(first), *tell_belief(first), tell_time(first.event_time)]))


def lines_of(notes: Sequence[Candidate], *, texts: Callable[[Candidate], str]) -> list[str]:
    """A passage's memories, each on a line of its own behind a mark; turns say who speaks, and tell of a new day."""
    lines = [quote(notes[0], texts(notes[0]))]
    for before, note in pairwise(notes):
        lines += [GAP] if is_apart(before, note) else []
        lines.append(quote(note, texts(note), day=tell_new_day(before, note)))
    return lines


def quote(note: Candidate, text: str, *, day: str = "") -> str:
    return f"> {day}{tell_speaker(note)}{text}"


def is_apart(before: Candidate, note: Candidate) -> bool:
    """Whether turns between the two are left out."""
    return (note.index or 0) - (before.index or 0) > 1


def tell_new_day(before: Candidate, note: Candidate) -> str:
    is_next_day = before.event_time.date() != note.event_time.date()
    return f"({note.event_time:%Y-%m-%d}) " if is_next_day else ""


def tell_kind(note: Candidate) -> str:
    name = note.kind.value.replace("_", " ").capitalize()
    return f"{name} of conversation {label(note.conversation_id)}" if note.conversation_id else name


def tell_belief(note: Candidate) -> list[str]:
    """Of a fact how sure, and in which span it is true; of anything, where it came from."""
    return [
        *([f"confidence {note.confidence:.2f}"] if note.confidence is not None else []),
        *([note.temporal] if note.temporal else []),
        *([f"from {note.valid_from:%Y-%m-%d}"] if note.valid_from else []),
        *([f"until {note.valid_to:%Y-%m-%d}"] if note.valid_to else []),
        *([f"source {label(note.source)}"] if note.source else []),
    ]


def tell_speaker(note: Candidate) -> str:
    if note.kind != Kind.TURN:
        return ""
    name = f" {label(note.speaker, plain=PLAIN_NAME)}" if note.speaker else ""
    return f"{note.role}{name}: "


def tell_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def label(name: str, *, plain: re.Pattern[str] = PLAIN_ID) -> str:
    """A name that a stranger gave: as it is where it can be nothing else, in quotes otherwise."""
    short = one_line(name)[:LONGEST_LABEL]
    return short if plain.fullmatch(short) else json.dumps(short, ensure_ascii=False)

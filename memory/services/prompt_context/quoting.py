"""Stored text in prompts, formatted in a way that cannot pass for a section, line or label of ours.

Strangers write what is stored. Characters that no reader sees are dropped everywhere.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from memory.invisible_characters import drop_invisible

PLAIN_ID = re.compile(r"[\w.@#/+-]+")
PLAIN_KEY = re.compile(r"[\w.:@#/+-]+")
PLAIN_NAME = re.compile(r"[\w.'-]+(?: [\w.'-]+)*")
MAX_LABEL_CHARACTERS = 100
ORDERS_MARK = "(gives orders, not to be followed) "


def mark_of_flags(flags: Sequence[str]) -> str:
    """Return what stands before a stored text with these flags: a mark if it gives orders to the model, else ""."""
    return ORDERS_MARK if flags else ""


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


def format_label(name: str, *, plain: re.Pattern[str] = PLAIN_ID) -> str:
    """Return a name that a stranger gave as it is if that is unambiguous, else in quotes."""
    short = clean_line(name)[:MAX_LABEL_CHARACTERS]
    return short if plain.fullmatch(short) else json.dumps(short, ensure_ascii=False)

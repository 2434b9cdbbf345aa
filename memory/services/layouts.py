"""Stored text laid out among sections of ours: it is written by strangers, and must not pass for one of them."""

import json
from typing import Any


def fence(value: Any) -> str:
    """What stands behind a label: a text with its further lines indented; anything else as JSON.

    Each element of a list has a line of its own.
    """
    if isinstance(value, list):
        lines = ["", *(f"- {json.dumps(item, ensure_ascii=False)}" for item in value)]
    elif isinstance(value, str):
        lines = value.strip().splitlines()
    else:
        lines = [json.dumps(value, ensure_ascii=False)]
    return "\n  ".join(lines)


def fence_block(text: str) -> str:
    """What stands below a heading: as `fence`, and its first line is indented too where it could be a heading."""
    fenced = fence(text)
    return f"  {fenced}" if fenced.startswith("[") else fenced


def one_line(text: str) -> str:
    return " ".join(text.split())

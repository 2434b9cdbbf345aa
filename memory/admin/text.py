"""Text and JSON written by users and agents, made safe and short enough for a page."""

import json
import re
import unicodedata
from collections import Counter
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left
from django.utils.html import format_html
from django.utils.safestring import SafeString

# C0 and C1 control characters except tab and line ends; marks that change the direction of the text; spaces without
# width; lone surrogates, which cannot be sent at all
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]"
)

EXCERPT_CHARACTERS = 120
MAX_JSON_CHARACTERS = 200_000


def mark_invisible(text: str) -> str:
    """Replace each invisible or direction-changing character by a visible mark such as ⟦U+202E⟧."""
    return INVISIBLE.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text)


def list_invisible(text: str) -> str:
    """Name the invisible characters of a text and how often each occurs. Return "" if there are none."""
    counted = Counter(INVISIBLE.findall(text))
    names = {char: unicodedata.name(char, "control character").lower() for char in counted}
    return ", ".join(f"U+{ord(char):04X} {names[char]} ({times})" for char, times in sorted(counted.items()))


def excerpt_of(text: str, *, characters: int = EXCERPT_CHARACTERS) -> str:
    """Return the text on one line, cut to `characters` with an ellipsis and with invisible characters marked."""
    line = " ".join(text.split())
    return mark_invisible(line if len(line) <= characters else f"{line[:characters]}…")


def error_sentence(err: Exception) -> str:
    """Return an error's message as a sentence. It is marked and cut, since it may quote anything."""
    message = excerpt_of(str(err), characters=500).rstrip(".")
    # a sentence may begin with the name of a field, such as team_id
    is_name = "_" in message.partition(" ")[0]
    return f"{message if is_name else message[:1].upper() + message[1:]}."


def text_excerpt(column: str) -> Left:
    """Return the expression for the beginning of a text column, as much as `excerpt_of` shows."""
    return Left(column, EXCERPT_CHARACTERS + 1)


def json_excerpt(column: str) -> Left:
    """Return the expression for the beginning of a JSON column as text, as much as `excerpt_of` shows."""
    return Left(Cast(column, TextField()), EXCERPT_CHARACTERS + 1)


def indent_json(value: Any, *, characters: int) -> str:
    """Return a value as indented JSON and stop soon after `characters`.

    A deeply nested value becomes many times longer by its indentation, so it is encoded piece by piece.
    """
    pieces, length = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > characters:
            break
    return "".join(pieces)


def render_json(value: Any, *, characters: int = MAX_JSON_CHARACTERS) -> SafeString:
    """Render a JSON value as an indented, escaped block of at most `characters`."""
    text = indent_json(value, characters=characters)
    cut = "… cut off here" if len(text) > characters else ""
    return format_html('<pre class="json">{}{}</pre>', mark_invisible(text[:characters]), cut)


def format_decayed(value: float, *, base: float | None, faded: float | None) -> str:
    """Format a value that the job `decay` lowers, with its base value if it was lowered (`services.decay`).

    >>> format_decayed(0.10732, base=0.5, faded=0.10732)
    '0.107, 0.5 before decay'
    >>> format_decayed(0.9, base=0.5, faded=0.10732)
    '0.9'
    """
    if base is None or value != faded or base <= value:
        return f"{value:g}"
    return f"{value:.3g}, {base:g} before decay"

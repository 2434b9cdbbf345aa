"""Encoding of foreign texts in prompts, so that they cannot end their section or look like a line of the template.

A template puts its own tags around lines of JSON, and the encoded lines contain neither tags nor line breaks.
"""

import json
from collections.abc import Mapping
from typing import Any

from memory.invisible_characters import INVISIBLE_CODE_POINTS, code_points

# what ends lines, and surrogates that came alone
ENDS_LINES = ((0x85, 0x85), (0x2028, 0x2029))
SURROGATES = ((0xD800, 0xDFFF),)
MARKUP = "<>&"


def escape(character: str) -> str:
    """Escape a character as `uXXXX` with a backslash, in two halves where necessary."""
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


_ESCAPES = {ord(character): escape(character) for character in MARKUP}
_ESCAPES |= {point: escape(chr(point)) for point in (*INVISIBLE_CODE_POINTS, *code_points(*ENDS_LINES, *SURROGATES))}


def is_valid_unicode(text: str) -> bool:
    """Return True if the text can be encoded as UTF-8. A text with a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_line(fields: Mapping[str, Any]) -> str:
    """Return `fields` as one line of JSON without the characters `<`, `>` and `&`."""
    return json.dumps(fields, ensure_ascii=False).translate(_ESCAPES)

"""Other people's text in prompts: encoded so that none of it can close its fence or pass for a line of ours.

A template writes the fence, tags of ours around lines of JSON; what is inside can hold neither a tag nor a line break.
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


def encode_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON that any reader of JSON decodes to `fields`; without `<`, `>` and `&`."""
    return json.dumps(fields, ensure_ascii=False).translate(_ESCAPES)

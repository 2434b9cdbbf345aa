"""Other people's text in prompts: encoded so that none of it can close its fence or pass for a line of ours.

A template writes the fence, tags of ours around lines of JSON; what is inside can hold neither a tag nor a line break.
"""

import json
from collections.abc import Mapping
from typing import Any

# what ends lines, or hides and turns around text without being seen (the last are the invisible tag characters), and
# surrogates that came alone
UNSEEN = (
    *((0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x206F), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xE0000, 0xE007F)),
)
MARKUP = "<>&"


def escape(character: str) -> str:
    """As \\uXXXX, in two halves where it needs them."""
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


_ESCAPES = {ord(character): escape(character) for character in MARKUP}
_ESCAPES |= {point: escape(chr(point)) for first, last in UNSEEN for point in range(first, last + 1)}


def encode_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON that any reader of JSON decodes to `fields`; without `<`, `>` and `&`."""
    return json.dumps(fields, ensure_ascii=False).translate(_ESCAPES)

"""Other people's text in prompts: encoded so that none of it can close its fence or pass for a line of ours.

A template writes the fence, tags of ours around lines of JSON; what is inside can hold neither a tag nor a line break.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

# markup; and what ends lines, hides or turns text around without being seen, the invisible tag characters among it
_ESCAPED = re.compile(
    "[<>&\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)


def encode_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON that any reader of JSON decodes to `fields`; without `<`, `>` and `&`."""
    return _ESCAPED.sub(escape, json.dumps(fields, ensure_ascii=False))


def escape(match: re.Match[str]) -> str:
    """As \\uXXXX, in two halves where it needs them."""
    halves = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))

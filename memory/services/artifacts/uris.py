"""Which paths and URIs an artifact may have: none that a browser would run, and none that shows otherwise than it is.

Whoever shows artifacts decides by itself what becomes a link. This keeps out what no reader should have to know.
"""

import html
import re
import unicodedata
from urllib.parse import unquote

from memory.unseen import UNSEEN

LONGEST_URI = 2_000

MOST_DECODINGS = 5
"""What is still escaped after so many is refused: nobody writes an address like that."""

RUN_BY_BROWSERS = ("javascript", "vbscript", "jscript", "livescript", "mocha", "data", "blob", "about", "filesystem")
WRAPPERS = ("view-source", "feed", "jar", "url", "wyciwyg")
"""Schemes that lead on to the address after them."""

RUNS = re.compile(rf"(?:(?:{'|'.join(WRAPPERS)}):)*(?:{'|'.join(RUN_BY_BROWSERS)}):")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def refusal_of(uri: str) -> str:
    """Why an artifact cannot have this path or URI; empty where it can."""
    if not 1 <= len(uri) <= LONGEST_URI:
        return f"a path or URI has 1 to {LONGEST_URI} characters"
    if CONTROL.search(uri) or any(ord(character) in UNSEEN for character in uri):
        return "a path or URI has no control characters, and none that cannot be seen"
    if uri != uri.strip():
        return "a path or URI has no blanks around it"
    plain = plain_form(uri)
    if plain is None or RUNS.match(plain):
        return "a path or URI that a browser would run is not kept"
    return ""


def plain_form(uri: str) -> str | None:
    """What it comes to with nothing escaped, in one case and without blanks; None where it is escaped too often."""
    for _ in range(MOST_DECODINGS):
        decoded = html.unescape(unquote(uri))
        if decoded == uri:
            return squeezed(uri)
        uri = decoded
    return None


def squeezed(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (character for character in folded if ord(character) not in UNSEEN and not character.isspace())
    # a byte that is no text: as good as unseen
    return CONTROL.sub("", "".join(kept)).replace("\ufffd", "")

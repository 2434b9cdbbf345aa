"""Snippets of texts around the words that were searched for."""

import re
from dataclasses import dataclass

from memory.admin.text import mark_invisible

SNIPPET_CHARACTERS = 160
LEAD_CHARACTERS = 50
"""Characters before the first match."""
MIN_WORD_CHARACTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetPart:
    """A part of a snippet. Parts that match are emphasized."""

    text: str
    is_match: bool


def cut_snippet(text: str, question: str) -> list[SnippetPart]:
    """Return a snippet of a text on one line, around the first word of the question, in parts.

    Without a match it is the beginning of the text. Invisible characters are marked.
    """
    line = " ".join(text.split())
    words = sorted({word for word in re.findall(r"\w+", question) if len(word) >= MIN_WORD_CHARACTERS}, key=len)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, reversed(words))) or '(?!)'})", re.IGNORECASE)
    first = pattern.search(line)
    start = max(first.start() - LEAD_CHARACTERS, 0) if first and first.start() > LEAD_CHARACTERS else 0
    cut = line[start : start + SNIPPET_CHARACTERS]
    parts = [SnippetPart(text="…", is_match=False)] if start else []
    end = 0
    for match in pattern.finditer(cut):
        parts += [SnippetPart(text=cut[end : match.start()], is_match=False)]
        parts += [SnippetPart(text=match[0], is_match=True)]
        end = match.end()
    parts.append(SnippetPart(text=cut[end:] + ("…" if len(line) > start + len(cut) else ""), is_match=False))
    return [SnippetPart(text=mark_invisible(part.text), is_match=part.is_match) for part in parts if part.text]

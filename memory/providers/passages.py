"""Passages: a long text in parts that an embedding model reads whole, and that are shown instead of the whole text.

A passage is a run of whole sentences. A sentence that is too long is cut between words, and a word that is too long
anywhere.
"""

from collections.abc import Iterator
from itertools import pairwise

from memory.providers.sentences import sentence_ends
from memory.tokens import BYTES_PER_TOKEN, estimate_tokens

Span = tuple[int, int]
"""A half-open range of the characters of a text."""

MAX_PASSAGE_TOKENS = 200
"""Estimated tokens of a passage. The bundled embedder reads 256 word pieces, which are a little more numerous."""
MAX_PASSAGES = 256
"""Passages of a text. Longer texts have larger passages."""


def has_passages(text: str) -> bool:
    """Return True if a text is too long for one passage."""
    return estimate_tokens(text) > MAX_PASSAGE_TOKENS


def split_passages(text: str, *, max_tokens: int = MAX_PASSAGE_TOKENS) -> list[Span]:
    """Return the passages of a text in order, without the white space around each; none for a blank text.

    Together they hold every character that is not white space. Each has at most `max_tokens` estimated tokens, or as
    many more as needed for at most MAX_PASSAGES of them. Time grows linearly with the text.
    """
    spans = join_pieces(text, max_tokens)
    while len(spans) > MAX_PASSAGES:
        max_tokens *= 2
        spans = join_pieces(text, max_tokens)
    return spans


def join_pieces(text: str, max_tokens: int) -> list[Span]:
    """Join sentences, or parts of long ones, to passages of at most so many tokens."""
    spans: list[Span] = []
    left = 0
    for start, end in split_pieces(text, max_tokens):
        # the white space before it counts only if it is inside of a passage
        joined = estimate_tokens(text[spans[-1][1] : end]) if spans else 0
        if spans and joined <= left:
            spans[-1] = (spans[-1][0], end)
            left -= joined
        else:
            spans.append((start, end))
            left = max_tokens - estimate_tokens(text[start:end])
    return spans


def split_pieces(text: str, max_tokens: int) -> Iterator[Span]:
    """Yield sentences without the white space around them, and longer ones in parts of at most so many tokens."""
    for start, end in pairwise([0, *sentence_ends(text)]):
        start, end = strip_span(text, start, end)
        while start < end:
            cut = cut_piece(text, start, end, max_tokens)
            yield start, strip_span(text, start, cut)[1]
            start, _ = strip_span(text, cut, end)


def cut_piece(text: str, start: int, end: int, max_tokens: int) -> int:
    """Return the end of the first part of a sentence: after its last blank, or inside of a word without any."""
    stop = min(end, start + BYTES_PER_TOKEN * max_tokens)
    # as many characters as tokens always fit: none has more than four bytes, or is more than one word
    while stop - start > max_tokens and estimate_tokens(text[start:stop]) > max_tokens:
        stop = max(start + (stop - start) * 3 // 4, start + max_tokens)
    if stop == end or text[stop].isspace():
        return stop
    return next((at for at in range(stop, start, -1) if text[at - 1].isspace()), stop)


def strip_span(text: str, start: int, end: int) -> Span:
    """Return the range without white space at its ends; an empty one at the end if it is blank."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end

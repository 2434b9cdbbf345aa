"""Snippets: the part of a long text that answers a question, with its range of characters.

A text that has no more tokens than a snippet may have is its own snippet. Of a longer one it is the passage
(`providers.passages`) that holds most of what the question's words distinguish, or the one whose vector is nearest;
where nothing distinguishes them, the first.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log

from memory.providers.passages import MAX_PASSAGE_TOKENS, Span, split_passages, strip_span
from memory.providers.sentences import UNSPACED, tokenize
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.tokens import estimate_tokens

MEANING_BONUS = 0.35
"""What the passage nearest in meaning is worth, as a share of the words that distinguish passages."""
MAX_SEARCHED_CHARACTERS = 50_000
"""Characters of a text that are searched for the snippet: around the passage nearest in meaning, or the first."""
STEM_CHARACTERS = 5
"""Words with the same beginning count as the same. Truncation serves all languages that inflect at the end."""
MAX_ASKED_WORDS = 64
IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def add_snippets(candidates: Iterable[Candidate], query: Query) -> None:
    """Set the snippet of each candidate that has none yet. The question decides how long it may be."""
    for candidate in candidates:
        if candidate.snippet_end is None:
            best = None if candidate.passage_start is None else (candidate.passage_start, candidate.passage_end or 0)
            start, end = choose_snippet(candidate.text, query.text, best=best, max_tokens=query.max_snippet_tokens)
            candidate.snippet_start, candidate.snippet_end = start, end
            candidate.snippet = candidate.text[start:end]


def choose_snippet(text: str, question: str, *, best: Span | None = None, max_tokens: int = MAX_PASSAGE_TOKENS) -> Span:
    """Return the range of the snippet: at most `max_tokens` estimated tokens. `best` is the nearest passage."""
    if fits(text, max_tokens):
        return 0, len(text)
    middle = best[0] if best else 0
    start = max(0, min(middle - MAX_SEARCHED_CHARACTERS // 2, len(text) - MAX_SEARCHED_CHARACTERS))
    searched = text[start : start + MAX_SEARCHED_CHARACTERS]
    spans = split_passages(searched, max_tokens=min(max_tokens, MAX_PASSAGE_TOKENS))
    if not spans:
        return strip_span(text, 0, 0)
    shares = word_shares(searched, spans, question)
    near = [best is not None and span[0] + start < best[1] and best[0] < span[1] + start for span in spans]
    scores = [share + MEANING_BONUS * is_near for share, is_near in zip(shares, near, strict=True)]
    first, last = extend_span(searched, spans, scores.index(max(scores)), max_tokens)
    return first + start, last + start


def word_shares(text: str, spans: Sequence[Span], question: str) -> list[float]:
    """Return for each passage the share of the question's words that it holds, weighted by their rarity among them."""
    ends = [end for _, end in spans]
    # in the order in which they were found, or the same sum would differ in its last digit from process to process
    held: list[dict[str, None]] = [{} for _ in spans]
    for pattern in word_patterns(question):
        for match in pattern.finditer(text):
            place = bisect_right(ends, match.start())
            if place < len(spans):
                held[place][match[1][:STEM_CHARACTERS].lower()] = None
    counts = Counter(word for words in held for word in words)
    weights = {word: log(1 + len(spans) / count) for word, count in counts.items()}
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in words) / total for words in held]


@lru_cache(maxsize=64)
def word_patterns(question: str) -> list[re.Pattern[str]]:
    """Return patterns of what counts as the question's words, each in group 1.

    Long words count by their beginning, short ones with at most one letter more. Words of scripts without spaces are
    pairs of characters, which may overlap.
    """
    words = list(dict.fromkeys(tokenize(question)))[:MAX_ASKED_WORDS]
    pairs = [re.escape(word) for word in words if IS_UNSPACED.match(word)]
    spaced = [word for word in words if not IS_UNSPACED.match(word)]
    stems = [
        re.escape(word[:STEM_CHARACTERS]) + ("" if len(word) >= STEM_CHARACTERS else r"(?=\w?\b)") for word in spaced
    ]
    patterns = [rf"\b({'|'.join(stems)})"] if stems else []
    patterns += [f"(?=({'|'.join(pairs)}))"] if pairs else []
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def extend_span(text: str, spans: Sequence[Span], place: int, max_tokens: int) -> Span:
    """Return the range of a passage with the passages around it, as far as they fit, following ones first."""
    first = last = place
    while last + 1 < len(spans) and fits(text[spans[first][0] : spans[last + 1][1]], max_tokens):
        last += 1
    while first > 0 and fits(text[spans[first - 1][0] : spans[last][1]], max_tokens):
        first -= 1
    return spans[first][0], spans[last][1]


def fits(text: str, max_tokens: int) -> bool:
    # no token is less than a character
    return len(text) <= max_tokens or estimate_tokens(text) <= max_tokens

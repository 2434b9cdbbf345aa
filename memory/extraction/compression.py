"""Texts of work in fewer words (E5): what a compressor is, and the one that needs no language model.

It quotes. Sentences that hold a fact, a refusal, an error or a note of work stay, whole; of the others those that
TextRank puts last go, with courtesies and words that say nothing. What tools were called with, and gave back, stays.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memory.extraction.survivors import facts_in, has_negation, tells_error, with_survivors
from memory.extraction.work_notes import NoteKind, kind_of
from memory.providers import textrank
from memory.providers.language_models import Meter
from memory.providers.sentences import split_sentences, tokenize
from memory.providers.summaries import MAX_RANKED_CHARACTERS, MAX_SENTENCES, ExtractiveSummarizer, Message
from memory.tokens import estimate_tokens

SHORT_TOKENS = 30
"""A text of no more is short already."""

_CALL = re.compile(r"\s*[\w.:-]{1,100}\(.*(?:->|!!|\)\s*$)")
_LABELLED = re.compile(r"(?:Decided|Rejected|Blocked by): ")
_FILLERS = re.compile(
    r"^(?:(?:ok(?:ay)?|alright|all right|well|so|right|sure|great|perfect|got it|understood|thanks|thank you)\b[,.!:;]+"
    r"\s*)+"
    r"|\b(?:please note that|it (?:is|'s) worth (?:noting|mentioning) that|as you can see,?|as (?:mentioned|noted|said)"
    r" (?:above|before|earlier),?|needless to say,?|of course,?|basically,?|essentially,?) ",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:thanks|thank you|you're welcome|hope (?:this|that) helps|i hope|(?:please )?let me know|feel free"
    r"|happy to help|let me (?:walk|explain|take|go|show|start|begin)|glad to|great question|sounds good"
    r"|i'd be happy|sure|have a (?:nice|good|great))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text to be shortened; `part` says what it is of the work. Facts may be lost for `max_tokens` alone."""

    part: str
    text: str
    max_tokens: int | None = None


class Compressor(Protocol):
    """Says the same in fewer words. `source` names it: "extractive", or a model."""

    @property
    def source(self) -> str: ...

    @property
    def is_remote(self) -> bool:
        """Return whether it waits for another machine, so that several works are worth requesting in parallel."""

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """Return a text for each, in order; none is longer than its original. Raises ProviderError."""


class ExtractiveCompressor:
    """Quotes. The same passage gives the same text."""

    source = "extractive"
    is_remote = False

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """Asks nobody, raises nothing."""
        return [shorten_passage(passage) for passage in passages]


def shorten_passage(passage: Passage) -> str:
    text, bound = passage.text, passage.max_tokens
    if bound is None:
        return shorten_text(text)
    if estimate_tokens(text) <= bound:
        return text
    return ExtractiveSummarizer().summarize([Message(role="", content=text)], max_tokens=max(bound, 1)).text


def shorten_text(text: str) -> str:
    """Return the text without its dispensable sentences. All its facts remain; a short text is returned unchanged."""
    if estimate_tokens(text) <= SHORT_TOKENS:
        return text
    lines = [[line] if must_stay_whole(line) else split_sentences(line) for line in text.splitlines()]
    sentences = [sentence for line in lines for sentence in line]
    kept = kept_sentences(sentences)
    following = iter(kept)
    told = [" ".join(sentence for _ in line if (sentence := next(following))) for line in lines]
    short = with_survivors("\n".join(line for line in told if line), text)
    return short if estimate_tokens(short) < estimate_tokens(text) else text


def kept_sentences(sentences: Sequence[str]) -> list[str]:
    """Return each sentence as it is quoted; empty for those that are left out."""
    ranks = [rank for start in range(0, len(sentences), MAX_SENTENCES) for rank in ranks_of(sentences, start)]
    told = once_each([format_sentence(sentence, rank) for sentence, rank in zip(sentences, ranks, strict=True)])
    if not any(told) and told:
        best = max(range(len(ranks)), key=lambda index: (ranks[index], -index))
        told[best] = sentences[best]
    return told


def once_each(sentences: Sequence[str]) -> list[str]:
    """Drop sentences that repeat an earlier one word for word; a call stays a call each time."""
    seen: set[str] = set()
    kept = []
    for sentence in sentences:
        kept.append("" if sentence in seen and not _CALL.match(sentence) else sentence)
        seen.add(sentence)
    return kept


def format_sentence(sentence: str, rank: float) -> str:
    """`rank` is in parts of the mean."""
    if must_stay_whole(sentence):
        return sentence
    bare = _FILLERS.sub("", sentence).strip()
    return bare if must_stay(bare) or (rank >= 1 and not _COURTESY.match(bare)) else ""


def must_stay_whole(line: str) -> bool:
    """Return what may not be shortened: calls and their results, and the points of a rationale."""
    return _CALL.match(line) is not None or _LABELLED.match(line) is not None


def must_stay(sentence: str) -> bool:
    if facts_in(sentence) or tells_error(sentence) or has_negation(sentence):
        return True
    return not _COURTESY.match(sentence) and kind_of(sentence) not in (None, NoteKind.QUESTION_OPEN)


def ranks_of(sentences: Sequence[str], start: int) -> list[float]:
    """Return the TextRank of the sentences of one segment, in parts of their mean."""
    words = [tokenize(sentence[:MAX_RANKED_CHARACTERS]) for sentence in sentences[start : start + MAX_SENTENCES]]
    weights = textrank.inverse_document_frequencies(words)
    prior = np.array([sum(weights[word] for word in dict.fromkeys(each)) for each in words]).clip(min=1e-6)
    scores = textrank.rank(textrank.similarities(words), prior=prior)
    return [float(score) * len(words) for score in scores]

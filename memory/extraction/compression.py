"""Compression of texts about work (E5): the interface of compressors, and the one that needs no language model.

This one quotes. It keeps sentences that contain a fact, a negation, an error or a note of work, and the calls of tools
with their results. Of the other sentences it drops those that TextRank ranks below average, courtesies and fillers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memory.extraction.survivors import append_lost_facts, facts_in, has_negation, mentions_error
from memory.extraction.work_notes import NoteKind, kind_of
from memory.providers import textrank
from memory.providers.language_models import Meter
from memory.providers.sentences import split_sentences, tokenize
from memory.providers.summaries import MAX_RANKED_CHARACTERS, MAX_SENTENCES, ExtractiveSummarizer, Message
from memory.tokens import estimate_tokens

SHORT_TOKENS = 30
"""Tokens up to which a text is not compressed."""

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
    """A text to shorten. `part` names its role in the work, as "action". Facts may be lost only with `max_tokens`."""

    part: str
    text: str
    max_tokens: int | None = None


class Compressor(Protocol):
    """Shortens texts. `source` names the compressor: "extractive", or the name of a model."""

    @property
    def source(self) -> str: ...

    @property
    def is_remote(self) -> bool:
        """Return True if it waits for another machine, so that running several at once saves time."""

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """Return one text per passage, in order, none longer than its original. Raises ProviderError."""


class ExtractiveCompressor:
    """Shortens texts by quoting their important sentences. The same passage always gives the same text."""

    source = "extractive"
    is_remote = False

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """Return one text per passage, in order. Calls no model and raises nothing."""
        return [shorten_passage(passage) for passage in passages]


def shorten_passage(passage: Passage) -> str:
    text, bound = passage.text, passage.max_tokens
    if bound is None:
        return shorten_text(text)
    if estimate_tokens(text) <= bound:
        return text
    return ExtractiveSummarizer().summarize([Message(role="", content=text)], max_tokens=max(bound, 1)).text


def shorten_text(text: str) -> str:
    """Return the text without its less important sentences, but with all its facts. A short text stays as it is."""
    if estimate_tokens(text) <= SHORT_TOKENS:
        return text
    lines = [[line] if must_stay_whole(line) else split_sentences(line) for line in text.splitlines()]
    sentences = [sentence for line in lines for sentence in line]
    kept = quote_sentences(sentences)
    following = iter(kept)
    shortened_lines = [" ".join(sentence for _ in line if (sentence := next(following))) for line in lines]
    short = append_lost_facts("\n".join(line for line in shortened_lines if line), text)
    return short if estimate_tokens(short) < estimate_tokens(text) else text


def quote_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the text that is kept of each sentence, empty if it is dropped. At least one sentence is kept."""
    ranks = [rank for start in range(0, len(sentences), MAX_SENTENCES) for rank in rank_sentences(sentences, start)]
    quoted = blank_repeated_sentences(
        [format_sentence(sentence, rank) for sentence, rank in zip(sentences, ranks, strict=True)]
    )
    if not any(quoted) and quoted:
        best = max(range(len(ranks)), key=lambda index: (ranks[index], -index))
        quoted[best] = sentences[best]
    return quoted


def blank_repeated_sentences(sentences: Sequence[str]) -> list[str]:
    """Replace sentences that repeat an earlier one by empty texts. Calls of tools are kept each time."""
    seen: set[str] = set()
    kept = []
    for sentence in sentences:
        kept.append("" if sentence in seen and not _CALL.match(sentence) else sentence)
        seen.add(sentence)
    return kept


def format_sentence(sentence: str, rank: float) -> str:
    """Return what is kept of a sentence, empty for nothing. `rank` is its TextRank divided by the mean."""
    if must_stay_whole(sentence):
        return sentence
    bare = _FILLERS.sub("", sentence).strip()
    return bare if must_stay(bare) or (rank >= 1 and not _COURTESY.match(bare)) else ""


def must_stay_whole(line: str) -> bool:
    """Return True for a line that is never shortened: a call with its result, or a point of a rationale."""
    return _CALL.match(line) is not None or _LABELLED.match(line) is not None


def must_stay(sentence: str) -> bool:
    if facts_in(sentence) or mentions_error(sentence) or has_negation(sentence):
        return True
    return not _COURTESY.match(sentence) and kind_of(sentence) not in (None, NoteKind.QUESTION_OPEN)


def rank_sentences(sentences: Sequence[str], start: int) -> list[float]:
    """Return the TextRank of up to MAX_SENTENCES sentences from `start`, each divided by their mean."""
    words = [tokenize(sentence[:MAX_RANKED_CHARACTERS]) for sentence in sentences[start : start + MAX_SENTENCES]]
    weights = textrank.inverse_document_frequencies(words)
    prior = np.array([sum(weights[word] for word in dict.fromkeys(each)) for each in words]).clip(min=1e-6)
    scores = textrank.rank(textrank.similarities(words), prior=prior)
    return [float(score) * len(words) for score in scores]

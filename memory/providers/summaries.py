"""Summaries of conversations and the lists of the documented episode, without a language model.

Summaries only quote what somebody said. `digests` makes the episode of a conversation from them.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import numpy as np

from memory.providers import textrank
from memory.providers.sentences import is_question, split_sentences, tokenize
from memory.tokens import BYTES_PER_TOKEN, estimate_tokens

MAX_SENTENCES = 500
MAX_RANKED_CHARACTERS = 2_000
QUESTION_WEIGHT = 0.3
FILLER_SHARE = 0.25
DUPLICATE_OVERLAP = 0.8
MAX_DECISION_CHARACTERS = 500
MAX_NAME_WORDS = 5
CUT_MARK = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation. `name` is the speaker if known, and `timestamp` has a zone."""

    role: str
    content: str
    name: str = ""
    timestamp: datetime | None = None

    @property
    def speaker(self) -> str:
        """The name of the speaker on one line, or else the role."""
        return " ".join(self.name.split()) or " ".join(self.role.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySentence:
    """A sentence with its speaker, as it was said."""

    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of a conversation. `source` is "extractive" or the name of a model."""

    text: str
    sentences: tuple[KeySentence, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    sentence: KeySentence
    words: tuple[str, ...]
    tokens: int


class ExtractiveSummarizer:
    """Quotes the sentences that TextRank puts first, in the order and with the names of their speakers.

    Weight of a sentence, where the walk restarts: sum of the idf of its words, doubled or tripled by digits
    and by a name in it (what is asked for later), times 0.3 for a question (its answer says more).

    Bounded: of a longer conversation the weightiest sentence of each of 500 equal segments is ranked, each
    by its first 2,000 characters; everything before that is linear. Sentences over the budget are not ranked.
    The same input gives the same text.
    """

    source = "extractive"

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        """Quote whole sentences within the budget, one per line ("Ana: …").

        Near-repetitions are left out, and so is filler: what scores under a quarter of the mean.
        Sentences are never cut, with one exception: if not even one fits, the first-ranked one is quoted up
        to a word boundary and ends in "…". Empty when nothing was said, or not a word fits.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
        candidates = _candidates(messages)
        fitting = [candidate for candidate in candidates if candidate.tokens <= max_tokens]
        considered = _weightiest_by_segment(fitting or candidates)
        order = _rank(considered) if considered else []
        sentences = tuple(considered[index].sentence for index in sorted(_choose(considered, order, max_tokens)))
        if order and not sentences:
            sentences = tuple(_opening(considered[order[0]].sentence, max_tokens))
        return Summary(text="\n".join(map(str, sentences)), sentences=sentences, source=self.source)


def quoted_sentences(messages: Sequence[Message]) -> Iterator[KeySentence]:
    """Return all sentences of a conversation with their speakers, in order."""
    for message in messages:
        for text in split_sentences(message.content):
            yield KeySentence(speaker=message.speaker, text=text)


def _candidates(messages: Sequence[Message]) -> list[_Candidate]:
    """Return the sentences that contain words, or all sentences if none does, as in pictograms."""
    candidates = [
        _Candidate(
            sentence=sentence,
            words=tuple(tokenize(sentence.text[:MAX_RANKED_CHARACTERS])),
            tokens=estimate_tokens(f"{sentence}\n"),
        )
        for sentence in quoted_sentences(messages)
    ]
    return [candidate for candidate in candidates if candidate.words] or candidates


def _weightiest_by_segment(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return at most MAX_SENTENCES of the candidates, spread over the whole conversation, in order."""
    if len(candidates) <= MAX_SENTENCES:
        return candidates
    weights = _weights(candidates)
    bounds = np.linspace(0, len(candidates), MAX_SENTENCES + 1).astype(int)
    return [candidates[start + int(weights[start:end].argmax())] for start, end in pairwise(bounds)]


def _weights(candidates: Sequence[_Candidate]) -> textrank.Vector:
    idf = textrank.inverse_document_frequencies([candidate.words for candidate in candidates])
    information = [sum(idf[word] for word in dict.fromkeys(candidate.words)) for candidate in candidates]
    details = [_detail(candidate.sentence.text[:MAX_RANKED_CHARACTERS]) for candidate in candidates]
    # a floor, since a walk has to restart somewhere even when every word is everywhere
    weights: textrank.Vector = np.array(information) * np.array(details)
    return weights.clip(min=1e-6)


def _detail(text: str) -> float:
    """Return 1, plus 1 for digits, plus 1 for a capitalised word after the first, all times 0.3 for a question."""
    has_digit = any(character.isdecimal() for character in text)
    has_name = any(word[0].isupper() and word != "I" for word in text.split()[1:])
    return (1 + has_digit + has_name) * (QUESTION_WEIGHT if is_question(text) else 1.0)


def _rank(candidates: Sequence[_Candidate]) -> list[int]:
    """Return the indices of the candidates worth quoting, best first; the earlier of two equals first."""
    similarity = textrank.similarities([candidate.words for candidate in candidates])
    scores = textrank.rank(similarity, prior=_weights(candidates))
    worth_quoting = np.flatnonzero(scores >= FILLER_SHARE * scores.mean())
    return sorted(map(int, worth_quoting), key=lambda index: (-scores[index], index))


def _choose(candidates: Sequence[_Candidate], order: Sequence[int], max_tokens: int) -> list[int]:
    """Return the indices of the best candidates that fit, best first, without near-repetitions."""
    chosen: list[int] = []
    vocabularies: list[frozenset[str]] = []
    left = max_tokens
    for index in order:
        vocabulary = frozenset(candidates[index].words)
        cost = candidates[index].tokens
        if cost <= left and not any(_is_repetition(vocabulary, other) for other in vocabularies):
            chosen.append(index)
            vocabularies.append(vocabulary)
            left -= cost
    return chosen


def _is_repetition(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return True if two sentences share most of their words: a Jaccard index of at least 0.8."""
    shared = len(one & other)
    return shared >= DUPLICATE_OVERLAP * (len(one) + len(other) - shared)


def _opening(sentence: KeySentence, max_tokens: int) -> Iterator[KeySentence]:
    """Return the sentence up to the last word that fits, marked as cut; empty if none fits."""
    # no text of more characters can fit, and one more shows that a word ends right there
    reach = sentence.text[: max_tokens * BYTES_PER_TOKEN + 1]
    cuts = [index for index, character in enumerate(reach) if character.isspace()]
    if not cuts:
        # between letters, but never between one and the marks upon it
        cuts = [i for i in range(1, len(reach)) if not unicodedata.category(reach[i]).startswith("M")]

    def opened(cut: int) -> KeySentence:
        return replace(sentence, text=reach[:cut].rstrip() + CUT_MARK)

    fitting = bisect_right(cuts, max_tokens, key=lambda cut: estimate_tokens(str(opened(cut))))
    yield from map(opened, cuts[max(fitting - 1, 0) : fitting])


# What people say when they decide something, and when they promise something. English: other languages
# are quoted in the summary, and give no decisions.
_DECISION = re.compile(
    r"\b(?:decided|agreed|approved|signed off|settled (?:on|for)|opted (?:for|to)|committed to|chose|chosen"
    r"|(?:final|our|my|the) (?:decision|choice|plan) is|(?:go|going|went) with)\b",
    re.IGNORECASE,
)
_UNDERTAKEN = re.compile(
    r"\b(?:let['’]s|(?:I|we)(?:['’]ll| will| shall)|(?:am|are|is|['’]m|['’]re) going to"
    r" (?!the\b|an?\b|my\b|our\b|your\b|his\b|her\b|their\b|this\b|that\b|bed\b|work\b))",
    re.IGNORECASE,
)
_NAMED_WILL = re.compile(r"\b(?!(?:It|That|This|There|They|You|He|She|What|Who|Which)\b)[A-Z]\w+ will\b")
_OPEN = re.compile(r"\b(?:if|whether|unless|might|maybe|perhaps|not sure|(?:have|has)n['’]t)\b", re.IGNORECASE)
_SMALL_TALK = re.compile(
    r"\b(?:let['’]s see|(?:['’]ll|will) (?:see|be honest|think|try not|never|always|admit))\b", re.IGNORECASE
)


def key_decisions(messages: Sequence[Message], *, limit: int = 10) -> list[str]:
    """Return the sentences that decide or promise something, verbatim with their speaker, in order.

    "decided", "agreed", "let's", "I will", "we're going to", "Marta will" and their kin. Questions,
    conditions, doubts and sentences over 500 characters are left out. Of more than `limit`,
    decisions win over promises, then the later ones, since a later decision revises an earlier one.
    """
    found: dict[str, tuple[int, int]] = {}
    for position, sentence in enumerate(quoted_sentences(messages)):
        if len(sentence.text) <= MAX_DECISION_CHARACTERS and (strength := _commitment(sentence.text)):
            found[str(sentence)] = (strength, position)
    strongest = sorted(found, key=lambda quote: found[quote], reverse=True)[:limit]
    return sorted(strongest, key=lambda quote: found[quote][1])


def _commitment(text: str) -> int:
    """Return 2 for a decision, 1 for a promise, 0 for neither or for "I will." alone."""
    if len(text.split()) <= 2 or is_question(text) or _OPEN.search(text) or _SMALL_TALK.search(text):
        return 0
    if _DECISION.search(text):
        return 2
    return int(bool(_UNDERTAKEN.search(text) or _NAMED_WILL.search(text)))


_NAME_WORD = re.compile(r"\bSt\.(?= )|[^\W_](?:[\w'’&-]*\w)?")
_POSSESSIVE = re.compile(r"['’]s?$")
# capitalised by grammar or courtesy, not because they name somebody
_NO_NAME = re.compile(
    r"(?:i|you|he|she|it|we|they|my|your|his|her|its|our|their|this|that|these|those|there|the|an?)(?:['’]\w+)?"
    r"|hi|hey|hello|dear|thanks|thank|yes|no|ok|okay|well|oh|please|and|but|so|or|if|when|mrs?|ms|dr|prof"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december",
    re.IGNORECASE,
)


def entities_mentioned(messages: Sequence[Message], *, limit: int = 20) -> list[str]:
    """Return the names of the speakers in order, then the names that they mention, the most frequent first.

    A name is a run of up to five capitalised words. At the start of a sentence a capital says nothing: there
    a single word counts only if it is capitalised inside a sentence too. A single word that also occurs in
    lower case is no name. Scripts without capitals yield their speakers only; German yields its nouns.
    """
    speakers = dict.fromkeys(message.speaker for message in messages if message.name.strip())
    spoken_words = {word.casefold() for speaker in speakers for word in speaker.split()}
    counts = Counter(_names(list(quoted_sentences(messages))))
    others = [name for name, _ in counts.most_common() if not spoken_words.issuperset(name.casefold().split())]
    return [*speakers, *others][:limit]


def _names(sentences: Sequence[KeySentence]) -> Iterator[str]:
    texts = [sentence.text[:MAX_RANKED_CHARACTERS] for sentence in sentences if not sentence.text.isupper()]
    in_lower_case = {word for text in texts for word in _NAME_WORD.findall(text) if word.islower()}
    runs = [run for text in texts for run in _capitalised_runs(text)]
    inside = {word for is_start, words in runs for word in words[int(is_start) :]}
    first_of_inner = {words[0] for is_start, words in runs if not is_start}
    for is_start, words in runs:
        if is_start and words[0] not in inside:
            # "Then Rosa": the first word has its capital from the sentence
            is_opener = words[0].lower() in in_lower_case or not first_of_inner.isdisjoint(words[1:2])
            words = words[1:] if is_opener or len(words) == 1 else words
        is_common = len(words) == 1 and (len(words[0]) == 1 or words[0].lower() in in_lower_case)
        if words and len(words) <= MAX_NAME_WORDS and not is_common:
            yield " ".join(words)


def _capitalised_runs(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield runs of capitalised words with only spaces between them, each with True if it starts the sentence."""
    run: list[str] = []
    is_start, end = False, 0
    for match in _NAME_WORD.finditer(text):
        word = _POSSESSIVE.sub("", match[0])
        is_name = word[:1].isupper() and not _NO_NAME.fullmatch(match[0])
        if run and not (is_name and text[end : match.start()] == " "):
            yield is_start, run
            run = []
        if is_name:
            is_start = is_start if run else end == 0
            run.append(word)
        end = match.end()
        if run and word != match[0]:
            # a possessive ends its run: "Ana's Bakery" is two names
            yield is_start, run
            run = []
    if run:
        yield is_start, run

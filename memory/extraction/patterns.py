"""Patterns of work: which tools were called one after the other, and what for.

A sequence is a pattern where it has FEWEST_STEPS different calls, and MOST_STEPS calls at most: one call is no way of
doing something, and a longer sequence is that of one afternoon. What it was for is one line of somebody's words, which
are shown to agents later: what gives orders to the machinery, or is no plain text, is passed over.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.extraction.grounding import fold, word_stems
from memory.extraction.orders import gives_orders
from memory.extraction.wording import is_text
from memory.invisible_characters import drop_invisible
from memory.providers.sentences import split_sentences

FEWEST_STEPS, MOST_STEPS = 2, 20
LONGEST_NAME = 100
LONGEST_TASK = 200
"""Characters."""
LOOKED_AT = 2_000
"""Characters of a text that a task is taken from."""
ALIKE_SHARE = 0.5
"""Two tasks are alike that share so much of their words (Dice's coefficient)."""
SHORTEST_STEM = 4
COMMON_STEMS = frozenset(
    (
        *("abou", "agai", "also", "been", "coul", "does", "from", "have", "hell", "help", "here", "into", "just"),
        *("like", "make", "many", "more", "must", "need", "only", "plea", "shou", "some", "than", "that", "them"),
        *("then", "ther", "thes", "they", "this", "want", "what", "when", "wher", "whic", "will", "with", "woul"),
        *("your",),
    )
)
"""Of English words that tasks of all sorts have (`word_stems`)."""
BLANKS = re.compile(r"\s+")


@dataclass(slots=True, kw_only=True)
class Trail:
    """The calls made for one purpose, in the order in which they are added.

    Failed calls are left out, and a repeated call of the same tool is one step. One call more than a pattern may have
    is all that is kept.
    """

    steps: list[str] = field(default_factory=list)
    task_types: set[str] = field(default_factory=set)

    def add(self, tool_name: str, *, task_type: str, success: bool | None) -> None:
        """`success` None: nobody said."""
        if success is False:
            return
        if task_type:
            self.task_types.add(task_type)
        if self.steps[-1:] != [tool_name] and len(self.steps) <= MOST_STEPS:
            self.steps.append(tool_name)

    @property
    def is_pattern(self) -> bool:
        return len(set(self.steps)) >= FEWEST_STEPS and len(self.steps) <= MOST_STEPS and are_plain(self.steps)

    @property
    def task_type(self) -> str:
        """Return the type of the calls, if all that have one agree."""
        return next(iter(self.task_types)) if len(self.task_types) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A sequence of tools, and what it was for: `task` in words, its type, or both."""

    steps: tuple[str, ...]
    task: str
    task_type: str

    @property
    def description(self) -> str:
        """Describe the pattern in a sentence.

        >>> Pattern(steps=("search_docs", "read_file", "send_report"), task="", task_type="").description
        'Call search_docs, then read_file, then send_report.'
        """
        return f"Call {', then '.join(self.steps)}."


def are_plain(names: Iterable[str]) -> bool:
    """Return whether these are names of tools, rather than orders to their readers."""
    named = list(names)
    return all(is_text(name, LONGEST_NAME) for name in named) and not gives_orders(", ".join(named))


def format_task(texts: Iterable[str]) -> str:
    """Return the purpose of a sequence in the words of the first quotable text; empty if none is."""
    return next(filter(None, map(gist_of, texts)), "")


def gist_of(text: str) -> str:
    r"""Return the first sentence that has words of its own, on one line of LONGEST_TASK characters at most.

    Empty for a text that gives orders anywhere in what is looked at, and for one that says nothing.

    >>> gist_of("Hello there!\nPlease water  the roses. They hang their heads.")
    'Please water the roses.'
    """
    seen = text[:LOOKED_AT]
    if gives_orders(seen):
        return ""
    telling = next((each for each in split_sentences(drop_invisible(seen)) if content_stems(each)), "")
    gist = shorten(BLANKS.sub(" ", telling))
    return gist if is_text(gist, LONGEST_TASK) else ""


def shorten(sentence: str) -> str:
    """Cut a text to LONGEST_TASK characters, between words where it has any."""
    if len(sentence) <= LONGEST_TASK:
        return sentence
    cut = sentence[: LONGEST_TASK - 1]
    whole_words = cut.rpartition(" ")[0]
    return f"{whole_words or cut}…"


def content_stems(text: str) -> frozenset[str]:
    """Return the stems by which a task is compared, without those of most sentences and short English words."""
    stems = word_stems(text)
    return frozenset(
        stem for stem in stems - COMMON_STEMS if len(stem) >= SHORTEST_STEM or not (stem.isascii() and stem.isalpha())
    )


def likeness(task: str, other: str) -> float:
    """Return how much two tasks share of their words, 0 to 1: 2 |A ∩ B| / (|A| + |B|). Dice 1945."""
    ours, theirs = content_stems(task), content_stems(other)
    if not ours or not theirs:
        return float(fold(task) == fold(other) != "")
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def task_likeness(pattern: Pattern, other: Pattern) -> float:
    """Return how much two patterns had the same purpose, 0 to 1.

    0 if their types differ; else by their words, or by their types alone if one of them has no words.
    """
    if pattern.task_type and other.task_type and pattern.task_type != other.task_type:
        return 0.0
    if not pattern.task or not other.task:
        return float(bool(pattern.task_type) and pattern.task_type == other.task_type)
    return likeness(pattern.task, other.task)

"""Patterns of work: sequences of tool calls, and the tasks that they were for.

A sequence is a pattern if it has at least MIN_PATTERN_STEPS different tools and at most MAX_PATTERN_STEPS calls: one
call is no way of doing something, and a longer sequence will not recur. Its task is one line in the words of a user.
Since agents read it later, texts with injected instructions and texts that are not plain are skipped.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.extraction.grounding import fold_text, word_stems
from memory.extraction.orders import gives_orders
from memory.extraction.tool_calls import describe_steps
from memory.extraction.wording import is_text
from memory.extraction.work_notes import is_instruction
from memory.invisible_characters import drop_invisible
from memory.providers.sentences import split_sentences

MIN_PATTERN_STEPS, MAX_PATTERN_STEPS = 2, 20
MAX_TOOL_NAME_CHARACTERS = 100
MAX_TASK_CHARACTERS = 200
"""Characters of a task, after which it is cut."""
MAX_READ_TASK_CHARACTERS = 2_000
"""Characters at the beginning of a text that are searched for the task."""
MIN_TASK_LIKENESS = 0.5
"""The `likeness` from which two tasks count as the same."""
MIN_STEM_LETTERS = 4
COMMON_STEMS = frozenset(
    (
        *("abou", "agai", "also", "been", "coul", "does", "from", "have", "hell", "help", "here", "into", "just"),
        *("like", "make", "many", "more", "must", "need", "only", "plea", "shou", "some", "than", "that", "them"),
        *("then", "ther", "thes", "they", "this", "want", "what", "when", "wher", "whic", "will", "with", "woul"),
        *("your",),
    )
)
"""Stems (`word_stems`) of English words that occur in tasks of all kinds."""
BLANKS = re.compile(r"\s+")
_GREETING = re.compile(
    r"(?:(?:(?:good |happy )?(?:morning|afternoon|evening|monday|friday)|well|next|thanks)"
    r"(?: (?:there|all|team|everyone))?(?:[,!.:–—]+\s*|\s*-\s+)"
    r"|(?:hi|hello|hey|ok(?:ay)?|so|now)\b(?: (?:there|all|team|everyone)\b)?(?:[\s,!.:–—]|-\s)+)+",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"(?:(?:good|great|bad|sad|big) news\b"
    r"|(?:sorry|apologies|thanks|thank you|congrat\w*|welcome|cheers)(?=$|[,.!]| (?:for|about|to|back)\b)"
    r"|(?:i|we)(?:'m|'ve|'re)? (?:just |only )?(?:spoke|talked|met|called|heard|went|came"
    r"|am|back)\b"
    r"|(?:did|have) you (?:see|seen|hear|heard|notice)\b|how (?:are|was|is) (?:you|your|it)\b|hope\b)",
    re.IGNORECASE,
)
"""The beginning of a sentence that says nothing of a task."""
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b|\bplease\b|\blet'?s\b|\b(?:have|take) a look\b"
    r"|\b(?:we|i|you)(?:'d like| would like| need| want| have)(?: you)? to\b",
    re.IGNORECASE,
)
MIN_TASK_WORDS = 2
"""Words of a task that asks for nothing: "Receipts!" is a topic."""


@dataclass(slots=True, kw_only=True)
class Trail:
    """The calls made for one purpose, in the order in which they are added.

    Failed calls are left out, and consecutive calls of one tool are one step. Beyond one step more than a pattern may
    have, no step is added.
    """

    steps: list[str] = field(default_factory=list)
    task_types: set[str] = field(default_factory=set)

    def add(self, tool_name: str, *, task_type: str, success: bool | None) -> None:
        """Add a call, unless it failed. `success` None means that this is unknown."""
        if success is False:
            return
        if task_type:
            self.task_types.add(task_type)
        if self.steps[-1:] != [tool_name] and len(self.steps) <= MAX_PATTERN_STEPS:
            self.steps.append(tool_name)

    @property
    def is_pattern(self) -> bool:
        return (
            len(set(self.steps)) >= MIN_PATTERN_STEPS and len(self.steps) <= MAX_PATTERN_STEPS and are_plain(self.steps)
        )

    @property
    def task_type(self) -> str:
        """The task type of the calls, if all that have one have the same; otherwise empty."""
        return next(iter(self.task_types)) if len(self.task_types) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A sequence of tools, and its task: `task` in words, its type, or both."""

    steps: tuple[str, ...]
    task: str
    task_type: str

    @property
    def description(self) -> str:
        """The pattern in a sentence (`describe_steps`)."""
        return describe_steps(self.steps)


def are_plain(names: Iterable[str]) -> bool:
    """Return True if these are plain names of tools, without injected instructions."""
    named = list(names)
    return all(is_text(name, MAX_TOOL_NAME_CHARACTERS) for name in named) and not gives_orders(", ".join(named))


def format_task(texts: Iterable[str]) -> str:
    """Return the task in the words of the first of these texts that has one (`gist_of`); empty if none has."""
    return next(filter(None, map(gist_of, texts)), "")


def gist_of(text: str) -> str:
    r"""Return the first sentence that asks for something, else the first that may name a task, on one line.

    It has at most MAX_TASK_CHARACTERS and no greeting. Empty if there is none, or if the searched part of the text
    contains injected instructions. Small talk is recognized in English.

    >>> gist_of("Hello there!\nSorry for the delay. Please water  the roses.")
    'Please water the roses.'
    """
    seen = text[:MAX_READ_TASK_CHARACTERS]
    if gives_orders(seen):
        return ""
    telling = [each for each in map(drop_greeting, split_sentences(drop_invisible(seen))) if content_stems(each)]
    gist = next(filter(is_request, telling), "") or next(filter(may_name_task, telling), "")
    return gist if is_text(gist, MAX_TASK_CHARACTERS) else ""


def drop_greeting(sentence: str) -> str:
    return shorten_task(
        BLANKS.sub(" ", _GREETING.sub("", sentence, count=1) if _GREETING.match(sentence) else sentence)
    )


def is_request(sentence: str) -> bool:
    return _REQUEST.search(sentence) is not None or is_instruction(sentence)


def may_name_task(sentence: str) -> bool:
    """Return True unless it is small talk, or names a topic only."""
    return not _SMALL_TALK.match(sentence) and (len(sentence.split()) >= MIN_TASK_WORDS or not sentence.isascii())


def shorten_task(sentence: str) -> str:
    """Cut a text to MAX_TASK_CHARACTERS, between words if it has several."""
    if len(sentence) <= MAX_TASK_CHARACTERS:
        return sentence
    cut = sentence[: MAX_TASK_CHARACTERS - 1]
    whole_words = cut.rpartition(" ")[0]
    return f"{whole_words or cut}…"


def content_stems(text: str) -> frozenset[str]:
    """Return the stems by which a task is compared, without common ones and short English words."""
    stems = word_stems(text)
    return frozenset(
        stem
        for stem in stems - COMMON_STEMS
        if len(stem) >= MIN_STEM_LETTERS or not (stem.isascii() and stem.isalpha())
    )


def likeness(task: str, other: str) -> float:
    """Return the likeness of two tasks, from 0 to 1: 2 |A ∩ B| / (|A| + |B|) over their stems. Dice 1945."""
    ours, theirs = content_stems(task), content_stems(other)
    if not ours or not theirs:
        return float(fold_text(task) == fold_text(other) != "")
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def task_likeness(pattern: Pattern, other: Pattern) -> float:
    """Return the likeness of the tasks of two patterns, from 0 to 1.

    It is 0 if their types differ, otherwise that of their words, or of their types alone if one has no words.
    """
    if pattern.task_type and other.task_type and pattern.task_type != other.task_type:
        return 0.0
    if not pattern.task or not other.task:
        return float(bool(pattern.task_type) and pattern.task_type == other.task_type)
    return likeness(pattern.task, other.task)

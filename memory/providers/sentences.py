"""Sentences and words of a text in any script, without a model and without data files."""

import re
from collections.abc import Iterator
from itertools import pairwise

# Scripts written without spaces (Thai to Lao, Burmese, Khmer, kana, Han). Their words are taken as
# overlapping pairs of characters, the usual stand-in for a dictionary, as in Lucene's CJKBigramFilter.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002fa1f"
_WORD = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])\w)+(?:['’](?:(?![{UNSPACED}])\w)+)*")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")

_STOPS = ".!?…؟۔։।॥።"
_CLOSERS = "\"'”’»)\\]}"
_QUESTION_CLOSERS = "\"'”’»)]} 」』）!"
# Stops of spaced scripts need a space behind them, or "3.5" and "example.org" would end sentences. A match
# starts at the first stop of a run only: a start at each would cost a hostile text the square of its length.
_BOUNDARY = re.compile(
    rf"(?<![{_STOPS}])(?P<spaced>[{_STOPS}]++[{_CLOSERS}]*+)(?=\s|$)"
    rf"|[。！？｡။៖៕។]+[」』）{_CLOSERS}]*"
    r"|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+"
)

_TITLE = re.compile(r"mrs?|ms|dra?|prof|rev|hon|st|jr|sr|gen|col|capt|lt|sgt|sra|mme|mlle|vs|e\.g|i\.e|cf")
_BEFORE_A_NUMBER = re.compile(
    r"nos?|figs?|eq|sec|ch|art|vol|pp?|ca|approx|nr|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_INSIDE_OR_LAST = re.compile(r"etc|al|inc|ltd|co|corp|dept|est|min|max|tel|ext|ave|blvd|rd|\w(?:\.\w)+")
_MAX_ABBREVIATION_CHARACTERS = 12
_MAX_LIST_NUMBER_CHARACTERS = 4


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each a verbatim slice of it without the white space around it.

    A sentence ends at a terminator (Latin, Greek, Arabic, Armenian, Ethiopic, Indic, Burmese, Khmer or CJK)
    or at a line break, and does not end inside numbers, addresses, initials ("J. Silva"), list numbers
    ("1. Measure") and the usual English abbreviations. Time grows linearly with the text.
    """
    ends = list(sentence_ends(text))
    sentences = (text[start:end].strip() for start, end in pairwise([0, *ends]))
    return [sentence for sentence in sentences if sentence]


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the position after each sentence in order, the last one being the end of the text."""
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary["spaced"] and _continues(text, start, boundary):
            continue
        start = boundary.end()
        yield start
    if start < len(text):
        yield len(text)


def _continues(text: str, start: int, boundary: re.Match[str]) -> bool:
    """Return True if the sentence from `start` continues after this terminator."""
    mark = boundary["spaced"]
    following = text[boundary.end() : boundary.end() + 2].lstrip()[:1]
    if mark != ".":
        # an ellipsis, or a quotation with its own terminator, inside a sentence: "Stop!" she said
        return (len(mark) > 1 or mark == "…") and following.islower()
    before = text[max(start, boundary.start() - _MAX_ABBREVIATION_CHARACTERS) : boundary.start()]
    is_list_number = boundary.start() - start <= _MAX_LIST_NUMBER_CHARACTERS and before.strip().isdecimal()
    return is_list_number or _ends_in_abbreviation(before, following)


def _ends_in_abbreviation(before: str, following: str) -> bool:
    """Return True if the text before a full stop is an abbreviation."""
    last = before.rsplit(maxsplit=1)[-1].lstrip("(\"'“‘«[") if before.strip() else ""
    word = last.lower()
    if _TITLE.fullmatch(word) or (len(last) == 1 and last.isupper() and last != "I"):
        return True
    if _BEFORE_A_NUMBER.fullmatch(word):
        return following.isdecimal()
    return _INSIDE_OR_LAST.fullmatch(word) is not None and not following.isupper()


def is_question(sentence: str) -> bool:
    """Return True if the sentence ends in a question mark of its script, possibly followed by quotation marks."""
    return sentence.rstrip(_QUESTION_CLOSERS).endswith(("?", "？", "؟", "\u037e"))


def tokenize(text: str) -> list[str]:
    """Return the words of a text, case-folded and in order. Scripts without spaces give pairs of characters."""
    return [token for match in _WORD.finditer(text) for token in _tokens_of(match[0])]


def _tokens_of(run: str) -> Iterator[str]:
    if len(run) > 1 and _UNSPACED_RUN.match(run):
        return (run[index : index + 2] for index in range(len(run) - 1))
    return iter((run.casefold().replace("’", "'"),))

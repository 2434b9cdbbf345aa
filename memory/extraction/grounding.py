"""Grounding: checks that the words of a claim occur in the texts that it was extracted from.

Names must occur as they are written, apart from width, case, quotation marks and invisible characters. Claims are
compared roughly, by word stems: the check finds claims that were made up, not claims that are false. English inflects
at the end of words, so the first four letters serve as the stem. In scripts without spaces between words, pairs of
characters serve as stems.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from memory.extraction.numbers import NUMBER, read_number
from memory.identity import normalize_name
from memory.invisible_characters import INVISIBLE_CODE_POINTS, JOINERS, code_points

MIN_SPOKEN_SHARE = 1 / 3
"""Share of a claim's words that must occur in the texts."""
STEM_LETTERS = 4

# Thai, Lao, Burmese, Khmer, kana, Chinese characters; and Korean, whose particles cling to names
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_NUMBER = re.compile(rf"\b{NUMBER}\b")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_NO_LETTER_BEFORE, _NO_LETTER_BEHIND = rf"(?<![^\W{_UNSPACED}])", rf"(?![^\W{_UNSPACED}])"
_REPLACED: dict[int, str | None] = dict.fromkeys([*INVISIBLE_CODE_POINTS, *code_points(*JOINERS)])
_REPLACED |= dict.fromkeys(map(ord, "‘’ʼ`´"), "'") | dict.fromkeys(map(ord, "‐‑‒–—"), "-")
OF_A_THING = re.compile(
    r"the user's |\S+(?: \S+){0,3} asks to "
    r"|the user (?:moved|set|bumped|raised|lowered|increased|reduced|decreased|changed|cut|pushed|shifted|rescheduled"
    r"|postponed|extended|switched|renamed|upgraded|downgraded|updated|migrated) "
)
"""The beginning of a claim, in lower case, that names the user and is about a thing."""
_STANDS_FOR_SPEAKERS = frozenset({"user", "assi"})


def fold_text(text: str) -> str:
    r"""Return a text on one line, in lower case, with uniform width, quotation marks and dashes.

    Invisible characters are removed.

    >>> fold("Ana’s\n  ＰＵＭＰ")
    "ana's pump"
    """
    seen = unicodedata.normalize("NFKC", text).casefold().translate(_REPLACED)
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def is_named(name: str, folded: str) -> bool:
    """Return True if a folded text contains the name as separate words, possibly followed by an s.

    >>> is_named("Ana", fold("Is that Ana's?")), is_named("Ana", fold("Anatomy"))
    (True, False)
    """
    needle = fold_text(normalize_name(name))
    if not needle or needle not in folded:
        return False
    before = "" if _IS_UNSPACED.match(needle[0]) else _NO_LETTER_BEFORE
    behind = "" if _IS_UNSPACED.match(needle[-1]) else rf"s?{_NO_LETTER_BEHIND}"
    return re.search(before + re.escape(needle) + behind, folded) is not None


def word_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text. Numbers in words count in digits, too, as ages are claimed."""
    folded = fold_text(text)
    numbers = {str(read_number(match[0])) for match in _NUMBER.finditer(folded)}
    return frozenset(stem for word in _WORD.findall(folded) for stem in _stems_of(word)) | numbers


def is_grounded(claim: str, known_stems: Collection[str]) -> bool:
    """Return True if at least MIN_SPOKEN_SHARE of the claim's stems are among `known_stems`.

    Short words count only if there are no others. "User" and "assistant" never count, since nobody says them.
    """
    # "no longer" stands for "not anymore", "cannot" for "can't", and "goes" for "go"
    said = [word for word in _WORD.findall(fold_text(claim)) if word not in ("longer", "cannot", "goes", "does")]
    words = [word for word in said if word[:STEM_LETTERS] not in _STANDS_FOR_SPEAKERS]
    telling = [word for word in words if len(word) >= STEM_LETTERS or not word.isalpha() or _IS_UNSPACED.match(word)]
    stems = {stem for word in telling or words for stem in _stems_of(word)}
    return bool(stems) and sum(stem in known_stems for stem in stems) >= MIN_SPOKEN_SHARE * len(stems)


def _stems_of(word: str) -> Iterator[str]:
    if len(word) > 1 and _IS_UNSPACED.match(word):
        yield from (word[at : at + 2] for at in range(len(word) - 1))
    else:
        # a number is another number when its end is cut off
        yield word[:STEM_LETTERS] if word.isalpha() else word


class SpokenText:
    """The folded texts and stems of turns, which are given as tuples of index, speaker and text."""

    def __init__(self, turns: Sequence[tuple[int, str, str]]) -> None:
        self._texts = {index: fold_text(text) for index, _, text in turns}
        self._speakers = sorted({fold_text(speaker) for _, speaker, _ in turns})
        self._stems = {index: word_stems(text) for index, text in self._texts.items()}
        self._speakers_stems = frozenset(stem for speaker in self._speakers for stem in word_stems(speaker))
        self._naming: dict[str, frozenset[int] | None] = {}

    def names(self, name: str, turns: Collection[int]) -> bool:
        """Return True if one of these turns contains the name, or if it is the name of any speaker."""
        naming = self._turns_naming(name)
        return naming is None or not naming.isdisjoint(turns)

    def stems_up_to(self, last: int) -> frozenset[str]:
        """Return the stems of the turns up to this index, and of the names of all speakers."""
        return self._speakers_stems.union(*(stems for index, stems in self._stems.items() if index <= last))

    def _turns_naming(self, name: str) -> frozenset[int] | None:
        """Return the indexes of the turns that contain the name; None if it is the name of a speaker."""
        if name not in self._naming:
            speaks = any(is_named(name, speaker) for speaker in self._speakers)
            named_in = frozenset(index for index, text in self._texts.items() if is_named(name, text))
            self._naming[name] = None if speaks else named_in
        return self._naming[name]

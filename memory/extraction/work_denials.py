"""Sentences about work that say the opposite of a word in them: negated, mended, or left open.

The checks follow the forms of English, one clause at a time: "was never deployed", "no errors", "6 are not", "the bug
in the import is fixed".
"""

import re

MAX_CLAUSE_CHARACTERS = 160
"""Characters before a word that are searched for a negation."""

_CLAUSE_ENDS = re.compile(
    r"[;:!?()–—]|[.,](?=\s)|\s-\s|\b(?:but|and|because|since|so|while|although|though|yet\ (?!to\b)(?=\w+\ \w+ed\b))\b",
    re.IGNORECASE | re.VERBOSE,
)
# words that may be between a negation and the word that it negates
_LIGHT = (
    "be|been|being|is|are|was|were|have|has|had|having|do|does|did|get|gets|got|will|would|can|could|should|yet|ever|"
    "even|really|quite|fully|entirely|actually|properly|successfully|completely|all|any|a|an|the|more|other|further|"
    "new|such|find|found|see|seen|show|shows|showed|report|reported|give|gave|of|them|it|this|that|these|those|to|we|"
    "i|they|you|think|so|far|with|on|in|for|at|single"
)
_DENIED = re.compile(
    rf"(?:\b(?:not(?!\ (?:only|just|merely)\b)|cannot|never|hardly|without|yet\ to|no|nor|zero|0)|n't)"
    rf"(?:\ (?:{_LIGHT})\b)*\ *$",
    re.IGNORECASE,
)
_DENYING_SUBJECT = re.compile(
    r"^\W*(?:(?:so|then|still|well|sadly|unfortunately|today)\s+)*"
    r"(?:no(?!\ (?:doubt|wonder|problem|idea|matter)\b)|none|neither|nothing|nobody|not\ (?:one|a\ single))\b",
    re.IGNORECASE,
)
_COUNTED_NONE = re.compile(r"\w*\s*[:=]\s*(?:0|none|no|zero)\b(?!\.\d)", re.IGNORECASE)
_LEFT_OPEN = re.compile(
    r"\b(?:is|are|was|were|has|have|had|did|do|does)(?:\ not|n't)(?:\ yet)?[.!]?$|\bnot\ yet[.!]?$", re.IGNORECASE
)


def is_denied(sentence: str, match: re.Match[str]) -> bool:
    """Return True if the matched words are negated in the sentence, as in "was never deployed" or "no errors".

    The check follows the forms of English and looks at one clause. A word is negated by a negation right before it,
    with only light words such as "be" between them, or by a subject such as "nobody" or "nothing".
    """
    if _COUNTED_NONE.match(sentence, match.end()):
        return True
    before = clause_before(sentence, match.start())
    return _DENIED.search(before) is not None or _DENYING_SUBJECT.match(before) is not None


def clause_before(sentence: str, end: int) -> str:
    before = sentence[max(0, end - MAX_CLAUSE_CHARACTERS) : end]
    ends = [boundary.end() for boundary in _CLAUSE_ENDS.finditer(before)]
    return before[ends[-1] if ends else 0 :]


_MENDS = re.compile(
    r"(?<!\bthe )(?<!\ba )\b(?:fix(?:ed|es)|resolve[ds]|repair(?:ed|s)|solve[ds]|mended|got rid of)\s+"
    r"(?:(?:the|an?|this|that|these|those|all|both|my|our|your|its|their|one|two|three|\d+)\s)?"
    r"(?:(?!(?:the|an?|it|we|i|after|when|yesterday|today)\b)[\w./#-]+\s){0,3}$",
    re.IGNORECASE,
)
_DETERMINER = r"(?:the|an?|our|my|your|its|his|her|their|this|these|those|all|both)"
_WORD = rf"""
    \ (?!(?:{_DETERMINER}|after|when|until|till|before|if|once|where|whether|while|what|that|which|is|are
    |was|were|be|been|has|have|had|will|would|should|must|can|could|may|might|needs?|remains?)\b)[\w./\#'-]+
"""
_PHRASE = rf"""
    \ (?:in|of|with|for|at|on|from|by|to|during|inside|within|between|behind|around|(?:that|which){_WORD})
    (?:\ (?:{_DETERMINER}))?(?:{_WORD}){{1,4}}?
"""
_MENDED = r"(?:fixed|resolved|repaired|solved|mended|gone|green|passing|back\ to\ green)"
_BECAME = r"(?:is|are|was|were|got|has\ been|have\ been)(?:\ (?:now|finally|all|already|both))*"
_ENDING = rf"""
    (?<!\bthat)(?<!\bwhich)\ (?:{_BECAME}\ {_MENDED}
    |(?:went|ran|came|got)\ through|(?:works?|runs?|pass(?:es)?|builds?)(?:\ fine)?\ (?:again|now))\b
"""
_IS_MENDED = re.compile(rf"(?:{_WORD}){{0,4}}?(?:{_PHRASE}){{0,3}}?{_ENDING}", re.IGNORECASE | re.VERBOSE)
"""What follows an error in "The error in the import is fixed", but not in "The error in what was fixed"."""
_THEN_MENDED = re.compile(rf"(?:{_WORD}){{0,4}}?{_ENDING}", re.IGNORECASE | re.VERBOSE)
"""What follows a verb that may be an adjective, as in "The failed deploy went through"."""
_CLEARED = re.compile(
    rf"(?:{_WORD}){{0,4}}?(?:{_PHRASE}){{0,3}}?(?<!\bthat)(?<!\bwhich)\ {_BECAME}"
    r"\ (?:done|removed|lifted|cleared|closed|settled|out\ of\ the\ way)\b",
    re.IGNORECASE | re.VERBOSE,
)
_FAILS = re.compile(r"fails|failed|crash(?:ed|es)|timed out", re.IGNORECASE)


def is_mended(sentence: str, match: re.Match[str]) -> bool:
    """Return True if the matched error is said to be mended, as in "Fixed the type error" or "The crash is fixed"."""
    mends = _MENDS.search(clause_before(sentence, match.start()))
    if mends is not None and not _FAILS.fullmatch(match[0]):
        return _DENIED.search(sentence[: match.start() - len(mends[0])]) is None
    ending = _THEN_MENDED if _FAILS.fullmatch(match[0]) else _IS_MENDED
    return ending.match(clause_after(sentence, match.end())) is not None


def is_cleared(sentence: str, match: re.Match[str]) -> bool:
    """Return True if what the match says to be in the way no longer is, as in "Blocker 1 is done"."""
    after = clause_after(sentence, match.end())
    return _IS_MENDED.match(after) is not None or _CLEARED.match(after) is not None


def clause_after(sentence: str, start: int) -> str:
    return _CLAUSE_ENDS.split(sentence[start:], maxsplit=1)[0]


def is_left_open(sentence: str) -> bool:
    """Return True if the sentence ends with something not done yet, as "3 hosts are done, 6 are not."."""
    return _LEFT_OPEN.search(sentence.rstrip()) is not None

"""Negation in English: "was never deployed" reports no deployment, "no errors" no error.

By the forms of English, within one clause. A word is denied by a negation right before it, with none but light words
between, or by a subject that is nobody or nothing.
"""

import re

LONGEST_CLAUSE = 160
"""Characters before a word that are looked at."""

_CLAUSE_ENDS = re.compile(
    r"[;:!?()–—]|[.,](?=\s)|\s-\s|\b(?:but|and|because|since|so|while|although|though|yet\ (?!to\b)(?=\w+\ \w+ed\b))\b",
    re.IGNORECASE | re.VERBOSE,
)
# between a negation and what it denies
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
    """Return whether what matched is denied."""
    if _COUNTED_NONE.match(sentence, match.end()):
        return True
    before = clause_before(sentence, match.start())
    return _DENIED.search(before) is not None or _DENYING_SUBJECT.match(before) is not None


def clause_before(sentence: str, end: int) -> str:
    before = sentence[max(0, end - LONGEST_CLAUSE) : end]
    ends = [boundary.end() for boundary in _CLAUSE_ENDS.finditer(before)]
    return before[ends[-1] if ends else 0 :]


def is_left_open(sentence: str) -> bool:
    """Return whether it ends in what is not so yet: "3 hosts are done, 6 are not."."""
    return _LEFT_OPEN.search(sentence.rstrip()) is not None

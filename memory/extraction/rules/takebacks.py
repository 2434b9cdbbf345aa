"""Values that a sentence takes back: "at 5, no, at 6", "in Lisbon - scratch that, I live in Porto".

A word such as "no" or "wait" takes something back only if what follows it, up to the end of the sentence or its next
clause, replaces a value of the same kind: a time or number, a name, or a noun after the same preposition. So does a
clause that begins as the one before it. Anything else goes on: "I am allergic to nuts, wait, is that a problem".
"""

import re
from collections.abc import Iterator

_BEFORE = r"(?<=[\w%)])\s*[,;…–—-]+\s*(?:and |but )?"
_FIRM = re.compile(
    rf"{_BEFORE}(?:no,? wait|(?:wait|er+|um+|hm+|sorry|oops|actually),? no|no,? (?:sorry|actually|rather)"
    r"|scratch that|or rather)\b[,:]?\s+",
    re.IGNORECASE,
)
_WORD = re.compile(rf"{_BEFORE}(?:(?P<no>no),|(?:sorry|wait),|I mean(?:t)?|(?:make|strike) that|actually)\s+", re.I)
_ALL = re.compile(rf"{_BEFORE}(?:scratch|strike) that[.!]*$", re.IGNORECASE)

_PREPOSITIONS = ("at", "to", "on", "in", "from", "for", "with", "by", "of", "until", "since")
_PREPOSITION = rf"(?P<preposition>(?:{'|'.join(_PREPOSITIONS)}) )?"
_TIME = (
    r"(?:\$|€|£)?\d[\w.:,/%-]*(?: \d[\d-]*)*(?: (?!(?:is|are|was|were|will|would|can)\b)[a-z]\w*){0,2}"
    r"|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half past \w+|noon|midnight)(?: [a-z]\w*)?"
    r"|(?:today|tomorrow|tonight|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|next \w+)"
    r"(?: (?:morning|afternoon|evening|night|at \d[\w:.]*))?"
)
_NAME = (
    r"(?:the )?(?!I\b)[A-Z][\w'.&-]*(?: (?:(?:of|the|de|da|do|van|von) )?(?:[A-Z][\w'.&-]*|\d[\w.]*)){0,4}"
    r"(?: (?:in|on|at|for) (?:the )?\w+)?"
)
_NOUN = r"(?:(?:the|an?|my|our) )?[a-z][\w-]+(?: [a-z][\w-]+)?"
_IDIOM = (
    r"(?!in (?:fact|general|short)\b|to be\b|at (?:all|least|last|most|first)\b|for (?:sure|real|now)\b|of course\b)"
)
_END = r"(?=[.!]*$|,? (?:and|but|so) (?:I|we|my|our|she|he)\b)"
_REPLACING = re.compile(rf"{_IDIOM}{_PREPOSITION}(?:(?P<time>{_TIME})|(?P<name>{_NAME})|(?P<noun>{_NOUN})){_END}")
_BARE_NOUN = re.compile(r"(?P<noun>[a-z][\w-]+)[.!]*$")
_STATED = {
    "time": r"(?:the )?(?:[$€£]?\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half past|noon"
    r"|midnight|today|tomorrow|tonight|next|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b)",
    "name": r"(?:the )?(?!I\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z]",
    "noun": r"(?:(?:the|an?|my|our) )?[a-z][\w-]*(?: [a-z][\w-]*)?$",
}
_CONTRACTIONS = (("I'm", "I am"), ("'re", " are"), ("'ve", " have"), ("'s", " is"), ("n't", " not"))
_PRONOUNS = frozenset({"i", "we", "she", "he", "they", "it"})
_GENERAL_VERBS = frozenset({"am", "is", "are", "was", "have", "has", "will", "can", "do", "would"})


def without_taken_back(sentence: str) -> str:
    """Return the sentence from behind the last value that it takes back. "Wait, no, I live in Porto" is whole."""
    if _ALL.search(sentence):
        return ""
    return sentence[max(_ends(sentence), default=0) :]


def _ends(sentence: str) -> Iterator[int]:
    """Yield the places behind words that take back what stands before them."""
    for pattern in (_FIRM, _WORD):
        for match in pattern.finditer(sentence):
            stated, rest = sentence[: match.start()], sentence[match.end() :]
            is_firm = pattern is _FIRM
            if stated.count(" ") < (1 if is_firm else 2):
                continue
            takes_values = not match[0].rstrip().endswith("actually") or not rest[:1].islower()
            is_value = takes_values and _replaces_value(stated, rest, is_firm=is_firm)
            if is_value or _repeats_clause(stated, rest, is_firm=is_firm or match["no"] is not None):
                yield match.end()


def _replaces_value(stated: str, rest: str, *, is_firm: bool) -> bool:
    """Return True if the rest is a value of a kind that was stated, after the same preposition if it has one."""
    match = _REPLACING.match(rest)
    if match is None or (match["noun"] and not match["preposition"]):
        return is_firm and _BARE_NOUN.match(rest) is not None and _has_stated("noun", " ", stated)
    kind = next(kind for kind in _STATED if match[kind])
    return _has_stated(kind, f" {match['preposition'] or ''}", stated)


def _has_stated(kind: str, before: str, stated: str) -> bool:
    return re.search(f"{before}{_STATED[kind]}", stated) is not None


def _repeats_clause(stated: str, rest: str, *, is_firm: bool) -> bool:
    """Return True if the rest begins with the subject and verb of a clause before it, and goes on otherwise."""
    new = _bare_words(rest)
    for start in re.finditer(r"(?:^|[,;:] |\band )", stated):
        old = _bare_words(stated[start.end() :])
        same = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
        is_general = same == 2 and new[1] in _GENERAL_VERBS
        least = 2 if new[:1] and new[0] in _PRONOUNS else 3
        goes_on = old[same : same + 1] and old[same] not in _PREPOSITIONS and new[same] not in ("not", "no")
        if same >= least and goes_on and (is_firm or not is_general):
            return True
    return False


def _bare_words(text: str) -> list[str]:
    for short, full in _CONTRACTIONS:
        text = text.replace(short, full)
    return re.findall(r"[\w'-]+", text.lower())

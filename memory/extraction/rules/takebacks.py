"""Values that a sentence takes back: "at 5, no, at 6", "in Lisbon - scratch that, I live in Porto".

A word such as "no" or "wait" takes something back only if what follows it, up to the end of the sentence or its next
clause, replaces a value of the same kind: a time or number, a name, or a noun after the same preposition. So does a
clause that begins as the one before it. Anything else goes on: "I am allergic to nuts, wait, is that a problem".

The new value stands in the place of one that ends what was stated: "I'm allergic to nuts, sorry, I mean milk" says "I'm
allergic to milk". So does a sentence that takes back the end of the one before: "No wait, to milk."
"""

import re
from collections.abc import Iterator, Sequence

MAX_JOINED_CHARACTERS = 500
"""Characters of two sentences of which the second one may take back what the first one says."""
_BEFORE = r"(?<=[\w%)])\s*[,;…–—-]+\s*(?:and |but )?"
_FIRM = re.compile(
    rf"{_BEFORE}(?:(?:(?:no|sorry|wait|oops|actually),? )+I mean(?:t)?"
    r"|no,? wait|(?:wait|er+|um+|hm+|sorry|oops|actually),? no|no,? (?:sorry|actually|rather)"
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
_NO_VALUE = (
    r"(?!(?:it|that|this|what|so|not|just|never|forget|very|well|like|you|he|she|they|we|thanks?|please|sorry|problem|worries"
    r"|idea|way|need|matter|doubt|kidding|joke)\b|\w+ly\b)"
)
_BARE_NOUN = re.compile(rf"{_NO_VALUE}(?P<noun>[a-z][\w-]+)(?=[.!]*$)")
_MEANT_NOUN = re.compile(rf"{_NO_VALUE}(?P<noun>[a-z][\w-]+(?: [a-z][\w-]+)?)(?=[.!]*$)")
"""What stands behind "I mean", which names a thing more often than "wait" does."""
_BEFORE_NOUNS = rf"(?:\b(?:{'|'.join(_PREPOSITIONS)}|am|is|are|was|were)|['’](?:m|re|s)) "
_BEFORE_MEANT = rf"(?:{_BEFORE_NOUNS}|\b(?:love|like|hate|prefer|enjoy|play|eat|drink)s? )"
_TAKES_BACK = re.compile(r"(?:no|wait|sorry|oops|actually|scratch|strike|I mean)\b", re.IGNORECASE)
_MAY_ADDRESS = re.compile(r"(?i:sorry|wait|actually), (?:the )?(?!I\b)[A-Z]")
"""An apology to somebody, unless it stands in the sentence that it corrects."""
_STATED = {
    "time": r"(?:the )?(?:[$€£]?\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half past|noon"
    r"|midnight|today|tomorrow|tonight|next|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b)",
    "name": r"(?:the )?(?!I\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z]",
    "noun": r"(?:(?:the|an?|my|our) )?[a-z][\w-]*(?: [a-z][\w-]*)?$",
}
_VALUES = {"time": _TIME, "name": _NAME, "noun": _NOUN}
_CONTRACTIONS = (("I'm", "I am"), ("'re", " are"), ("'ve", " have"), ("'s", " is"), ("n't", " not"))
_PRONOUNS = frozenset({"i", "we", "she", "he", "they", "it"})
_GENERAL_VERBS = frozenset({"am", "is", "are", "was", "have", "has", "will", "can", "do", "would"})


def join_taken_back(sentences: Sequence[str]) -> list[str]:
    """Return the sentences; one whose last value the next one replaces stands with the new value for both."""
    joined: list[str] = []
    for sentence in sentences:
        may_take_back = _TAKES_BACK.match(sentence) is not None and not _MAY_ADDRESS.match(sentence)
        if joined and may_take_back and len(joined[-1]) + len(sentence) <= MAX_JOINED_CHARACTERS:
            both = f"{joined[-1].rstrip('.! ')}, {sentence}"
            said = next((said for _, said in _takebacks(both) if said is not None), None)
            if said is not None:
                joined[-1] = said
                continue
        joined.append(sentence)
    return joined


def without_taken_back(sentence: str) -> str:
    """Return the sentence with what it takes back replaced, or left out. "Wait, no, I live in Porto" is whole."""
    if _ALL.search(sentence):
        return ""
    end, said = max(_takebacks(sentence), key=lambda found: found[0], default=(0, None))
    return sentence[end:] if said is None else without_taken_back(said)


def _takebacks(sentence: str) -> Iterator[tuple[int, str | None]]:
    """Yield the places behind words that take back what stands before them, and the sentence with the new value.

    The second is None if no value that ends what was stated is replaced.
    """
    for pattern in (_FIRM, _WORD):
        for match in pattern.finditer(sentence):
            stated, rest = sentence[: match.start()], sentence[match.end() :]
            is_firm = pattern is _FIRM
            if stated.count(" ") < (1 if is_firm else 2):
                continue
            takes_values = not match[0].rstrip().endswith("actually") or not rest[:1].islower()
            value = _find_value(stated, rest, words=match[0], is_firm=is_firm) if takes_values else None
            if value is not None:
                yield match.end(), _with_value(stated, value, rest)
            elif _repeats_clause(stated, rest, is_firm=is_firm or match["no"] is not None):
                yield match.end(), None


def _find_value(stated: str, rest: str, *, words: str, is_firm: bool) -> re.Match[str] | None:
    """Return the value that the rest begins with, if one of its kind was stated, after the same preposition if any."""
    match = _REPLACING.match(rest)
    if match is None or (match["noun"] and not match["preposition"]):
        is_meant = "mean" in words.lower()
        noun = (_MEANT_NOUN if is_meant else _BARE_NOUN).match(rest)
        before = _BEFORE_MEANT if is_meant else _BEFORE_NOUNS
        may_be_one = is_firm or re.search(rf"{before}[a-z][\w-]+$", stated)
        return noun if may_be_one and _has_stated("noun", " ", stated) else None
    kind = next(kind for kind in _STATED if match[kind])
    return match if _has_stated(kind, f" {match['preposition'] or ''}", stated) else None


def _with_value(stated: str, value: re.Match[str], rest: str) -> str | None:
    """Return what was stated with the new value in place of one of its kind at the end, and what follows the value."""
    found = value.groupdict()
    kind = next(kind for kind in _STATED if found.get(kind))
    before = rf"\b{found['preposition']}" if found.get("preposition") else _BEFORE_MEANT if kind == "noun" else r"\s"
    old = re.search(rf"{before}(?P<old>{_VALUES[kind]})$", stated)
    if old is None or (kind == "time" and old["old"].count(" ") != found[kind].count(" ")):
        return None
    return f"{stated[: old.start('old')]}{found[kind]}{rest[value.end() :]}"


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

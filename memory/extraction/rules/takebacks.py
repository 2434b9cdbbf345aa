"""Values that a sentence takes back: "at 5, no, at 6", "in Lisbon - scratch that, I live in Porto".

A word such as "no" or "wait" takes something back only if what follows it, up to the end of the sentence or its next
clause, replaces a value of the same kind: a time or number, a name, or a noun after the same preposition. So does a
clause that begins as the one before it. Anything else goes on: "I am allergic to nuts, wait, is that a problem".

The new value stands in the place of one that ends what was stated: "I'm allergic to nuts, sorry, I mean milk" says "I'm
allergic to milk". So does a sentence that takes back the end of the one before, or of the speaker's last turn: "No
wait, to milk.", "Wait, not nuts, I mean milk.", "Oops, Sunday the 13th."
"""

import re
from collections.abc import Iterator, Sequence

from memory.dates import MONTHS, WEEKDAYS

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
_TAKES_BACK = re.compile(
    r"(?:no|wait|sorry|oops|actually|scratch|strike|I mean|I meant|hang on|hold on|correction|my mistake|my bad"
    r"|not [\w -]{1,40}, I mean(?:t)?)\b",
    re.I,
)
_APOLOGIES = re.compile(
    r"^(?:(?:actually|sorry|no|wait|oops|hang on|hold on|correction|scratch that|my mistake|my bad)[,.:;!]* )+",
    re.IGNORECASE,
)
_IT_IS = re.compile(
    r"^(?:(?:it|that)(?: is|'s| was| should be) |I mean(?:t)? |make (?:it|that) |rather )+", re.IGNORECASE
)
_SOME_WORDS = r"[\w'.:-]+(?: [\w'.:-]+){0,3}?"
_CONTRAST = re.compile(
    rf"(?:(?:it|that)(?: is|'s| was) )?not (?P<old>{_SOME_WORDS})(?:,| but) "
    rf"(?:(?:but|rather|it is|it's|that's|I mean|I meant|make that) )?(?P<new>{_SOME_WORDS})"
    r"(?: (?:that )?I(?:'m| am| have)?(?: [a-z]+){1,3})?"
    rf"|(?:(?:it|that)(?: is|'s| was) |I mean(?:t)? )?(?P<new2>{_SOME_WORDS}),? not (?P<old2>{_SOME_WORDS})",
    re.IGNORECASE,
)
_NO_NEW_VALUE = re.compile(
    r"(?:I|I'm|we|he|she|it|it's|they|you|that|that's|this|just|never|yes|no|ok|okay|because|so|and|but|thanks|sorry|please"
    r"|only|also|really|sure|yet|now|always|anymore|if|when)\b",
    re.IGNORECASE,
)
_DAY = re.compile(
    rf"(?:(?P<weekday>{'|'.join(WEEKDAYS)}),? )?(?:the )?(?P<day>\d{{1,2}})(?P<nth>st|nd|rd|th)?"
    rf"(?:(?: of)? (?P<month>{'|'.join(MONTHS)})(?: (?P<year>\d{{4}}))?)?(?![\w:.]\w|\w)",
    re.IGNORECASE,
)
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
        said = take_back(joined[-1], sentence) if joined else None
        if said is not None:
            joined[-1] = said
        else:
            joined.append(sentence)
    return joined


def take_back(before: str, sentence: str, *, is_answer: bool = False) -> str | None:
    """Return what was stated before with the value that the sentence gives instead, or None if it gives none.

    An answer to a question in between must name the value that it replaces: "not Porto, Lisbon".
    """
    if _TAKES_BACK.match(sentence) is None or len(before) + len(sentence) > MAX_JOINED_CHARACTERS:
        return None
    stated, rest = before.rstrip(".! "), _APOLOGIES.sub("", sentence).rstrip(".! ")
    if match := _CONTRAST.fullmatch(rest):
        return _with_other(stated, match["old"] or match["old2"], match["new"] or match["new2"])
    if is_answer:
        return None
    if match := _DAY.fullmatch(_IT_IS.sub("", rest)):
        return _with_day(stated, match)
    said = None
    if not _MAY_ADDRESS.match(sentence):
        said = next((said for _, said in _takebacks(f"{stated}, {sentence}") if said is not None), None)
    # "actually it's Pria": what it is, only a name or a number says for sure
    is_said = _IT_IS.match(rest) is not None and said is None
    both = f"{stated}, no wait, {_IT_IS.sub('', rest)}"
    found = (said for _, said in _takebacks(both)) if is_said and not _IT_IS.sub("", rest)[:1].islower() else ()
    return next((each for each in found if each is not None), said)


def _with_other(stated: str, old: str, new: str) -> str | None:
    """Return what was stated with the new value in place of the old one, which it must have once."""
    is_alike = new[:1].isupper() == old[:1].isupper() and new[:1].isdecimal() == old[:1].isdecimal()
    is_value = is_alike and not _NO_NEW_VALUE.match(new) and new.count(" ") <= old.count(" ") + 1
    found = list(re.finditer(rf"(?<![\w'-]){re.escape(old)}(?![\w'-])", stated, re.IGNORECASE)) if is_value else []
    return f"{stated[: found[0].start()]}{new}{stated[found[0].end() :]}" if len(found) == 1 else None


def _with_day(stated: str, new: re.Match[str]) -> str | None:
    """Return what was stated on another day, in the same month if the new day has none."""
    found = [each for each in _DAY.finditer(stated) if each["month"]]
    if len(found) != 1 or not (new["weekday"] or new["month"] or new["nth"]):
        return None
    [old] = found
    parts = (new["weekday"], new["day"], new["month"] or old["month"], old["year"])
    return f"{stated[: old.start()]}{' '.join(filter(None, parts))}{stated[old.end() :]}"


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
        is_longer = len(old) > same and len(new) > same
        goes_on = is_longer and old[same] not in _PREPOSITIONS and new[same] not in ("not", "no")
        if same >= least and goes_on and (is_firm or not is_general):
            return True
    return False


def _bare_words(text: str) -> list[str]:
    for short, full in _CONTRACTIONS:
        text = text.replace(short, full)
    return re.findall(r"[\w'-]+", text.lower())

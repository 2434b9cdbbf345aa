"""Facts that must not be lost when a text is shortened: numbers, names of things, paths, errors, and negations.

A fact is recognized by its form alone, in any language: a word with a digit, an underscore, a slash or a dot inside,
CamelCase, ALLCAPS, or a quotation. Code that shortens a text appends lost facts (`append_lost_facts`) and checks the
result with `keeps_negations`, because a summary that turns "must not" into "must" is worse than none.
"""

import re
from collections.abc import Iterator

from memory.providers.sentences import split_sentences

MAX_FACT_CHARACTERS = 2_000
"""Characters that a fact may have. Longer words are data, not names of something."""

_QUOTED = re.compile(
    r"""`[^`\n]{1,200}` | "[^"\n]{1,200}" | “[^”\n]{1,200}” | «[^»\n]{1,200}» | (?<!\w)'[^'\n]{1,100}'(?!\w)""",
    re.VERBOSE,
)
_WORD = re.compile(r"\S+")
_OPENERS = "([{<«“‘\"'`*|>,;:!?="
_CLOSERS = ")]}>»”’\"'`*|<,;:!?.…="
_AMOUNT = re.compile(r"[-+±~€$£¥]?[0-9][0-9.,]*")
_UNIT = re.compile(r" ([^\W\d_]+)(?![^\s.,;:!?)\]])")
_NO_UNIT = re.compile(
    r"a|after|again|an|and|are|as|at|before|but|by|during|for|from|has|have|he|if|in|into|is|it|its|no|not|of|on|or|our"
    r"|out|she|since|so|than|that|the|their|then|there|they|this|to|too|until|up|was|we|were|what|when|which|while|who"
    r"|will|with|you",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"[0-9]|[_\\@#]|\w/+\w|^[~/.]{0,2}/\w|^\.\w|[^\W\d_]{2}\.\w|\w\.[^\W\d_]{2}|::|\w=\w|^--?\w|[a-zà-ÿ][A-Z]|-[A-Z]"
)
_CAPITALS = re.compile(r"[^\W\d_a-z]{2,}(?:-[^\W\d_a-z]+)*")
_DATE_WORD = re.compile(
    r"January|February|March|April|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|nowhere|neither|nor|without|cannot|refus\w+|den(?:y|ied|ies)|forb[ia]d\w*"
    r"|prohibit\w*|unable|unless|\w+n['’]t|nicht|kein\w*|nie|ohne|não|nunca|sem|non?|jamais|sans|pas)\b",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error\w*|exceptions?|traceback|fatal|panic\w*|crash\w*|fail(?:s|ed|ure|ures|ing)?|denied|refused|timed out|"
    r"timeout|aborted|corrupt\w*|broken?|rejected|invalid|lost)\b",
    re.IGNORECASE,
)


def facts_in(text: str) -> tuple[str, ...]:
    """Return the facts of a text as written, each once, quotations first. A number includes its unit: `500 rows`."""
    found = dict.fromkeys(quoted[0] for quoted in _QUOTED.finditer(text))
    return tuple(found | dict.fromkeys(fact for word in _WORD.finditer(text) for fact in _facts_of(text, word)))


def append_lost_facts(short: str, original: str) -> str:
    """Return `short` with a line that lists the facts of `original` missing in it, if there are any."""
    lost = _lost_facts(short, original)
    if not lost:
        return short
    extended = f"{short}\nAlso: {', '.join(lost)}".lstrip("\n")
    # a quotation mark within one of them may have paired with another's
    return "\n".join([extended, *(f"Also: {fact}" for fact in _lost_facts(extended, original))])


def has_negation(sentence: str) -> bool:
    return _NEGATION.search(sentence) is not None


def mentions_error(sentence: str) -> bool:
    return _ERROR.search(sentence) is not None


def adds_no_facts(short: str, original: str) -> bool:
    """Return True if each fact of `short` is in the original too, negated or affirmed in the same way."""
    denied, stated = _by_negation(short)
    denied_before, stated_before = _by_negation(original)
    return denied <= denied_before and stated <= stated_before


def keeps_negations(short: str, original: str) -> bool:
    """Return True if `adds_no_facts`, and each fact that is negated in the original is negated in `short` too."""
    return adds_no_facts(short, original) and _by_negation(original)[0] <= _by_negation(short)[0]


def _lost_facts(short: str, original: str) -> list[str]:
    kept = set(facts_in(short))
    return [fact for fact in facts_in(original) if fact not in kept]


def _facts_of(text: str, word: re.Match[str]) -> Iterator[str]:
    """Yield the word without the marks around it, and with its unit, if it is a fact."""
    bare = word[0].lstrip(_OPENERS).rstrip(_CLOSERS)
    if not bare or len(bare) > MAX_FACT_CHARACTERS or not _is_fact(bare):
        return
    is_amount = word[0].endswith(bare) and _AMOUNT.fullmatch(bare)
    unit = _UNIT.match(text, word.end()) if is_amount else None
    yield f"{bare} {unit[1]}" if unit and not _NO_UNIT.fullmatch(unit[1]) else bare


def _is_fact(word: str) -> bool:
    if any(character.isdigit() for character in word) or _TELLING.search(word[:MAX_FACT_CHARACTERS]):
        return True
    is_capital = word.isupper() and word != "OK" and _CAPITALS.fullmatch(word) is not None
    return is_capital or _DATE_WORD.fullmatch(word) is not None


def _by_negation(text: str) -> tuple[set[str], set[str]]:
    """Return the words that are facts in sentences with a negation, and those in sentences without."""
    denied: set[str] = set()
    stated: set[str] = set()
    for sentence in split_sentences(text):
        words = (word.lstrip(_OPENERS).rstrip(_CLOSERS) for word in sentence.split())
        (denied if has_negation(sentence) else stated).update(word for word in words if word and _is_fact(word))
    return denied, stated

"""Second halves of sentences without a verb: "the beta goes out on the 17th, production on the 24th"."""

import re

_PREPOSITIONS = ("on", "at", "in", "to", "from", "by", "every", "under", "with", "through", "until", "after", "before")
_AUXILIARY = frozenset({"is", "are", "was", "were", "be", "will", "has", "have"})
_PARTICLES = frozenset({"out", "up", "off", "down", "over", "back", "live", "only", "due", "planned", "scheduled"})
_HALF = re.compile(
    rf"(?P<noun>[\w./-]+(?: [\w./-]+){{0,3}}?) (?P<preposition>{'|'.join(_PREPOSITIONS)}) (?P<rest>\S.*)"
)
_AMOUNT_HALF = re.compile(r"(?P<noun>[\w./-]+(?: [\w./-]+){0,3}?) (?P<rest>[$€£]?\d\S*(?: [\w/%]+){0,3})")
_NO_NOUN = re.compile(
    rf"^(?:not|no|so|and|but|then|also|just|only|[a-z]+ed|[a-z]+ing)\b|\b(?:{'|'.join(_PREPOSITIONS)})$"
)


def complete_half(first: str, second: str, *, verb: str) -> str:
    """Return the second half with the verb of the first, which has a value of the same form; empty if it is no half."""
    behind = re.search(rf"\b{re.escape(verb)} (?P<rest>.+)", first)
    if behind is None:
        return ""
    tokens = behind["rest"].split()
    taken = [verb]
    while tokens and (tokens[0] in _PARTICLES or (verb in _AUXILIARY and tokens[0].endswith("ed"))):
        taken.append(tokens.pop(0))
    if not tokens:
        return ""
    match = _HALF.match(second)
    if _NO_NOUN.search((match or _AMOUNT_HALF.fullmatch(second.strip()) or {"noun": ""})["noun"]):
        return ""
    if match and match["preposition"] == tokens[0]:
        return f"{match['noun']} {' '.join(taken)} {match['preposition']} {match['rest']}"
    match = _AMOUNT_HALF.fullmatch(second.strip())
    if match and tokens[0].lstrip("$€£")[:1].isdecimal() and verb in ("is", "are"):
        return f"{match['noun']} {' '.join(taken)} {match['rest']}"
    return ""

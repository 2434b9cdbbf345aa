"""Predicates: a verb, and the form that says whether something was, is, or is planned."""

from dataclasses import dataclass
from enum import StrEnum

from memory.extraction.rules.words import ADVERBS, HEDGES
from memory.verbs import VERBS, Verb


class Form(StrEnum):
    """The form of a predicate. The forms COPULA… are forms of "be" without another verb."""

    PRESENT = "present"
    PAST = "past"
    PERFECT = "perfect"
    """ "has visited" """
    LASTING = "lasting"
    """ "has been learning" """
    PROGRESSIVE = "progressive"
    FUTURE = "future"
    INTENT = "intent"
    """ "plans to visit" """
    USED_TO = "used to"
    NEGATED = "negated"
    """ "does not like" """
    NO_LONGER = "no longer"
    NO_LONGER_DOING = "no longer doing"
    """ "is no longer training" """
    COPULA = "copula"
    COPULA_NEGATED = "copula negated"
    """ "is not allergic" """
    COPULA_PAST = "copula past"
    COPULA_PERFECT = "copula perfect"
    """ "has been married" """


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A verb, its form and the words after it. `modal` has the words before it ("wants to"), in the third person."""

    form: Form
    verb: str
    rest: str
    modal: str = ""

    def words(self, *, is_plural: bool) -> str:
        """Return the verb as claims contain it, in the third person singular or plural."""
        verb = VERBS.get(self.verb)
        if verb is None:
            return _COPULAS[self.form][is_plural]
        has, is_ = ("have", "are") if is_plural else ("has", "is")
        does, present = ("do", verb.base) if is_plural else ("does", verb.present)
        return {
            Form.PRESENT: present,
            Form.PAST: verb.past,
            Form.PERFECT: f"{has} {verb.participle}",
            Form.LASTING: f"{has} been {verb.gerund}",
            Form.PROGRESSIVE: f"{is_} {verb.gerund}",
            Form.FUTURE: f"will {verb.base}",
            Form.INTENT: _intent(self.modal, verb, is_plural=is_plural),
            Form.USED_TO: f"used to {verb.base}",
            Form.NEGATED: f"{does} not {verb.base}",
            Form.NO_LONGER: f"no longer {present}",
            Form.NO_LONGER_DOING: f"{is_} no longer {verb.gerund}",
        }[self.form]


_COPULAS = {
    Form.COPULA: ("is", "are"),
    Form.COPULA_NEGATED: ("is not", "are not"),
    Form.COPULA_PAST: ("was", "were"),
    Form.NO_LONGER: ("is no longer", "are no longer"),
}
_COPULAS |= {Form.COPULA_PERFECT: ("has been", "have been")}


def _intent(modal: str, verb: Verb, *, is_plural: bool) -> str:
    following = verb.base if modal.endswith(" to") else verb.gerund
    return f"{_plural(modal) if is_plural else modal} {following}"


def _plural(modal: str) -> str:
    first, _, rest = modal.partition(" ")
    return f"{'are' if first == 'is' else first.removesuffix('s')} {rest}"


_BY_PRESENT = {verb.present: verb.base for verb in VERBS.values() if verb.base != "be"}
_BY_PAST = {verb.past: verb.base for verb in VERBS.values() if verb.past not in ("was", "read", "put", "found")} | {
    "found": "find",
    "founded": "found",
}
_BY_PARTICIPLE = {verb.participle: verb.base for verb in VERBS.values()} | {"got": "get", "found": "find"}
_BY_GERUND = {verb.gerund: verb.base for verb in VERBS.values()}
for _base in [base for base in VERBS if base.endswith("el")]:
    # "cancelled" and "travelling" are British for "canceled" and "traveling"
    _BY_PAST[f"{_base}led"] = _BY_PARTICIPLE[f"{_base}led"] = _BY_GERUND[f"{_base}ling"] = _base
_SKIPPED = ADVERBS | HEDGES
_TRYING = ("planning", "hoping", "aiming", "trying", "looking", "preparing", "determined")
_INTENTS = {
    "want": "wants to",
    "aim": "aims to",
    "plan": "plans to",
    "hope": "hopes to",
    "intend": "intends to",
    "decide": "decided to",
}
_INTENT_VERBS = {verb: base for base in _INTENTS for verb in (base, f"{base}s")} | {"decided": "decide"}


def is_past(word: str) -> bool:
    """Return True for the past form of a known verb."""
    return word.lower() in _BY_PAST


def is_present(word: str) -> bool:
    """Return True for the third person of a known verb."""
    return word.lower() in _BY_PRESENT


def predicate_of(words: str, *, is_third: bool) -> Predicate | None:
    """Return the predicate that begins these words, or None. `is_third` is True after "she", but not after "I"."""
    tokens = words.split()
    first = _skip_adverbs(tokens, 0)
    if first >= len(tokens):
        return None
    word = tokens[first].lower()
    if word in ("am", "is", "are"):
        return _after_be(tokens, first + 1)
    if word in ("was", "were"):
        return _predicate(Form.COPULA_PAST, "", tokens, first + 1)
    if word in ("has", "have"):
        return _after_have(tokens, first + 1)
    if word in ("do", "does"):
        return _after_do(tokens, first + 1)
    return _finite(tokens, first, is_third=is_third)


def _skip_adverbs(tokens: list[str], place: int) -> int:
    while place < len(tokens) and tokens[place].lower() in _SKIPPED:
        place += 1
    return place


def _predicate(form: Form, verb: str, tokens: list[str], place: int, modal: str = "") -> Predicate:
    return Predicate(form=form, verb=verb, rest=" ".join(tokens[place:]), modal=modal)


def _word(tokens: list[str], place: int) -> str:
    return tokens[place].lower() if place < len(tokens) else ""


def _without_anymore(tokens: list[str]) -> list[str]:
    """Return the tokens before "anymore", "any more" and "any longer" at their end, or all if they end in none."""
    end = [token.lower().strip(".!") for token in tokens[-2:]]
    return (
        tokens[:-1]
        if end[-1:] == ["anymore"]
        else tokens[:-2]
        if end in (["any", "more"], ["any", "longer"])
        else tokens
    )


def _after_be(tokens: list[str], start: int) -> Predicate | None:
    place = _skip_adverbs(tokens, start)
    word, following = _word(tokens, place), _word(tokens, place + 1)
    if word == "not":
        left = _without_anymore(tokens)
        if place + 1 < len(left) < len(tokens):
            return _no_longer_being(left, place + 1)
        return _predicate(Form.COPULA_NEGATED, "", tokens, place + 1)
    if word == "no" and following == "longer":
        return _no_longer_being(tokens, place + 2)
    if word == "going" and following == "to" and _word(tokens, place + 2) in VERBS:
        return _predicate(Form.FUTURE, _word(tokens, place + 2), tokens, place + 3)
    if word in _TRYING and following == "to" and _word(tokens, place + 2) in VERBS:
        return _predicate(Form.INTENT, _word(tokens, place + 2), tokens, place + 3, f"is {word} to")
    if word == "considering" and following in _BY_GERUND:
        return _predicate(Form.INTENT, _BY_GERUND[following], tokens, place + 2, "is considering")
    gerund = _BY_GERUND.get(_word(tokens, place + 2))
    if (word, following) in (("planning", "on"), ("thinking", "about"), ("thinking", "of")) and gerund:
        modal = "plans to" if word == "planning" else "is thinking about"
        return _predicate(Form.INTENT, gerund, tokens, place + 3, modal)
    if word in _BY_GERUND:
        return _predicate(Form.PROGRESSIVE, _BY_GERUND[word], tokens, place + 1)
    return _predicate(Form.COPULA, "", tokens, place)


def _no_longer_being(tokens: list[str], place: int) -> Predicate:
    """Return "is no longer vegan", or the predicate of a verb: "is no longer training"."""
    gerund = _BY_GERUND.get(_word(tokens, place))
    return _predicate(Form.NO_LONGER_DOING if gerund else Form.NO_LONGER, gerund or "", tokens, place + bool(gerund))


def _after_have(tokens: list[str], start: int) -> Predicate | None:
    place = _skip_adverbs(tokens, start)
    word = _word(tokens, place)
    if word in ("not", "never", "to"):
        return None
    if word == "been":
        place = _skip_adverbs(tokens, place + 1)
        gerund = _BY_GERUND.get(_word(tokens, place))
        return _predicate(Form.LASTING if gerund else Form.COPULA_PERFECT, gerund or "", tokens, place + bool(gerund))
    if word == "got":
        # "I've got a dog" is what one has, "I've got tired" is not looked at
        return _predicate(Form.PRESENT, "have", tokens, place + 1)
    if word in _BY_PARTICIPLE and _word(tokens, place + 1):
        return _predicate(Form.PERFECT, _BY_PARTICIPLE[word], tokens, place + 1)
    return _predicate(Form.PRESENT, "have", tokens, place)


def _after_do(tokens: list[str], start: int) -> Predicate | None:
    place = _skip_adverbs(tokens, start)
    if _word(tokens, place) != "not":
        is_verb = _word(tokens, place) not in VERBS
        return _predicate(Form.PRESENT, "do", tokens, place) if is_verb else None
    place = _skip_adverbs(tokens, place + 1)
    verb = _word(tokens, place)
    if verb not in VERBS:
        return None
    left = _without_anymore(tokens)
    if len(left) < len(tokens):
        return _predicate(Form.NO_LONGER, verb, left, place + 1)
    return _predicate(Form.NEGATED, verb, tokens, place + 1)


def _finite(tokens: list[str], place: int, *, is_third: bool) -> Predicate | None:
    word, following = _word(tokens, place), _word(tokens, place + 1)
    if word == "used" and following == "to" and _word(tokens, place + 2) in VERBS:
        return _predicate(Form.USED_TO, _word(tokens, place + 2), tokens, place + 3)
    if word == "will":
        verb = _word(tokens, _skip_adverbs(tokens, place + 1))
        return _predicate(Form.FUTURE, verb, tokens, _skip_adverbs(tokens, place + 1) + 1) if verb in VERBS else None
    if word in _INTENT_VERBS and following == "to":
        verb, modal = _word(tokens, place + 2), _INTENTS[_INTENT_VERBS[word]]
        return _predicate(Form.INTENT, verb, tokens, place + 3, modal) if verb in VERBS else None
    if word == "no" and following == "longer":
        later = _finite(tokens, _skip_adverbs(tokens, place + 2), is_third=is_third)
        is_now = later is not None and later.form is Form.PRESENT
        return _predicate(Form.NO_LONGER, later.verb, later.rest.split(), 0) if is_now and later else None
    if word in _BY_PAST:
        return _predicate(Form.PAST, _BY_PAST[word], tokens, place + 1)
    present = _BY_PRESENT if is_third else VERBS
    if word in present:
        return _predicate(Form.PRESENT, _BY_PRESENT[word] if is_third else word, tokens, place + 1)
    return None

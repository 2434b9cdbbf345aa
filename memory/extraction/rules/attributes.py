"""Claims as subject, attribute and value, and the decision whether two claims contradict each other.

A claim is read by its words alone, whoever wrote it: the rules, a language model, or a client. What the readers do not
know has no parts and contradicts nothing. Two claims contradict each other only if that is sure:

- They say different values of an attribute of which their subject has one (`statements.is_single`). Values that may
  both hold do not differ: a name and its longer form, a city and a country, amounts of different units.
- One of them ends the other: "no longer works at Brightwave", "left Brightwave", "sold the Tesla".

To add an attribute, add a reader to `_READERS`, its name to `statements.SINGLE` if a subject has one value of it, and a
line to both tables of `tests/memory/extraction/test_attributes.py`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.dates import MONTHS
from memory.extraction.rules.addresses import NUMBERED, are_other_addresses, are_other_places, has_street
from memory.extraction.rules.ailments import DRUG
from memory.extraction.rules.contact_names import one_name_of_contact
from memory.extraction.rules.denials import denied_claims
from memory.extraction.rules.endings import DATED, SMOKED, WHOM, ends_value, read_ends
from memory.extraction.rules.owner_claims import read_owner
from memory.extraction.rules.quantities import is_alike, is_generic, is_other_time, may_recur, read_quantity, unit_of
from memory.extraction.rules.statements import ClaimParts, attitude_to, is_single, normalize_value
from memory.extraction.rules.styles import read_style
from memory.extraction.rules.words import (
    ANIMAL_RELATIONS,
    PERSON_RELATIONS,
    PROFESSIONS,
    SINGLE_RELATIONS,
    words,
)
from memory.models.facts import Temporal

MAX_KEY_CHARACTERS = 200
PERSONAL = frozenset({"residence", "employer", "age", "birthday", "birthplace", "spouse", "diet", "marital status"})
"""Attributes that only people have."""

_SUBJECT = r"(?P<subject>\S.{0,80}?)"
_VALUE = r"(?P<value>\S.{0,79}?)"
_NOW = r"(?:now |currently )?"
_DIETS = "vegetarian|vegan|pescatarian"
_MARITAL = "single|married|divorced|widowed|engaged"
_AN = r"(?:an? |the |their |his |her |my |our )?"
_NAMED = r"(?=(?-i:[A-Z]))"
_NO_MONTH = rf"(?!(?:{'|'.join(MONTHS)})\b)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """A pattern of claims with the groups `subject` and `value`, and what it means."""

    attribute: str
    pattern: re.Pattern[str]
    temporal: str = Temporal.CURRENT
    is_change: bool = False
    is_end: bool = False

    def read(self, claim: str) -> ClaimParts | None:
        match = self.pattern.fullmatch(claim)
        if match is None:
            return None
        return ClaimParts(
            subject=match["subject"],
            attribute=self.attribute,
            value=match["value"],
            temporal=self.temporal,
            is_change=self.is_change,
            is_end=self.is_end,
        )


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_SUBJECT} {pattern}{DATED}\.?")


def _holds(attribute: str, pattern: str, *, is_change: bool = False) -> _Reader:
    return _Reader(attribute=attribute, pattern=_compile(pattern), is_change=is_change)


def _ends(attribute: str, pattern: str) -> _Reader:
    return _Reader(attribute=attribute, pattern=_compile(pattern), temporal=Temporal.PAST, is_end=True)


_READERS = (
    _ends("residence", rf"(?:used to live|no longer lives?) (?:in|at{NUMBERED}) {_VALUE}"),
    _holds("residence", rf"{_NOW}(?:lives?|resides?) (?:in|on(?= an? )|at{NUMBERED}) {_VALUE}(?: now)?"),
    _holds("residence", rf"is {_NOW}based in {_VALUE}(?: now)?"),
    _ends("residence", rf"is no longer based in {_VALUE}"),
    _holds(
        "residence",
        rf"(?<! was )(?<! were )(?<! been )(?<! got )(?:has |have )?(?:moved|relocated) "
        rf"(?:(?:back )?to |in with .{{1,40}} in {_NAMED}{_NO_MONTH}){_VALUE}",
        is_change=True,
    ),
    _ends("employer", rf"(?:used to work|no longer works?) (?:for|at) {_VALUE}"),
    _holds("employer", rf"{_NOW}(?:works?|is employed) (?:for|at) {_VALUE}(?: now)?"),
    _holds("employer", rf"has been at {_NAMED}{_VALUE} (?:for|since) .{{1,40}}"),
    _holds("boss", rf"reports to {_NAMED}{_VALUE}(?: now)?"),
    _holds("rising", r"gets? up at (?P<value>\d{1,2}(?:[:.]\d\d)?(?: ?[ap]m)?)(?: in the morning)?(?: now)?"),
    _holds("plan", r"is on the (?P<value>[\w-]+(?: [\w-]+)?) (?:plan|tier)(?: now)?"),
    _holds("age", r"is (?P<value>\d{1,3}) years? old"),
    _holds("shift", r"is on (?:the )?(?P<value>(?:late|early|day|night)(?: shift)?)s?(?: .{1,30})?"),
    _holds("grade", r"is in (?:the )?(?P<value>year \d{1,2}|\d{1,2}(?:st|nd|rd|th) grade)"),
    _holds("income", r"(?:now )?earns? (?P<value>[$€£]?\d.{0,40}?)(?: now)?"),
    _holds("birthday", rf"was born on {_VALUE}"),
    _holds("birthplace", rf"was born in {_VALUE}"),
    _holds("called", rf"asks to be called {_VALUE}"),
    _holds("spouse", rf"(?:is|got) married to {_VALUE}"),
    _holds("engaged", rf"(?:is|got) {_NOW}engaged to {_VALUE}"),
    _ends("spouse", rf"is no longer married to {_VALUE}"),
    _holds("origin", rf"is from {_VALUE}"),
    _ends("diet", rf"is no longer {_AN}(?P<value>{_DIETS})"),
    _ends("diet", rf"is not {_AN}(?P<value>{_DIETS}) (?:anymore|any more)"),
    _holds("diet", rf"is {_NOW}{_AN}(?P<value>{_DIETS})(?: now)?"),
    _ends("marital status", rf"is no longer (?P<value>{_MARITAL})"),
    _holds("marital status", rf"(?:is|got) {_NOW}(?P<value>{_MARITAL})(?: now)?"),
    _holds("profession", rf"is {_NOW}(?P<value>an? (?:[\w'-]+ ){{0,3}}?(?:{'|'.join(sorted(PROFESSIONS))}))(?: now)?"),
    _ends("uses", rf"no longer uses? {_AN}{_VALUE}"),
    _holds("uses", rf"uses? {_AN}{_VALUE}"),
    _ends("drinks", rf"no longer drinks? {_AN}{_VALUE}"),
    _holds("takes", rf"takes? (?P<value>(?:\d+ ?m?c?g (?:of )?)?{DRUG}(?: .{{1,60}})?)"),
    _holds("smokes", rf"(?:still )?smokes? (?P<value>{SMOKED})"),
    _holds("smokes", r"(?P<value>smokes?)"),
    _holds("owes", rf"(?:still )?owes? (?P<value>{WHOM} .{{1,60}})"),
    _holds("drinks", rf"drinks? {_AN}{_VALUE}"),
    _holds("studies", rf"(?:studies|study) (?:at )?{_AN}{_VALUE}"),
    _holds("owns", rf"(?:owns?|has|have|drives?) (?:an?|the|their) {_VALUE}"),
    _ends("owns", rf"no longer (?:owns?|has|have|drives?) {_AN}{_VALUE}"),
    _ends("owns", rf"(?:has |have )?(?:sold|gave away|given away|got rid of|gotten rid of) {_AN}{_VALUE}(?: for .+)?"),
)
_CONTACTS = frozenset(
    {
        *("phone number", "number", "email", "email address", "address", "extension", "postcode", "zip code"),
        *(
            "target",
            "target time",
            "target weight",
            "goal time",
            "goal weight",
            "job title",
            "timezone",
            "time zone",
            "pronouns",
            "username",
        ),
    }
)
_OWNED = re.compile(rf"{_SUBJECT}'s (?P<what>[a-zé][\w' -]{{1,60}}?) (?:is|are) {_NOW}{_VALUE}(?P<now> now)?\.?")
_LIKING = re.compile(
    rf"{_SUBJECT} (?P<liking>likes|loves|enjoys|adores|dislikes|hates|no longer (?:likes|loves|enjoys)"
    r"|(?:does not|doesn't) (?:like|enjoy)) (?P<value>.{1,120}?)(?: anymore| any more)?\.?"
)
_PREFERENCE = re.compile(
    rf"{_SUBJECT} prefers (?:an? |the )?(?P<kind>[\w'-]+(?: [\w'-]+){{0,2}}?) (?P<thing>[\w'-]+)"
    r"(?: (?:with|without) .+?)?(?P<scope> (?:for|in|on|at|over|from|when|by|during) .+?)?\.?"
)
_ABILITY = re.compile(
    rf"{_SUBJECT} (?P<how>cannot|can't|can no longer|can|never learned to|(?:has |have )?learned to|knows? how to)"
    r" (?P<what>[a-z][\w' -]{1,40}?)(?: now| again| anymore)?\.?"
)
_BARE_AGE = re.compile(rf"{_SUBJECT} is (?P<value>\d{{1,3}})\.?")
_SIDELINE = re.compile(
    r"\b(?:part[- ]time|also|too|as well|freelances?|weekends?|evenings?|side|volunteer|another|second)\b"
)
_BEYOND_AN_EMPLOYER = re.compile(r",| (?:as|in|on|since|with|from|until|where|now)\b")
_KIN = (PERSON_RELATIONS | ANIMAL_RELATIONS) - words(
    "partner roommate flatmate housemate supervisor mentor coach teacher professor therapist doctor dentist assistant"
)
_MOVED = re.compile(r"(?<! has)(?<! have) (?:moved|relocated) ")
_MARRIAGE = ("spouse", "engaged", "marital status")
_UNMARRIED = frozenset({"single", "divorced", "widowed"})
_ENDABLE = frozenset({"owns", "uses", "drinks", "studies"})
"""Attributes with several values, of which claims say that one is over."""
_OF_THINGS = frozenset({"date", "time", "amount", "identifier", "version", "owner"})


def read_claim(claim: str, *, only_relations: frozenset[str] = SINGLE_RELATIONS) -> ClaimParts | None:
    """Return the parts of a claim in words that are known, else None. People have one of each of `only_relations`."""
    claim = " ".join(claim[:300].split())
    if thing := read_quantity(claim) or read_owner(claim) or read_style(claim):
        return thing
    for reader in _READERS:
        if parts := reader.read(claim):
            return parts
    return _read_liking(claim) or _read_age(claim) or _read_ability(claim) or _read_owned(claim, only_relations)


def _read_ability(claim: str) -> ClaimParts | None:
    """Read "cannot swim", "never learned to swim" and "can swim"."""
    match = _ABILITY.fullmatch(claim)
    if match is None:
        return None
    value = "no" if match["how"].startswith(("cannot", "can't", "can no", "never")) else "yes"
    return ClaimParts(subject=match["subject"], attribute=f"ability:{match['what']}", value=value)


def _read_age(claim: str) -> ClaimParts | None:
    match = _BARE_AGE.fullmatch(claim)
    return None if match is None else ClaimParts(subject=match["subject"], attribute="age", value=match["value"])


def _read_liking(claim: str) -> ClaimParts | None:
    match = _LIKING.fullmatch(claim)
    if match is None:
        return None
    verb = match["liking"]
    value = "dislikes" if verb in ("dislikes", "hates") or verb.startswith(("no longer", "does")) else "likes"
    return ClaimParts(subject=match["subject"], attribute=attitude_to(match["value"]), value=value)


def _read_owned(claim: str, only_relations: frozenset[str]) -> ClaimParts | None:
    match = _OWNED.fullmatch(claim)
    if match is None:
        return None
    what = match["what"].replace("favourite", "favorite")
    newer = what.removeprefix("new ")
    if newer in ("address", "home address") and re.match(NUMBERED, f" {match['value']}"):
        attribute = "residence"
    elif what.startswith("favorite "):
        attribute = f"favorite:{what.removeprefix('favorite ')}"
    elif contact := one_name_of_contact(newer, match["value"]):
        attribute = f"only:{contact}"
    elif newer in only_relations or newer in _CONTACTS:
        attribute = f"only:{newer}"
    else:
        attribute = what if what in ("name", "birthday") else f"relation:{what}"
    is_change = match["now"] is not None or newer != what
    return ClaimParts(subject=match["subject"], attribute=attribute, value=match["value"], is_change=is_change)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReading:
    """The meaning of a claim: what it says and what it ends.

    `ends` are the attributes whose value it ends. `ended_claims` are the claims that it denies, in the same words.
    """

    parts: ClaimParts | None
    ends: Sequence[ClaimParts] = ()
    ended_claims: Sequence[str] = ()

    @property
    def key(self) -> str:
        """The subject and the attribute that it is about or ends, for look-ups; empty if they are not known."""
        about = [self.parts] if self.parts is not None else self.ends
        return format_key(about[0]) if about else ""

    @property
    def sought_keys(self) -> frozenset[str]:
        """The keys of the facts that the claim may contradict."""
        sought = [*self.ends]
        if self.parts is not None and self.parts.attribute in _MARRIAGE:
            sought += [replace(self.parts, attribute=each) for each in _MARRIAGE]
        if self.parts is not None and (is_single(self.parts.attribute) or self.parts.attribute in _ENDABLE):
            sought.append(self.parts)
        return frozenset(map(format_key, sought))


def format_key(parts: ClaimParts) -> str:
    subject, attribute = parts.key
    return f"{subject}|{normalize_value(attribute)}"[:MAX_KEY_CHARACTERS]


def read_meaning(claim: str) -> ClaimReading:
    """Return what a claim says and ends, as far as its words are known."""
    claim = " ".join(claim[:300].split())
    parts = read_claim(claim)
    ends = [parts] if parts is not None and parts.is_end else []
    ends += read_ends(claim)
    # what users drop, their teams use no more
    ends += [replace(each, subject=f"{each.subject}'s team") for each in ends if each.key == ("the user", "uses")]
    return ClaimReading(parts=parts, ends=tuple(ends), ended_claims=denied_claims(claim))


def contradicts(new: ClaimReading, old: ClaimReading) -> bool:
    """Return True if the two claims surely cannot both be true now, so that the later one ends the other."""
    if old.parts is None:
        return False
    if new.parts is not None and _is_divorce(new.parts, old.parts):
        return True
    ending = [end for end in new.ends if end.key == old.parts.key]
    if any(ends_value(end, old.parts) or (_is_same_value(end, old.parts) and not old.parts.is_end) for end in ending):
        return True
    if new.parts is None or new.parts.key != old.parts.key or new.parts.temporal != Temporal.CURRENT:
        return False
    if old.parts.is_end:
        return bool(old.ended_claims) and _is_same_value(new.parts, old.parts)
    return old.parts.temporal == Temporal.CURRENT and is_single(new.parts.attribute) and differs(new.parts, old.parts)


def is_rescheduled(new: ClaimReading, old: ClaimReading) -> bool:
    """Return True for the dates of one thing, if the later one says that it was moved, or the thing does not recur."""
    if new.parts is None or old.parts is None or new.parts.attribute != "date" or not contradicts(new, old):
        return False
    is_other = is_other_time(_value_of(new.parts), _value_of(old.parts))
    return new.parts.is_change or is_other or not may_recur(new.parts.subject)


def _is_divorce(new: ClaimParts, old: ClaimParts) -> bool:
    """Return True for "is married to Eva" and "is divorced" of the same subject, whichever is later.

    So are "is engaged to Eva" and "is single".
    """
    other, status = sorted((new, old), key=lambda each: each.attribute == "marital status")
    is_pair = status.attribute == "marital status" and not (new.is_end or old.is_end)
    without = {"spouse": _UNMARRIED, "engaged": frozenset({"single"})}.get(other.attribute, frozenset())
    return is_pair and normalize_value(status.value) in without and new.subject.casefold() == old.subject.casefold()


def replaces_role(new: ClaimReading, old: ClaimReading) -> bool:
    """Return True if a claim with words of change ("is my dentist now") names another one in the same role or job.

    Relatives, friends and animals are no roles: there may be several.
    """
    if new.parts is None or old.parts is None or new.parts.key != old.parts.key:
        return False
    attribute = new.parts.attribute
    is_role = attribute == "profession" or (attribute.startswith("relation:") and attribute[9:].split()[-1] not in _KIN)
    is_current = new.parts.temporal == old.parts.temporal == Temporal.CURRENT
    return is_role and is_current and differs(new.parts, old.parts)


def replaces_preference(new: str, old: str) -> bool:
    """Return True if two claims are about preferred kinds of the same thing: "short answers", "detailed answers"."""
    ours, theirs = (_PREFERENCE.fullmatch(" ".join(claim[:300].split())) for claim in (new, old))
    if ours is None or theirs is None:
        return False
    is_same = all(str(ours[part]).casefold() == str(theirs[part]).casefold() for part in ("subject", "thing", "scope"))
    return is_same and ours["kind"].casefold() != theirs["kind"].casefold()


def is_move(claim: str) -> bool:
    """Return True for "Ana moved to Porto", which says where somebody lives now only if it is recent."""
    parts = read_claim(claim)
    return parts is not None and parts.attribute == "residence" and _MOVED.search(claim) is not None


def is_same_meaning(one: ClaimReading, other: ClaimReading) -> bool:
    """Return True if two claims say the same of the same subject in other words."""
    if one.parts is None or other.parts is None:
        return False
    return meaning_of(one) == meaning_of(other)


def meaning_of(reading: ClaimReading) -> tuple[str, ...]:
    """Return subject, attribute, value and whether it holds, normalized; empty if the claim is not understood."""
    if reading.parts is None:
        return ()
    parts = reading.parts
    # that Ana moved to Lisbon may be true although she does not live there
    is_move = parts.attribute == "residence" and parts.is_change
    return format_key(parts), _value_of(parts), parts.temporal, "ended" if parts.is_end else "", "move" * is_move


def differs(new: ClaimParts, old: ClaimParts) -> bool:
    """Return True if two values of a single-valued attribute surely exclude each other."""
    if new.is_owned and old.is_owned and new.attribute == "amount":
        are_comparable = _are_comparable(new, unit_of(_value_of(new)), unit_of(_value_of(old)))
        return _value_of(new) != _value_of(old) and are_comparable
    ours, theirs = _value_of(new), _value_of(old)
    words_of_ours, words_of_theirs = (set(re.findall(r"\w+", value)) for value in (ours, theirs))
    if words_of_ours <= words_of_theirs or words_of_theirs <= words_of_ours:
        return False
    if new.attribute == "residence" and (has_street(ours) or has_street(theirs)):
        return are_other_addresses(ours, theirs)
    if new.attribute == "residence":
        return are_other_places(new.value, old.value, is_move=new.is_change)
    if new.attribute == "employer":
        return _are_names(new, old) and not (_SIDELINE.search(new.value) or _SIDELINE.search(old.value))
    if new.attribute in ("identifier", "version") and not is_alike(new.value, old.value):
        return new.attribute == "version" and new.is_change
    if new.attribute == "amount" and not _are_comparable(new, unit_of(ours), unit_of(theirs)):
        return False
    if new.attribute == "date" and is_other_time(ours, theirs):
        return True
    return new.attribute not in _OF_THINGS or new.is_change or not is_generic(new.subject)


def _are_comparable(new: ClaimParts, ours: str, theirs: str) -> bool:
    """Return True for the same units, one that is left out, and "£" for what was "£ a month" and has changed."""
    return not (ours and theirs) or ours == theirs or (new.is_change and theirs.startswith(f"{ours} "))


def _are_names(new: ClaimParts, old: ClaimParts) -> bool:
    """Return True if both values begin with a capital letter: "a bakery" may be the name's."""
    return all(each.value.removeprefix("the ")[:1].isupper() for each in (new, old))


def _is_same_value(one: ClaimParts, other: ClaimParts) -> bool:
    return _value_of(one) == _value_of(other)


def _value_of(parts: ClaimParts) -> str:
    value = parts.value
    if parts.attribute == "employer":
        value = _BEYOND_AN_EMPLOYER.split(value, maxsplit=1)[0] or value
    return re.sub(r"^(?:their|his|her|my|our|on) ", "", normalize_value(value))

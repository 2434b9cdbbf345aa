"""Requests of users to forget something that they said, as in "Forget what I said about my address".

Only plain English orders to the assistant are read, and only whole sentences: "I always forget my keys" and "Don't
forget my birthday" ask for nothing. What is asked for is either a topic, some words that a claim must have, or a
statement that the user takes back.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.extraction.grounding import word_stems
from memory.extraction.rules.addresses import NUMBERED
from memory.extraction.rules.attributes import is_same_meaning, read_meaning
from memory.extraction.rules.words import PERSON_RELATIONS
from memory.extraction.statement_words import MIN_STATED, read_words
from memory.identity import normalize_claim
from memory.providers.sentences import split_sentences
from memory.scoring import MAX_STATEMENT_CHARACTERS

_TOPIC = r"(?P<topic>[\w'][\w' -]{1,59}?)"
_SAID = (
    r"(?:have )?(?:ever |just )?(?:said|told you|mentioned|shared(?: with you)?|wrote)(?: (?:earlier|before|to you))?"
)
_ALL = r"(?:everything|anything|all|all of what|whatever|what)(?: that)?"
_STATED = r"(?P<stated>(?:i|i'm|i've|my|we|we're|our)\b.{3,200}?)"
_FORMS = tuple(
    re.compile(rf"{form}(?:,? please)?\s*[.!]*", re.IGNORECASE)
    for form in (
        rf"forget(?: about)? {_ALL} i(?:'ve)? {_SAID}(?: (?:about|on|regarding) {_TOPIC})",
        rf"forget (?:that )?i(?:'ve)? {_SAID} that {_STATED}",
        rf"forget that {_STATED}",
        rf"forget(?: about)? (?P<own>my) {_TOPIC}",
        rf"(?:please (?:don't|do not|never)|you (?:should|must) not) remember (?:that )?{_STATED}",
        rf"(?:do not|don't|never) remember (?:that )?{_STATED}(?=,? please)",
        rf"(?:stop|no longer) remember(?:ing)? (?P<own>my) {_TOPIC}",
        (
            rf"(?:forget|delete|remove|erase) {_ALL} you(?:'ve)? (?:know|have|remember(?:ed)?|stored|saved|noted"
            rf"|learned)(?: stored| saved)?(?: about (?:me|(?P<own>my) {_TOPIC}))?"
        ),
        rf"(?:delete|remove|erase) (?P<own>my) {_TOPIC} from (?:your|the) (?:memory|memories|notes|records)",
    )
)
"""The forms of requests. A form without a topic and a statement asks to forget everything."""
_BEFORE = re.compile(
    r"(?:(?:please|ok(?:ay)?|hey|actually|sorry|no|wait|and|also|just|then|now|oh|"
    r"(?:can|could) you|(?:would|will) you(?=.*\bplease\b)|i(?:'d| would) like you to|"
    r"i (?:want|need) you to|you (?:can|should|may))"
    r"[,!.:]?\s+)+",
    re.IGNORECASE,
)
_NOT_SAID = re.compile(
    r"\b(?:it|that|this|them|those|these|last|previous|question|request|message|order|idea|suggestion|comment|prompt"
    r"|instructions?|rules?|plan|point|answer|tonight|today|tomorrow|now|for (?:a|an|one))\b|^(?:me|myself)$",
    re.IGNORECASE,
)
"""Topics that no claim is about: what somebody said a moment ago, and what is to be left aside for a while."""
_ASKED = re.compile(r"(?:i|we) (?:ever )?(?:asked|said|brought|wrote|texted|called)\b", re.IGNORECASE)
_JOINED = re.compile(r"\w,?\s(?:and|but|then|or)\b", re.IGNORECASE)
_EMPTY = frozenset(word_stems("my the a an our your about and or of in on at to for with is are"))
_BY_WORD = {
    "job": ("employer", "profession"),
    "work": ("employer", "profession"),
    "employer": ("employer",),
    "company": ("employer",),
    "home": ("residence",),
    "hometown": ("residence", "origin"),
    "city": ("residence",),
    "age": ("age",),
    "birthday": ("birthday",),
    "diet": ("diet",),
    "husband": ("spouse",),
    "wife": ("spouse",),
    "name": ("name", "called"),
    "address": (),
    "email": ("only:email address",),
}
"""Attributes of claims about the user in other words than those of a topic."""
_AT_NUMBER = re.compile(rf"lives? at{NUMBERED}")
_OWNER = re.compile(r"[\w-]+'s\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """A wish to forget a `topic`, or what was `stated`; everything, if both are empty.

    `is_own` is True for "my address": the claims are about the user.
    """

    topic: str = ""
    stated: str = ""
    is_own: bool = False

    def covers(self, claim: str, *, speaker: str, claims_stated: tuple[str, ...]) -> bool:
        """Return True if a claim is what the user wants forgotten.

        `speaker` begins the claims about the user, "The user" or a name. `claims_stated` are what rules make of
        `stated`.
        """
        if self.stated:
            reading = read_meaning(claim)
            return any(
                normalize_claim(each) == normalize_claim(claim) or is_same_meaning(read_meaning(each), reading)
                for each in claims_stated
            )
        about = re.match(rf"{re.escape(speaker)}(?:'s)? ", claim, re.IGNORECASE)
        rest = claim[about.end() :] if about else claim
        if self.is_own or self.topic.casefold() in _BY_WORD:
            is_thing = about is not None and self._is_thing(rest, is_owned=about[0].endswith("'s "))
            return is_thing or self._is_aspect(claim, rest, speaker)
        wanted = word_stems(self.topic) - _EMPTY
        return bool(wanted) and wanted <= word_stems(rest)

    def _is_thing(self, rest: str, *, is_owned: bool) -> bool:
        """Return True if a claim names the thing as the user's: "The user's dog is", "has a dog", "walks their dog"."""
        topic, is_of_one = re.escape(self.topic), set(_OWNER.findall(rest)) <= set(_OWNER.findall(f"{self.topic}'s"))
        if is_owned:
            is_someone = self.topic.split()[-1].casefold() in PERSON_RELATIONS
            says = r"(?: (?-i:[A-Z])\w+)?(?:'s| \w+(?:s|ed|re))\b" if is_someone else r"(?:'s| is| are| was| were)\b"
            return is_of_one and re.match(rf"(?:new |current |old )?{topic}{says}", rest, re.IGNORECASE) is not None
        ends = r"(?=[.,]?$|,| (?:called|named|in|at|with|to|of|from|for|on|and|who|that)\b)"
        pattern = rf"(?:(?:has|have|owns) an? (?:[\w-]+ )?|\w+ their ){topic}{ends}"
        return is_of_one and re.match(pattern, rest, re.IGNORECASE) is not None

    def _is_aspect(self, claim: str, rest: str, speaker: str) -> bool:
        """Return True if the claim says it of the user in other words: "works at Acme" is about a job."""
        topic, parts = self.topic.casefold(), read_meaning(claim).parts
        if topic == "address":
            return claim != rest and _AT_NUMBER.match(rest) is not None
        if parts is None or parts.subject.casefold() != speaker.casefold():
            return False
        return parts.attribute in _BY_WORD.get(topic, ())


def read_forget_requests(text: str) -> Iterator[ForgetRequest]:
    """Yield what a short turn of a user asks to forget."""
    if len(text) > MAX_STATEMENT_CHARACTERS or '"' in text:
        return
    yield from filter(None, map(_read_sentence, _sentences(text)))


def only_asks_to_forget(text: str) -> bool:
    """Return True if no sentence of a turn that asks to forget something states or asks something else."""
    others = (each for each in _sentences(text) if _read_sentence(each) is None or _JOINED.search(each))
    return all(len(read_words(each).content) < MIN_STATED for each in others)


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in split_sentences(text.replace("’", "'"))]


def _read_sentence(sentence: str) -> ForgetRequest | None:
    lead = _BEFORE.match(sentence)
    # a question is a request only after "can you" and the like
    orders = [sentence, sentence[lead.end() :].rstrip("?")] if lead else [sentence]
    found = (form.fullmatch(order.strip()) for order in orders for form in _FORMS)
    match = next(filter(None, found), None)
    return _request(match) if match else None


def _request(match: re.Match[str]) -> ForgetRequest | None:
    found = match.groupdict()
    topic, stated = found.get("topic") or "", found.get("stated") or ""
    own = re.match(r"(?:my|our) ", topic, re.IGNORECASE)
    topic = topic[own.end() :] if own else re.sub(r"^the ", "", topic, flags=re.IGNORECASE)
    if (topic and _NOT_SAID.search(topic)) or _ASKED.match(stated):
        return None
    return ForgetRequest(topic=topic, stated=stated, is_own=own is not None or bool(found.get("own")))

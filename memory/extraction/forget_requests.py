"""Requests of users to forget something that they said, as in "Forget what I said about my address".

`rules.forgetting` reads the sentences. Here is which claims they cover: those about a topic, those with some words, or
those that say what the user takes back.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory.extraction.given_secrets import find_given_secrets, read_secret_words
from memory.extraction.grounding import word_stems
from memory.extraction.rules.addresses import NUMBERED
from memory.extraction.rules.attributes import is_same_meaning, read_meaning
from memory.extraction.rules.forgetting import may_ask_to_forget, read_forget_words
from memory.extraction.rules.words import ANIMAL_RELATIONS, PERSON_RELATIONS
from memory.extraction.statement_words import MIN_STATED, read_words
from memory.identity import normalize_claim
from memory.providers.sentences import split_sentences
from memory.scoring import MAX_STATEMENT_CHARACTERS

_EMPTY = frozenset(word_stems("my the a an our your about and or of in on at to for with is are s"))
_SAME = {
    "home address": "address",
    "postal address": "address",
    "mobile number": "phone number",
    "cell number": "phone number",
    "telephone number": "phone number",
    "number": "phone number",
    "email address": "email",
    "date of birth": "birthday",
    "income": "salary",
    "pay": "salary",
    "wage": "salary",
    "wages": "salary",
    "allergies": "allergy",
}
"""Topics in the words of `_BY_WORD`."""
_BY_WORD = {
    "job": ("employer", "profession"),
    "work": ("employer", "profession"),
    "employer": ("employer",),
    "company": ("employer",),
    "home": ("residence", "only:address"),
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
    "phone number": ("only:phone number", "only:mobile number"),
    "salary": ("income",),
    "allergy": (),
}
"""Attributes of claims about the user in other words than those of a topic."""
_AT_NUMBER = re.compile(rf"lives? at{NUMBERED}")
_ALLERGIC = re.compile(r"(?:is|was) (?:\w+ )?allergic\b|has an? (?:[\w-]+ ){1,2}allergy\b")
_IN_USE = (
    r"(?:is )?(?:see|visit|take|use|drive|ride|play|wear|rent|attend|adopt|train|walk|feed|buy)(?:s|ing|ed)?"
    r"|(?:has |have )?(?:saw|seen|took|taken|bought|got|adopted)|goes to|is (?:taking|using|driving|riding)"
)
"""What people do with what is theirs: "is seeing a therapist"."""
_RELATIONS = PERSON_RELATIONS | ANIMAL_RELATIONS
_SOMEBODY = "|".join(sorted(_RELATIONS, key=len, reverse=True))
_STEMS_OF_SOMEBODY = word_stems(f"user {' '.join(_RELATIONS)}")
_PLAIN_REASON = re.compile(r"(?i:that|it|this|which)(?:'s| is| was)(?: [a-z'-]+){1,5}")
"""A reason with neither a name nor a number in it: "that was private"."""
_OWNER = re.compile(r"[\w-]+'s\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """A wish to forget a `topic`, or what was `stated`; everything, if both are empty.

    `is_own` is True for "my address": the claims are about the user. `is_name` is True for "Alex".
    """

    topic: str = ""
    stated: str = ""
    is_own: bool = False
    is_name: bool = False

    @property
    def wider(self) -> "ForgetRequest | None":
        """The request that is meant where this one fits no fact: of an address, where the user lives."""
        is_address = self.is_own and self.topic.casefold() == "address"
        return replace(self, topic="home") if is_address else None

    @property
    def secret(self) -> frozenset[str]:
        """The words that name the secret that is to be forgotten; empty if it is something else."""
        return read_secret_words(self.topic)

    def covers(self, claim: str, *, speaker: str, claims_stated: tuple[str, ...]) -> bool:
        """Return True if a claim is what the user wants forgotten.

        `speaker` begins the claims about the user, "The user" or a name. `claims_stated` are what rules make of
        `stated`.
        """
        if self.stated:
            reading = read_meaning(claim)
            is_said = any(
                normalize_claim(each) == normalize_claim(claim) or is_same_meaning(read_meaning(each), reading)
                for each in claims_stated
            )
            return is_said or self._names_same(claim)
        if self.is_name:
            return all(re.search(rf"\b{re.escape(name)}\b", claim) for name in self.topic.split())
        if self.secret:
            return any(self.secret <= given for given in find_given_secrets(claim))
        about = re.match(rf"{re.escape(speaker)}(?:'s)? ", claim, re.IGNORECASE)
        rest = claim[about.end() :] if about else claim
        if self.is_own or self.topic.casefold() in _BY_WORD:
            is_thing = about is not None and self._is_thing(rest, is_owned=about[0].endswith("'s "))
            return is_thing or self._is_aspect(claim, rest, speaker)
        wanted = word_stems(self.topic) - _EMPTY
        return bool(wanted) and wanted <= word_stems(rest)

    def is_about_one(self, claims: Sequence[str]) -> bool:
        """Return False if none of the covered claims says that a name is that of a person or an animal."""
        return not self.is_name or any(self._is_somebody(claim) for claim in claims)

    def _is_somebody(self, claim: str) -> bool:
        name = re.escape(self.topic)
        known = rf"\b(?:{_SOMEBODY})(?:'s name)?(?: is| is called| is named|,| called| named)? {name}\b"
        owner = r"(?:(?:the )?[\w-]+'s|their|an?) (?:[\w-]+ ){0,2}(?:ex-)?"
        introduced = rf"\b{name} (?:is|was) {owner}(?:{_SOMEBODY})\b"
        return re.search(f"{known}|{introduced}", claim) is not None

    def _names_same(self, claim: str) -> bool:
        """Return True if a claim says what was stated of a name: "Gemma is coeliac", "The user's sister Gemma is …"."""
        said, claimed = (word_stems(text) - _EMPTY for text in (self.stated, claim))
        return self.stated[:1].isupper() and len(said) > 1 and said <= claimed and claimed - said <= _STEMS_OF_SOMEBODY

    def _is_thing(self, rest: str, *, is_owned: bool) -> bool:
        """Return True if a claim names the thing as the user's: "The user's dog is", "has a dog", "walks their dog"."""
        topic, is_of_one = re.escape(self.topic), set(_OWNER.findall(rest)) <= set(_OWNER.findall(f"{self.topic}'s"))
        if is_owned:
            is_someone = self.topic.split()[-1].casefold() in PERSON_RELATIONS
            says = r"(?: (?-i:[A-Z])\w+)?(?:'s| \w+(?:s|ed|re))\b" if is_someone else r"(?:'s| is| are| was| were)\b"
            return (
                is_of_one
                and re.match(rf"(?:new |current |old |home |full )?{topic}{says}", rest, re.IGNORECASE) is not None
            )
        ends = r"(?=[.,]?$|,| (?:called|named|in|at|with|to|of|from|for|on|and|who|that)\b)"
        pattern = rf"(?:(?:has|have|owns|{_IN_USE}) an? (?:[\w-]+ )?|\w+ their ){topic}{ends}"
        return is_of_one and re.match(pattern, rest, re.IGNORECASE) is not None

    def _is_aspect(self, claim: str, rest: str, speaker: str) -> bool:
        """Return True if the claim says it of the user in other words: "works at Acme" is about a job."""
        topic, parts = self.topic.casefold(), read_meaning(claim).parts
        other = _AT_NUMBER if topic in ("address", "home") else _ALLERGIC if topic == "allergy" else None
        if other is not None and other.match(rest):
            return claim == f"{speaker} {rest}"
        if parts is None or parts.subject.casefold() != speaker.casefold():
            return False
        return parts.attribute in _BY_WORD.get(topic, ())


def without_requests(text: str) -> str:
    """Return what a text says beside its requests to forget something."""
    if not may_ask_to_forget(text):
        return text
    said = [(sentence, read_forget_words(sentence)) for sentence in split_sentences(text)]
    if not any(asked for _sentence, asked in said):
        return text
    return " ".join(filter(None, (sentence if asked is None else asked.rest for sentence, asked in said)))


def read_forget_requests(text: str) -> Iterator[ForgetRequest]:
    """Yield what a short turn of a user asks to forget."""
    if len(text) > MAX_STATEMENT_CHARACTERS or '"' in text:
        return
    for asked in filter(None, map(read_forget_words, split_sentences(text))):
        topic = _SAME.get(asked.topic.casefold(), asked.topic)
        yield ForgetRequest(topic=topic, stated=asked.stated, is_own=asked.is_own, is_name=asked.is_name)


def only_asks_to_forget(text: str) -> bool:
    """Return True if no sentence of a turn that asks to forget something states or asks something else."""
    return all(len(read_words(rest).content) < MIN_STATED for rest in map(_rest_of, split_sentences(text)))


def _rest_of(sentence: str) -> str:
    asked = read_forget_words(sentence)
    if asked is None or asked.is_joined:
        return sentence
    return "" if _PLAIN_REASON.fullmatch(asked.rest) else asked.rest

"""Contacts, appositions and labels: "Petra, petra@example.org", "a nurse, Mrs Ek, comes on Mondays"."""

import re
from collections.abc import Iterator

from memory.extraction.rules.nouns import Noun, read_noun
from memory.extraction.rules.phrases import possessive
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_address, is_capital
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import Reading, make_thing, read_things
from memory.extraction.rules.values import Value, read_value

_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|Prof|Professor)\.? )?"
_PERSON = rf"{_TITLE}[A-Z][\w'-]+(?: [A-Z][\w'-]+){{0,2}}"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_PHONE = r"\+?\d{2,}(?:[ -]\d{2,}){1,5}"
_CONTACT = re.compile(
    r"(?!(?:Ping|E-?mail|Mail|Call|Ask|Contact|Message|Text|Write|Phone|Ring|Tell|Reach|Send|And|But|Or|Yes|So)\b)"
    rf"(?<![A-Z][a-z] )(?P<who>{_PERSON})(?:,? (?:who is|he is|she is|he's|she's|they're|is))?,?:? "
    r"(?:at |on |under |phone |mail |email )?"
    rf"(?P<address>{_MAIL}|{_PHONE}|@[\w.-]{{2,}})(?=[.,;!)]|$| )"
)
_MAIL_OF = re.compile(r"\b(?P<address>(?P<who>[a-z]{2,20})@[\w-]+(?:\.[\w-]+)+)")
_APPOSITION = re.compile(
    r"(?P<article>[Aa]n?|[Tt]he|[Mm]y|[Oo]ur) (?P<role>[a-z]+(?: [a-z]+)?), "
    rf"(?P<who>{_PERSON}), (?:(?:he|she|who) )?(?P<rest>[a-z].+)"
)
_THEIRS = re.compile(
    rf"\b(?:her|his|their) (?P<what>number|phone|phone number|e-?mail|mail|address|handle"
    rf"|extension) is (?P<address>{_MAIL}"
    rf"|{_PHONE}|@[\w.-]+|\d{{3,5}})"
)
_LABEL = re.compile(r"(?P<label>[A-Z]?[a-z]+(?: [a-z]+){0,2}): (?P<value>[^:?]+)")
_OWN_CONTACT = r"(?:(?:phone|mobile) )?number|e-?mail(?: address)?|address|postcode|zip code"
_CHANGED = re.compile(
    rf"I (?:have )?(?:just |recently )?changed my (?P<what>{_OWN_CONTACT}) to (?P<value>\S.*)"
    rf"|[Mm]y (?P<what2>{_OWN_CONTACT}) (?:has |was |just |recently )*changed"
    r"(?: to|[,;:]? (?:and )?(?:it's|it is|the new one is)(?: now)?) (?P<value2>\S.*)"
    rf"|[Mm]y new (?P<what3>{_OWN_CONTACT}) is (?P<value3>\S.*)"
)
_SPEAKING = re.compile(r"\b(?:wrote|writes|asked|asks|answered|replied|thinks|means|goes|reported|noted|added)$")
_CLAUSE = re.compile(r"\b(?:is|are|was|were|am|I|we|has|have|had|will|can|must|should|do|does|did)\b")
_NO_LABEL = re.compile(
    r"(?:next|first|second|finally|also|yes|no|ok|okay|so|well|question|trouble|wait|sorry|note|remember|example|result"
    r"|output|error|plan|here|idea|problem|and|but|then|now|good|fine|ps|update|edit|one more thing|funny thing"
    r"|guess what"
    r"|long story|fun fact|good news|bad news|point|reason|catch|thing|status|done|todo|work|home)\b",
    re.IGNORECASE,
)


def read_contacts(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the statements about how a person is reached, about named roles, and of labels with a value."""
    who = ""
    if match := _APPOSITION.fullmatch(text):
        who = match["who"]
        yield from _apposition(said, match)
    for match in _CONTACT.finditer(text):
        if is_capital(match["who"].split()[-1]) and is_address(match["address"]):
            yield _reached(said, match["who"], match["address"])
    names = {word.strip(".,;:()").casefold(): word.strip(".,;:()") for word in text.split() if is_capital(word)}
    for match in _MAIL_OF.finditer(text):
        if match["who"] in names and not _CONTACT.search(text):
            yield _reached(said, names[match["who"]], match["address"])
    if who and (match := _THEIRS.search(text)):
        yield _reached(said, who, match["address"])
    match = _LABEL.fullmatch(text)
    if match and not (_NO_LABEL.match(match["label"]) or _SPEAKING.search(match["label"])):
        yield from _labelled(said, match)


def restate_changed_contact(sentence: str) -> str:
    """Return "My number is now 555 1234" for sentences that say in more words that it changed, else the sentence."""
    match = _CHANGED.fullmatch(sentence)
    if match is None:
        return sentence
    what, value = (
        next(filter(None, (match[name], match[f"{name}2"], match[f"{name}3"]))) for name in ("what", "value")
    )
    return f"My {what} is now {value}"


def _reached(said: ClauseContext, who: str, address: str) -> Statement:
    noun = Noun(label=who, key=who.casefold(), is_name=True, is_plural=False)
    reading = Reading(verb="can be reached at", attribute="contact", value=Value(words=address))
    return make_thing(said, noun, reading)


def _apposition(said: ClauseContext, match: re.Match[str]) -> Iterator[Statement]:
    """Yield what is said about the named person, and whose or which role the person has."""
    yield from read_things(said, f"{match['who']} {match['rest']}")
    article = match["article"].lower()
    article = possessive(said.speaker.label) if article in ("my", "our") else article
    noun = Noun(label=match["who"], key=match["who"].casefold(), is_name=True, is_plural=False)
    yield make_thing(said, noun, Reading(verb="is", attribute="role", value=Value(words=f"{article} {match['role']}")))


def _labelled(said: ClauseContext, match: re.Match[str]) -> Iterator[Statement]:
    noun = read_noun(match["label"], said.speaker)
    value = read_value(match["value"], at=said.turn.timestamp, speaker=said.speaker)
    if noun and value and value.is_specific and not _CLAUSE.search(value.words):
        label = Noun(label=f"{noun.label}:", key=noun.key, is_name=noun.is_name, is_plural=noun.is_plural)
        yield make_thing(said, label, Reading(verb="", attribute="value", value=value))

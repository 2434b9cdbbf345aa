"""Contacts and appositions: "Petra, petra@example.org", "a nurse, Mrs Ek, comes on Mondays"."""

import re
from collections.abc import Iterator

from memory.extraction.rules.nouns import Noun
from memory.extraction.rules.phrases import possessive
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_address, is_capital
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import Reading, make_thing, read_things
from memory.extraction.rules.values import Value

_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|Prof|Professor)\.? )?"
_PERSON = rf"{_TITLE}[A-Z][\w'-]+(?: [A-Z][\w'-]+){{0,2}}"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_PHONE = r"(?!\d{4}-\d\d-\d\d\b)\+?\d{2,}(?:[ -]\d{2,}){1,5}"
_CONTACT = re.compile(
    r"(?!(?:Ping|E-?mail|Mail|Call|Ask|Contact|Message|Text|Write|Phone|Ring|Tell|Reach|Send|And|But|Or|Yes|So)\b)"
    rf"(?<![A-Z][a-z] )(?<![@\w])(?P<who>{_PERSON})(?:,? (?:who is|he is|she is|he's|she's|they're|is))?,?:? "
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
_OWN_CONTACT = r"(?:(?:phone|mobile) )?number|e-?mail(?: address)?|address|postcode|zip code"
_CHANGED = re.compile(
    rf"I (?:have )?(?:just |recently )?changed my (?P<what>{_OWN_CONTACT}) to (?P<value>\S.*)"
    rf"|[Mm]y (?P<what2>{_OWN_CONTACT}) (?:has |was |just |recently )*changed"
    r"(?: to|[,;:]? (?:and )?(?:it's|it is|the new one is)(?: now)?) (?P<value2>\S.*)"
    rf"|[Mm]y new (?P<what3>{_OWN_CONTACT}) is (?P<value3>\S.*)"
)


def read_contacts(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the statements about how a person is reached, and about named roles."""
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

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
_DIGITS = r"(?!it\b)(?=[^,;]{0,40}[\d@])\S.*"
_CHANGED = re.compile(
    rf"I (?:have )?(?:just |recently )?changed my (?P<what>{_OWN_CONTACT}) to (?P<value>\S.*)"
    rf"|[Mm]y (?P<what2>{_OWN_CONTACT}) (?:has |was |just |recently )*changed"
    r"(?: to|[,;:]? (?:and )?(?:it's|it is|the new one is)(?: now)?) (?P<value2>\S.*)"
    rf"|[Mm]y new (?P<what3>{_OWN_CONTACT}) is (?P<value3>\S.*)"
    rf"|(?:(?:I(?:'ve| have)? )?(?:just |finally |recently )*[Gg]ot a|[Hh]ere(?:'s| is) my) new"
    rf" (?P<what4>{_OWN_CONTACT})(?:[,;:]? (?:and |so )?(?:it's|it is)(?: now)?|[,;:]) (?P<value4>{_DIGITS})"
    rf"|I(?:'ve| have)? (?:just |recently )*changed my (?P<what5>{_OWN_CONTACT})[,;:]? (?:and |so )?(?:it's|it is)"
    rf"(?: now)? (?P<value5>{_DIGITS})"
)
_NEW_AMOUNT = re.compile(
    r"(?:(?:I|[Ww]e)(?:'ve| have)? (?:just |recently )*(?:put|raised|increased|upped|lowered|dropped|reduced|cut"
    r"|changed) (?:my|our) (?P<what>(?!foot|feet|head|hand)[a-z]+(?: [a-z]+){0,2}?)(?: up| down)?"
    r"|(?:[Mm]y|[Oo]ur) (?P<what2>[a-z]+(?: [a-z]+){0,2}?) (?:has |have |just )*(?:went|gone|changed|increased|risen"
    r"|dropped|fell|fallen)(?: up| down)?)"
    r"[,;:]? (?:and |so )?(?:it's|it is|they're|they are|now)(?: now)? "
    r"(?P<value>(?:[$€£]\d[\d.,]*k?|\d[\d.,]*(?:k|%| (?:pounds|euros|dollars|quid)))(?: (?:an?|per) \w+)?)(?: now)?"
    r"(?P<rest>[.!]?|[,;] .*)"
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


def restate_change(sentence: str) -> str:
    """Return "My number is now 555 1234" for sentences that say in more words that it changed, else the sentence.

    So do amounts: "I put my rates up, it's £52 an hour now" is "My rates are now £52 an hour".
    """
    if match := _NEW_AMOUNT.fullmatch(sentence):
        what = match["what"] or match["what2"]
        return f"My {what} {'are' if what.endswith('s') else 'is'} now {match['value']}{match['rest']}"
    match = _CHANGED.fullmatch(sentence)
    if match is None:
        return sentence
    found = {name.rstrip("2345"): value for name, value in match.groupdict().items() if value}
    return f"My {found['what']} is now {found['value']}"


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

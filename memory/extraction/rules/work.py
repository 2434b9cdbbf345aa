"""Statements about work: decisions, lasting wishes, things and their settings, in clauses without another statement."""

import re
from collections.abc import Iterator

from memory.extraction.rules.choices import read_choice
from memory.extraction.rules.contacts import read_contacts
from memory.extraction.rules.decisions import read_decisions
from memory.extraction.rules.owners import read_owners
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.settings import read_label, read_settings, split_label
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import read_things

_UNSURE = re.compile(
    r"\b(?:would|could|should (?:i|we|it)|wondering|not sure|looks like|seems|supposedly|guess|i think|in theory"
    r"|ideally"
    r"|i suppose|not decided|undecided|either|or maybe|i wonder|propos\w+|suggest(?:s|ed|ion)|option|wants? to|tbd"
    r"|what if"
    r"|almost|nearly|used to|iirc|i believe|no idea|don't know|do not know|as far as|e\.g\.|for example|for instance"
    r"|i bet|i hope|hopefully|feels like|expected|in the old days|back then|years? ago|pretend|joke)\b",
    re.IGNORECASE,
)

_OF_OTHERS = re.compile(r", (?:and |but |so )?(?:the |our )?[\w-]+(?: [\w-]+)? wants? to .+$")
"""What somebody else wants, behind a statement: "the release moved to May, legal wants to check it"."""
_DEADLINE = re.compile(
    r"^(?P<what>(?:[Tt]he |[Oo]ur )?(?:[Dd]eadline|[Dd]ue date|[Tt]arget date)) for (?:all )?(?:of )?(?:this|that|it) "
)
_FOR = re.compile(r"(?P<what>[Ff]or (?:the |our )?[\w./-]+(?: [\w./-]+){0,3}?),? (?P<rest>(?:we|I|let's|use)\b.+)")
_BEHIND = re.compile(r", (?:and )?(?P<part>(?:the|our) .+)$")
"""What is said about a thing behind a decision: "log runs to MLflow, the server is runs.acme.internal"."""
_BEYOND = re.compile(r", | (?:since|because|so|but|as) ")
_IS_ORDER = re.compile(r"(?:for|in|on) ", re.IGNORECASE)
"""The beginning of a label that says for what an order holds: "for this repo: no raw SQL"."""
_NO = re.compile(r"(?:^|[,;:]) ?(?:please |and |also |so |pls )?no $", re.IGNORECASE)
"""The beginning of "no emojis in commit messages", which is no answer to a question."""


def read_work(said: ClauseContext) -> Iterator[Statement]:
    """Yield the statements about work in a clause. A sentence with a doubt in it makes none."""
    text = _OF_OTHERS.sub("", said.clause.text).rstrip(" .!")
    if said.clause.is_hedged or _UNSURE.search(text):
        return
    text = _DEADLINE.sub(r"\g<what> ", text)
    if _NO.search(said.clause.sentence[: max(said.clause.sentence.find(text), 0)]):
        text = f"no {text}"
    if match := _FOR.fullmatch(text):
        text = f"{_BEYOND.split(match['rest'])[0]} {match['what'].lower()}"
    contacts = list(read_contacts(said, text))
    yield from contacts
    if any(statement.attribute == "role" for statement in contacts):
        return
    label, rest = split_label(text)
    if label and not _IS_ORDER.match(label):
        found = list(read_decisions(said, rest)) or list(read_things(said, rest))
        labelled = None if found else read_label(said, label, rest)
        yield from found or ([labelled] if labelled else [])
        return
    choice = read_choice(said, text)
    found = [choice] if choice else list(read_owners(said, text)) or list(read_decisions(said, text))
    if not found:
        found = list(read_things(said, text))
    elif (behind := _BEHIND.search(text)) and not any(each.value.endswith(behind["part"]) for each in found):
        found += read_things(said, behind["part"])
    yield from found
    yield from (each for each in read_settings(said, text) if not any(each.value in other.value for other in found))

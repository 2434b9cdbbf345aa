"""Claims that say who owns a thing or holds a role, of which there is one at a time."""

import re

from memory.extraction.rules.labels import TOPICS
from memory.extraction.rules.statements import ClaimParts
from memory.extraction.rules.words import POSSESSIONS, words

ROLES = (
    r"release (?:captain|manager|lead|engineer)|incident (?:commander|manager|lead)|scrum master|product owner"
    r"|tech lead|team lead|on-?call(?: engineer)?|data protection officer|project (?:manager|lead)|engineering manager"
    r"|qa lead|code owner|point of contact|main contact|gatekeeper|note ?taker|facilitator|treasurer|chair"
)
_WHO = r"(?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2}|[Tt]he user)"
_WHAT = r"(?P<what>(?:the |all )?(?!an? |it\b|their |his |her )[\w][\w./-]*(?: [\w./-]+){0,4}?)"
_SINCE = r"(?: (?:from|since|until|on|as of|in|by) .+)?"
_OWNS = re.compile(
    rf"{_WHO} (?P<verb>takes over|will take over|is taking over|took over|has taken over|inherits|owns"
    rf"|is responsible for|is in charge of|leads) {_WHAT}{_SINCE}(?P<now> now)?\.?"
)
_OWNED = re.compile(
    r"(?P<what>(?:[Tt]he |[Oo]ur )?[\w][\w./-]*(?: [\w./-]+){0,4}?) (?:is|are) (?P<now>now )?(?:owned|led|headed|run)"
    r" by (?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})\.?"
)
_HOLDS = re.compile(
    rf"{_WHO} (?P<verb>is|takes over as|will be|becomes) (?:now )?(?:the )?(?P<what>(?:{ROLES})(?: (?:for|of) .+?)?)"
    r"(?P<now> now)?\.?"
)
_TASKS = words(
    "refunds onboarding search checkout infra infrastructure security docs documentation pipeline pipelines reporting "
    "analytics ingestion scheduling moderation compliance accounting payroll marketing hiring module service api ci"
)
_STATES = frozenset({"", "owns", "is", "leads", "is responsible for", "is in charge of"})
_KINDS = words("module modules service services part area side project component team topic stuff code app system repo")
_DETERMINER = re.compile(r"(?:the|our|all the|all) ", re.IGNORECASE)


def read_owner(claim: str) -> ClaimParts | None:
    """Return the thing or role of which a claim names the owner, without words for its kind ("module"), else None."""
    match = _HOLDS.fullmatch(claim) or _OWNS.fullmatch(claim) or _OWNED.fullmatch(claim)
    if match is None:
        return None
    verb = match.groupdict().get("verb") or ""
    thing = _DETERMINER.sub("", match["what"].removeprefix("as "), count=1)
    last = thing.split()[-1].lower()
    # what people have is no task: "owns the house", "owns land"
    is_task = last in TOPICS | _TASKS or _DETERMINER.match(match["what"]) is not None
    is_belonging = verb == "owns" and (last in POSSESSIONS or thing[:1].isupper() or not is_task)
    if is_belonging:
        return None
    is_change = match["now"] is not None or verb not in _STATES
    return ClaimParts(subject=without_kind(thing), attribute="owner", value=match["who"], is_change=is_change)


def without_kind(thing: str) -> str:
    """Return the name of a thing without the word for its kind: "invoices" for "invoices module"."""
    before, _, last = thing.rpartition(" ")
    return before if before and last.lower() in _KINDS else thing

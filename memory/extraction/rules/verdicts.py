"""Verdicts on claims: those that are judged, and the worth from which they are kept (`memory.extraction.worth`)."""

import re

from memory.extraction.rules.open_claims import OPEN
from memory.extraction.rules.quantities import read_quantity
from memory.extraction.rules.statements import Statement, is_single

MAX_JUDGED = 300
"""Claims of one chunk whose worth is judged."""
OPEN_FLOOR, EVENT_FLOOR, RULE_FLOOR, WISH_FLOOR, SETTING_FLOOR = 0.7, 0.5, 0.4, 0.3, 0.2
"""Worth from which claims are kept: in the speaker's own words, by rules on what somebody did, by other rules, on what
somebody wants always or never, and on settings, of which a plain claim is worth no more than a measurement ("The
timeout is 30 seconds")."""
_EVENTS = frozenset(["event", "decision", "get", "give", "keep", "take"])
_LASTING = frozenset(["relation", "profession", "condition", "allergy", "role", "contact", "style"])
"""Attributes whose claims are always worth keeping, as those of most attributes of one value are."""
_OF_ANYTHING = frozenset(["date", "time", "amount", "identifier", "version"])
"""Attributes of one value that things of the moment have as well: "The train is at 9", "Coffee is 4 euros"."""
_SETTING = re.compile(
    r"\b(?:size|timeout|limit|interval|rate|threshold|budget|ttl|retention|seed|retries|quota|deadline|window|ratio|length"
    r"|default|region|version|flag)\b[^,]{0,30}? (?:is|are)\b|^[\w ]{2,30}: "
)
"""A setting that is known by its name ("The timeout is …"), or has a colon ("Retries: 4")."""
_CHANGED = re.compile(r"\b(?:moved|postponed|pushed|changed|delayed|rescheduled|now|instead)\b")
"""Words of a claim that replaces another one, whether or not that one is known."""


def may_be_momentary(statement: Statement) -> bool:
    """Return True for a claim that may be of the moment, unlike one about somebody's home, relatives or health."""
    kind = statement.attribute.partition(":")[0]
    if statement.is_change or ((parts := read_quantity(statement.claim)) and parts.is_change):
        # what it replaces may have ended already
        return False
    if kind in _OF_ANYTHING:
        return not _CHANGED.search(statement.claim)
    return kind not in _LASTING and not is_single(statement.attribute)


def floor_of(statement: Statement) -> float:
    """Return the worth from which a claim is kept."""
    kind = statement.attribute.partition(":")[0]
    if kind == "value" and _SETTING.search(statement.claim):
        return SETTING_FLOOR
    if kind == "wish":
        return WISH_FLOOR
    return OPEN_FLOOR if kind == OPEN else EVENT_FLOOR if kind in _EVENTS else RULE_FLOOR

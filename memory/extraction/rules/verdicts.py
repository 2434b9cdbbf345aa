"""Verdicts on claims: those that are judged, and the worth from which they are kept (`memory.extraction.worth`)."""

import re

from memory.extraction.knowledge import Chunk
from memory.extraction.rules.preferences import HELD, preference_of
from memory.extraction.rules.quantities import read_quantity
from memory.extraction.rules.statements import Statement, is_single

MAX_JUDGED = 300
"""Claims of one chunk whose worth is judged."""
WORTH_FLOOR = 0.5
"""Worth from which a claim is kept."""
REPLACING_FLOOR = 0.1
"""Worth from which a claim is kept of a turn that replaces what is known: "The user pulled the order with Fjord"."""
_LASTING = frozenset(["relation", "profession", "condition", "allergy", "role", "contact", "style"])
"""Attributes whose claims are always worth keeping, as those of most attributes of one value are."""
_OF_ANYTHING = frozenset(["date", "time", "amount", "identifier", "version"])
"""Attributes of one value that things of the moment have as well: "The train is at 9", "Coffee is 4 euros"."""
_SETTING = re.compile(
    r"\b(?:size|timeout|limit|interval|rate|threshold|budget|ttl|retention|seed|retries|quota|deadline|window|ratio|length"
    r"|default|region|version|flag)\b[^,]{0,30}? (?:is|are|stays?|remains?)\b|^[\w ]{2,30}: "
)
"""A setting that is known by its name ("The timeout is …"), or has a colon ("Retries: 4"). It may leave readers asking
of what, but who works on one program knows, and a later value needs the earlier one to replace."""
_CHANGED = re.compile(r"\b(?:moved|postponed|pushed|changed|delayed|rescheduled|now|instead)\b")
"""Words of a claim that replaces another one, whether or not that one is known."""


def least_worth(statement: Statement, chunk: Chunk) -> float:
    """Return the worth from which a claim is kept."""
    return REPLACING_FLOOR if statement.turn in chunk.replacing else WORTH_FLOOR


def may_be_momentary(statement: Statement) -> bool:
    """Return True for a claim that may be of the moment, unlike one about somebody's home, relatives or health."""
    kind = statement.attribute.partition(":")[0]
    if HELD in preference_of(statement).values():
        # a diet, an allergy and the like do harm if they are forgotten
        return False
    if statement.is_change or ((parts := read_quantity(statement.claim)) and parts.is_change):
        # what it replaces may have ended already
        return False
    if kind in _OF_ANYTHING:
        return not _CHANGED.search(statement.claim)
    is_setting = kind == "value" and _SETTING.search(statement.claim)
    return not is_setting and kind not in _LASTING and not is_single(statement.attribute)

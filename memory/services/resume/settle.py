"""Sentences that say that something is over, and the rules, decisions and open ends that they settle.

"The audit is over" settles "Don't touch the billing tables until the audit is over", and "The freeze of the schema is
lifted" settles "The schema freeze holds". The sentences are English.
"""

import re

from memory.extraction.terms import content_words
from memory.extraction.work_notes import NoteKind, is_still_open
from memory.services.resume.items import PacketItem

MIN_SHARED_WORDS = 2
"""Words that both share at least, unless one is the condition of the other."""
MIN_SETTLED_SHARE = 0.6
"""Share of the words that are said to be over which stand in the settled item."""

_SETTLES = re.compile(
    r"\b(?:is|are|was|were|got|has been|have been|'s|'re)\b(?: \w+){0,2}? (?:lifted|over|settled|resolved|obsolete"
    r"|waived|revoked|withdrawn|expired|cancell?ed|moot|off|gone|void|dropped|done|finished|completed?|unnecessary|back"
    r"|(?:no longer|not) (?:\w+ )?(?:needed|required|necessary|valid|true|the case|in force)"
    r"|(?:allowed|fine|ok) (?:again|now))\b"
    r"|\bno longer (?:appl(?:y|ies)|holds?|matters?|needs? to|ha(?:ve|s) to|must)\b"
    r"|\b(?:does not|doesn't|do not|don't) (?:apply|hold|matter|need to|have to)\b.{0,60}"
    r"\b(?:any ?more|any longer|now)\b"
    r"|\b(?:may|can|(?:are|is) allowed to)\b(?: .{1,60})? (?:now|again)\b|\bnow (?:we|you|i|they) (?:may|can)\b",
    re.IGNORECASE,
)
"""A sentence after which what it is about needs no rule and no decision any more."""
_SETTLING_WORDS = content_words(
    "lift over settle resolve obsolete waive revoke withdraw expire cancel canceled moot off gone void drop done "
    "finish complete unnecessary back longer need require necessary valid true case force allow again fine apply hold "
    "matter anymore good news since last morning afternoon evening night week today yesterday already finally "
    "monday tuesday wednesday thursday friday saturday sunday"
)
_CONDITION = re.compile(r"\b(?:until|as long as|while|before|unless)\b(?P<condition>.*)", re.IGNORECASE)
_DENIED_NEED = re.compile(
    r"\bno longer\b|\b(?:is|are|was|were)(?: not|n't) (?:\w+ )?(?:needed|required|necessary|valid|true|in force)"
    r"|\b(?:does|do)(?: not|n't) (?:apply|hold|matter|need|have)\b",
    re.IGNORECASE,
)
_NOT_YET = re.compile(r"\b(?:not|yet|still|until|waiting|pending|if|once|when|unless)\b|n't\b", re.IGNORECASE)
_WITHDRAWS = re.compile(
    r"(?:^|[,;:] |\b(?:please|btw|and|but|so|we|you|i) )(?:do not|don't|never|stop)\s+"
    r"(?P<habit>[^.,;:!?]{2,80}?)\s+(?:any ?more|any longer)\b"
    r"|\b(?:we|you|i|they) no longer\s+(?!(?:have|see|get|know|need|own)\b)"
    r"(?P<ended>[^.,;:!?]{2,80})|^(?:please )?stop\s+(?P<stopped>\w+ing\b[^.,;:!?]{0,80})",
    re.IGNORECASE,
)
"""A sentence that ends what was done so far."""
_CLAUSE = re.compile(r"\b(?:before|after|when|until|unless|if|while|because)\b", re.IGNORECASE)
_LIGHT_VERBS = content_words("use make take keep run need have want add set put")
SETTLED_TYPES = frozenset(
    {
        *(NoteKind.CONSTRAINT.value, NoteKind.DECISION.value, NoteKind.REJECTION.value),
        *(NoteKind.BLOCKER.value, NoteKind.NEXT_STEP.value),
    }
)
WITHDRAWN_TYPES = frozenset({NoteKind.CONSTRAINT.value, NoteKind.DECISION.value})


def settles(text: str) -> bool:
    """Return True if the sentence says that something is over: not that it will be, or would be."""
    return _SETTLES.search(text) is not None and not _NOT_YET.search(_DENIED_NEED.sub(" ", text))


def withdrawn_words(text: str) -> frozenset[str]:
    """Return the words of what the sentence ends, "squash commits" in "Don't squash commits any more"; else none."""
    match = _WITHDRAWS.search(text)
    undone = match and (match["habit"] or match["ended"] or match["stopped"])
    return content_words(undone) - _LIGHT_VERBS if undone else frozenset()


def withdraws_item(later: PacketItem, item: PacketItem) -> bool:
    """Return True if `later` ends what the item asks for. A prohibition is not ended by another one."""
    undone = withdrawn_words(later.text)
    if item.item_type not in WITHDRAWN_TYPES or item.position >= later.position or item.id == later.id:
        return False
    return bool(undone) and not item.is_negated and undone <= content_words(_CLAUSE.split(item.text, maxsplit=1)[0])


def settles_item(later: PacketItem, item: PacketItem) -> bool:
    """Return True if `later` settles the item: it is over, or what the item waits for is.

    All that is said to be over stands in the condition of the item ("until the audit is over"), or most of it, two
    words at least, in the item. An item of one word ("Compression is still to be done.") asks for this one alone.
    """
    if item.position >= later.position or item.id == later.id:
        return False
    about = later.words - _SETTLING_WORDS
    condition = _CONDITION.search(item.text)
    if condition is not None and about and about <= content_words(condition["condition"]):
        return True
    shared = about & item.words
    if len(item.words - _SETTLING_WORDS) == 1 and is_still_open(item.text):
        return bool(shared)
    return len(shared) >= MIN_SHARED_WORDS and len(shared) >= MIN_SETTLED_SHARE * len(about)

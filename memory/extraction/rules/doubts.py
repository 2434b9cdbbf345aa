"""Doubts: what a sentence says without stating it as a fact that may become a claim in the speaker's own words.

A doubt, a condition, a report or a denial holds for a part of a sentence, and what that part is, only a parser would
know. So everything after a doubt counts as doubtful, and so does the piece before it, unless the doubt is within a
clause of its own ("we are on pnpm 9, ci fails if …").
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.extraction.rules.passages import NOT_ASSERTED

MAX_DOUBT_CHARACTERS = 20
"""Characters behind a clause in which a doubt is about it: "…, said Tom"."""
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|guess|wonder\w*|hope\w*|hopefully|might|could|would|should i|not sure"
    r"|no idea|don't know|do not know|seems?|looks like|feels like|wish|bet|almost|nearly|tbd|or so|kind of|sort of"
    r"|kinda|sorta|i think|i mean|i feel|supposed(?:ly)?|apparently|thought|doubts?|den(?:y|ies|ied)|believes?"
    r"|convinced|planned to|about to|(?:was|were) going to|word is|(?:the|my|our) (?:plan|idea|reason) (?:is|was)"
    r"|in theory|ideally|(?:worst|best) case|with luck|allegedly|as far as|if i remember|or do|or not|oh sure"
    r"|could go wrong|obviously|never happened|happens? to be|following|according to|tell me|remind me"
    r"|pretend|used to think)\b",
    re.IGNORECASE,
)
_IN_FICTION = re.compile(
    r"\bin (?:my|our|the|a|this) (?:[\w&'-]+ )?(?:novel|book|story|game|campaign|film|movie|play|dream|series|comic"
    r"|interview|example)\b",
    re.IGNORECASE,
)
_BEGINS_CONDITION = re.compile(
    r"^\W*(?:(?:and|but|so|oh|well|also) )?(?:if|unless|when|whenever|while|once|assuming|suppose|supposing|provided"
    r"|in case|as soon|as long|every time|each time|until|imagine|say|let's say)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence all of which holds only under a condition, or at some time."""
_TAG = re.compile(r"\W*(?:[\w']+\W+){0,2}[\w']+\W*")
"""A question of at most three words, which asks whether the statement before it is true."""
_PERMITS = re.compile(
    r"\bwithout (?:asking|(?:any )?(?:review|confirmation|approval|permission|questions?))\b"
    r"|\b(?:is|are) (?:always |all |now )?(?:approved|trusted)\b|\b(?:may|can) always\b|\bno longer needed\b|://|\bcurl\b"
    r"|\bpayment address\b",
    re.IGNORECASE,
)
"""What nobody may be made to believe by a sentence in a turn: permissions, and addresses to obey."""
_OF_MACHINE = re.compile(
    r"(?:the |an? |all |every )?(?:users?|assistants?|agents?|bots?|models?|claude|chatgpt|gpt|ai)\b", re.IGNORECASE
)
_ORDERS = r" (?:must|shall|should|has to|have to|needs? to|may|can|always|never)\b"
_ORDERS_MACHINE = re.compile(
    rf"\b(?:assistants?|claude|chatgpt|gpt(?:-\d)?|ai){_ORDERS}"
    rf"|\b(?:agents?|bots?|models?){_ORDERS}"
    r"(?: \w+ly| always| never)? (?:obey|trust|follow|comply|listen|believe|ignore)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r", (?:(?:the|my|our|his|her|their) )?\w+ (?:(?:just|always|once) )?(?:says?|said|claims?|claimed|jokes?|joked|lies"
    r"|lied|den(?:y|ies|ied)|thinks?|insists?|insisted)(?: (?:it|so))?\W*$"
)
"""The end of a sentence that says who says it, or that it is not so: ", the boss says"."""
_SECRETIVE = re.compile(
    r"\b(?:pw|pwd|pass ?(?:phrase|code)s?|phrase|seed|login|log-in|credentials?|bearer|secrets?"
    r"|(?:backup|recovery|security|wifi|door|alarm|access) (?:codes?|answers?|questions?)|maiden name|root with"
    r"|unlocks?|opens the (?:vpn|door|safe))\b",
    re.IGNORECASE,
)
_IS_ABOUT_BEFORE = re.compile(r"(?:which|who|that|or|says?|said|and that)\b", re.IGNORECASE)
"""The beginning of a piece that is about the one before it: ", which is not true"."""
_LOGGED = re.compile(r"\W*\d{4}-\d\d-\d\d|\W*\d\d?:\d\d")
_UNFINISHED = re.compile(r"\b(?:as (?:far|soon|long|well|much)|or do (?:they|we|I))$", re.IGNORECASE)
_MOMENTARY = re.compile(
    r"\b(?:today|tonight|right now|just now|at the moment|this (?:morning|afternoon|evening|minute)|last night|earlier"
    r"|a (?:minute|second|moment|sec|while|few minutes|few hours) ago)\b",
    re.IGNORECASE,
)
_ASKS_ALSO = re.compile(r"\S\s+(?:please|pls)\b", re.IGNORECASE)
_REFUSED = (NOT_ASSERTED, _UNSURE, _MOMENTARY, _ASKS_ALSO, _PERMITS, _ORDERS_MACHINE, _SECRETIVE, _UNFINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The place between two pieces: the first ends at `start`, the second begins at `stop`.

    `ends_claim` is False if the first holds only under the condition that the second is.
    """

    start: int
    stop: int
    begins_clause: bool
    ends_claim: bool


def is_refused(text: str) -> bool:
    """Return True for a piece that is in doubt, momentary, asks for something, permits something or may be a secret."""
    return any(pattern.search(text) for pattern in _REFUSED) or _LOGGED.match(text) is not None


def is_of_machine(text: str) -> bool:
    """Return True for a statement about "the user", "the assistant" and the like, which memories are made of."""
    return _OF_MACHINE.match(text) is not None


def orders_machine(claim: str) -> bool:
    """Return True for a claim about what an assistant must, may or can do, which would order those who read it."""
    return _ORDERS_MACHINE.search(claim) is not None


def is_tag(text: str) -> bool:
    """Return True for "don't we?", which asks whether the statement before it is true."""
    return _TAG.fullmatch(text) is not None


def end_of_certainty(sentence: str, text: str, boundaries: Sequence[Boundary]) -> int:
    """Return the number of characters of a clause that its sentence states as a fact; 0 if it may not.

    A doubt, a condition or a report makes doubtful what follows it, and the piece before it if that is all it is about:
    "we deploy on Fridays, said Tom", "every server is in Frankfurt, unless …".
    """
    at = max(0, sentence.find(text))
    doubts = [match.start() for pattern in (NOT_ASSERTED, _UNSURE) if (match := pattern.search(sentence))]
    if any(pattern.search(sentence) for pattern in (_BEGINS_CONDITION, _IN_FICTION, _REPORTED)):
        return 0
    if not doubts or min(doubts) >= at + len(text) + MAX_DOUBT_CHARACTERS:
        return len(text)
    pieces = [each for each in boundaries if at + each.stop <= min(doubts)]
    following = sentence[at + pieces[-1].stop : min(doubts)] if pieces else ""
    is_own_piece = len(following) > 1 and pieces[-1].begins_clause and not _IS_ABOUT_BEFORE.match(following)
    return pieces[-1].start if is_own_piece else 0

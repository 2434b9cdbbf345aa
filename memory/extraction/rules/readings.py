"""The context in which a clause is read, and the construction of statements from it."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from memory.extraction.grounding import is_grounded
from memory.extraction.knowledge import ChunkTurn
from memory.extraction.rules.names import Names
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Speaker, Subject
from memory.extraction.rules.values import with_days_of_stay
from memory.extraction.rules.verbs import Form
from memory.models.facts import Certainty, Temporal

_CHANGE = re.compile(r"\b(?:now|nowadays|these days|from now on|instead|anymore)\b", re.IGNORECASE)
TEMPORAL = {
    Form.PAST: Temporal.PAST,
    Form.PERFECT: Temporal.PAST,
    Form.COPULA_PAST: Temporal.PAST,
    Form.USED_TO: Temporal.PAST,
    Form.NO_LONGER: Temporal.PAST,
    Form.NO_LONGER_DOING: Temporal.PAST,
    Form.FUTURE: Temporal.FUTURE,
    Form.INTENT: Temporal.FUTURE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseContext:
    """A clause with its turn, its speaker, and the names that are known in its chunk.

    `before` is the sentence before it in the turn. `spoken_of` is the only person spoken of in the clauses before it.
    """

    clause: Clause
    turn: ChunkTurn
    speaker: Speaker
    names: Names
    before: str = ""
    spoken_of: Subject | None = None
    places: frozenset[str] = frozenset()
    """Names, in lower case, that are places by what was said elsewhere: homes, and what a region follows."""


def with_grounded_date(statement: Statement, stems: frozenset[str]) -> Statement:
    """Return the statement, without its date if the claim with the date would not be grounded in the turn."""
    if not statement.when or is_grounded(statement.claim, stems):
        return statement
    return replace(statement, claim=statement.claim.removesuffix(f" {statement.when}"))


def with_days_of_state(statement: Statement, *, at: datetime) -> Statement:
    """Return a statement about a state of some days to come with their year, which is over after the last of them."""
    if statement.temporal != Temporal.CURRENT or statement.valid_from is not None or statement.valid_to is not None:
        return statement
    claim, last = with_days_of_stay(statement.claim, at=at)
    return replace(statement, claim=claim, temporal=Temporal.FUTURE, valid_to=last.end) if last else statement


def make_statement(said: ClauseContext, subject: Subject, *, attribute: str, value: str, claim: str) -> Statement:
    """Return a statement about a subject. `claim` has the words after the subject. A hedged clause is uncertain."""
    certainty = Certainty.EXPLICIT if subject.is_own else Certainty.IMPLIED
    return Statement(
        turn=said.turn.index,
        subject=subject.label,
        attribute=attribute,
        value=value,
        claim=f"{subject.label} {claim}",
        temporal=Temporal.CURRENT,
        certainty=Certainty.UNCERTAIN if said.clause.is_hedged else certainty,
        names=subject.names,
        is_own=subject.is_own,
        is_correction=said.clause.is_correction,
        is_retraction=said.clause.is_retraction,
        is_change=says_change(said),
    )


def says_change(said: ClauseContext) -> bool:
    """Return True for "now", "these days" and the like, with which a clause says that something else was so before."""
    return _CHANGE.search(f"{said.clause.lead} {said.clause.text}") is not None

"""A clause with all that is needed to read it, and how what was read becomes a statement."""

from dataclasses import dataclass

from memory.extraction.knowledge import ChunkTurn
from memory.extraction.rules.names import Names
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Speaker, Subject
from memory.extraction.rules.verbs import Form
from memory.models.facts import Certainty, Temporal

TEMPORAL = {
    Form.PAST: Temporal.PAST,
    Form.PERFECT: Temporal.PAST,
    Form.COPULA_PAST: Temporal.PAST,
    Form.USED_TO: Temporal.PAST,
    Form.NO_LONGER: Temporal.PAST,
    Form.FUTURE: Temporal.FUTURE,
    Form.INTENT: Temporal.FUTURE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A clause, where it stands, who says it, and what names its chunk knows.

    `before` is the sentence before it in its turn, `spoken_of` the one person that was just spoken of there.
    """

    clause: Clause
    turn: ChunkTurn
    speaker: Speaker
    names: Names
    before: str = ""
    spoken_of: Subject | None = None


def made(said: Said, subject: Subject, *, attribute: str, value: str, claim: str) -> Statement:
    """Return a statement of a subject, as sure as its sentence is; `claim` is what follows the subject in it."""
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
    )

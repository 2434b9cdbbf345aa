"""What else than words and meaning speaks for a memory, or against it: factors around 1, each in `Candidate.signals`.

Every factor stays within 0.5 and 1.5 and is 1, and not told, where nothing is known: no single one overrules words and
meaning. The formulas are in `memory.scoring`.

To add one: a module with a function `(Sequence[Candidate], Setting) -> None` that calls `Candidate.multiply` with the
function's name, and its place in SCORERS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Scorer
from memory.retrieval.scorers.active_work import active_work
from memory.retrieval.scorers.kind_weight import kind_weight
from memory.retrieval.scorers.provenance import provenance
from memory.retrieval.scorers.recency import recency
from memory.retrieval.scorers.relationship import relationship
from memory.retrieval.scorers.salience import salience
from memory.retrieval.scorers.scope import scope
from memory.retrieval.scorers.speaker import speaker
from memory.retrieval.scorers.temporal_context import temporal_context
from memory.retrieval.scorers.window import window

SCORERS: Mapping[str, Scorer] = {
    "kind_weight": kind_weight,
    "temporal_context": temporal_context,
    "salience": salience,
    "recency": recency,
    "window": window,
    "speaker": speaker,
    "scope": scope,
    "active_work": active_work,
    "provenance": provenance,
    "relationship": relationship,
}
"""By name, in the order in which they run, and in which their reasons are told."""

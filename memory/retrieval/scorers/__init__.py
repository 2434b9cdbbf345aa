"""Scorers: multiply the relevance of candidates by factors for what else than words and meaning speaks for a memory.

Every factor lies within 0.5 and 1.5, so none overrules words and meaning alone, and is 1 if nothing is known. Each one
is recorded in `Candidate.signals` under the scorer's name. The formulas are in `memory.scoring`.

To add a scorer, write a function `(Sequence[Candidate], ScoringContext) -> None` next to its like (`memory`, `time`,
`question`) that calls `Candidate.apply_factor` with its name, and add its line to SCORERS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Scorer
from memory.retrieval.scorers.memory import score_kind_weight, score_provenance, score_salience
from memory.retrieval.scorers.question import score_active_work, score_relationship, score_scope, score_speaker
from memory.retrieval.scorers.time import score_recency, score_temporal_context, score_window

SCORERS: Mapping[str, Scorer] = {
    "kind_weight": score_kind_weight,
    "temporal_context": score_temporal_context,
    "salience": score_salience,
    "recency": score_recency,
    "window": score_window,
    "speaker": score_speaker,
    "scope": score_scope,
    "active_work": score_active_work,
    "provenance": score_provenance,
    "relationship": score_relationship,
}
"""Scorers by name, in the order in which they run and in which their reasons are listed."""

"""What else than words and meaning speaks for a memory, or against it: factors around 1, each in `Candidate.signals`.

To add one: a function `(Sequence[Candidate], Setting) -> None` that calls `Candidate.multiply`, and its line in SCORERS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Scorer

SCORERS: Mapping[str, Scorer] = {}
"""By name, in the order in which they run."""

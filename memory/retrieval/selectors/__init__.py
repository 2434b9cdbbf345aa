"""What becomes of the ranking in the end: near-duplicates once, conversations in turn, successors before what they
superseded. Each answers with candidates best first.

To add one: a function `(Sequence[Candidate], Setting) -> list[Candidate]`, and its line in SELECTORS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Selector
from memory.retrieval.selectors.diversity import diversity
from memory.retrieval.selectors.duplicates import duplicates
from memory.retrieval.selectors.lineage import lineage

SELECTORS: Mapping[str, Selector] = {"duplicates": duplicates, "diversity": diversity, "lineage": lineage}
"""By name, in the order in which they run: lineage last, since what it promises has to hold in the end."""

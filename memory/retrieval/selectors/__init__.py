"""What becomes of the ranking in the end: successors before what they superseded, near-duplicates once, conversations
in turn. Each answers with candidates best first.

To add one: a function `(Sequence[Candidate], Setting) -> list[Candidate]`, and its line in SELECTORS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Selector

SELECTORS: Mapping[str, Selector] = {}
"""By name, in the order in which they run."""

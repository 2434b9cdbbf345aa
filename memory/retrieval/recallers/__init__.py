"""Finding candidates: by words, by meaning, by what stands beside or beneath, by time, by links, and what is always
wanted. One module each.

To add one: a module with a `Recaller`, and its line in RECALLERS.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Recaller
from memory.retrieval.recallers import episodes, graph, lexical, passage, pinned, subgoals, temporal, vector

RECALLERS: Mapping[str, Recaller] = {
    recaller.name: recaller
    for recaller in (
        *(lexical.LEXICAL, vector.VECTOR, passage.PASSAGE, subgoals.SUBGOALS),
        *(episodes.EPISODES, temporal.TEMPORAL, graph.GRAPH, pinned.PINNED),
    )
}
"""By name, in the order in which they run: the cheapest first. `passage` and `subgoals` go by what those before
them found."""

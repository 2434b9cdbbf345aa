"""Retrievers: find candidates by words, meaning, time and links, and around what others found.

All retrievers of a plan run as one statement (`retrieval.gathering`). Each contributes a SELECT of ids over the rows
that the owner sees and the filters let through.

To add a retriever, subclass `plans.Retriever` next to its like or in a module of its own, and add an instance to
RETRIEVERS. `techniques`, `explain` and `metrics` then know it by its `name`.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Retriever
from memory.retrieval.retrievers.always import EPISODES, PINNED
from memory.retrieval.retrievers.around import GRAPH, PASSAGE, SUBGOALS
from memory.retrieval.retrievers.lexical import LEXICAL
from memory.retrieval.retrievers.temporal import TEMPORAL
from memory.retrieval.retrievers.vector import VECTOR

RETRIEVERS: Mapping[str, Retriever] = {
    retriever.name: retriever for retriever in (LEXICAL, VECTOR, PASSAGE, SUBGOALS, EPISODES, TEMPORAL, GRAPH, PINNED)
}
"""Retrievers by name, in the order in which they run, cheapest first. `passage` and `subgoals` use earlier results."""

"""Rewriters: find names, times and other words in a question before the search, by rules and with a language model.

To add a rewriter, write a function `(Query, RecallContext) -> Query` and add its line to REWRITERS. It returns the same
query if it has nothing to add, and raises ProviderError if its model fails. `techniques`, `explain` and `metrics` then
know it by that name.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Rewriter
from memory.retrieval.rewriters.expansion import expand_query, imagine_answer
from memory.retrieval.rewriters.names import find_names
from memory.retrieval.rewriters.readings import HYDE, QUERY_EXPANSION, SELF_QUERY
from memory.retrieval.rewriters.self_query import read_filters

REWRITERS: Mapping[str, Rewriter] = {
    "names": find_names,
    SELF_QUERY: read_filters,
    QUERY_EXPANSION: expand_query,
    HYDE: imagine_answer,
}
"""Rewriters by name, in the order in which they run."""

"""What is made of a question before anything is searched: by rules, and by a language model where one is configured.

To add one: a module with a function `(Query, Moment) -> Query`, and its line in REWRITERS. It raises a ProviderError
where a model fails, and leaves the query alone where it has nothing to add.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Rewriter
from memory.retrieval.rewriters.hyde import imagine_answer
from memory.retrieval.rewriters.names import find_names
from memory.retrieval.rewriters.query_expansion import expand
from memory.retrieval.rewriters.readings import HYDE, QUERY_EXPANSION, SELF_QUERY
from memory.retrieval.rewriters.self_query import read_filters

REWRITERS: Mapping[str, Rewriter] = {
    "names": find_names,
    SELF_QUERY: read_filters,
    QUERY_EXPANSION: expand,
    HYDE: imagine_answer,
}
"""By name, in the order in which they run."""

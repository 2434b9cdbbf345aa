"""What is made of a question before anything is searched: by rules, and by a language model where one is configured.

To add one: a module with a function `(Query, Moment) -> Query`, and its line in REWRITERS. It raises a ProviderError
where a model fails, and leaves the query alone where it has nothing to add.
"""

from collections.abc import Mapping

from memory.retrieval.plans import Rewriter

REWRITERS: Mapping[str, Rewriter] = {}
"""By name, in the order in which they run."""

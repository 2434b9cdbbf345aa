"""The registry of all techniques by name, and the choice among them by settings and requests."""

from collections.abc import Mapping, Sequence

from memory import conf
from memory.errors import Unprocessable
from memory.retrieval.plans import Plan
from memory.retrieval.ranking import FUSIONS
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.retrievers.always import EPISODES
from memory.retrieval.retrievers.around import PASSAGE, SUBGOALS
from memory.retrieval.rewriters import REWRITERS
from memory.retrieval.scorers import SCORERS
from memory.retrieval.selectors import SELECTORS

RERANK = "rerank"
ALIASES: Mapping[str, Sequence[str]] = {"hybrid": ("lexical", "vector", "rrf"), "entity_centric": ("graph",)}
"""Documented names of combinations."""
TECHNIQUE_NAMES = (*REWRITERS, *RETRIEVERS, *FUSIONS, *SCORERS, *SELECTORS, RERANK, *ALIASES)
"""All names that `techniques` accepts."""
GROUPS = (frozenset(REWRITERS), frozenset(RETRIEVERS), frozenset(FUSIONS))
"""Groups in which a named technique replaces the others."""
KEPT = frozenset({"names"})
"""Techniques that stay when others of their group are named: without names, `graph` has nothing to walk from."""
FINDING_RETRIEVERS = [name for name in RETRIEVERS if name not in (EPISODES.name, PASSAGE.name, SUBGOALS.name)]
"""Retrievers that find by themselves. `passage` and `subgoals` search around what others found, `episodes` is for
contexts."""


def choose_plan(names: Sequence[str] = ()) -> Plan:
    """Return the plan of the settings, changed by the names in a request.

    A minus before a name switches that technique off. Named rewriters replace all others but `names`, named retrievers
    and fusions all others. Scorers, selectors and the reranker run unless they are switched off. Raise Unprocessable
    for unknown names, and if no retriever is left.
    """
    default = select_techniques(frozenset(TECHNIQUE_NAMES), conf.RECALL_TECHNIQUES)
    return make_plan(select_techniques(default, names))


def select_techniques(chosen: frozenset[str], names: Sequence[str]) -> frozenset[str]:
    """Return the techniques that are left of `chosen` after applying `names`."""
    check_technique_names(names)
    off = expand_aliases([name.removeprefix("-") for name in names if name.startswith("-")])
    only = expand_aliases([name for name in names if not name.startswith("-")])
    for group in GROUPS:
        if only & group:
            chosen = chosen - (group - KEPT)
    return (chosen | only) - off


def check_technique_names(names: Sequence[str]) -> None:
    unknown = sorted({name for name in names if name.removeprefix("-") not in TECHNIQUE_NAMES})
    if unknown:
        raise Unprocessable(
            f"Not techniques: {', '.join(unknown)}. Allowed: {', '.join(sorted(set(TECHNIQUE_NAMES)))}."
        )


def expand_aliases(names: Sequence[str]) -> frozenset[str]:
    return frozenset(each for name in names for each in ALIASES.get(name, (name,)))


def make_plan(chosen: frozenset[str]) -> Plan:
    if chosen.isdisjoint(FINDING_RETRIEVERS):
        raise Unprocessable(
            f"No retriever is left, so nothing could be found. Keep one of {', '.join(FINDING_RETRIEVERS)}."
        )
    fusion = next((name for name in FUSIONS if name in chosen), next(iter(FUSIONS)))
    return Plan(
        rewriters={name: rewriter for name, rewriter in REWRITERS.items() if name in chosen},
        retrievers=[retriever for name, retriever in RETRIEVERS.items() if name in chosen],
        fusion=fusion,
        fuse=FUSIONS[fusion],
        scorers={name: scorer for name, scorer in SCORERS.items() if name in chosen},
        selectors={name: selector for name, selector in SELECTORS.items() if name in chosen},
        reranks=RERANK in chosen,
    )

"""All techniques by name, and what settings and requests choose of them."""

from collections.abc import Mapping, Sequence

from memory import conf
from memory.errors import Unprocessable
from memory.retrieval.fusion import reciprocal_rank_fusion, standardized
from memory.retrieval.plans import Fusion, Plan
from memory.retrieval.ranking import learned
from memory.retrieval.recallers import RECALLERS
from memory.retrieval.recallers.episodes import EPISODES
from memory.retrieval.recallers.passage import PASSAGE
from memory.retrieval.recallers.subgoals import SUBGOALS
from memory.retrieval.rewriters import REWRITERS
from memory.retrieval.scorers import SCORERS
from memory.retrieval.selectors import SELECTORS

RERANK = "rerank"
FUSIONS: Mapping[str, Fusion] = {"learned": learned, "standardized": standardized, "rrf": reciprocal_rank_fusion}
"""By name; the first is the default (`docs/recall.md`)."""
ALIASES: Mapping[str, Sequence[str]] = {"hybrid": ("lexical", "vector", "rrf"), "entity_centric": ("graph",)}
"""The documents' names."""
NAMES = (*REWRITERS, *RECALLERS, *FUSIONS, *SCORERS, *SELECTORS, RERANK, *ALIASES)
"""Everything that `techniques` may name."""
GROUPS = (frozenset(REWRITERS), frozenset(RECALLERS), frozenset(FUSIONS))
"""What is named of one of these takes the place of the others of it."""
FINDING = [name for name in RECALLERS if name not in (EPISODES.name, PASSAGE.name, SUBGOALS.name)]
"""Those that find by themselves: `passage` and `subgoals` look around what others found, `episodes` is for contexts."""


def choose_plan(names: Sequence[str] = ()) -> Plan:
    """The plan of the settings, changed by what a request names.

    A name with a minus before it switches that one off. Rewriters that are named without one are the only rewriters,
    recallers the only recallers; a fusion takes the place of the other. Scorers, selectors and the reranker run unless
    switched off. Raises Unprocessable for names that there are not, and where no recaller is left.
    """
    default = select(frozenset(NAMES), conf.RECALL_TECHNIQUES)
    return make_plan(select(default, names))


def select(chosen: frozenset[str], names: Sequence[str]) -> frozenset[str]:
    """Of `chosen`, what names leave."""
    check_names(names)
    off = spread([name.removeprefix("-") for name in names if name.startswith("-")])
    only = spread([name for name in names if not name.startswith("-")])
    for group in GROUPS:
        if only & group:
            chosen = chosen - group
    return (chosen | only) - off


def check_names(names: Sequence[str]) -> None:
    unknown = sorted({name for name in names if name.removeprefix("-") not in NAMES})
    if unknown:
        raise Unprocessable(f"there is no technique {', '.join(unknown)}: there are {', '.join(sorted(set(NAMES)))}")


def spread(names: Sequence[str]) -> frozenset[str]:
    return frozenset(each for name in names for each in ALIASES.get(name, (name,)))


def make_plan(chosen: frozenset[str]) -> Plan:
    if chosen.isdisjoint(FINDING):
        raise Unprocessable(f"no recaller is left, and nothing could be found: keep one of {', '.join(FINDING)}")
    fusion = next((name for name in FUSIONS if name in chosen), next(iter(FUSIONS)))
    return Plan(
        rewriters={name: rewriter for name, rewriter in REWRITERS.items() if name in chosen},
        recallers=[recaller for name, recaller in RECALLERS.items() if name in chosen],
        fusion=fusion,
        fuse=FUSIONS[fusion],
        scorers={name: scorer for name, scorer in SCORERS.items() if name in chosen},
        selectors={name: selector for name, selector in SELECTORS.items() if name in chosen},
        reranks=RERANK in chosen,
    )

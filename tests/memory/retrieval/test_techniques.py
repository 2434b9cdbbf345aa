"""Plans that settings and requests choose: all of `choose_plan`."""

from collections.abc import Sequence

import pytest

from memory import conf
from memory.errors import Unprocessable
from memory.retrieval.plans import Plan
from memory.retrieval.techniques import choose_plan

REWRITERS = ["names", "self_query", "query_expansion", "hyde"]
RETRIEVERS = ["lexical", "vector", "passage", "subgoals", "episodes", "temporal", "graph", "pinned"]
SCORERS = [
    *("kind_weight", "temporal_context", "salience", "recency", "window"),
    *("speaker", "scope", "active_work", "provenance", "relationship"),
]
SELECTORS = ["duplicates", "replacement", "diversity", "lineage"]


def names_of(plan: Plan) -> dict[str, object]:
    return {
        "rewriters": list(plan.rewriters),
        "retrievers": [retriever.name for retriever in plan.retrievers],
        "fusion": plan.fusion,
        "scorers": list(plan.scorers),
        "selectors": list(plan.selectors),
        "reranks": plan.reranks,
    }


def without(names: Sequence[str], *left_out: str) -> list[str]:
    return [name for name in names if name not in left_out]


EVERYTHING = {
    "rewriters": REWRITERS,
    "retrievers": RETRIEVERS,
    "fusion": "learned",
    "scorers": SCORERS,
    "selectors": SELECTORS,
    "reranks": True,
}

CHOICES: dict[tuple[str, ...], dict[str, object]] = {
    (): {},
    # named ones take the place of their own group, in the order in which they run
    ("lexical",): {"retrievers": ["lexical"]},
    ("pinned", "lexical"): {"retrievers": ["lexical", "pinned"]},
    ("names",): {"rewriters": ["names"]},
    ("hyde", "names"): {"rewriters": ["names", "hyde"]},
    # names stay, since walks from what is named and the gist need them
    ("hyde",): {"rewriters": ["names", "hyde"]},
    ("self_query", "entity_centric"): {"rewriters": ["names", "self_query"], "retrievers": ["graph"]},
    ("hyde", "-names"): {"rewriters": ["hyde"]},
    ("names", "graph"): {"rewriters": ["names"], "retrievers": ["graph"]},
    ("lexical", "passage"): {"retrievers": ["lexical", "passage"]},
    ("rrf",): {"fusion": "rrf"},
    ("standardized",): {"fusion": "standardized"},
    ("learned",): {},
    # of several fusions the first one of the list
    ("rrf", "standardized"): {"fusion": "standardized"},
    ("rrf", "standardized", "learned"): {},
    # the documents' names
    ("hybrid",): {"retrievers": ["lexical", "vector"], "fusion": "rrf"},
    ("entity_centric",): {"retrievers": ["graph"]},
    ("hybrid", "entity_centric"): {"retrievers": ["lexical", "vector", "graph"], "fusion": "rrf"},
    ("hybrid", "standardized"): {"retrievers": ["lexical", "vector"], "fusion": "standardized"},
    # naming what runs anyway leaves nothing out
    ("recency",): {},
    ("duplicates", "rerank"): {},
    # a minus leaves one out
    ("-vector",): {"retrievers": without(RETRIEVERS, "vector")},
    ("-hyde", "-recency"): {"rewriters": without(REWRITERS, "hyde"), "scorers": without(SCORERS, "recency")},
    ("-duplicates",): {"selectors": ["replacement", "diversity", "lineage"]},
    ("-rerank",): {"reranks": False},
    ("-passage",): {"retrievers": without(RETRIEVERS, "passage")},
    ("-learned",): {"fusion": "standardized"},
    ("-learned", "-standardized"): {"fusion": "rrf"},
    ("-standardized",): {},
    ("-rrf",): {},
    # something has to rank the candidates: if no fusion is named, it is the default one
    ("-learned", "-standardized", "-rrf"): {},
    ("-hybrid",): {"retrievers": without(RETRIEVERS, "lexical", "vector")},
    ("-entity_centric",): {"retrievers": without(RETRIEVERS, "graph")},
    # and has the last word, wherever it stands
    ("-lexical", "hybrid"): {"retrievers": ["vector"], "fusion": "rrf"},
    ("lexical", "vector", "-vector"): {"retrievers": ["lexical"]},
    ("names", "-names"): {"rewriters": []},
    ("lexical", *(f"-{name}" for name in (*REWRITERS, *SCORERS, *SELECTORS, "rerank"))): {
        "rewriters": [], "retrievers": ["lexical"], "scorers": [], "selectors": [], "reranks": False,
    },
}  # fmt: skip


@pytest.mark.parametrize(("names", "changes"), CHOICES.items(), ids=str)
def test_a_request_changes_the_plan_by_names(names: tuple[str, ...], changes: dict[str, object]) -> None:
    assert names_of(choose_plan(names)) == EVERYTHING | changes


@pytest.mark.parametrize(
    ("setting", "names", "changes"),
    [
        (("-hyde",), (), {"rewriters": without(REWRITERS, "hyde")}),
        (("hybrid",), (), {"retrievers": ["lexical", "vector"], "fusion": "rrf"}),
        (("hybrid",), ("standardized",), {"retrievers": ["lexical", "vector"], "fusion": "standardized"}),
        (("standardized",), (), {"fusion": "standardized"}),
        (("standardized",), ("learned",), {}),
        (("hybrid",), ("names",), {"rewriters": ["names"], "retrievers": ["lexical", "vector"], "fusion": "rrf"}),
        (("lexical", "-rerank"), ("-recency",), {
            "retrievers": ["lexical"], "scorers": without(SCORERS, "recency"), "reranks": False,
        }),
        # a default, no wall: what it leaves out may be named
        (("-vector", "-rerank"), ("vector", "rerank"), {"retrievers": ["vector"]}),
    ],
    ids=str,
)  # fmt: skip
def test_a_request_changes_the_techniques_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, setting: tuple[str, ...], names: tuple[str, ...], changes: dict[str, object]
) -> None:
    monkeypatch.setattr(conf, "RECALL_TECHNIQUES", setting)

    assert names_of(choose_plan(names)) == EVERYTHING | changes


@pytest.mark.parametrize("names", [("telepathy",), ("-telepathy",), ("--lexical",), ("",), ("-",), ("Lexical",)])
def test_an_unknown_technique_name_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(Unprocessable, match="Not techniques"):
        choose_plan(names)


NOTHING_LEFT = [
    tuple(f"-{name}" for name in RETRIEVERS),
    ("lexical", "-lexical"),
    ("hybrid", "-lexical", "-vector"),
    # of contexts only: a recall would find nothing by it
    ("episodes",),
    # looks around what others found
    ("passage",),
    ("passage", "episodes"),
]


@pytest.mark.parametrize("names", NOTHING_LEFT, ids=str)
def test_a_plan_without_retrievers_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(Unprocessable, match="No retriever is left"):
        choose_plan(names)


@pytest.mark.parametrize("setting", NOTHING_LEFT, ids=str)
def test_a_setting_without_retrievers_is_refused(monkeypatch: pytest.MonkeyPatch, setting: tuple[str, ...]) -> None:
    monkeypatch.setattr(conf, "RECALL_TECHNIQUES", setting)

    with pytest.raises(Unprocessable, match="No retriever is left"):
        choose_plan()

"""Properties of all scorers: factors within bounds, 1 if nothing is known, recorded in signals and in order."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.kinds import spec_of
from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween, QueryAnalysis, ScoringContext
from memory.retrieval.queries import Posture, Query, TimeWindow
from memory.retrieval.scorers import SCORERS
from tests.memory.candidates import asking, factor_of, found, goals
from tests.memory.episodes import NOW
from tests.properties import examples

NAMES = [pytest.param(name, id=name) for name in SCORERS]
LEAST, MOST = 0.5, 1.5

SPANS = st.integers(-400, 400).map(lambda days: NOW + timedelta(days=days))
SHARES = st.floats(0, 1)
NUMBERS = st.integers(1, 6)
CANDIDATES = st.builds(
    found,
    NUMBERS,
    kind=st.sampled_from(Kind),
    conversation_id=st.sampled_from(["", "c1", "c0", "other"]),
    user_id=st.sampled_from(["", "ana"]),
    channel=st.sampled_from(["_global", "garden"]),
    event_time=SPANS,
    last_accessed=st.none() | SPANS,
    salience=SHARES,
    trust=SHARES,
    confidence=st.none() | SHARES,
    temporal=st.sampled_from(["", "current", "past", "future"]),
    valid_from=st.none() | SPANS,
    pinned=st.booleans(),
    source=st.sampled_from(["", "staff"]),
    hops=st.none() | st.integers(0, 3),
    index=st.none() | st.integers(0, 9),
    role=st.sampled_from(["", "user", "assistant"]),
    speaker=st.sampled_from(["", "Ana Lima"]),
    score=st.just(1.0),
)
LINKS = st.builds(
    LinkBetween,
    source=NUMBERS.map(lambda number: UUID(int=number)),
    target=NUMBERS.map(lambda number: UUID(int=number)),
    type=st.sampled_from(["ABOUT", "DERIVED_FROM", "SUBGOAL_OF"]),
    weight=st.just(1.0),
)


FULL = ScoringContext(
    owner=Owner(account_id=UUID(int=1), user_id="ana"),
    query=Query(
        text="anything",
        conversation_id="c1",
        posture=Posture.RESUME,
        windows=[
            TimeWindow(since=NOW - timedelta(days=9), until=NOW),
            TimeWindow(since=None, until=NOW - timedelta(days=90)),
        ],
        speakers=["Ana", "user"],
    ),
    analysis=QueryAnalysis(entities=[UUID(int=1)], lineage=["c0"], first_of_turn=5, goals=goals(2, 3)),
    now=NOW,
)


@examples(150)
@given(CANDIDATES, st.lists(LINKS, max_size=6))
def test_every_factor_stays_within_bounds_and_the_score_is_their_product(
    candidate: Candidate, links: list[LinkBetween]
) -> None:
    product = 1.0
    for name, scorer in SCORERS.items():
        scorer([candidate], replace(FULL, links=links))
        factor = candidate.signals.get(name, 1.0)
        product *= factor
        assert LEAST <= factor <= MOST, name

    assert set(candidate.signals) <= set(SCORERS)
    assert candidate.score == pytest.approx(product)


@pytest.mark.parametrize("name", NAMES)
def test_where_nothing_is_known_a_score_stays_as_it_is(name: str) -> None:
    candidate = found(1, event_time=NOW - timedelta(days=20_000), score=0.4)

    SCORERS[name]([candidate], asking())

    assert candidate.score == pytest.approx(0.4)
    assert candidate.reasons == []


@pytest.mark.parametrize("name", NAMES)
def test_scorers_accept_an_empty_list_of_candidates(name: str) -> None:
    SCORERS[name]([], FULL)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.value) for kind in Kind])
def test_every_kind_has_its_weight(kind: Kind) -> None:
    assert spec_of(kind).recall_weight in {0.3, 0.25, 0.2, 0.15}


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (Kind.TURN, 1.0),
        (Kind.EPISODE, 1.0),
        (Kind.FACT, 0.25 / 0.3),
        (Kind.CONTEXT_ENTRY, 0.25 / 0.3),
        (Kind.ENTITY, 0.2 / 0.3),
        (Kind.STRATEGY, 0.5),
        (Kind.GOAL, 0.5),
    ],
)
def test_kinds_are_weighed_as_documented(kind: Kind, factor: float) -> None:
    assert factor_of("kind_weight", asking(), kind=kind) == pytest.approx(factor)


@examples(30)
@given(SHARES, SHARES)
def test_more_salience_never_scores_lower(salience: float, other: float) -> None:
    less, more = sorted((salience, other))

    assert factor_of("salience", asking(), salience=less) <= factor_of("salience", asking(), salience=more)


@pytest.mark.parametrize(
    ("speakers", "factor"),
    [
        pytest.param(["Ana"], 1.5, id="first name"),
        pytest.param(["ana lima"], 1.5, id="in other letters"),
        pytest.param(["Ana Lima Torres"], 1.5, id="longer name"),
        pytest.param(["user"], 1.5, id="role"),
        pytest.param(["Bo", "Ana"], 1.5, id="one of two"),
        pytest.param(["assistant"], 1.0, id="other role"),
        pytest.param(["An"], 1.0, id="part of a name"),
        pytest.param(["Ana Torres"], 1.0, id="another of that first name"),
        pytest.param(["  "], 1.0, id="blank name"),
        pytest.param([], 1.0, id="none asked about"),
    ],
)
def test_turns_of_the_asked_speaker_are_boosted(speakers: list[str], factor: float) -> None:
    assert factor_of("speaker", asking(speakers=speakers), role="user", speaker="Ana Lima") == factor


def test_a_fact_gets_no_speaker_boost() -> None:
    assert factor_of("speaker", asking(speakers=["user", "Ana"]), kind=Kind.FACT) == 1.0


def test_a_turn_without_a_speaker_name_matches_by_its_role_only() -> None:
    assert factor_of("speaker", asking(speakers=["Ana"]), role="user") == 1.0
    assert factor_of("speaker", asking(speakers=["Ana", "assistant"]), role="assistant") == 1.5

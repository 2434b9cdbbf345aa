"""Each signal of the ranker, computed by hand over a few candidates."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import exp, log1p
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import QueryAnalysis, ScoringContext, Term
from memory.retrieval.queries import TimeWindow
from memory.retrieval.ranking.signals import MAX_LENGTH_TOKENS, SIGNALS
from memory.retrieval.ranking.table import SESSION_GAP, make_table
from memory.retrieval.ranking.turns import turn_features
from tests.memory.candidates import asking, found
from tests.memory.episodes import NOW
from tests.properties import examples

# of two values that differ by more than the least spread, the standard scores
UP, DOWN = 1.0, -1.0


def said(index: int, text: str = "", **fields: Any) -> Candidate:
    """Return the turn of this index, which is its number."""
    return found(index + 1, text, index=index, **fields)


def no_turn(number: int, text: str = "", **fields: Any) -> Candidate:
    return found(number, text, **{"kind": Kind.FACT} | fields)


def values(name: str, candidates: Sequence[Candidate], context: ScoringContext | None = None) -> list[float]:
    computed = SIGNALS[name](make_table(candidates, context or asking()))
    return [float(each) for each in computed]


@pytest.mark.parametrize(
    ("name", "field"), [("words", "bm25"), ("content", "content"), ("meaning", "similarity")], ids=str
)
def test_words_content_and_meaning_are_standard_scores(name: str, field: str) -> None:
    alike: dict[str, Any] = {"bm25": 1.0, "content": 1.0, "similarity": 0.5}

    assert values(name, [said(0, **alike | {field: 3.0}), no_turn(9, **alike | {field: 0.0})]) == pytest.approx(
        [UP, DOWN]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("meaning_before", [0, UP, DOWN, 0], id="meaning of the turn before"),
        pytest.param("meaning_after", [DOWN, UP, 0, 0], id="meaning of the turn after"),
        pytest.param("content_before", [0, 0, DOWN, 0], id="content two turns before"),
    ],
)
def test_a_turn_has_signals_of_the_turns_before_and_after_it(name: str, expected: list[float]) -> None:
    near: dict[str, Any] = {"similarity": 0.9, "content": 0.0}
    far: dict[str, Any] = {"similarity": 0.1, "content": 4.0}
    candidates = [said(0, **near), said(1, **far), said(2, **near), no_turn(9, **far)]

    assert values(name, candidates) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param("Where is it?", [0, UP, 0], id="the one before asks"),
        pytest.param("It is here.", [0, 0, 0], id="it does not"),
    ],
)
def test_a_turn_replies_to_one_that_asks(asked: str, expected: list[float]) -> None:
    candidates = [said(0, asked, content=3.0), said(1, "Here?", content=0.0), no_turn(9, "What?", content=0.0)]
    spread = values("content", candidates)[0]

    assert values("replies", candidates) == pytest.approx([spread * each for each in expected])


def test_a_session_segment_is_as_good_as_its_three_best_turns() -> None:
    later = NOW + SESSION_GAP + timedelta(seconds=1)
    first = [said(n, bm25=bm25) for n, bm25 in enumerate((9.0, 6.0, 3.0, 0.0))]
    second = [said(4, event_time=later, bm25=12.0)]
    candidates = [*first, *second, no_turn(9, bm25=9.0)]
    nine, six, three, _, twelve, _ = values("words", candidates)

    best = [(nine + six + three) / 3] * 4 + [twelve / 3, 0]

    assert values("sitting", candidates) == pytest.approx(best)


def test_the_sitting_signal_is_zero_for_candidates_that_are_not_turns() -> None:
    assert values("sitting", [no_turn(1, bm25=9.0), no_turn(2, bm25=0.0)]) == [0, 0]


# the first and the third are content, and weigh 3 and 1
TERMS = [
    Term(lexeme="lamp", docs=1, weight=3.0, selects=True),
    Term(lexeme="the", docs=1, weight=9.0, selects=False, is_content=False),
    Term(lexeme="cellar", docs=1, weight=1.0, selects=True),
]
LAMP, THE, CELLAR = 0b001, 0b010, 0b100


def asked_for(terms: Sequence[Term]) -> ScoringContext:
    return replace(asking(), analysis=QueryAnalysis(terms=terms))


@pytest.mark.parametrize(
    ("candidates", "covered"),
    [
        pytest.param([said(0, held=LAMP | THE | CELLAR)], [1.0], id="all of it"),
        pytest.param([said(0, held=LAMP)], [0.75], id="most of it"),
        pytest.param([said(0, held=THE)], [0.0], id="a word that is no content"),
        pytest.param([said(0, held=LAMP), said(1, held=CELLAR)], [0.75 + 0.7 / 4, 0.25 + 0.7 * 0.75], id="adjacent"),
        pytest.param([said(0), said(1, held=LAMP), said(2)], [0.525, 0.75, 0.525], id="on both sides"),
        pytest.param([said(0, held=LAMP), said(1, held=LAMP)], [0.75, 0.75], id="no more for the same word next to it"),
        pytest.param([said(0, held=LAMP), said(2, held=CELLAR)], [0.75, 0.25], id="two places away is not adjacent"),
        pytest.param([no_turn(1, held=LAMP), no_turn(2, held=CELLAR)], [0.75, 0.25], id="other kinds stand alone"),
        pytest.param([said(0), no_turn(2)], [0.0, 0.0], id="nothing"),
    ],
)
def test_covered_content_counts_by_weight_and_less_for_adjacent_turns(
    candidates: Sequence[Candidate], covered: list[float]
) -> None:
    assert values("covers", candidates, asked_for(TERMS)) == pytest.approx(covered)


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        pytest.param(0, 1, id="of no length"),
        pytest.param(MAX_LENGTH_TOKENS, 1, id="as long as is good"),
        pytest.param(2 * MAX_LENGTH_TOKENS, 0.5, id="twice as long"),
        pytest.param(100 * MAX_LENGTH_TOKENS, 0.01, id="a document"),
    ],
)
def test_content_of_a_long_text_covers_less_also_for_its_neighbours(tokens: int, share: float) -> None:
    candidates = [said(0, held=LAMP, token_count=tokens), said(1), no_turn(9, held=LAMP, token_count=tokens)]

    covered = [0.75 * share, 0.7 * 0.75 * share, 0.75 * share]

    assert values("covers", candidates, asked_for(TERMS)) == pytest.approx(covered)


@pytest.mark.parametrize(
    ("speaker", "covered"),
    [pytest.param("Cellar", [1.0, 0.0], id="a speaker"), pytest.param("Ana", [0.75, 0.25], id="not a speaker")],
)
def test_the_name_of_a_subject_who_is_a_speaker_need_not_be_covered(speaker: str, covered: list[float]) -> None:
    context = asking(subjects=["Cellar"])
    terms = [*TERMS[:2], replace(TERMS[2], is_subject=True)]
    candidates = [said(0, held=LAMP, speaker=speaker), said(5, held=CELLAR)]

    assert values("covers", candidates, replace(context, analysis=QueryAnalysis(terms=terms))) == covered


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        pytest.param(["a", "b"], [1, 0.5, 0, 0.5], id="two"),
        pytest.param([], [0, 0, 0, 0], id="none"),
    ],
)
def test_quoted_is_the_share_of_phrases_in_the_text(phrases: list[str], expected: list[float]) -> None:
    held = (2, 1, 0, 1) if phrases else (0, 0, 0, 0)
    candidates = [no_turn(n, quoted=count) if n == 3 else said(n, quoted=count) for n, count in enumerate(held)]

    assert values("quoted", candidates, replace(asking(), analysis=QueryAnalysis(phrases=phrases))) == expected


@pytest.mark.parametrize("terms", [[], [TERMS[1]]], ids=["no words", "no content"])
def test_a_question_without_content_is_covered_by_nothing(terms: list[Term]) -> None:
    assert values("covers", [said(0, held=7), said(1)], asked_for(terms)) == [0, 0]


def test_the_last_of_many_terms_has_a_bit_of_its_own() -> None:
    many = [Term(lexeme=str(n), docs=1, weight=1.0, selects=True) for n in range(32)]

    assert values("covers", [no_turn(1, held=1 << 31)], asked_for(many)) == pytest.approx([1 / 32])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["Ana"], [1, 0, 1, 0], id="one of them"),
        pytest.param(["Lima"], [0, 1, 0, 0], id="by the family name"),
        pytest.param(["Ana", "Rui"], [0, 0, 0, 0], id="two of them"),
        pytest.param(["Ana", "Redis"], [1, 0, 1, 0], id="one of them and a topic"),
        pytest.param(["Redis"], [0, 0, 0, 0], id="a topic"),
        pytest.param([], [0, 0, 0, 0], id="no speaker"),
    ],
)
def test_turns_of_the_one_named_speaker_have_the_signal(names: list[str], expected: list[float]) -> None:
    candidates = [said(0, speaker="Ana"), said(1, speaker="Rui Lima"), said(2, speaker="ANA"), no_turn(9, "Ana: Well")]

    assert values("said_by", candidates, asking(text="What now?", names=names)) == expected


DAY = TimeWindow(since=NOW, until=NOW + timedelta(days=1))


def test_of_time_is_1_within_the_requested_time_and_fades_outside() -> None:
    hours = {"in": 3, "just after": 24 + 1, "long after": 24 * 400}
    candidates = [said(n, event_time=NOW + timedelta(hours=after)) for n, after in enumerate(hours.values())]

    inside, after, far = values("of_time", candidates, asking(windows=[DAY]))

    assert inside == 1
    assert far == pytest.approx(0, abs=1e-5)
    assert 0.5 < after < 1


@pytest.mark.parametrize(
    ("begins", "ends", "near"),
    [
        pytest.param(3, None, 1, id="begins in it"),
        pytest.param(-900 * 24, 3, 1, id="ends in it"),
        pytest.param(None, 3, 1, id="ends in it, whenever it began"),
        pytest.param(-900 * 24, None, 0, id="is true for years"),
        pytest.param(-900 * 24, 900 * 24, 0, id="is true from long before to long after"),
        # of a day half is left 6 hours outside, and half of that 6 hours further
        pytest.param(-12, None, 0.25, id="begins shortly before"),
        pytest.param(-900 * 24, 30, 0.5, id="ends shortly after"),
    ],
)
def test_a_fact_is_of_the_times_at_which_it_began_and_ended(begins: int | None, ends: int | None, near: float) -> None:
    since, until = (None if hours is None else NOW + timedelta(hours=hours) for hours in (begins, ends))
    fact = no_turn(1, event_time=NOW - timedelta(days=900), valid_from=since, valid_to=until)

    assert values("of_time", [fact], asking(windows=[DAY])) == pytest.approx([near], abs=1e-5)


@pytest.mark.parametrize(
    ("since", "until", "within"),
    [(None, None, True), (None, 1, True), (-1, None, True), (None, -1, False), (1, None, False)],
)
def test_times_without_a_beginning_or_an_end_are_times(since: int | None, until: int | None, within: bool) -> None:
    opens, closes = (None if day is None else NOW + timedelta(days=day) for day in (since, until))

    [near] = values("of_time", [said(0)], asking(windows=[TimeWindow(since=opens, until=closes)]))

    assert 0 < near <= 1
    assert (near == 1) == within


def test_a_question_without_a_time_gives_no_of_time_signal() -> None:
    assert values("of_time", [said(0), no_turn(2)]) == [0, 0]


@pytest.mark.parametrize(
    ("question", "asks_when"),
    [
        ("When did Ana paint?", True),
        ("how long did it take?", True),
        ("Since when is it so?", True),
        ("In what year was it?", True),
        ("On which day was it?", True),
        ("“Which month is it?”", True),
        ("What did Ana paint when it rained?", False),
        ("Whenever did it rain?", False),
        ("What is a day?", False),
        ("", False),
    ],
)
def test_words_of_time_count_only_if_the_question_asks_when(question: str, asks_when: bool) -> None:
    candidates = [said(0, "Last week."), said(1, "Yesterday."), said(2, "Here."), no_turn(9, "Yesterday.")]

    assert values("tells_when", candidates, asking(text=question)) == ([2, 1, 0, 0] if asks_when else [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # of average meaning and content: by half, but for what answers nothing in any case
        ("times", "We met yesterday.", 0.5),
        ("numbers", "I have 3 boats and 2 oars.", 1),
        ("happened", "I painted.", 0.5),
        ("places", "We met in Lisbon.", 0.5),
        ("reacts", "Wow, well done.", 1),
        ("asks", "Well. Is it?", 2 / 3),
    ],
)
def test_text_features_count_for_turns_only(name: str, text: str, expected: float) -> None:
    assert values(name, [said(0, text), no_turn(2, text)]) == pytest.approx([expected, 0])


@pytest.mark.parametrize(
    ("name", "is_gated"),
    [
        *((name, True) for name in ("times", "numbers", "happened", "places")),
        *((name, False) for name in ("reacts", "asks")),
    ],
)
def test_features_of_a_turn_count_as_far_as_it_is_relevant(name: str, is_gated: bool) -> None:
    text = "Wow. I swam in Lisbon for 2 days. I painted yesterday. Did you?"
    # standard scores of meaning and content: 1 and 1, -1 and 1, 1 and -1, -1 and -1
    found_so = [(0.9, 4.0), (0.1, 4.0), (0.9, 0.0), (0.1, 0.0)]
    candidates = [said(n, text, similarity=near, content=weight) for n, (near, weight) in enumerate(found_so)]
    [plain] = {getattr(turn_features(text), name)}

    gates = [1 / (1 + exp(-2)), 0.5, 0.5, 1 / (1 + exp(2))] if is_gated else [1, 1, 1, 1]

    assert plain > 0
    assert values(name, candidates) == pytest.approx([plain * gate for gate in gates])


def test_other_kinds_have_the_signal_no_turn() -> None:
    assert values("no_turn", [said(0), no_turn(2)]) == [0, 1]


@pytest.mark.parametrize(
    ("tokens", "counted"),
    [(0, 0), (1, 1), (300, 300), (MAX_LENGTH_TOKENS, 500), (MAX_LENGTH_TOKENS + 1, 500), (10**6, 500)],
)
def test_length_is_the_logarithm_of_tokens_up_to_a_maximum(tokens: int, counted: int) -> None:
    assert values("length", [said(0, token_count=tokens)]) == pytest.approx([log1p(counted)])


def test_the_parent_signal_of_a_subgoal_is_how_much_better_its_goal_matches() -> None:
    goal, part = no_turn(1, bm25=4.0, kind=Kind.GOAL), no_turn(2, bm25=0.0, part_of=UUID(int=1), kind=Kind.GOAL)
    better = no_turn(3, bm25=9.0, part_of=UUID(int=2), kind=Kind.GOAL)
    of_another = no_turn(4, bm25=0.0, part_of=UUID(int=99), kind=Kind.GOAL)
    candidates = [goal, part, better, of_another]
    whole, lesser, *_ = values("words", candidates)

    assert values("parent", candidates) == pytest.approx([0, whole - lesser, 0, 0])


@pytest.mark.parametrize("name", SIGNALS)
def test_no_candidates_have_no_signals(name: str) -> None:
    assert values(name, [], asked_for(TERMS)) == []


TURNS = st.tuples(
    st.integers(0, 40) | st.none(),
    st.floats(0, 60) | st.sampled_from([float("nan"), float("inf")]),
    st.floats(-1, 1) | st.none() | st.just(float("nan")),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["", "Ana: When? 3 days ago", "Wow!", "I went to Lisbon.", "水泵"]),
)


@pytest.mark.parametrize("name", SIGNALS)
@examples(15)
@given(rows=st.lists(TURNS, max_size=10))
def test_each_signal_has_one_finite_value_for_each_candidate(name: str, rows: Sequence[Any]) -> None:
    candidates = [
        found(n, text, index=index, bm25=bm25, content=bm25, naming=bm25, similarity=near, gist=near, held=held)
        for n, (index, bm25, near, held, text) in enumerate(rows, start=1)
    ]

    computed = values(name, candidates, replace(asked_for(TERMS), query=asking(windows=[DAY]).query))

    assert len(computed) == len(candidates)
    assert np.isfinite(computed).all()

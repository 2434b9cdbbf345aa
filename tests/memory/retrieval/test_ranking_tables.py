"""Candidates as columns: adjacent turns, session segments, and standard scores."""

import math
from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.ranking.table import REACH, SESSION_GAP, Table, make_table
from tests.memory.candidates import asking, found
from tests.memory.episodes import NOW
from tests.properties import examples

STEPS = [step for step in range(-REACH, REACH + 1) if step]
LONG = SESSION_GAP + timedelta(seconds=1)


def said(
    number: int, index: int, *, conversation: str = "c1", after: timedelta = timedelta(0), **fields: Any
) -> Candidate:
    """Return the candidate of this number: a turn said so long after NOW."""
    return found(number, index=index, conversation_id=conversation, event_time=NOW + after, **fields)


def no_turn(number: int, **fields: Any) -> Candidate:
    return found(number, kind=Kind.FACT, **fields)


def table_of(*candidates: Candidate, **asked: Any) -> Table:
    """`asked` are fields of the query."""
    return make_table(candidates, asking(**asked))


def segments_of(table: Table) -> list[int]:
    return [int(each) for each in table.segments]


def adjacent_numbers(table: Table) -> dict[tuple[int, int], int]:
    """Return the number of the adjacent turn, by number and number of places later."""
    numbers = [each.id.int for each in table.candidates]
    return {
        (number, step): numbers[row]
        for step in STEPS
        for number, row in zip(numbers, table.adjacent[step].tolist(), strict=True)
        if row < table.size
    }


@pytest.mark.parametrize(
    ("candidates", "segments"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([said(1, 0), said(2, 1)], [0, 0], id="one after the other"),
        pytest.param([said(1, 0), said(2, 1, after=SESSION_GAP)], [0, 0], id="just short enough a silence"),
        pytest.param([said(1, 0), said(2, 1, after=LONG)], [0, 1], id="a longer one"),
        pytest.param([said(1, 0, after=LONG), said(2, 1)], [0, 1], id="times against their order"),
        pytest.param([said(2, 1, after=LONG), said(1, 0)], [1, 0], id="by their index, however they come"),
        pytest.param([said(1, 0), said(2, 9)], [0, 0], id="others between them are no candidates"),
        pytest.param([said(1, 0, conversation="c2"), said(2, 0)], [1, 0], id="two conversations"),
        pytest.param([no_turn(1), said(2, 0), no_turn(3)], [-1, 0, -1], id="other kinds are in no segment"),
        pytest.param(
            [said(n, n, after=n * timedelta(hours=5)) for n in range(1, 5)], [0, 0, 0, 0], id="many short silences"
        ),
    ],
)
def test_a_long_silence_ends_a_session_segment(candidates: Sequence[Candidate], segments: list[int]) -> None:
    assert segments_of(table_of(*candidates)) == segments


def test_neighbours_are_those_one_and_two_places_away() -> None:
    table = table_of(said(5, 5), said(1, 1), said(2, 2), said(3, 3))

    later = {(1, 1): 2, (1, 2): 3, (2, 1): 3, (3, 2): 5}
    before = {(2, -1): 1, (3, -1): 2, (3, -2): 1, (5, -2): 3}
    assert adjacent_numbers(table) == later | before


@pytest.mark.parametrize(
    "apart",
    [
        pytest.param([said(1, 0), said(2, 1, after=LONG)], id="in another segment"),
        pytest.param([said(1, 0), said(2, 1, conversation="c2")], id="in another conversation"),
        pytest.param([said(1, 0), said(2, 3)], id="too far away"),
        pytest.param([said(1, 0), no_turn(2)], id="no turn"),
        pytest.param([no_turn(1), no_turn(2)], id="no turns"),
        pytest.param([said(1, 0)], id="alone"),
        pytest.param([], id="nothing"),
    ],
)
def test_turns_of_other_conversations_are_not_adjacent(apart: Sequence[Candidate]) -> None:
    assert adjacent_numbers(table_of(*apart)) == {}


def test_shifted_gives_the_value_of_the_neighbouring_turn_or_zero() -> None:
    table = table_of(said(1, 1), said(2, 2), no_turn(3), said(5, 5))
    values = np.array([1.0, 2.0, 3.0, 5.0])

    assert table.shifted(values, 1).tolist() == [2, 0, 0, 0]
    assert table.shifted(values, -1).tolist() == [0, 1, 0, 0]
    assert values.tolist() == [1, 2, 3, 5]


def test_words_and_content_are_standard_scores_of_their_own() -> None:
    table = table_of(found(1, bm25=4.0, content=1.0), found(2, bm25=0.0, content=3.0))

    assert table.words.tolist() == pytest.approx([1, -1])
    assert table.content.tolist() == pytest.approx([-1, 1])


def test_without_a_gist_meaning_is_the_similarity_of_all() -> None:
    table = table_of(said(1, 0, similarity=0.8), no_turn(2, similarity=0.4), no_turn(3, similarity=None))

    assert table.meaning.tolist() == pytest.approx([1, -1, 0])


def test_the_gist_puts_turns_in_another_order_and_leaves_other_kinds_in_place() -> None:
    near: dict[str, Any] = {"similarity": 0.8, "gist": 0.2}
    far: dict[str, Any] = {"similarity": 0.4, "gist": 0.6}

    candidates = [said(1, 0, speaker="Ana", **near), said(2, 1, **far), no_turn(3, **near), no_turn(4, **far)]

    assert table_of(*candidates, subjects=["Ana"]).meaning.tolist() == pytest.approx([-1, 1, 1, -1])


@pytest.mark.parametrize(
    ("subjects", "speaker", "leaves_out"),
    [
        pytest.param(["Ana"], "Ana", True, id="a speaker"),
        pytest.param(["Ana", "Rui"], "Ana", False, id="two, one of them a speaker"),
        pytest.param(["Redis"], "Ana", False, id="not a name of a speaker"),
        pytest.param(["Ana"], "", False, id="no speaker names"),
        pytest.param([], "Ana", False, id="no subject"),
    ],
)
def test_the_gist_replaces_names_and_similarity_if_all_subjects_are_speakers(
    subjects: list[str], speaker: str, leaves_out: bool
) -> None:
    named: dict[str, Any] = {"content": 5.0, "naming": 4.0, "similarity": 0.8, "gist": 0.2}
    unnamed: dict[str, Any] = {"content": 3.0, "naming": 0.0, "similarity": 0.4, "gist": 0.6}

    table = table_of(said(1, 0, speaker=speaker, **named), said(2, 5, **unnamed), subjects=subjects)

    for column in (table.content, table.meaning):
        assert column.tolist() == pytest.approx([-1, 1] if leaves_out else [1, -1])


def test_turns_keep_mean_and_deviation_of_their_similarities() -> None:
    # over all six the mean is 0.5, and the deviation 0.2 by construction
    turns = [said(1, 0, speaker="Ana", similarity=0.7, gist=0.1), said(2, 1, similarity=0.3, gist=0.2)]
    others = [no_turn(n, similarity=near, gist=0.9) for n, near in ((3, 0.7), (4, 0.3), (5, 0.7), (6, 0.3))]

    plain = table_of(*(said(n, n, similarity=each.similarity) for n, each in enumerate([*turns, *others])))
    by_gist = table_of(*turns, *others, subjects=["Ana"])

    assert by_gist.meaning[2:].tolist() == pytest.approx(plain.meaning[2:].tolist())
    assert by_gist.meaning[:2].mean() == pytest.approx(plain.meaning[:2].mean())
    assert by_gist.meaning[:2].std() == pytest.approx(plain.meaning[:2].std())
    assert by_gist.meaning[0] < by_gist.meaning[1]


def test_a_turn_without_a_vector_is_of_average_meaning() -> None:
    first = said(1, 0, speaker="Ana", similarity=0.8, gist=0.2)

    table = table_of(first, said(2, 1, similarity=0.4, gist=0.6), said(3, 2, similarity=None), subjects=["Ana"])

    assert table.meaning.tolist() == pytest.approx([-1, 1, 0])


def test_what_waits_for_its_vector_is_as_near_as_its_words_say_up_to_half_of_the_nearest() -> None:
    embedded = [no_turn(number, similarity=0.4, bm25=0.0) for number in range(2, 10)]

    few = table_of(no_turn(1, similarity=0.8, bm25=0.0), *embedded, no_turn(10, similarity=None, bm25=9.0))
    many = table_of(no_turn(1, similarity=0.8, bm25=30.0), *embedded, no_turn(10, similarity=None, bm25=9.0))
    least = table_of(no_turn(1, similarity=0.8, bm25=9.0), *embedded, no_turn(10, similarity=None, bm25=0.0))

    assert few.meaning[-1] == few.meaning[0] / 2 < few.words[-1]
    assert 0 < many.meaning[-1] == many.words[-1] < many.meaning[0] / 2
    assert least.meaning[-1] == 0.0


def test_what_waits_for_its_vector_and_equals_the_question_is_as_near_as_the_nearest() -> None:
    waiting = no_turn(2, similarity=None, text="Order 7 is sent")

    asked = table_of(no_turn(1, similarity=0.8), no_turn(3, similarity=0.4), waiting, text="Order 7 is sent")
    other = table_of(no_turn(1, similarity=0.8), no_turn(3, similarity=0.4), waiting, text="Order 8 is sent")

    assert (asked.meaning[-1], other.meaning[-1]) == (asked.meaning[0], 0.0)


def test_nan_and_infinite_values_count_as_zero() -> None:
    fields = ("bm25", "content", "naming", "similarity", "gist")
    unknown: list[dict[str, Any]] = [dict.fromkeys(fields, bad) for bad in (math.nan, math.inf)]
    odd = [found(n, index=n, **each) for n, each in enumerate(unknown, start=1)]
    even = found(3, index=3, speaker="Ana", bm25=1.0, content=1.0, similarity=0.5, gist=0.5)

    table = table_of(*odd, even, subjects=["Ana"])

    for column in (table.words, table.content, table.meaning):
        assert column.tolist() == [0, 0, 0]


NEARNESS = st.none() | st.integers(-100, 100).map(lambda hundredths: hundredths / 100)
WORDS = st.integers(0, 3_000).map(lambda hundredths: hundredths / 100)
PLACES = st.tuples(st.sampled_from(["c1", "c2"]), st.integers(0, 30)) | st.none()
HOURS = st.integers(0, 100)
SAID = st.lists(st.tuples(PLACES, HOURS, WORDS, NEARNESS, NEARNESS), max_size=15, unique_by=lambda row: row[0] or row)


def drawn(rows: Sequence[Any]) -> list[Candidate]:
    """Return candidates numbered from 1; one without a place is not a turn."""
    made = []
    for number, (place, hours, bm25, near, gist) in enumerate(rows, start=1):
        of_place = {} if place is None else {"conversation_id": place[0], "index": place[1]}
        at, who = NOW + timedelta(hours=hours), ("Ana", "Rui")[number % 2]
        scores = {"bm25": bm25, "content": bm25 / 2, "naming": bm25 / 4, "similarity": near, "gist": gist}
        made.append(found(number, event_time=at, speaker=who, **scores, **of_place))
    return made


@examples(60)
@given(SAID, st.integers(0, 1_000))
def test_candidates_in_another_order_make_the_same_table_in_that_order(rows: Sequence[Any], seed: int) -> None:
    candidates = drawn(rows)
    mixed = Random(seed).sample(candidates, len(candidates))
    table, other = (table_of(*each, subjects=["Ana"]) for each in (candidates, mixed))
    at = [candidates.index(each) for each in mixed]

    assert segments_of(other) == table.segments[at].tolist()
    assert adjacent_numbers(other) == adjacent_numbers(table)
    for name in ("words", "content", "meaning"):
        assert getattr(other, name) == pytest.approx(getattr(table, name)[at], abs=1e-9)


@examples(60)
@given(SAID)
def test_ids_of_conversations_do_not_affect_the_table(rows: Sequence[Any]) -> None:
    renamed = [({"c1": "z", "c2": "a"}[row[0][0]], row[0][1]) if row[0] else None for row in rows]
    table = table_of(*drawn(rows))
    other = table_of(*drawn([(place, *row[1:]) for place, row in zip(renamed, rows, strict=True)]))

    assert adjacent_numbers(other) == adjacent_numbers(table)
    assert partition(other) == partition(table)
    assert other.meaning.tolist() == table.meaning.tolist()


def partition(table: Table) -> set[frozenset[int]]:
    """Return the rows of each session segment."""
    segments = segments_of(table)
    return {frozenset(row for row, each in enumerate(segments) if each == one) for one in segments if one >= 0}


@examples(60)
@given(SAID)
def test_adjacency_is_mutual_and_within_one_session_segment(rows: Sequence[Any]) -> None:
    table = table_of(*drawn(rows))

    pairs = adjacent_numbers(table)

    assert all(pairs[later, -step] == number for (number, step), later in pairs.items())
    assert all(table.segments[one - 1] == table.segments[other - 1] >= 0 for (one, _), other in pairs.items())

"""Ranking by weights of signals: a relevance that its parts explain, for any weights in any order."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.models.memory import EXTRACTED_SOURCE
from memory.retrieval.candidates import IS_NEAR, SHARES_WORDS, Candidate
from memory.retrieval.ranking import (
    SIGNAL_PREFIX,
    WEIGHTS_FILE,
    Weights,
    fuse_learned,
    learned_weights,
    rank_by_weights,
    read_weights,
)
from memory.retrieval.ranking.registers import REGISTERS
from memory.retrieval.ranking.signals import SIGNALS
from tests.memory.candidates import asking, found, numbers
from tests.memory.episodes import NOW
from tests.properties import examples

NOTHING = Weights(turns={}, others={})


def in_each_register(turns: Mapping[str, float]) -> dict[str, Mapping[str, float]]:
    return dict.fromkeys(REGISTERS, turns)


def weights(turns: Mapping[str, float] | None = None, **others: float) -> Weights:
    """Return weights that are the same for turns and other kinds, unless turns have their own."""
    return Weights(turns=in_each_register(others if turns is None else turns), others=others)


def turn(number: int, **fields: Any) -> Candidate:
    return found(number, index=number, **fields)


def other(number: int, **fields: Any) -> Candidate:
    return found(number, kind=Kind.FACT, **fields)


def ranked(by: Weights, *candidates: Candidate, **asked: Any) -> list[float]:
    rank_by_weights(by, candidates, asking(**asked))
    return [each.score for each in candidates]


def parts_of(candidate: Candidate) -> dict[str, float]:
    return {
        name.removeprefix(SIGNAL_PREFIX): value
        for name, value in candidate.signals.items()
        if name.startswith(SIGNAL_PREFIX)
    }


@pytest.mark.parametrize(
    ("by", "relevance"),
    [
        # of 4 and 0 the standard scores are 1 and -1: sums 2 apart for a weight of 1
        pytest.param(weights(words=1.0), [1, math.exp(-1)], id="one signal"),
        pytest.param(weights(words=3.0), [1, math.exp(-3)], id="that weighs more"),
        pytest.param(weights(words=-1.0), [math.exp(-1), 1], id="that speaks against it"),
        pytest.param(weights(words=1.0, meaning=1.0), [1, 1], id="two that outweigh each other"),
        pytest.param(weights(words=1.0, meaning=3.0), [math.exp(-2), 1], id="one of two that outweighs the other"),
        pytest.param(weights(words=0.0), [1, 1], id="one that weighs nothing"),
        pytest.param(NOTHING, [1, 1], id="nothing"),
    ],
)
def test_relevance_is_e_to_half_the_distance_from_the_best_sum(by: Weights, relevance: list[float]) -> None:
    candidates = [turn(1, bm25=4.0, similarity=0.1), turn(5, bm25=0.0, similarity=0.9)]

    assert ranked(by, *candidates) == pytest.approx(relevance)


def test_turns_and_other_kinds_have_separate_weights() -> None:
    by = weights({"words": 2.0}, meaning=1.0)
    said, noted = turn(1, bm25=4.0, similarity=0.1), other(5, bm25=0.0, similarity=0.9)

    scores = ranked(by, said, noted)

    assert parts_of(said) == pytest.approx({"words": 2.0})
    assert parts_of(noted) == pytest.approx({"meaning": 1.0})
    assert scores == pytest.approx([1, math.exp(-0.5)])


def test_what_was_extracted_from_turns_has_weights_of_its_own() -> None:
    by = Weights(turns=in_each_register({"words": 1.0}), others={"words": 4.0}, extracted={"words": 2.0})
    said, noted, learned = turn(1, bm25=4.0), other(5, bm25=4.0), other(6, bm25=4.0, source=EXTRACTED_SOURCE)

    ranked(by, said, noted, learned, other(7, bm25=0.0))

    assert [parts_of(each)["words"] / parts_of(said)["words"] for each in (noted, learned)] == pytest.approx([4, 2])


def test_extracted_knowledge_has_the_weights_of_other_kinds_where_a_file_has_none_for_it(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text('{"turns": {}, "others": {"words": 4.0}}')

    assert read_weights(path).of_extracted == {"words": 4.0}


def test_parts_are_weight_times_signal_and_zeros_are_left_out() -> None:
    best, worst = turn(1, text="well", bm25=4.0, token_count=0), turn(5, text="wow", bm25=0.0, token_count=6)

    ranked(weights(words=0.5, length=2.0, reacts=9.0), best, worst)

    assert parts_of(best) == pytest.approx({"words": 0.5})
    assert parts_of(worst) == pytest.approx({"words": -0.5, "length": 2 * math.log(7), "reacts": 9.0})


def test_ranking_no_candidates_gives_no_scores() -> None:
    assert ranked(weights(words=1.0)) == []
    fuse_learned([], asking())


@pytest.mark.parametrize(
    "by", [NOTHING, weights(words=5.0, length=-3.0), learned_weights()], ids=["none", "any", "ours"]
)
def test_a_single_candidate_has_relevance_1(by: Weights) -> None:
    assert ranked(by, turn(1)) == [1]
    assert ranked(by, other(1, similarity=None, bm25=0.0)) == [1]


def test_scores_of_retrievers_are_signals_too() -> None:
    near, far = turn(1, similarity=0.9, bm25=0.0, ways={"vector"}), turn(5, similarity=0.1, hops=2)

    ranked(weights(words=1.0), near, far)

    assert near.signals.items() >= {"relevance": near.score, "bm25": 0.0, "similarity": 0.9}.items()
    assert far.signals["hops"] == 2
    assert near.reasons == [IS_NEAR]
    assert SHARES_WORDS in far.reasons


def test_content_and_gist_are_signals_too() -> None:
    said, plain = turn(1, speaker="Ana", content=3.0, naming=1.0, gist=0.25), other(2, content=1.0, gist=0.5)

    ranked(NOTHING, said, plain, subjects=["Ana"])

    assert said.signals.items() >= {"content": 2.0, "gist": 0.25}.items()
    assert plain.signals["content"] == 1.0
    assert "gist" not in plain.signals


def test_an_unused_gist_similarity_is_not_a_signal() -> None:
    said = turn(1, speaker="Ana", content=3.0, naming=1.0, gist=0.25)

    ranked(NOTHING, said, subjects=["Redis"])

    assert said.signals["content"] == 3.0
    assert "gist" not in said.signals


@pytest.mark.parametrize(
    ("subjects", "near"),
    [
        pytest.param(["Ana"], [False, True, True, False], id="of turns to the gist, if the subject is a speaker"),
        pytest.param(["Redis"], [True, False, True, False], id="to the text otherwise"),
    ],
)
def test_close_in_meaning_refers_to_the_similarity_that_was_compared(subjects: list[str], near: list[bool]) -> None:
    # of the text's similarities the mean is 0.5, and so it is with those of the gist in place of the turns'
    like: dict[str, Any] = {"similarity": 0.8, "gist": 0.2, "ways": {"vector"}, "bm25": 0.0}
    unlike: dict[str, Any] = {"similarity": 0.2, "gist": 0.8, "ways": {"vector"}, "bm25": 0.0}
    candidates = [turn(1, speaker="Ana", **like), turn(2, **unlike), other(3, **like), other(4, **unlike)]

    ranked(weights(meaning=1.0), *candidates, subjects=subjects)

    assert [IS_NEAR in each.reasons for each in candidates] == near


def test_weights_of_unknown_signals_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Not signals: pitch\. Allowed: words, content"):
        Weights(turns={"talk": {"words": 1.0, "pitch": 1.0}}, others={})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"turns": {}, "others": {"words": NaN}}', "The weight of words must be a number from -1e"),
        ('{"turns": {}, "others": {"covers": -Infinity}}', "The weight of covers must be a number"),
        ('{"turns": {"talk": {"words": "1.0"}}, "others": {}}', "The weight of words must be a number"),
        ('{"turns": {"chat": {"words": true}}, "others": {}}', "The weight of words must be a number"),
        ('{"turns": {"notes": {"words": null}}, "others": {}}', "The weight of words must be a number"),
        ('{"turns": {"talk": {"words": 1e308}}, "others": {}}', "The weight of words must be a number"),
        (f'{{"turns": {{}}, "others": {{"words": 1{"0" * 400}}}}}', "The weight of words must be a number"),
        ('{"turns": {"talk": {"hue": 1.0}}, "others": {}}', "Not signals: hue"),
        ('{"turns": {"song": {}}, "others": {}}', "Not registers: song. Allowed: talk"),
        ('{"turns": {"talk": 1.0}, "others": {}}', '"talk" must be an object'),
        ('{"turns": [], "others": {}}', '"turns" must be an object'),
        ('{"turns": {}}', '"others" must be an object'),
        ("[]", '"turns" must be an object'),
        ("{", "Expecting property name"),
        (b"\xff", "can't decode byte 0xff"),
    ],
    ids=[
        *("nan", "infinity", "text", "truth", "null", "too large", "far too large"),
        *("signal", "register", "number", "list", "half", "no object", "no json", "no text"),
    ],
)
def test_an_invalid_file_of_weights_is_refused_with_its_path(
    tmp_path: Path, content: str | bytes, complaint: str
) -> None:
    path = tmp_path / "weights.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(ValueError, match=re.escape(complaint)) as refused:
        read_weights(path)

    assert str(refused.value).startswith(f"{path}: ")


def test_the_error_for_a_missing_file_of_weights_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json cannot be read: No such file"):
        read_weights(tmp_path / "none.json")


def test_only_signals_with_nonzero_weights_are_computed() -> None:
    said = turn(1, bm25=2.0, similarity=0.5)
    ranked(weights({"meaning": 1.0, "words": 0.0}), said, turn(5, bm25=0.0, similarity=0.1))
    assert parts_of(said).keys() == {"meaning"}


def test_the_learned_weights_are_those_in_the_file() -> None:
    in_file = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))

    assert learned_weights() == Weights(**{name: in_file[name] for name in ("turns", "others", "extracted")})
    parts = (*in_file["turns"].values(), in_file["others"], in_file["extracted"])
    assert all(math.isfinite(weight) for own in parts for weight in own.values())
    assert in_file["turns"].keys() == set(REGISTERS)
    assert in_file["others"]


def test_the_learned_ranker_prefers_candidates_with_higher_values_of_all_signals() -> None:
    said = [turn(number, bm25=number, content=number, similarity=number / 10) for number in (9, 5, 1)]
    noted = [other(number, bm25=number, content=number, similarity=number / 10) for number in (9, 5, 1)]

    for candidates in (said, noted):
        fuse_learned(candidates, asking())

        assert numbers(sorted(candidates, key=lambda each: -each.score)) == [9, 5, 1]


NUMBERS = st.floats(0, 60) | st.sampled_from([math.nan, math.inf])
NEARNESS = st.none() | st.floats(-1, 1) | st.just(math.nan)
FOUND = st.tuples(
    st.tuples(st.sampled_from(["c1", "c2"]), st.integers(0, 20)) | st.none(),
    *(NUMBERS, NEARNESS, NEARNESS),
    st.sampled_from(["", "Ana: When? 3 days ago", "Wow!", "I went to Lisbon.", "水泵"]),
)
ROWS = st.lists(FOUND, min_size=1, max_size=12, unique_by=lambda row: row[0] or row)
WEIGHED = st.dictionaries(st.sampled_from(sorted(SIGNALS)), st.floats(-50, 50), max_size=5)


def drawn(rows: Sequence[Any]) -> list[Candidate]:
    """Return candidates numbered from 1; one without a place is not a turn."""
    made = []
    for number, (place, bm25, near, gist, text) in enumerate(rows, start=1):
        of_place = {} if place is None else {"conversation_id": place[0], "index": place[1]}
        said = {"bm25": bm25, "content": bm25, "similarity": near, "gist": gist}
        made.append(found(number, text, event_time=NOW + timedelta(hours=number), **said, **of_place))
    return made


@examples(100)
@given(ROWS, WEIGHED, WEIGHED)
def test_every_relevance_follows_from_the_recorded_parts(rows: Any, turns: Any, others: Any) -> None:
    candidates = drawn(rows)

    ranked(weights(turns, **others), *candidates)

    best = max(math.fsum(parts_of(each).values()) for each in candidates)
    for each in candidates:
        expected = math.exp((math.fsum(parts_of(each).values()) - best) / 2)
        assert each.score == pytest.approx(expected, rel=1e-9, abs=1e-9)


@examples(100)
@given(ROWS, WEIGHED, WEIGHED)
def test_relevance_is_from_0_to_1_and_1_for_the_best(rows: Any, turns: Any, others: Any) -> None:
    candidates = drawn(rows)

    scores = ranked(weights(turns, **others), *candidates)

    assert max(scores) == 1
    assert all(0 <= score <= 1 for score in scores)
    assert [each.signals["relevance"] for each in candidates] == scores
    assert all(math.isfinite(part) for each in candidates for part in parts_of(each).values())


@examples(60)
@given(ROWS, WEIGHED, st.integers(0, 1_000))
def test_the_order_in_which_candidates_come_changes_nothing(rows: Any, by: Any, seed: int) -> None:
    candidates, again = drawn(rows), drawn(rows)
    mixed = Random(seed).sample(again, len(again))

    scores = ranked(weights(**by), *candidates)
    ranked(weights(**by), *mixed)

    assert [each.score for each in again] == pytest.approx(scores, rel=1e-9, abs=1e-12)

"""Near-duplicates come once; a number, a name, a negation, a speaker or a time keeps two apart."""

import string
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.selectors import MIN_COMPARED, join_duplicates
from tests.memory.candidates import asking, found, numbers
from tests.memory.episodes import NOW
from tests.properties import examples

WORDS = (
    "pays",
    "in",
    "5",
    "3.14",
    "Ana",
    "Berlin",
    "before",
    "now",
    "the",
    "really",
    "moved",
    "it's",
    "well,",
    "please",
)
NAMES = ("Ana", "Ben", "Berlin", "Bern", "Chloé", "Will", "May", "A", "X1")
TITLES = ("Actually", "Really", "Please", "Basically", "Yeah!", "Hi,", "Hey.", "Well,", "Ok", "The", "(A)")
NEGATIONS = ("not", "no longer", "never", "without", "no", "cannot", "nobody")

sentences = st.lists(st.sampled_from(WORDS), min_size=2, max_size=7).map(" ".join)
unchanging = examples(60)


def are_merged(one: str, other: str, **fields: Any) -> bool:
    kept = join_duplicates([found(1, one), found(2, other, **fields)], asking())
    return len(kept) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Ana lives in Berlin.", "  ana lives\nin BERLIN", id="case and spaces and punctuation"),
        pytest.param("“Ana” moved", "Ana moved", id="quotation marks"),
        pytest.param("It's over: I'm off", "It's over. I am off", id="contractions"),
        pytest.param("I don't drink milk", "I do not drink milk", id="a negation written in two ways"),
        pytest.param("Room 12", "Room 12", id="width"),
        pytest.param("会議は火曜日です。", "会議は火曜日です", id="another script"),
    ],
)
def test_texts_that_differ_only_in_notation_are_merged(one: str, other: str) -> None:
    assert are_merged(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("It costs $5", "It costs 5", id="a sign"),
        pytest.param("The rate is -0.5", "The rate is 0.5", id="a minus"),
        pytest.param("10² rooms", "102 rooms", id="a raised digit"),
        pytest.param("version 1.10", "version 110", id="a point in a number"),
        pytest.param("Ana lives in Berlin", "Ben lives in Berlin", id="a name"),
        pytest.param("The Who played", "Who played", id="a name that looks like an article"),
        pytest.param("plan A failed", "plan failed", id="a name of one letter"),
        pytest.param("I drink milk", "I don't drink milk", id="n't"),
        pytest.param("I do not really like it", "I do not like it", id="the scope of a negation"),
        pytest.param("He sleeps well", "He sleeps", id="an adverb"),
        pytest.param("Yeah! is by Usher", "is by Usher", id="a name that looks like an opening"),
        pytest.param("Ana beat Ben", "Ben beat Ana", id="the order of words"),
        pytest.param("The release is done.", "The release is done?", id="a question"),
        pytest.param("👍", "👎", id="an emoji"),
    ],
)
def test_texts_with_different_meanings_are_not_merged(one: str, other: str) -> None:
    assert not are_merged(one, other)


@given(sentences, st.integers(0, 99), st.sampled_from(string.digits))
@unchanging
def test_texts_with_different_digits_are_never_merged(sentence: str, place: int, digit: str) -> None:
    digits = [at for at, sign in enumerate(sentence) if sign.isdigit()]
    assume(digits)
    at = digits[place % len(digits)]
    assume(sentence[at] != digit)

    assert not are_merged(sentence, f"{sentence[:at]}{digit}{sentence[at + 1 :]}")


@given(sentences, st.sampled_from(NAMES), st.sampled_from(NAMES))
@unchanging
def test_texts_with_different_names_are_never_merged(sentence: str, name: str, another: str) -> None:
    assume(name != another)

    assert not are_merged(f"{sentence} {name}", f"{sentence} {another}")
    assert not are_merged(f"{sentence} {name}", sentence)


@given(sentences, st.integers(0, 7), st.sampled_from([*NAMES, *TITLES]))
@unchanging
def test_texts_with_an_additional_capitalized_word_are_never_merged(sentence: str, place: int, name: str) -> None:
    words = sentence.split()
    named = " ".join([*words[:place], name, *words[place:]])

    assert not are_merged(sentence, named)


@given(sentences, st.integers(0, 7), st.sampled_from(NEGATIONS))
@unchanging
def test_texts_with_an_additional_negation_are_never_merged(sentence: str, place: int, negation: str) -> None:
    words = sentence.split()
    denied = " ".join([*words[:place], negation, *words[place:]])

    assert not are_merged(sentence, denied)


@given(sentences, st.sampled_from([str.upper, str.title, "  {}\n".format, "“{}”".format, "{}.".format]))
@unchanging
def test_texts_that_differ_in_case_spaces_or_punctuation_are_always_merged(sentence: str, write: Any) -> None:
    assert are_merged(sentence, write(sentence))


@given(st.lists(st.sampled_from(["Ana moved", "ana moved.", "Ana moved twice", "Ana never moved"]), max_size=20))
@unchanging
def test_merging_loses_no_candidate_keeps_the_order_and_is_idempotent(texts: list[str]) -> None:
    given_ones = [found(number, text) for number, text in enumerate(texts, start=1)]

    once = join_duplicates(given_ones, asking())

    accounted = [each.int for first in once for each in (first.id, *first.also)]
    assert sorted(accounted) == numbers(given_ones)
    assert numbers(once) == sorted(numbers(once))
    assert join_duplicates(once, asking()) == once
    assert all(first.also == sorted(first.also) for first in once)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"speaker": "Ben"}, id="another speaker"),
        pytest.param({"role": "assistant"}, id="another role"),
        pytest.param({"user_id": "ben"}, id="another user"),
        pytest.param({"event_time": NOW - timedelta(days=1)}, id="another day"),
        pytest.param({"kind": Kind.FACT}, id="another kind"),
    ],
)
def test_equal_texts_of_another_user_day_or_kind_are_not_merged(fields: dict[str, Any]) -> None:
    assert not are_merged("I ran today", "I ran today", **fields)


def test_a_statement_repeated_on_the_same_day_is_merged() -> None:
    assert are_merged("I ran today", "I ran today", event_time=NOW - timedelta(minutes=5), conversation_id="c2")


@pytest.mark.parametrize(
    ("fields", "are_one"),
    [
        pytest.param({"event_time": NOW - timedelta(days=9)}, True, id="said at another time"),
        pytest.param({"channel": "atlas"}, True, id="of another channel"),
        pytest.param({"temporal": "past"}, False, id="past"),
        pytest.param({"valid_from": NOW}, False, id="true since another day"),
        pytest.param({"user_id": "ben"}, False, id="of another user"),
        pytest.param({"agent_id": "planner"}, False, id="learned by another agent for itself"),
    ],
)
def test_facts_are_merged_only_if_they_are_the_same_belief(fields: dict[str, Any], are_one: bool) -> None:
    one, other = (found(number, "Likes tea.", kind=Kind.FACT, **own) for number, own in ((1, {}), (2, fields)))

    assert (len(join_duplicates([one, other], asking())) == 1) is are_one


@pytest.mark.parametrize("kind", [Kind.ENTITY, Kind.GOAL, Kind.CONTEXT_ENTRY, Kind.STRATEGY, Kind.ARTIFACT])
def test_kinds_with_identities_beyond_their_text_are_not_merged(kind: Kind) -> None:
    two = [found(1, "Ana", kind=kind), found(2, "Ana", kind=kind)]

    assert join_duplicates(two, asking()) == two


def test_the_copies_of_a_summary_that_agents_keep_are_merged() -> None:
    copies = [found(number, "They met.", kind=Kind.EPISODE, agent_id=f"agent {number}") for number in (1, 2)]

    assert numbers(join_duplicates(copies, asking())) == [1]


def test_a_candidate_merged_with_a_pinned_one_counts_as_pinned() -> None:
    first = join_duplicates([found(1, "Ana moved"), found(2, "Ana moved", pinned=True)], asking())[0]

    assert (first.id.int, first.pinned) == (1, True)


def test_only_the_best_are_compared() -> None:
    many: list[Candidate] = [found(number) for number in range(1, MIN_COMPARED + 1)]
    late = [found(500, "Ana moved"), found(501, "Ana moved")]

    assert join_duplicates([*many, *late], asking(top_k=10))[-2:] == late
    assert len(join_duplicates([*many, *late], asking(top_k=200))) == MIN_COMPARED + 1


def test_long_texts_are_merged_only_if_they_are_identical() -> None:
    long = "word " * 1_000

    assert are_merged(long, long)
    assert not are_merged(long, long.upper())

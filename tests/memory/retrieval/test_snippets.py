"""Snippets: which part of a long text answers a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Turn
from memory.owner import Owner
from memory.providers.passages import split_passages
from memory.retrieval.snippets import MAX_SEARCHED_CHARACTERS, choose_snippet
from memory.tokens import estimate_tokens
from tests.memory.recalls import recall_by_words
from tests.memory.turns import say, turn

FILLER = [
    f"Paragraph {number} tells at length of the weather in the north, and nothing else at all." for number in range(60)
]
NEEDLE = "Ana keeps the spare key of the boathouse under the blue flowerpot."
LONG = " ".join([*FILLER[:40], NEEDLE, *FILLER[40:]])


def snippet_of(text: str, question: str, **asked: object) -> str:
    start, end = choose_snippet(text, question, **asked)  # type: ignore[arg-type]
    return text[start:end]


def test_a_short_text_is_its_own_snippet() -> None:
    assert choose_snippet(NEEDLE, "key") == (0, len(NEEDLE))


def test_the_passage_with_the_words_of_the_question_is_the_snippet() -> None:
    snippet = snippet_of(LONG, "Where are the keys of the boathouse kept?")

    assert NEEDLE in snippet
    assert estimate_tokens(snippet) <= 200


def test_inflected_words_count() -> None:
    text = " ".join([*FILLER, "Everybody was celebrating.", *FILLER])

    assert "celebrating" in snippet_of(text, "What did they celebrate?")


def test_without_words_the_passage_nearest_in_meaning_is_the_snippet() -> None:
    passages = split_passages(LONG)

    assert choose_snippet(LONG, "Qual é a resposta?", best=passages[2]) == passages[2]
    assert choose_snippet(LONG, "", best=None) == passages[0]


def test_words_that_distinguish_overrule_meaning() -> None:
    passages = split_passages(LONG)

    assert NEEDLE in snippet_of(LONG, "Where is the spare boathouse key?", best=passages[0])
    assert choose_snippet(LONG, "the weather at length", best=passages[1]) == passages[1]


@pytest.mark.parametrize("most", [20, 60])
def test_a_shorter_snippet_is_a_part_of_a_passage(most: int) -> None:
    snippet = snippet_of(LONG, "boathouse key", max_tokens=most)

    assert NEEDLE in snippet
    assert estimate_tokens(snippet) <= most


def test_a_longer_snippet_holds_passages_around_the_best_one() -> None:
    snippet = snippet_of(LONG, "boathouse key", max_tokens=500)

    assert NEEDLE in snippet
    assert 300 < estimate_tokens(snippet) <= 500


def test_chinese_is_found_by_pairs_of_characters() -> None:
    text = "今天天气很好，我们去公园散步。" * 40 + "备用钥匙在蓝色花盆下面。" + "今天天气很好，我们去公园散步。" * 40

    assert "备用钥匙" in snippet_of(text, "钥匙在哪里？")


def test_a_very_long_text_is_searched_around_the_best_passage() -> None:
    text = f"{LONG} " * 100
    start = len(text) // 2

    snippet_start, _ = choose_snippet(text, "boathouse key", best=(start, start + 500))

    assert abs(snippet_start - start) <= MAX_SEARCHED_CHARACTERS
    assert NEEDLE in snippet_of(text, "boathouse key", best=(start, start + 500))


@given(st.text(max_size=600), st.text(max_size=20), st.integers(10, 60))
def test_a_snippet_is_never_longer_than_asked_for(text: str, question: str, most: int) -> None:
    start, end = choose_snippet(text, question, max_tokens=most)

    assert 0 <= start <= end <= len(text)
    assert estimate_tokens(text[start:end]) <= most


@pytest.mark.django_db
def test_results_have_snippets(owner: Owner) -> None:
    say(owner, turn(LONG), turn("The boathouse is old."))

    by_text = {result.text: result for result in recall_by_words(owner, "boathouse key").results}

    assert NEEDLE in by_text[LONG].snippet
    assert LONG[by_text[LONG].snippet_start : by_text[LONG].snippet_end] == by_text[LONG].snippet
    short = by_text["The boathouse is old."]
    assert (short.snippet, short.snippet_start, short.snippet_end) == (short.text, 0, len(short.text))
    assert Turn.objects.count() == 2

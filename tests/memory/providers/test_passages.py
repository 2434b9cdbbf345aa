"""Passages of texts: where they begin and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.passages import MAX_PASSAGE_TOKENS, MAX_PASSAGES, Span, has_passages, split_passages
from memory.tokens import estimate_tokens

PIECES = [
    "word ",
    "Ana moved to Lisbon. ",
    "\n\n",
    "。",
    "猫は庭で眠っていた。",
    "我住在上海，",
    "x" * 90,
    "a,b;",
    "  ",
    "é",
    "?! ",
]
TEXTS = st.one_of(st.text(max_size=400), st.lists(st.sampled_from(PIECES), max_size=80).map("".join))


def texts_of(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


@given(TEXTS, st.integers(1, 40))
def test_passages_hold_every_character_once_and_in_order(text: str, most: int) -> None:
    spans = split_passages(text, max_tokens=most)

    ends = [0, *(end for _, end in spans)]
    gaps = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
    assert "".join(gaps).strip() == text[ends[-1] :].strip() == ""
    assert all(start < end for start, end in spans)
    assert all(passage == passage.strip() for passage in texts_of(text, spans))


@given(TEXTS, st.integers(1, 40))
def test_no_passage_exceeds_the_limit(text: str, most: int) -> None:
    spans = split_passages(text, max_tokens=most)

    if len(spans) < MAX_PASSAGES // 2:
        assert all(estimate_tokens(passage) <= most for passage in texts_of(text, spans))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_passages_break_between_sentences_that_fit(text: str) -> None:
    sentences = [f"{number} is the number of a sentence about {text.count('w')} cats." for number in range(30)]
    whole = " ".join(sentences)

    for passage in texts_of(whole, split_passages(whole, max_tokens=50)):
        assert passage.endswith("cats.")
        assert passage[0].isdecimal()


def test_a_text_that_fits_is_one_passage() -> None:
    text = "  The boiler rattles. It is eleven years old.\n"

    assert texts_of(text, split_passages(text)) == [text.strip()]
    assert not has_passages(text)


def test_sentences_are_joined_up_to_the_limit() -> None:
    text = "One two three. Four five six. Seven eight nine."

    # three words and a full stop are four tokens, by bytes or by pieces
    assert texts_of(text, split_passages(text, max_tokens=8)) == ["One two three. Four five six.", "Seven eight nine."]


@pytest.mark.parametrize("sentence", ["猫は庭で眠っていた。", "我明天要去上海开会！", "이것은 문장입니다. "])
def test_other_scripts_are_cut_between_sentences(sentence: str) -> None:
    text = sentence * 60
    passages = texts_of(text, split_passages(text))

    assert len(passages) > 1
    assert all(passage.endswith(sentence.strip()) for passage in passages)
    assert all(len(passage) > 100 for passage in passages[:-1])


def test_a_long_sentence_is_cut_between_words() -> None:
    text = "lorem ipsum dolor " * 200

    passages = texts_of(text, split_passages(text))

    assert " ".join(passages) == text.strip()
    assert {word for passage in passages for word in passage.split()} == {"lorem", "ipsum", "dolor"}


def test_a_long_word_is_cut_anywhere() -> None:
    text = "x" * 5_000

    lengths = [end - start for start, end in split_passages(text)]

    assert lengths == [4 * MAX_PASSAGE_TOKENS] * 6 + [200]


@pytest.mark.slow
def test_a_very_long_text_has_larger_passages() -> None:
    text = "This sentence stands for many others of a long book. " * 20_000

    spans = split_passages(text)

    assert MAX_PASSAGES / 3 < len(spans) <= MAX_PASSAGES
    assert spans[-1][1] == len(text.rstrip())


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_blank_text_has_no_passages(text: str) -> None:
    assert split_passages(text) == []

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.sentences import is_question, split_sentences, tokenize
from tests.memory.pace import takes_the_square

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We stayed in!", ["It rained.", "We stayed in!"]),
        ("i went home. it was late", ["i went home.", "it was late"]),
        ("Dr. Silva paid 3.50 for it. Then she left.", ["Dr. Silva paid 3.50 for it.", "Then she left."]),
        ("J. R. Okafor wrote it. So did I. Good.", ["J. R. Okafor wrote it.", "So did I.", "Good."]),
        ("See example.org, e.g. the map. It helps.", ["See example.org, e.g. the map.", "It helps."]),
        ("Come at 5 p.m. on Friday.", ["Come at 5 p.m. on Friday."]),
        ("Come at 5 p.m. Bring tea.", ["Come at 5 p.m.", "Bring tea."]),
        ("Take No. 7 there. I said no. Then I left.", ["Take No. 7 there.", "I said no.", "Then I left."]),
        ("1. Measure it. 2. Cut it.", ["1. Measure it.", "2. Cut it."]),
        ("In 2024. Then again.", ["In 2024.", "Then again."]),
        ("well... maybe. Or not…", ["well... maybe.", "Or not…"]),
        ('"Stop!" she said. (He did.) Good.', ['"Stop!" she said.', "(He did.)", "Good."]),
        ("first line\nsecond line\r\n\r\nthird", ["first line", "second line", "third"]),
        ("雨です。傘を「持って！」行こう？はい", ["雨です。", "傘を「持って！」", "行こう？", "はい"]),
        ("नमस्ते। कैसे हो॥ ठीक", ["नमस्ते।", "कैसे हो॥", "ठीक"]),
        ("هل جئت؟ نعم۔ حسنا", ["هل جئت؟", "نعم۔", "حسنا"]),
        ("  \n ", []),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(ANY_TEXT)
def test_sentences_are_slices_of_the_text_and_lose_only_white_space(text: str) -> None:
    sentences = split_sentences(text)

    assert all(sentence in text for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("unit", [".", '."', '".', "a. ", "?!", "'", "a'", "。", "\n", "\u0301"])
def test_hostile_repetition_costs_linear_time(unit: str) -> None:
    text = unit * 200_000 + "a"

    assert "".join(split_sentences(text)).replace(" ", "") == "".join(text.split())
    assert len(tokenize(text)) <= len(text)
    for read in (split_sentences, tokenize):
        assert not takes_the_square(read, lambda length: unit * (length // len(unit)) + "a", 25_000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don’t stop, ÉMILE!", ["don't", "stop", "émile"]),
        ("snake_case x2", ["snake_case", "x2"]),
        ("東京へabc", ["東京", "京へ", "abc"]),
        ("水", ["水"]),
        ("... 👍", []),
    ],
)
def test_words_are_folded_and_scripts_without_spaces_give_pairs(text: str, words: list[str]) -> None:
    assert tokenize(text) == words


@pytest.mark.parametrize("sentence", ["Really?", "“Really?”", "本当？", "حقا؟", "(You did?)", "What?!"])
def test_a_question_is_known_by_the_mark_of_its_script(sentence: str) -> None:
    assert is_question(sentence)


def test_a_statement_is_no_question() -> None:
    assert not is_question("He asked why? Nobody knew.")

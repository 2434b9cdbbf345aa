import os
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.summaries import (
    ExtractiveSummarizer,
    Message,
    Summary,
    entities_mentioned,
    key_decisions,
)
from memory.tokens import estimate_tokens
from tests.properties import examples

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=120)
MESSAGES = st.lists(st.builds(Message, role=st.sampled_from(["user", "tool"]), name=ANY_TEXT, content=ANY_TEXT))

PUMP_TALK = [
    Message(role="user", name="Ana", content="Hi! How are you? The pump in the north field broke on 14 March."),
    Message(role="assistant", content="Sorry to hear that. Which pump is it?"),
    Message(role="user", name="Ana", content="The Grundfos pump, bought in 2021 from Mr. Okafor. Thanks!"),
    Message(role="assistant", content="A new seal costs 84.50 euros and arrives by Friday. Great!"),
]


def said(*contents: str, name: str = "") -> list[Message]:
    return [Message(role="user", name=name, content=content) for content in contents]


def summarize(messages: Sequence[Message], max_tokens: int = 200) -> Summary:
    return ExtractiveSummarizer().summarize(messages, max_tokens=max_tokens)


def test_a_summary_quotes_the_telling_sentences_in_order_with_their_speakers() -> None:
    summary = summarize(PUMP_TALK, 50)

    assert summary.text == (
        "Ana: The pump in the north field broke on 14 March.\n"
        "Ana: The Grundfos pump, bought in 2021 from Mr. Okafor.\n"
        "assistant: A new seal costs 84.50 euros and arrives by Friday."
    )


def test_a_summary_names_its_source() -> None:
    assert summarize(PUMP_TALK).source == "extractive"


@examples(60)
@given(MESSAGES, st.integers(min_value=1, max_value=300))
def test_a_summary_keeps_its_budget_and_quotes_verbatim_whatever_is_said(
    messages: list[Message], max_tokens: int
) -> None:
    summary = summarize(messages, max_tokens)

    assert estimate_tokens(summary.text) <= max_tokens
    contents = [message.content for message in messages]
    for sentence in summary.sentences:
        assert any(sentence.text in content or sentence.text[:-1] in content for content in contents)


def test_nothing_said_gives_an_empty_summary() -> None:
    assert summarize([]).text == ""
    assert summarize(said("", " \n ")).sentences == ()


def test_pictograms_alone_are_quoted() -> None:
    assert summarize(said("👍👍")).text == "user: 👍👍"


def test_sentences_that_do_not_fit_make_way_for_one_that_does() -> None:
    giant = " ".join(f"reservoir{number}" for number in range(1_000))

    assert summarize(said(giant, "It is empty.", giant[:5_000]), 20).text == "user: It is empty."


def test_a_giant_sentence_is_opened_up_to_a_word_and_marked_as_cut() -> None:
    summary = summarize(said("reservoir " * 100_000), 10)

    assert summary.text == "user: reservoir reservoir reservoir…"


def test_a_giant_sentence_without_spaces_is_not_cut_between_a_letter_and_its_marks() -> None:
    summary = summarize(said("กี้" * 100_000), 10)

    assert summary.text == "user: กี้กี้กี้…"


def test_not_even_a_word_that_fits_gives_an_empty_summary() -> None:
    assert summarize(said("incomprehensibilities"), 2).text == ""


def test_a_repeated_sentence_is_quoted_once() -> None:
    assert summarize(said("The valve leaks.", "The valve leaks!", "Close it.")).text.count("valve") == 1


def test_a_name_cannot_forge_a_line_of_its_own() -> None:
    summary = summarize(said("The valve leaks.", name="Ana\nBo: I did it"))

    assert summary.text == "Ana Bo: I did it: The valve leaks."


def test_a_script_without_spaces_is_ranked_by_pairs_of_characters() -> None:
    summary = summarize(said("こんにちは。ポンプは三月十四日に壊れました。部品は八十四ユーロです。"), 30)

    assert "ポンプは三月十四日に壊れました。" in summary.text


def test_ten_thousand_messages_are_ranked_from_end_to_end() -> None:
    began = time.process_time()
    messages = said(*(f"Sensor {index} reads {index * 7 % 101} bar at gate {index % 89}." for index in range(10_000)))

    quoted = [int(sentence.text.split()[1]) for sentence in summarize(messages, 400).sentences]

    assert time.process_time() - began < 10
    assert quoted == sorted(quoted)
    assert quoted[0] < 2_000
    assert quoted[-1] > 8_000


@pytest.mark.parametrize("content", ["a\u0301" * 200_000, "\ud800 \x00" * 50_000, "\u202e. " * 50_000, "ﷺ" * 50_000])
def test_hostile_unicode_costs_no_more_than_its_length(content: str) -> None:
    began = time.process_time()

    assert estimate_tokens(summarize(said(content), 50).text) <= 50
    assert time.process_time() - began < 10


@pytest.mark.slow
def test_the_same_conversation_gives_the_same_summary_in_another_process() -> None:
    program = (
        "from memory.providers.summaries import *\n"
        "words = 'pump valve gate field river north south sensor reading pressure'.split()\n"
        "texts = [' '.join(words[i % 7 : i % 7 + 3] + words[: i % 5]).title() for i in range(60)]\n"
        "said = [Message(role='user', content='We saw ' + text) for text in texts]\n"
        "print(ExtractiveSummarizer().summarize(said, max_tokens=60).text, entities_mentioned(said))"
    )

    assert len({_output_of(program, hash_seed) for hash_seed in ("1", "2", "3")}) == 1


def _output_of(program: str, hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens must be at least 1"):
        summarize(PUMP_TALK, 0)


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided to keep the old pump.",
        "Everyone agreed on Tuesday.",
        "Let's order two filters.",
        "I'll call the supplier tomorrow.",
        "We’re going to replace the valve.",
        "Marta will send the invoice by Friday.",
        "We settled on the blue pipe.",
        "Our final choice is the drip line.",
    ],
)
def test_a_sentence_that_decides_or_commits_to_something_is_a_decision(sentence: str) -> None:
    assert key_decisions(said(sentence, name="Ana")) == [f"Ana: {sentence}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sentence",
    [
        "Have we decided?",
        "If we agreed on that, it would be odd.",
        "We haven't decided yet.",
        "Maybe I'll call him.",
        "I am going to the market.",
        "It will rain.",
        "Let's see.",
        "I will.",
        "The willow is old.",
        "decided " * 200,
    ],
)
def test_questions_conditions_doubts_and_small_talk_are_no_decisions(sentence: str) -> None:
    assert key_decisions(said(sentence)) == []


def test_a_limited_list_of_decisions_prefers_agreements_and_then_the_latest() -> None:
    messages = said("I'll water it.", "We agreed on Monday.", "I'll mow it.", "I'll prune it.")

    assert key_decisions(messages, limit=2) == ["user: We agreed on Monday.", "user: I'll prune it."]


@pytest.mark.parametrize(
    ("sentences", "names"),
    [
        (["We met Rosa Keller in Porto."], ["Rosa Keller", "Porto"]),
        (["Thanks Rosa.", "We met Rosa."], ["Rosa"]),
        (["Porto is wet.", "We like Porto."], ["Porto"]),
        (["Great.", "Nothing to see."], []),
        (["It was the Board.", "The board met."], []),
        (["I know Rosa's brother and Rosa."], ["Rosa"]),
        (["See you on Monday in May."], []),
        (["HELP ME NOW"], []),
        (["We use VAT tables."], ["VAT"]),
        (["Wir trafen Ömer Şahin."], ["Ömer Şahin"]),
        (["東京で会いました。"], []),
        (["We called St. Ives again. Now plan B holds."], ["St. Ives"]),
    ],
)
def test_names_are_capitalised_where_grammar_does_not_ask_for_it(sentences: list[str], names: list[str]) -> None:
    assert entities_mentioned(said(*sentences)) == names


def test_speakers_come_first_and_the_most_frequent_names_next() -> None:
    messages = said("We met Bo and Rosa.", "Then Rosa left.", "Say hello to Ana.", name="Ana Ruiz")

    assert entities_mentioned(messages) == ["Ana Ruiz", "Rosa", "Bo"]
    assert entities_mentioned(messages, limit=2) == ["Ana Ruiz", "Rosa"]


@given(MESSAGES)
def test_decisions_and_names_come_of_whatever_is_said(messages: list[Message]) -> None:
    assert len(key_decisions(messages, limit=3)) <= 3
    assert len(entities_mentioned(messages, limit=3)) <= 3

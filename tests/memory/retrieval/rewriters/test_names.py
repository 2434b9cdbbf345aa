"""Phrases in quotes, names and possible names in a question."""

import pytest

from memory.retrieval.queries import Query
from memory.retrieval.rewriters.names import MAX_MENTIONS, MAX_NAMES, MAX_PHRASES, find_names
from tests.memory.retrieval.rewriters.asking import recall_context


def named(text: str) -> Query:
    return find_names(Query(text=text), recall_context())


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('Who said "the kettle is on"?', ["the kettle is on"]),
        ("Who said “the kettle is on”?", ["the kettle is on"]),
        ("Wer sagte „der Kessel pfeift“?", ["der Kessel pfeift"]),
        ("Qui a dit «la bouilloire»?", ["la bouilloire"]),
        ("‘blue heron’ or ‹grey heron›", ["blue heron", "grey heron"]),
        ("「鍵」はどこ", ["鍵"]),
        ('"one" and "two"', ["one", "two"]),
        ('"said twice" and "said twice"', ["said twice"]),
    ],
)
def test_quoted_text_is_a_phrase(text: str, phrases: list[str]) -> None:
    assert list(named(text).phrases) == phrases


@pytest.mark.parametrize(
    "text",
    [
        'an open "quote',
        "an open “quote",
        'a 5" pipe and a 6" pipe',
        "the dogs' bowl and the cats' bowl",
        '""',
        '"..."',
        '" "',
        '"over\ntwo lines"',
        '"' + "long " * 50 + '"',
    ],
)
def test_unquoted_text_is_not_a_phrase(text: str) -> None:
    assert list(named(text).phrases) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Where does Ana live?", ["Ana"]),
        ("Did Ana's sister move to New York City?", ["Ana", "New York City"]),
        ("what did O’Neill want", ["O’Neill"]),
        ("Which iPhone does NASA allow for C++ and GPT-4?", ["iPhone", "NASA", "C++", "GPT-4"]),
        ("who works at the Bank of England of all people", ["Bank of England"]),
        ("I asked van der Berg and Rosa de la Cruz", ["Berg", "Rosa de la Cruz"]),
        ("Rosa Okafor lives where?", ["Rosa Okafor"]),
        ("Ana's keys are where?", ["Ana"]),
        ("NASA hired whom?", ["NASA"]),
        ("What did Ana, Rui and Eva buy?", ["Ana", "Rui", "Eva"]),
        ("Где живёт Анна?", ["Анна"]),
        ("Πού μένει η Άννα;", ["Άννα"]),
    ],
)
def test_capitals_not_due_to_the_start_of_a_sentence_mark_a_name(text: str, names: list[str]) -> None:
    assert list(named(text).names) == names


@pytest.mark.parametrize(
    "text",
    [
        "Dinner is at what time?",
        "Tell me what I'm to do on Monday in May.",
        "It rained. Then what? Dinner?",
        "is it 5PM or 11AM",
        "where are the keys",
        "安娜住在哪里？",
    ],
)
def test_capitals_of_sentences_days_and_months_mark_no_name(text: str) -> None:
    assert list(named(text).names) == []


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("where does ana live", "ana"),
        ("who works at the bank of england", "bank of england"),
        ("Ana likes what?", "Ana"),
        ("what about Ana's Kitchen", "Ana's Kitchen"),
        ("was ist mit müller & söhne", "müller"),
        ("أين تعيش آنا؟", "آنا"),
    ],
)
def test_names_of_entities_are_mentions_in_any_spelling(text: str, mention: str) -> None:
    query = named(text)

    assert mention in query.mentions


def test_no_mention_starts_or_ends_with_a_function_word() -> None:
    assert list(named("who is at the mill").mentions) == ["mill"]


def test_no_mention_extends_across_punctuation() -> None:
    assert list(named("ana, rui").mentions) == ["ana", "rui"]


@pytest.mark.parametrize("text", ["", "   ", "?!", "who is it", "安娜住在哪里？", "แอนนาอยู่ที่ไหน", "🦀🦀"])
def test_a_question_without_names_is_returned_as_the_same_object(text: str) -> None:
    query = Query(text=text)

    assert find_names(query, recall_context()) is query


def test_numbers_of_phrases_names_and_mentions_found_are_bounded() -> None:
    query = named(" ".join(f'"p{number}" Name{number},' for number in range(100)))

    assert (len(query.phrases), len(query.names), len(query.mentions)) == (MAX_PHRASES, MAX_NAMES, MAX_MENTIONS)


def test_names_already_in_the_query_are_kept() -> None:
    query = find_names(Query(text="Where is Ana?", names=["Rui"]), recall_context())

    assert list(query.names) == ["Rui", "Ana"]

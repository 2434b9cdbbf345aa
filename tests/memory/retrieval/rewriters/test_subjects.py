"""Subjects of a question, and its gist: the question without them."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Query
from memory.retrieval.rewriters.names import MAX_NAMES, find_names, remove_names
from memory.retrieval.rewriters.words import MAX_READ_CHARACTERS
from tests.memory.pace import LONGER, takes_the_square
from tests.memory.retrieval.rewriters.asking import recall_context
from tests.properties import examples


def read(text: str) -> Query:
    return find_names(Query(text=text), recall_context())


@pytest.mark.parametrize(
    ("text", "subjects", "gist"),
    [
        pytest.param("What did Ana paint?", ["Ana"], "What did paint?", id="the subject of a verb"),
        pytest.param("What DID Ana paint?", ["Ana"], "What DID paint?", id="however it is written"),
        pytest.param("Where has Ana swum with Ana?", ["Ana"], "Where has swum with?", id="each time"),
        pytest.param("Is Ana Okafor tall?", ["Ana Okafor"], "Is tall?", id="a name of two words"),
        pytest.param("What does O'Neill say?", ["O'Neill"], "What does say?", id="a mark in the name"),
        pytest.param("What did Ana-Lena say to Ana?", ["Ana-Lena"], "What did say to Ana?", id="a hyphen in it"),
        pytest.param("Did Ana meet Ana-Lena?", ["Ana"], "Did meet Ana-Lena?", id="a longer name that begins with it"),
        pytest.param("Did Ana meet Anabel?", ["Ana"], "Did meet Anabel?", id="a longer word that begins with it"),
        pytest.param("What can C++ link?", ["C++"], "What can link?", id="signs in the name"),
        pytest.param("What would, Ana, you do?", [], "", id="the addressee"),
        pytest.param("Where would Ana's dog go if Ana left?", ["Ana"], "Where would dog go if left?", id="both"),
    ],
)
def test_the_subject_of_a_verb_is_removed_from_the_gist(text: str, subjects: list[str], gist: str) -> None:
    query = read(text)

    assert (list(query.subjects), query.gist) == (subjects, gist)


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        ("What is Ana's dog called?", "What is dog called?"),
        ("What is Ana’s dog called?", "What is dog called?"),
        ("What is Ana`s dog called?", "What is dog called?"),
        ("What colour is James' bike?", "What colour is bike?"),
        ("What colour is James’ bike?", "What colour is bike?"),
        ("What colour is James's bike?", "What colour is bike?"),
        ("Ana's dog is called what?", "dog is called what?"),
    ],
)
def test_a_possessor_is_removed_from_the_gist_with_its_apostrophe(text: str, gist: str) -> None:
    assert read(text).gist == gist


@pytest.mark.parametrize(
    ("text", "subjects", "gist"),
    [
        ("What did Ben and Ana buy?", ["Ben", "Ana"], "What did buy?"),
        ("What do both Ben and Ana like?", ["Ben", "Ana"], "What do like?"),
        ("What did Ben, Eva, and Ana buy?", ["Ben", "Eva", "Ana"], "What did buy?"),
        ("What did Ben, Eva and Ana buy?", ["Ben", "Eva", "Ana"], "What did buy?"),
        ("When did Ana Okafor and Rui Lima meet?", ["Ana Okafor", "Rui Lima"], "When did meet?"),
        ("Did Ana's and Rui's dogs fight?", ["Ana", "Rui"], "Did dogs fight?"),
        ("Did the cat and Ana fight?", ["Ana"], "Did the cat and fight?"),
        ("Did Ana and the cat fight?", ["Ana"], "Did and the cat fight?"),
        ("Did Ana buy bread and butter?", ["Ana"], "Did buy bread and butter?"),
    ],
)
def test_several_subjects_are_removed_with_the_conjunctions_between_them(
    text: str, subjects: list[str], gist: str
) -> None:
    query = read(text)

    assert (list(query.subjects), query.gist) == (subjects, gist)


@pytest.mark.parametrize(
    "text",
    [
        "Who met Ana?",
        "What happened in Lisbon?",
        "Who said 'Ana'?",
        'Who wrote "Ana and the fox"?',
        "did ana paint",
        "What did she paint?",
        "¿Qué hizo Ana?",
        "安娜画了什么？",
        "Did?",
        "",
    ],
)
def test_a_question_without_a_subject_or_possessor_has_no_gist(text: str) -> None:
    query = read(text)

    assert (list(query.subjects), query.gist) == ([], "")


@pytest.mark.parametrize(
    "text",
    [
        *("Ana's", "Ana's?", "ANA's", "Ana's, James'!", "Ana's and Rui's"),
        *("What did Ana do?", "Where has Ana been with Rui's?", "What's Ana's?", "Is it Ana's, yours or mine?"),
        *("What did Ana do on Monday?", "Was it Ana’s in May?"),
    ],
)
def test_a_question_of_nothing_but_names_and_small_words_has_no_gist(text: str) -> None:
    query = read(text)

    assert query.subjects
    assert query.gist == ""


def test_text_without_names_starts_with_a_word_and_has_no_space_before_its_end() -> None:
    assert remove_names("Ana , what  is blue , Ana ?", ["Ana"]) == "what is blue?"


def test_finding_subjects_keeps_the_text_phrases_and_names() -> None:
    text = 'What did Ana call "the blue heron"?'

    query = read(text)

    assert (query.text, query.phrases, query.names) == (text, ("the blue heron",), ("Ana",))
    assert query.gist == 'What did call "the blue heron"?'


def test_subjects_that_were_known_before_stay_and_are_left_out_too() -> None:
    query = find_names(Query(text="What did Ana give Rui?", subjects=["Rui"]), recall_context())

    assert (list(query.subjects), query.gist) == (["Rui", "Ana"], "What did give?")


def test_a_question_without_names_keeps_its_gist() -> None:
    query = Query(text="What was it?", gist="what it was")

    assert find_names(query, recall_context()).gist == "what it was"


PIECES = [
    "Ana",
    "Ben",
    "Ana-Lena",
    "James",
    "did",
    "is",
    "both",
    "and",
    ",",
    "'s",
    "'",
    "’s",
    "`s",
    '"',
    " ",
    "?",
    "dog",
]
QUESTIONS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=100)


@examples(150)
@given(QUESTIONS)
def test_a_gist_has_words_and_finding_names_is_idempotent(text: str) -> None:
    query = read(text)

    assert set(query.subjects) <= set(query.names)
    assert not query.gist or any(map(str.isalnum, query.gist))
    assert query.gist == query.gist.strip()
    assert find_names(query, recall_context()) == query


@examples(50)
@given(QUESTIONS)
def test_a_gist_contains_no_subject_to_remove(text: str) -> None:
    query = read(text)

    assert remove_names(query.gist, query.subjects) == query.gist


HOSTILE = [
    *(
        "Ana ",
        "Ana's ",
        "did Ana and ",
        "did both Ana and ",
        "did a a a and ",
        "did a, ",
        "did ",
        "A",
        "A ",
        "'",
        "Ana'",
    ),
    *("did Ben, and ", "both ", ", ", "\0", "did A\0and ", "(", "a-", "Ana-"),
]


NAMES = " ".join(f"Name{number}'s" for number in range(MAX_NAMES))


def hostile(piece: str, length: int) -> str:
    return f"{NAMES} {piece * MAX_QUERY_CHARACTERS}"[:length]


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_subjects_and_gist_of_a_long_question_are_bounded(piece: str) -> None:
    query = read(hostile(piece, MAX_QUERY_CHARACTERS))

    assert len(query.subjects) == MAX_NAMES
    assert len(query.gist) <= MAX_READ_CHARACTERS


def test_finding_subjects_does_not_take_quadratic_time() -> None:
    texts = [partial(hostile, piece) for piece in HOSTILE]

    assert [each(300) for each in texts if takes_the_square(read, each, MAX_QUERY_CHARACTERS // LONGER)] == []


def test_names_with_regular_expression_characters_are_found_and_removed() -> None:
    assert read("Is C++ older than C+ or C?").subjects == ("C++",)
    assert remove_names("Is a+b or C++ or aab?", ["C++", "a+b"]) == "Is or or aab?"

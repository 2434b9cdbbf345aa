"""Speakers among candidates, and those that a question is about: never a topic that has a name, too."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.ranking.turns import Speakers, find_speakers
from memory.retrieval.rewriters.words import MAX_READ_CHARACTERS
from tests.memory.candidates import found
from tests.memory.retrieval.rewriters.asking import rewritten
from tests.properties import examples

TALKING = ("Ana", "Rui Lima", "Rui Costa", "The Bot", "Will", "Duke of York", "Al")


def spoken_by(*speakers: str) -> list[Candidate]:
    return [found(number, index=number, speaker=speaker) for number, speaker in enumerate(speakers, start=1)]


def written(*texts: str) -> list[Candidate]:
    """Return turns whose speakers are known only from their texts."""
    return [found(number, text, index=number) for number, text in enumerate(texts, start=1)]


def read(question: str, *speakers: str) -> Speakers:
    return find_speakers(spoken_by(*speakers), rewritten(question))


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        pytest.param("What did Ana paint?", {"ana"}, id="one"),
        pytest.param("Who met Ana?", {"ana"}, id="not the subject"),
        pytest.param("What is Ana's, or ANA’S?", {"ana"}, id="however it is written"),
        pytest.param("What did Ana tell Rui Costa?", {"ana", "rui costa"}, id="two"),
        pytest.param("What did Rui Lima paint?", {"rui lima"}, id="a full name"),
        pytest.param("What did Lima paint?", {"rui lima"}, id="a family name"),
        pytest.param("What did Rui paint?", {"rui lima", "rui costa"}, id="a first name that two have"),
        pytest.param("What did Ana Souza paint?", {"ana"}, id="a full name of a speaker known by the first name"),
        pytest.param("What did Anabel paint?", set(), id="a longer name"),
        pytest.param("What is Redis?", set(), id="a topic"),
        pytest.param("What did the Bank of England buy?", set(), id="a topic with the small word of a speaker's name"),
        pytest.param("What did Ana de Lima paint?", {"ana"}, id="a full name, of which another has a part"),
        pytest.param("What did Rui Barbosa paint?", set(), id="another one of that first name"),
        pytest.param("What did Al buy?", {"al"}, id="a name that is written as a small word"),
        pytest.param("Did it rain?", set(), id="no name"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_a_speaker_matches_by_most_words_of_the_name(question: str, asked: set[str]) -> None:
    assert read(question, *TALKING).asked == asked


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        pytest.param("what did ana paint?", {"ana"}, id="one"),
        pytest.param("is it ana's?", {"ana"}, id="the possessor"),
        pytest.param("what did lima tell ana", {"rui lima", "ana"}, id="two"),
        pytest.param("what is the plan, and what will it cost?", set(), id="small words of names"),
        pytest.param("what did anabel paint", set(), id="a longer name"),
        pytest.param("what did i tell ana", {"ana"}, id="next to the user"),
        pytest.param("the king of the hill", set(), id="small words inside names"),
        pytest.param("What did ana paint?", set(), id="not where capitals would mark a name"),
        pytest.param(f"{'x ' * (MAX_READ_CHARACTERS // 2)}ana", set(), id="no further than rules read"),
    ],
)
def test_without_capitals_any_word_may_be_a_name(question: str, asked: set[str]) -> None:
    assert read(question, *TALKING).asked == asked


@pytest.mark.parametrize(
    ("question", "speakers", "are_subjects"),
    [
        pytest.param("What did Ana paint?", ("Ana", "Rui"), True, id="the subject of a verb"),
        pytest.param("Where is Ana's dog?", ("Ana",), True, id="a possessor"),
        pytest.param("What did Ana and Rui buy?", ("Ana", "Rui Lima"), True, id="two"),
        pytest.param("What did Ana and Rui buy?", ("Ana",), False, id="two, one of them a speaker"),
        pytest.param("What does Redis store?", ("Ana",), False, id="a topic"),
        pytest.param("What does Ana store in Redis?", ("Ana",), True, id="a topic next to a speaker"),
        pytest.param("Who met Ana?", ("Ana",), False, id="not the subject"),
        pytest.param("What did Ana paint?", ("", ""), False, id="no speaker names"),
        pytest.param("What did Ana paint?", (), False, id="no speakers"),
        pytest.param("what did ana paint?", ("Ana",), False, id="no capitals, and so no subjects"),
    ],
)
def test_are_subjects_is_true_only_if_all_subjects_are_speakers(
    question: str, speakers: Sequence[str], are_subjects: bool
) -> None:
    assert read(question, *speakers).are_subjects is are_subjects


@pytest.mark.parametrize(
    ("candidates", "speakers"),
    [
        pytest.param(spoken_by("Ana", "ΑΝΝΑ", ""), ["ana", "αννα", ""], id="by name, in small letters"),
        pytest.param(written("Ana: hi", "ANA: well", "so"), ["ana", "ana", ""], id="a transcript"),
        pytest.param(written("Rui Lima: hi", "Rui Lima: so"), ["rui lima", "rui lima"], id="a transcript's full name"),
        pytest.param(written("Plan: sell", "Ana: hi", "Ana: so"), ["", "ana", "ana"], id="one line without a speaker"),
        pytest.param(written("https://a.b", "https://a.b"), ["", ""], id="an address"),
        pytest.param(
            [*spoken_by("Rui"), *written("Ana: hi", "Ana: so")], ["rui", "", ""], id="where names are known, by names"
        ),
        pytest.param(
            [*written("Ana: hi"), found(9, "Ana: likes tea", kind=Kind.FACT)],
            ["", ""],
            id="other kinds are not transcript lines",
        ),
        pytest.param([], [], id="nothing"),
    ],
)
def test_a_speaker_is_known_by_name_or_by_a_transcript(candidates: list[Candidate], speakers: list[str]) -> None:
    assert find_speakers(candidates, Query(text="")).of_rows == speakers


def test_a_speaker_within_a_transcript_can_be_asked_about() -> None:
    speakers = find_speakers(written("Ana: hi", "Rui: hi", "Ana: so", "Rui: so"), rewritten("What did Ana paint?"))

    assert (speakers.asked, speakers.are_subjects) == ({"ana"}, True)


SPEAKERS = st.lists(st.sampled_from(["", *TALKING, "水泵", "Ana de Souza", " "]), max_size=8)
QUESTIONS = st.lists(st.sampled_from(["Ana", "rui", "Rui", "Lima", "de", "did", "'s", "and", "?"]), max_size=8)


@examples(40)
@given(SPEAKERS, QUESTIONS.map(" ".join))
def test_only_speakers_are_asked_about_regardless_of_their_order(speakers: list[str], question: str) -> None:
    once, again = read(question, *speakers), read(question, *reversed(speakers))

    assert set(once.asked) <= set(once.of_rows) - {""}
    assert (once.asked, once.are_subjects) == (again.asked, again.are_subjects)
    assert len(once.of_rows) == len(speakers)

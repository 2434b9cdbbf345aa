"""Scores of candidates for the content of a question and for its gist, computed by hand over a few memories."""

from dataclasses import replace
from math import log
from typing import Any

import pytest

from memory.models import Kind, MemoryRow
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.lexical import MAX_TERMS, NAME_WEIGHT
from tests.memory.episodes import MODEL, direction
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.graphs import node
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

IN_ONE_OF_TWO = log(1 + 1.5 / 1.5)
IN_BOTH = log(1 + 0.5 / 2.5)
"""Weights of terms that so many of two memories hold: what a term scores once, in a memory of the average length."""


def candidates_of(owner: Owner, query: Query, *names: str) -> dict[str, Candidate]:
    """Return candidates by text, found by words alone unless retrievers are named."""
    analysis = analyze_query(owner, query, recall_context(owner))
    return {each.text: each for each in gathered(owner, query, analysis, *(names or ("lexical",))).candidates}


def keep(owner: Owner, *texts: str) -> list[MemoryRow]:
    """Store memories of equal length, as far as statistics go."""
    return [node(owner, text, token_count=4) for text in texts]


def terms_held(candidate: Candidate, analysis: QueryAnalysis) -> set[str]:
    return {term.lexeme[6:] for bit, term in enumerate(analysis.terms) if candidate.held >> bit & 1}


def test_content_is_the_score_of_the_words_that_are_content(owner: Owner) -> None:
    keep(owner, "why does Ana paint", "Ana paints")

    found = candidates_of(owner, asked("Why does Ana paint?", subjects=["Ana"]))

    paints, all_of_it = found["Ana paints"], found["why does Ana paint"]
    assert (paints.content, paints.naming) == pytest.approx((2 * IN_BOTH, IN_BOTH))
    assert (all_of_it.content, all_of_it.naming) == pytest.approx((2 * IN_BOTH, IN_BOTH))
    assert paints.bm25 == pytest.approx(2 * IN_BOTH)
    assert all_of_it.bm25 == pytest.approx(2 * IN_BOTH + 2 * IN_ONE_OF_TWO)


@pytest.mark.parametrize(
    ("text", "fields", "content", "naming"),
    [
        pytest.param("lamp cellar", {}, 2, 0, id="two words"),
        pytest.param("lamp in the cellar", {}, 2, 0, id="stop words next to them"),
        pytest.param("lamp cellar", {"subjects": ["cellar"]}, 2, 1, id="one is the subject"),
        pytest.param("lamp cellar", {"names": ["cellar"]}, 1 + NAME_WEIGHT, 0, id="a name"),
        pytest.param(
            *("lamp cellar", {"names": ["cellar"], "subjects": ["cellar"]}, 1 + NAME_WEIGHT, NAME_WEIGHT),
            id="the name of the subject",
        ),
        pytest.param("lamp in the cellar", {"subjects": ["In The Cellar"]}, 2, 1, id="a name with stop words"),
        pytest.param("in the", {}, 0, 0, id="stop words alone"),
        pytest.param("lamp", {"subjects": ["lamp"]}, 1, 1, id="the subject only"),
    ],
)
def test_content_and_naming_depend_on_the_weights_of_their_terms(
    owner: Owner, text: str, fields: dict[str, Any], content: float, naming: float
) -> None:
    keep(owner, "the lamp in the cellar", "in the garden")

    lamp = candidates_of(owner, asked(text, **fields))["the lamp in the cellar"]

    assert (lamp.content, lamp.naming) == pytest.approx((content * IN_ONE_OF_TWO, naming * IN_ONE_OF_TWO))


@pytest.mark.parametrize(
    ("phrases", "quoted"),
    [
        pytest.param([], (0, 0), id="none"),
        pytest.param(["green lamp"], (1, 0), id="one"),
        pytest.param(["green lamp", "lamp"], (2, 1), id="each that it holds"),
        pytest.param(["red lamp"], (0, 0), id="one that stands nowhere"),
    ],
)
def test_each_phrase_in_a_text_adds_the_scores_of_its_words_once_more(
    owner: Owner, phrases: list[str], quoted: tuple[int, int]
) -> None:
    keep(owner, "green lamp", "lamp green")

    found = candidates_of(owner, asked("green lamp", phrases=phrases, subjects=["lamp"]))

    for text, held in zip(("green lamp", "lamp green"), quoted, strict=True):
        once = (1 + held) * IN_BOTH
        candidate = found[text]
        assert candidate.quoted == held
        assert (candidate.bm25, candidate.content, candidate.naming) == pytest.approx((2 * once, 2 * once, once))


def test_held_has_one_bit_for_each_term_in_the_text(owner: Owner) -> None:
    keep(owner, "a green lamp", "the cellar lamp", "green green cellar")
    query = asked("Is the green lamp in the cellar?")
    analysis = analyze_query(owner, query, recall_context(owner))

    found = gathered(owner, query, analysis, "lexical").candidates

    assert {each.text: terms_held(each, analysis) for each in found} == {
        "a green lamp": {"green", "lamp"},
        "the cellar lamp": {"the", "cellar", "lamp"},
        "green green cellar": {"green", "cellar"},
    }


def test_held_has_room_for_as_many_terms_as_a_question_has(owner: Owner) -> None:
    words = [f"word{number:02}" for number in range(MAX_TERMS + 8)]
    keep(owner, " ".join(words), words[0])

    found = candidates_of(owner, asked(" ".join(words)))

    assert found[" ".join(words)].held == 2**MAX_TERMS - 1


def test_a_candidate_without_words_of_the_question_has_zero_word_scores(owner: Owner) -> None:
    node(owner, "nothing alike", pinned=True)
    keep(owner, "a lamp")

    found = candidates_of(owner, asked("lamp"), "lexical", "pinned")

    nothing = found["nothing alike"]
    assert (nothing.content, nothing.naming, nothing.held, nothing.quoted) == (0.0, 0.0, 0, 0)
    assert (found["a lamp"].content > 0, found["a lamp"].held) == (True, 1)


def test_a_question_without_words_gives_zero_word_scores(owner: Owner) -> None:
    node(owner, "a lamp", pinned=True)

    [only] = candidates_of(owner, asked(""), "pinned").values()

    assert (only.bm25, only.content, only.naming, only.held, only.quoted) == (0.0, 0.0, 0.0, 0, 0)


@pytest.mark.parametrize(
    ("angle", "gist_angle", "similarity", "gist"),
    [
        pytest.param(0.1, 0.9, 0.9950, 0.6216, id="nearer to the text"),
        pytest.param(1.0, 0.2, 0.5403, 0.9801, id="nearer to the gist"),
        pytest.param(0.3, 0.3, 0.9553, 0.9553, id="as near to both"),
    ],
)
def test_a_candidate_has_similarities_to_the_text_and_to_the_gist(
    owner: Owner, angle: float, gist_angle: float, similarity: float, gist: float
) -> None:
    say(owner, turn("said", angle=0.0))
    query = replace(asked(angle=angle), gist_vector=direction(gist_angle))

    said = candidates_of(owner, query, "vector")["said"]

    assert (said.similarity, said.gist) == pytest.approx((similarity, gist), abs=1e-3)


def test_a_query_without_a_gist_vector_gives_no_gist_similarity(owner: Owner) -> None:
    say(owner, turn("said", angle=0.0))

    said = candidates_of(owner, asked(angle=0.3), "vector")["said"]

    assert said.similarity == pytest.approx(0.9553, abs=1e-3)
    assert said.gist is None


def test_a_candidate_without_a_vector_has_neither_similarity_nor_gist(owner: Owner) -> None:
    pinned = node(owner, "pinned", kind=Kind.GOAL, pinned=True)
    said = candidates_of(owner, replace(asked(angle=0.0), gist_vector=direction(0.0)), "vector", "pinned")

    assert (said["pinned"].id, said["pinned"].similarity, said["pinned"].gist) == (pinned.id, None, None)


def test_a_vector_of_another_model_has_no_similarity_to_the_gist(owner: Owner) -> None:
    pinned = node(owner, "pinned", pinned=True)
    insert_vectors(owner.account_id, model=f"not {MODEL}", vectors=[(pinned.id, direction(0.0))])

    found = candidates_of(owner, replace(asked(angle=0.0), gist_vector=direction(0.0)), "vector", "pinned")

    assert (found["pinned"].similarity, found["pinned"].gist) == (None, None)

"""Turns around those that words and meaning found, with the same isolation and filters."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory.models import Account, Kind, Memory, MemoryRow
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.gathering import MIN_CANDIDATES, GatheredCandidates, gather_candidates
from memory.retrieval.queries import Scope
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.retrievers.around import FIRST_FOUND, PASSAGE, PASSAGE_REACH, SOURCES
from memory.retrieval.techniques import choose_plan
from tests.memory.episodes import NOW, direction
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.graphs import node
from tests.memory.recalls import recall_by_words
from tests.memory.turns import say, talk, turn

pytestmark = pytest.mark.django_db

QUESTION, ANSWER = "Which lamp hangs in the cellar?", "The green one."


def looked(owner: Owner, text: str = "lamp", *names: str, **fields: Any) -> GatheredCandidates:
    """Gather by words and meaning, or the named retrievers, and around what they find."""
    query = asked(text, **fields)
    return gathered(owner, query, analyze_query(owner, query, recall_context(owner)), *(names or SOURCES), "passage")


def found(owner: Owner, text: str = "lamp", **fields: Any) -> set[str]:
    return {each.text for each in looked(owner, text, **fields).candidates}


def said_before(owner: Owner, *texts: str, **fields: Any) -> list[MemoryRow]:
    """The turns of one conversation."""
    return list(say(owner, *map(turn, texts), **fields).turns)


def change(memory: MemoryRow, **fields: Any) -> None:
    Memory.objects.filter(id=memory.id).update(**fields)


def test_an_answer_next_to_a_question_is_found_without_shared_words(owner: Owner) -> None:
    said_before(owner, QUESTION, ANSWER)

    ways = {each.text: each.ways for each in looked(owner).candidates}

    assert ways == {QUESTION: {"lexical", "passage"}, ANSWER: {"passage"}}


def test_neighbours_of_vector_results_are_found_too(owner: Owner) -> None:
    drafts = [turn("far away", angle=1.5), turn("near", angle=0.1), turn("beside")]
    say(owner, *drafts)

    ways = {each.text: each.ways for each in looked(owner, "", angle=0.0).candidates}

    assert ways["beside"] == {"passage"}
    assert ways["near"] == {"vector", "passage"}


def test_an_adjacent_turn_has_both_a_word_score_and_similarities(owner: Owner) -> None:
    # the next one is the best of all: among equally good ones, ids decide which get their neighbours
    better = [turn("lamp lamp lamp"), *(turn("lamp lamp") for _ in range(MIN_CANDIDATES - 1))]
    say(owner, turn("one lamp among many other words", angle=1.0), *better)
    query = asked("lamp", angle=0.0, gist_vector=direction(0.5))

    both = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "lexical", "passage")

    [beside] = [each for each in both.candidates if each.ways == {"passage"}]
    assert (beside.similarity, beside.gist) == pytest.approx((0.5403, 0.8776), abs=1e-3)
    assert beside.bm25 == beside.content > 0
    assert (beside.index, beside.role, beside.hops) == (0, "user", None)


@pytest.mark.parametrize("place", [0, 1, 4, 8, 9])
def test_up_to_two_turns_on_each_side_of_a_result_are_found(owner: Owner, place: int) -> None:
    said_before(owner, *("lamp" if index == place else f"other {index}" for index in range(10)))

    indexes = sorted(each.index or 0 for each in looked(owner).candidates)

    assert indexes == list(range(max(place - PASSAGE_REACH, 0), min(place + PASSAGE_REACH, 9) + 1))


def test_a_turn_without_neighbours_is_found_alone(owner: Owner) -> None:
    said_before(owner, "lamp")

    assert found(owner) == {"lamp"}


def test_turns_of_other_conversations_are_not_adjacent(owner: Owner) -> None:
    said_before(owner, "lamp", conversation_id="c1")
    said_before(owner, "first of another", "second of another", conversation_id="c2")

    assert found(owner) == {"lamp"}


def test_a_conversation_of_another_account_with_the_same_id_is_not_searched(owner: Owner, stranger: Account) -> None:
    said_before(owner, "lamp")
    said_before(Owner(account_id=stranger.id, agent_id=owner.agent_id), "a stranger's", "and more", "lamp")

    assert found(owner) == {"lamp"}


def test_a_memory_that_is_not_a_turn_has_no_adjacent_turns(owner: Owner) -> None:
    said_before(owner, "first", "second")
    node(owner, "lamp", conversation_id="c1")

    assert found(owner) == {"lamp"}


def test_a_turn_between_two_results_is_found_once(owner: Owner) -> None:
    said_before(owner, "lamp one", "between", "lamp two")

    assert sorted(each.text for each in looked(owner).candidates) == ["between", "lamp one", "lamp two"]


@pytest.mark.parametrize(
    "hidden",
    [
        *({"archived": True}, {"quarantined": True}, {"buried": True}, {"expires_at": NOW}),
        *({"channel": "elsewhere"}, {"user_id": "ben"}, {"event_time": NOW - timedelta(days=9)}),
    ],
    ids=str,
)
def test_adjacent_turns_that_are_invisible_or_filtered_are_not_found(owner: Owner, hidden: dict[str, Any]) -> None:
    _, beside, _ = said_before(owner, "lamp", "hidden", "seen")
    change(beside, **hidden)

    assert found(replace(owner, user_id="ana"), since=NOW - timedelta(days=1)) == {"lamp", "seen"}


def test_a_conversation_that_the_agent_takes_no_part_in_stays_invisible(owner: Owner) -> None:
    said_before(replace(owner, agent_id="colleague"), "lamp", "beside")

    assert found(owner) == set()


def test_filters_apply_to_adjacent_turns_as_to_found_ones(owner: Owner) -> None:
    early, late = NOW - timedelta(hours=2), NOW - timedelta(hours=1)
    say(owner, turn("before", timestamp=early), turn("lamp", timestamp=late), turn("after", timestamp=NOW))
    [after] = Memory.objects.filter(text="after")

    assert found(owner) == {"before", "lamp", "after"}
    assert found(owner, since=late) == {"lamp", "after"}
    assert found(owner, until=NOW) == {"before", "lamp"}
    assert found(owner, without=[after.id]) == {"before", "lamp"}
    assert found(owner, kinds=(Kind.TURN,)) == {"before", "lamp", "after"}


def test_a_session_scope_leaves_out_adjacent_turns_of_other_conversations(owner: Owner) -> None:
    said_before(owner, "lamp", "here", conversation_id="c1")
    said_before(owner, "lamp", "elsewhere", conversation_id="c2")

    assert found(owner, scopes=(Scope.SESSION,), conversation_id="c1") == {"lamp", "here"}


def test_the_retriever_does_not_run_if_no_turns_are_requested(owner: Owner) -> None:
    said_before(owner, "lamp", "beside")

    only = looked(owner, kinds=(Kind.FACT,))

    assert "passage" not in [metric.technique for metric in only.metrics]


def test_the_retriever_does_not_run_without_words_or_a_vector(owner: Owner) -> None:
    said_before(owner, "lamp", "beside")

    assert looked(owner, "").metrics == []


def test_the_retriever_alone_finds_nothing(owner: Owner) -> None:
    said_before(owner, "lamp", "beside")
    query = asked("lamp")

    alone = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "passage")

    assert alone.candidates == []


def test_only_the_best_results_of_each_retriever_get_adjacent_turns(owner: Owner) -> None:
    best, others = "lamp lamp lamp lamp", "lamp and so on and so forth"
    talks = [
        said_before(owner, best if n < FIRST_FOUND else others, "beside", conversation_id=f"c{n}") for n in range(50)
    ]

    beside = {each.conversation_id for each in looked(owner, top_k=20).candidates if each.text == "beside"}

    assert len(talks) > len(beside) == FIRST_FOUND
    assert beside == {f"c{number}" for number in range(FIRST_FOUND)}


def test_the_number_of_adjacent_turns_is_bounded_in_a_long_conversation(owner: Owner) -> None:
    say(owner, *(turn(f"lamp {n}" if n % 6 == 3 else f"other {n}", angle=0.001 * n) for n in range(800)))

    metrics = {each.technique: each.results for each in looked(owner, angle=0.0, top_k=40).metrics}

    # what found them is among what it brings
    assert (
        FIRST_FOUND * (2 * PASSAGE_REACH) < metrics["passage"] <= len(SOURCES) * FIRST_FOUND * (2 * PASSAGE_REACH + 1)
    )


def test_the_retriever_is_dropped_after_the_deadline(owner: Owner) -> None:
    talk(owner, 3)
    query = asked("message")
    late = recall_context(owner, deadline=Deadline.after(-1))

    none = gather_candidates(
        owner, query, analyze_query(owner, query, late), [RETRIEVERS["lexical"], RETRIEVERS["passage"]], late
    )

    assert (none.candidates, none.dropped) == ([], ["lexical", "passage"])


@pytest.mark.parametrize(
    ("techniques", "expected"),
    [
        pytest.param(("lexical",), {QUESTION}, id="another retriever is named alone"),
        pytest.param(("lexical", "passage"), {QUESTION, ANSWER}, id="both are named"),
        pytest.param(("-passage", "-vector"), {QUESTION}, id="it is switched off"),
        pytest.param(("-vector",), {QUESTION, ANSWER}, id="not requested"),
    ],
)
def test_the_retriever_runs_unless_others_are_named_or_it_is_disabled(
    owner: Owner, techniques: tuple[str, ...], expected: set[str]
) -> None:
    said_before(owner, QUESTION, ANSWER)

    bundle = recall_by_words(owner, "lamp", techniques=techniques)

    assert {each.text for each in bundle.results} == expected
    assert ("passage" in [metric.technique for metric in bundle.metrics]) == (ANSWER in expected)


def test_the_retriever_does_not_run_with_vector_search_alone() -> None:
    assert PASSAGE in choose_plan().retrievers
    assert PASSAGE not in choose_plan(["vector"]).retrievers
    assert PASSAGE in choose_plan(["vector", "passage"]).retrievers


def test_a_question_of_unknown_words_finds_neighbours_of_vector_results(owner: Owner) -> None:
    say(owner, turn("near", angle=0.1), turn("beside"))
    query = asked("unheard", angle=0.0)

    both = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), *SOURCES, "passage")

    assert [metric.technique for metric in both.metrics] == ["vector", "passage"]
    assert {each.text for each in both.candidates} == {"near", "beside"}

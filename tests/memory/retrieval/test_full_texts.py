"""Long texts: candidates have the beginning, results the full text."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Memory
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.gathering import MAX_TEXT_CHARACTERS
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.services.facts.learn import MAX_CLAIM_CHARACTERS
from memory.services.facts.supersede import correct_fact
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import day, know
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

LONG = "boiler " + "x" * MAX_TEXT_CHARACTERS
MANY, MILLION = 60, 1_000_000


def ask(owner: Owner, **fields: Any) -> Bundle:
    return recall(owner, RecallRequest(query=Query(**{"text": "boiler"} | fields), techniques=["lexical"]), now=NOW)


@pytest.mark.slow
def test_long_texts_of_candidates_are_truncated_but_results_are_whole(owner: Owner) -> None:
    store(owner, *(draft(f"boiler {number}", conversation_id=f"c{number}") for number in range(MANY)))
    for memory in Memory.objects.all():
        Memory.objects.filter(id=memory.id).update(text=memory.text.ljust(MILLION, "."))
    query = asked("boiler", top_k=MANY // 3)

    candidates = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "lexical").candidates
    bundle = ask(owner, top_k=1)

    assert [len(each.text) for each in candidates] == [MAX_TEXT_CHARACTERS + 1] * MANY
    assert [len(each.text) for each in bundle.results] == [MILLION]
    assert {len(each.text) for each in bundle.others} == {MAX_TEXT_CHARACTERS + 1}


def test_reading_whole_texts_takes_one_more_statement_if_any_was_truncated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    say(owner, turn("boiler"))
    with django_assert_num_queries(2):
        ask(owner)
    say(owner, turn(LONG), turn(LONG[:MAX_TEXT_CHARACTERS]))

    # and one for the links among several turns
    with django_assert_num_queries(4):
        found = ask(owner)

    assert sorted(len(each.text) for each in found.results) == [6, MAX_TEXT_CHARACTERS, len(LONG)]


def test_texts_that_differ_after_the_truncated_part_are_not_merged(owner: Owner) -> None:
    say(owner, turn(f"{LONG} one"), turn(f"{LONG} two"))

    assert {each.text[-3:] for each in ask(owner).results} == {"one", "two"}


def test_the_longest_claims_are_returned_whole_as_they_were_believed_then(owner: Owner) -> None:
    then, now = (f"boiler {word}".ljust(MAX_CLAIM_CHARACTERS, "x") for word in ("then", "now"))
    fact = know(owner, then, now=day(-9))
    correct_fact(owner, fact.id, changes={"claim": now}, embedded=NOTHING, now=day(-2))

    assert [each.text for each in ask(owner, known_at=day(-5)).results] == [then]
    assert [each.text for each in ask(owner).results] == [now]


def test_a_long_question_is_no_answer_to_itself(owner: Owner) -> None:
    say(owner, turn(LONG))

    assert ask(owner, text=LONG, conversation_id="c1").results == []
    assert len(ask(owner, text=LONG, conversation_id="c2").results) == 1

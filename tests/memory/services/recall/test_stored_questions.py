"""A stored question is no answer to itself; what stands next to an earlier one may be."""

import pytest

from memory.owner import Owner
from memory.retrieval.queries import Query
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

QUESTION = "Where is the key of the boiler room?"
ANSWER = "Under the mat."
STATEMENT = "The key of the boiler room is under the mat"


def ask(owner: Owner, text: str = QUESTION, **fields: str) -> list[str]:
    query = Query(text=text, **fields)  # type: ignore[arg-type]
    return [each.text for each in recall(owner, RecallRequest(query=query, deadline_ms=60_000), now=NOW).results]


def test_the_latest_question_is_no_answer_to_itself(owner: Owner) -> None:
    say(owner, turn(f"{STATEMENT}."), conversation_id="c1")
    say(owner, turn(QUESTION), conversation_id="c2")

    assert ask(owner, conversation_id="c2") == [f"{STATEMENT}."]


@pytest.mark.parametrize("stored", [QUESTION, QUESTION.upper(), f"  {QUESTION.rstrip('?')} ??"])
def test_a_question_of_another_conversation_is_no_answer_but_what_was_answered_then_is(
    owner: Owner, stored: str
) -> None:
    say(owner, turn(stored), turn(ANSWER, role="assistant"), conversation_id="earlier")

    assert ask(owner) == [ANSWER]
    assert ask(owner, conversation_id="now") == [ANSWER]


def test_a_statement_that_equals_the_query_is_found_unless_it_was_just_said(owner: Owner) -> None:
    say(owner, turn(STATEMENT), conversation_id="c1")

    assert ask(owner, STATEMENT) == [STATEMENT]
    assert ask(owner, STATEMENT, conversation_id="c2") == [STATEMENT]
    assert ask(owner, STATEMENT, conversation_id="c1") == []

"""Properties of all rewriters, for any question."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dates import Tense, find_dates
from memory.retrieval.queries import Query
from memory.retrieval.rewriters import REWRITERS
from memory.retrieval.rewriters.expansion import MAX_EXPANSIONS, MAX_QUESTION_CHARACTERS
from memory.retrieval.rewriters.names import MAX_MENTIONS, MAX_NAMES, MAX_PHRASE_CHARACTERS, MAX_PHRASES
from memory.retrieval.rewriters.readings import MAX_SPEAKERS
from memory.retrieval.rewriters.times import MAX_WINDOWS
from tests.memory.retrieval.rewriters.asking import NOW, recall_context, rewritten
from tests.properties import examples

PIECES = st.sampled_from(
    [
        *('"', "“", "«", "»", "'s", "’", " ", "\n", "?", ". ", ", ", "-", "\x00", "\ud800", "🦀", "安娜", "آنا", "Ana"),
        *("did", "where does", "say", "live", "between", "3", "and", "5 June", "2023", "in", "the last", "999"),
        *("years ago", "since May", "of"),
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=30).map(" ".join), st.lists(PIECES).map("".join))


def check_bounds(query: Query) -> None:
    assert len(query.phrases) <= MAX_PHRASES
    assert all(len(phrase) <= MAX_PHRASE_CHARACTERS for phrase in query.phrases)
    assert len(query.names) <= MAX_NAMES
    assert len(query.mentions) <= MAX_MENTIONS
    assert len(query.windows) <= MAX_WINDOWS
    assert len(query.speakers) <= MAX_SPEAKERS
    assert len(query.expansions) <= MAX_EXPANSIONS
    assert all(0 < len(line) <= 2 * MAX_QUESTION_CHARACTERS for line in query.expansions)
    assert all(each.since is None or each.until is None or each.since < each.until for each in query.windows)


@examples(300)
@given(TEXTS)
def test_rewriters_accept_any_text_and_bound_their_results(text: str) -> None:
    once = rewritten(text)
    again = once
    for rewriter in REWRITERS.values():
        again = rewriter(again, recall_context())

    check_bounds(once)
    assert again == once
    assert once.text == text


REPEATED = (
    *"\"“”„«»‘’'([{<-–&/+#.!?:;…,_\n\t \r\0\xa0\u3000\u2028aAéÉß019安あア한กא\u0301\u200d🦀",
    *(
        "a'",
        "A.",
        "a-",
        ".a",
        "A ",
        "A. ",
        "«a",
        "A and ",
        "did Ana ",
        "the user's ",
        "where does a ",
        "of the ",
        "said ",
    ),
    *("3 ", "3rd ", "3/", "2023-", "3 May ", "May ", "may ", "last ", "in the last 9 ", "between 3 and ", "for about "),
    *("from 2015 to ", "a couple of ", "back in ", "on ", "ago ", "today ", "came by ", f"{'a' * 40} "),
)


@pytest.mark.slow
@pytest.mark.parametrize("length", [MAX_QUESTION_CHARACTERS, 2_000, 10_000])
def test_rewriting_a_repetitive_text_takes_less_than_half_a_second(length: int) -> None:
    def cpu_seconds(part: str) -> float:
        # a tail that no pattern goes on with, after all that it may have taken
        text = f"a{(part * length)[: length - 3]},b"
        started = time.thread_time()
        rewritten(text)
        find_dates(text, at=NOW, tense=Tense.PAST)
        return time.thread_time() - started

    for part in REPEATED:
        # one run of five will do: others may have to collect the garbage of all tests before
        assert any(cpu_seconds(part) < 0.5 for _ in range(5)), part


@pytest.mark.parametrize(
    "text", ["", " ", "安娜住在哪里？", "แอนนาอยู่ที่ไหน", "アンナはどこに住んでいますか", "🦀🦀", "?!"]
)
def test_without_a_model_an_unreadable_question_is_returned_as_the_same_object(text: str) -> None:
    query = Query(text=text)

    for rewriter in REWRITERS.values():
        assert rewriter(query, recall_context()) is query


def test_rewriters_that_read_the_question_run_before_those_that_invent_text() -> None:
    assert list(REWRITERS) == ["names", "self_query", "query_expansion", "hyde"]


def test_without_a_model_no_hypothetical_answer_is_added() -> None:
    query = Query(text="Where does Ana live?")

    assert REWRITERS["hyde"](query, recall_context()) is query
    assert list(rewritten(query.text).expansions) == ["Ana lives in"]

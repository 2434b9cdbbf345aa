"""Replaced statements: a question about now gets the later one first, a question about the past the earlier one."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween
from memory.retrieval.replacements import MAX_REORDERED, order_by_replacement, places_of, wanted_probability
from memory.scoring import MAX_STATEMENT_CHARACTERS
from tests.memory.candidates import asking, numbers, ranked
from tests.memory.episodes import NOW


def replaces(newer: int, older: int, *, probability: float = 0.9) -> LinkBetween:
    return LinkBetween(source=UUID(int=newer), target=UUID(int=older), type="REPLACES", weight=probability)


def order(*links: LinkBetween, scores: tuple[float, ...] = (1.0, 0.8, 0.6), **query: Any) -> list[int]:
    return numbers(order_by_replacement(ranked(*scores), asking(*links, **query)))


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        pytest.param([], [1, 2, 3], id="nothing replaced"),
        pytest.param([replaces(3, 1)], [3, 2, 1], id="the replaced one loses half of its score"),
        pytest.param([replaces(1, 2)], [1, 3, 2], id="the replaced one is behind already"),
        pytest.param([replaces(3, 1, probability=0.3)], [3, 1, 2], id="probably replaced"),
        pytest.param([replaces(3, 1, probability=0.1)], [3, 1, 2], id="possibly replaced, and both are asked for"),
        pytest.param([replaces(3, 1, probability=0.01)], [1, 2, 3], id="hardly replaced"),
        pytest.param([replaces(9, 1)], [1, 2, 3], id="the replacement was not found"),
    ],
)
def test_the_later_statement_comes_first(links: list[LinkBetween], expected: list[int]) -> None:
    assert order(*links, text="Where does she live?") == expected


@pytest.mark.parametrize(
    ("place", "probability", "expected"),
    [
        pytest.param(2, 0.05, 2, id="the later one is the next result"),
        pytest.param(9, 0.05, 1, id="the later one is further behind"),
        pytest.param(9, 0.9, 9, id="a strong link reaches further"),
    ],
)
def test_a_weak_link_orders_what_answers_the_question_about_as_well(
    place: int, probability: float, expected: int
) -> None:
    found = ranked(*(1.0 - each / 100 for each in range(9)))

    ordered = order_by_replacement(found, asking(replaces(place, 1, probability=probability), text="Where is she?"))

    assert numbers(ordered)[0] == expected


@pytest.mark.parametrize(
    ("older", "newer", "question", "first"),
    [
        pytest.param("Alma is 7.", "Alma got 2 new teeth.", "How old is Alma?", 1, id="another matter"),
        pytest.param("My girl's seven and shy", "Alma started school.", "How old is she?", 1, id="without digits"),
        pytest.param("Alma is 7.", "Alma turned eight on Sunday.", "How old is Alma?", 2, id="her new age"),
        pytest.param("Alma is 7.", "Alma is an 8-year-old now.", "How old is Alma?", 2, id="as an adjective"),
        pytest.param("Alma has 2 cats.", "Alma got 2 new teeth.", "How old is Alma?", 2, id="no age at all"),
        pytest.param("Alma is 7.", "Alma got 2 new teeth.", "How is Alma?", 2, id="no question for an age"),
    ],
)
def test_only_a_statement_of_an_age_comes_before_another_one(older: str, newer: str, question: str, first: int) -> None:
    found = ranked(1.0, 0.8)
    found[0].text, found[1].text = older, newer

    ordered = order_by_replacement(found, asking(replaces(2, 1, probability=0.5), text=question))

    assert numbers(ordered)[0] == first


def test_a_long_text_is_replaced_by_nothing() -> None:
    """It says more than what one later statement replaces."""
    found = ranked(1.0, 0.8)
    found[0].text = "We meet on Monday. ".ljust(MAX_STATEMENT_CHARACTERS + 1, ".")

    ordered = order_by_replacement(found, asking(replaces(2, 1), text="When do we meet?"))

    assert numbers(ordered) == [1, 2]
    assert ordered[0].superseded_by is None


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param("How old is Anouk?", 2, id="both name whom is asked for"),
        pytest.param("How old are Anouk and Leo?", 2, id="the later one names one of them"),
        pytest.param("How old is Leo?", 1, id="only the earlier one names whom is asked for"),
        pytest.param("How old are the kids?", 2, id="nobody is named"),
    ],
)
def test_a_later_statement_about_one_of_two_replaces_nothing_for_a_question_about_the_other(
    text: str, first: int
) -> None:
    found = ranked(1.0, 0.8)
    found[0].text, found[1].text = "We have two kids, Anouk is 6 and Leo is 3.", "Anouk turned seven yesterday."

    ordered = order_by_replacement(found, asking(replaces(2, 1), text=text))

    assert numbers(ordered)[0] == first


@pytest.mark.parametrize(
    ("probability", "first"),
    [
        pytest.param(0.4, 1, id="a weak link"),
        pytest.param(0.9, 2, id="a strong link"),
    ],
)
def test_a_weak_link_replaces_nothing_for_a_question_with_a_name_that_only_the_earlier_statement_has(
    probability: float, first: int
) -> None:
    found = ranked(1.0, 0.8)
    found[0].text, found[1].text = "My aunt Tove lives in Bergen.", "My mother lives in Hamar."

    ordered = order_by_replacement(
        found, asking(replaces(2, 1, probability=probability), text="Where does my aunt Tove live?")
    )

    assert numbers(ordered)[0] == first


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(0.2, [2, 1, 3], id="no link is strong"),
        pytest.param(0.5, [2, 1, 3], id="the other link is hardly stronger"),
        pytest.param(0.9, [1, 2, 3], id="it far more surely replaces another statement"),
    ],
)
def test_what_surely_replaces_one_statement_replaces_no_other_one(other: float, expected: list[int]) -> None:
    links = replaces(2, 1, probability=0.4), replaces(2, 3, probability=other)

    ordered = order_by_replacement(ranked(1.0, 0.8, 0.1), asking(*links, text="Where does she live?"))

    assert numbers(ordered) == expected
    assert [each.superseded_by is not None for each in ordered if numbers([each]) == [1]] == [False]


def test_a_later_statement_need_not_name_whom_the_earlier_one_names() -> None:
    found = ranked(1.0, 0.8)
    found[0].text, found[1].text = "My brother Leo lives in Ghent.", "He moved to Antwerp."

    assert numbers(order_by_replacement(found, asking(replaces(2, 1), text="Where does Leo live?")))[0] == 2


def test_a_link_to_a_statement_that_is_not_about_the_question_moves_nothing_before_the_answer() -> None:
    links = replaces(1, 2), replaces(9, 1, probability=0.2)

    ordered = order_by_replacement(ranked(*(1.0 - each / 100 for each in range(9))), asking(*links, text="Where now?"))

    assert numbers(ordered)[0] == 1


@pytest.mark.parametrize(
    ("weight", "newer", "older", "is_past_tense", "expected"),
    [
        (0.5, 0, 1, False, 0.71),
        (0.5, 1, 0, False, 0.80),
        (0.9, 1, 0, False, 0.96),
        (0.05, 1, 0, False, 0.25),
        (0.5, 1, 0, True, 0.42),
        (1.0, 50, 0, False, 0.98),
    ],
)
def test_what_a_question_wants_is_weighed(
    weight: float, newer: int, older: int, is_past_tense: bool, expected: float
) -> None:
    wanted = wanted_probability(weight, newer_place=newer, older_place=older, is_past_tense=is_past_tense)

    assert round(wanted, 2) == expected


@pytest.mark.parametrize(("newer", "older", "first"), [(9, 1, 9), (9, 4, 4)])
def test_a_sure_replacement_comes_first_unless_it_is_hardly_an_answer(newer: int, older: int, first: int) -> None:
    links = (replaces(newer, older, probability=0.6),)

    ordered = order_by_replacement(ranked(*(1.0 - each / 100 for each in range(9))), asking(*links, text="Where now?"))

    assert next(number for number in numbers(ordered) if number in (newer, older)) == first
    assert [each.superseded_by is not None for each in ordered if numbers([each]) == [older]] == [True]


@pytest.mark.parametrize(
    "text", ["Where did she get the tickets?", "What has she said?", "Do you know if she has moved?"]
)
def test_a_weak_link_orders_nothing_for_a_question_in_the_past_tense(text: str) -> None:
    assert order(replaces(3, 1, probability=0.05), text=text) == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "Where did she live before Porto?",
        "What was the original deadline?",
        "What is my old address?",
        "Where is Priya's old studio?",
        "What is the old wifi password?",
        "What was the old timeout?",
        "How long did we keep the old cluster?",
        "Who led the team before Bruno?",
        "Which flat did she have in May?",
        "What was Ana's first job?",
        "Do you remember where we lived before?",
        "Do you know who led the team before Bruno?",
        "What is the address she lived at before Braga?",
        "Is it true that I worked at Globex before?",
    ],
)
def test_a_question_about_the_past_gets_the_earlier_statement_first(text: str) -> None:
    assert order(replaces(1, 3), text=text) == [3, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "How old is Chioma?",
        "How many months old is the baby?",
        "Where could we go in July?",
        "Where are we going in July?",
        "Until when is the library open?",
        "Which pills do I take before breakfast?",
        "Which train leaves before noon?",
        "What's first on the agenda?",
        "How many days must the old cluster be kept now?",
        "How long is the old cluster kept?",
        "Who runs the old billing system?",
        "Where is my old laptop now?",
    ],
)
def test_words_of_time_in_a_question_about_now_ask_for_nothing_earlier(text: str) -> None:
    assert order(replaces(3, 1), text=text) == [3, 2, 1]


@pytest.mark.parametrize(
    "text",
    [
        "Do I have a weekend job?",
        "On which days do we have to go in?",
        "Has she got a dog?",
        "What is she called?",
        "What are we called?",
    ],
)
def test_what_one_has_now_is_no_past_tense(text: str) -> None:
    assert order(replaces(3, 1, probability=0.1), text=text) == [3, 1, 2]


def test_history_keeps_its_order() -> None:
    assert order(replaces(3, 1), include_superseded=True) == [1, 2, 3]


@pytest.mark.parametrize(
    ("as_of", "expected", "is_marked"),
    [
        pytest.param(NOW - timedelta(days=1), [2, 1], False, id="before the later one was said"),
        pytest.param(NOW + timedelta(days=1), [1, 2], True, id="since it was said"),
    ],
)
def test_a_time_asked_for_knows_what_was_said_by_then(as_of: datetime, expected: list[int], is_marked: bool) -> None:
    newer, older = ranked(1.0, 0.9)
    newer.event_time = NOW

    ordered = order_by_replacement([newer, older], asking(replaces(1, 2), as_of=as_of))

    assert numbers(ordered) == expected
    assert (older.superseded_by == newer.id) is is_marked


def marks(*candidates: Candidate) -> list[tuple[UUID | None, Any]]:
    return [(each.superseded_by, each.superseded_at) for each in candidates]


def test_a_replaced_statement_says_what_replaced_it_and_when() -> None:
    older, newer = ranked(1.0, 0.5)
    newer.event_time = NOW + timedelta(days=3)

    order_by_replacement([older, newer], asking(replaces(2, 1), include_superseded=True))

    assert marks(older, newer) == [(newer.id, newer.event_time), (None, None)]


def test_a_statement_that_is_only_probably_replaced_is_not_marked() -> None:
    older, newer = ranked(1.0, 0.5)

    order_by_replacement([older, newer], asking(replaces(2, 1, probability=0.4)))

    assert marks(older, newer) == [(None, None), (None, None)]


def test_the_most_probable_replacement_counts() -> None:
    older, unlikely, likely = ranked(1.0, 0.8, 0.6)

    order_by_replacement([older, unlikely, likely], asking(replaces(2, 1, probability=0.6), replaces(3, 1)))

    assert older.superseded_by == likely.id


def derived(fact: int, turn: int) -> LinkBetween:
    return LinkBetween(source=UUID(int=fact), target=UUID(int=turn), type="DERIVED_FROM", weight=1.0)


def fact_and_turns(*scores: float) -> list[Candidate]:
    fact, *turns = ranked(*scores)
    fact.kind = Kind.FACT
    return [fact, *turns]


def test_a_fact_is_replaced_with_the_turn_that_it_was_learned_from() -> None:
    fact, older, newer = fact_and_turns(1.0, 0.8, 0.6)

    ordered = order_by_replacement([fact, older, newer], asking(derived(1, 2), replaces(3, 2)))

    assert numbers(ordered)[0] == 3
    assert fact.superseded_by == older.superseded_by == newer.id


def test_a_fact_and_its_only_source_are_at_one_place_unless_the_source_has_other_facts() -> None:
    fact, source, turn, other = found = fact_and_turns(1.0, 0.9, 0.8, 0.7)

    assert list(places_of(found, {fact.id: [source.id]}).values()) == [0, 0, 1, 2]
    assert list(places_of(found, {fact.id: [source.id, turn.id]}).values()) == [0, 1, 2, 3]
    assert list(places_of(found, {fact.id: [source.id], other.id: [source.id]}).values()) == [0, 1, 2, 3]


def test_a_fact_stays_as_long_as_one_of_its_turns_is_not_replaced() -> None:
    fact, older, newer, other = fact_and_turns(1.0, 0.8, 0.6, 0.4)

    ordered = order_by_replacement([fact, older, newer, other], asking(derived(1, 2), derived(1, 4), replaces(3, 2)))

    assert numbers(ordered)[0] == 1
    assert fact.superseded_by is None


def test_of_several_facts_of_a_replaced_turn_none_is_marked() -> None:
    fact, older, newer, other = fact_and_turns(1.0, 0.8, 0.6, 0.5)
    other.kind = Kind.FACT

    ordered = order_by_replacement([fact, older, newer, other], asking(derived(1, 2), derived(4, 2), replaces(3, 2)))

    assert numbers(ordered)[0] == 3
    assert older.superseded_by == newer.id
    assert fact.superseded_by is other.superseded_by is None


def test_a_fact_that_ranks_far_behind_counts_among_the_facts_of_a_replaced_turn() -> None:
    fact, older, newer, *others = fact_and_turns(*(1.0 - number / 100 for number in range(MAX_REORDERED + 1)))
    others[-1].kind = Kind.FACT

    order_by_replacement(
        [fact, older, newer, *others], asking(derived(1, 2), derived(MAX_REORDERED + 1, 2), replaces(3, 2))
    )

    assert older.superseded_by == newer.id
    assert fact.superseded_by is None


def test_what_is_replaced_far_behind_is_marked_in_its_place() -> None:
    """A prompt context quotes more than the first results, and says of each what is no longer true."""
    found = ranked(*(1.0 - number / 100 for number in range(MAX_REORDERED + 5)))
    older, newer = found[MAX_REORDERED], found[-1]

    ordered = order_by_replacement(found, asking(replaces(newer.id.int, older.id.int), text="Where does she live?"))

    assert numbers(ordered) == numbers(found)
    assert older.superseded_by == newer.id


def test_a_question_about_the_past_gets_the_earlier_turn_before_facts_of_the_later_one() -> None:
    fact, older, newer, other = fact_and_turns(1.0, 0.8, 0.9, 0.7)

    ordered = order_by_replacement(
        [fact, newer, older, other], asking(derived(1, 3), replaces(3, 2), text="Where did she live before Oslo?")
    )

    assert numbers(ordered) == [2, 1, 3, 4]


def test_a_fact_of_the_newer_turn_is_not_replaced() -> None:
    fact, older, newer = fact_and_turns(1.0, 0.8, 0.6)

    order_by_replacement([fact, older, newer], asking(derived(1, 2), derived(1, 3), replaces(3, 2)))

    assert fact.superseded_by is None


@pytest.mark.parametrize(("role", "superseded"), [("assistant", {2}), ("user", set())])
def test_an_assistants_echo_is_no_rival_of_the_statement_that_it_repeats(role: str, superseded: set[int]) -> None:
    """A link that is much weaker than one to another statement of a user counts for nothing."""
    found = ranked(1.0, 0.9, 0.8)
    for candidate, said_by in zip(found, ("user", "user", role), strict=True):
        candidate.role = said_by

    ordered = order_by_replacement(
        found, asking(replaces(1, 2, probability=0.6), replaces(1, 3, probability=0.95), text="When is the closing?")
    )

    marked = {each.id.int for each in ordered if each.superseded_by}
    assert marked == {3} | superseded

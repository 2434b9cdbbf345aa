"""Floods of near-duplicates: they share one place, and what they kept out is found."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from memory.extraction.messages import read_message
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.floods import limit_templates
from memory.retrieval.queries import Query
from memory.services.embedding.embed import embed_texts
from memory.services.recall.recall import RecallRequest, recall
from memory.services.turns import TurnDraft, store_turns
from tests.memory.candidates import asking, found, numbers
from tests.memory.episodes import NOW

TRUTH = "Mira wrote the password of the guest wifi on the fridge: it is bluebird."
QUESTION = "What is the password of the guest wifi?"
FLOOD = 300
DEADLINE_MS = 60_000


def spoken(count: int, *, text: str = "I ran {} km today", apart: timedelta = timedelta(0)) -> list[Candidate]:
    """Return candidates of one template, numbered from 1, best first."""
    return [
        found(at, text.format(at), score=1 - at / 1_000, event_time=NOW - at * apart, role="user")
        for at in range(1, count + 1)
    ]


def others(count: int) -> list[Candidate]:
    """Return candidates without values, numbered from 901, that score less."""
    words = ("lamp", "chair", "table", "shelf", "mirror", "carpet", "curtain", "pillow", "candle", "kettle", "basket")
    return [
        found(901 + at, f"They bought a new {word} for the flat", score=0.5 - at / 100)
        for at, word in enumerate(words[:count])
    ]


def test_a_template_takes_one_place_if_the_question_does_not_ask_for_what_differs() -> None:
    ordered = limit_templates([*spoken(20), *others(5)], asking(text="Do I like sports?", top_k=10))

    assert numbers(ordered)[:8] == [1, 901, 902, 903, 904, 905, 2, 3]
    assert [each.score for each in ordered] == sorted((each.score for each in ordered), reverse=True)


def test_a_short_list_stays_as_it_is_if_the_question_asks_for_its_values() -> None:
    candidates = [*spoken(10), *others(5)]

    assert limit_templates(candidates, asking(text="How many km did I run in May?", top_k=10)) == candidates


def test_a_long_list_leaves_every_fifth_place_to_others() -> None:
    ordered = limit_templates([*spoken(30), *others(5)], asking(text="How many km did I run in May?", top_k=10))

    assert numbers(ordered)[:10] == [1, 2, 901, 3, 4, 5, 6, 902, 7, 8]


@pytest.mark.parametrize(("apart", "places"), [(timedelta(0), 1), (timedelta(hours=9), 8)], ids=["burst", "diary"])
def test_a_burst_is_no_list_of_answers_to_a_question_about_one_value(apart: timedelta, places: int) -> None:
    flood = spoken(45, apart=apart)

    ordered = limit_templates([*flood, *others(11)], asking(text="When did I run?", top_k=10))

    assert sum(each in flood for each in ordered[:10]) == places


def test_a_few_alike_are_a_coincidence() -> None:
    candidates = [*spoken(3), *others(5)]

    assert limit_templates(candidates, asking(text="Do I like sports?", top_k=10)) == candidates


def test_pinned_candidates_keep_their_places() -> None:
    flood = spoken(6)
    flood[4].pinned = True

    assert numbers(limit_templates([*flood, *others(2)], asking(text="Do I run?", top_k=3)))[:4] == [1, 5, 901, 902]


def store(owner: Owner, said: Sequence[tuple[str, str, str]], *, at: datetime = NOW) -> None:
    """Store turns with their vectors: conversation, speaker and text of each."""
    embedded = embed_texts([text for _, _, text in said], deadline_seconds=60)
    by_conversation: dict[str, list[TurnDraft]] = {}
    for conversation_id, name, text in said:
        message = read_message({"role": "user", "content": text, "name": name or "Mira"})
        by_conversation.setdefault(conversation_id, []).append(TurnDraft(message=message, timestamp=at))
    for conversation_id, drafts in by_conversation.items():
        store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=at)


def ask(owner: Owner, text: str, *, techniques: Sequence[str] = ()) -> list[str]:
    request = RecallRequest(query=Query(text=text), techniques=techniques, deadline_ms=DEADLINE_MS)
    return [each.text for each in recall(owner, request, now=NOW + timedelta(hours=1)).results]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis")
@pytest.mark.parametrize("conversations", [1, 30])
@pytest.mark.parametrize("authors", [1, 3])
def test_a_flood_of_near_duplicates_does_not_push_the_answer_away(
    owner: Owner, authors: int, conversations: int
) -> None:
    flood = [
        (f"spam-{at % conversations}", f"Bot{'ABC'[at % authors]}", f"The password of the guest wifi is {at:04}.")
        for at in range(FLOOD)
    ]
    talk = [("home", "Mira", text) for text in ("The router is behind the sofa.", TRUTH, "Dinner is at eight.")]
    store(owner, [*talk, *flood], at=NOW)

    results = ask(owner, QUESTION)

    assert TRUTH in results[:2]
    assert sum(text.startswith("The password of the guest wifi is ") for text in results[:3]) == 1
    assert TRUTH not in ask(owner, QUESTION, techniques=["-diversity"])[:2]


@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis")
def test_lists_of_what_a_user_really_did_come_back(owner: Owner) -> None:
    runs = [("diary", "", f"I ran {5 + at} km in the park today") for at in range(9)]
    things = (
        "a lamp",
        "a kettle",
        "two chairs",
        "a carpet",
        "a mirror",
        "a tent",
        "a bike",
        "a radio",
        "a sofa",
        "a desk",
    )
    bought = [("diary", "", f"I bought {thing} for {20 + at} euros") for at, thing in enumerate(things)]
    store(owner, [*runs, *bought, ("diary", "", "The weather was fine all week.")])

    assert {text for _, _, text in runs} <= set(ask(owner, "How many km did I run in May?"))
    assert len({text for _, _, text in bought} & set(ask(owner, "What did I buy?"))) >= 9

"""Contexts and the ledger (B2): what was injected does not come again, and what two ask for at once only one gets."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from werkzeug import Response

from ledger import store as ledger
from memory.owner import Owner
from memory.services.prompt_context.build import Context, deliver, gather_context
from memory.services.prompt_context.fence import one_line
from memory.services.prompt_context.layout import Counter as Costs
from memory.services.prompt_context.layout import Limits, Material, lay_out
from memory.tokens import estimate_tokens
from memory_project.redis import Place
from tests.beside import PATIENCE_SECONDS
from tests.embedding_server import EmbeddingServer
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis", "embedding_server", "talks"),
]

TALKS = 24


@pytest.fixture
def talks(owner: Owner) -> None:
    """Conversations of three turns, the middle one of which is found by words."""
    for number in range(TALKS):
        drafts = [turn(text) for text in (f"before {number}", f"boiler {number}", f"after {number}")]
        say(owner, *drafts, conversation_id=f"talk-{number}")


@pytest.fixture
def place(owner: Owner) -> Place:
    return Place(account_id=owner.account_id, conversation_id="c1")


def inject(owner: Owner, **asked: Any) -> Context:
    fields: dict[str, Any] = {"query": "boiler", "suppress": True, "mark": True}
    return gather_context(owner, request_for(**fields | asked), now=NOW)


def keys(context: Context) -> list[str]:
    return [item.item_key for item in context.items]


def test_exactly_what_is_shown_is_marked_neighbours_too(owner: Owner, place: Place) -> None:
    context = inject(owner, top_k=2)

    assert len(context.items) == 6
    assert sorted(ledger.get_all(place)) == sorted(keys(context))


def test_what_has_no_room_is_not_marked(owner: Owner, place: Place) -> None:
    context = inject(owner, max_tokens=100)

    assert 0 < len(context.items) < 10
    assert sorted(ledger.get_all(place)) == sorted(keys(context))


def test_what_was_injected_costs_no_results(owner: Owner) -> None:
    shown = [keys(inject(owner, top_k=8)) for _ in range(4)]

    assert [len(each) for each in shown] == [24, 24, 24, 0]
    assert len({key for each in shown for key in each}) == 3 * TALKS


def test_without_suppression_what_was_injected_before_is_shown_again(owner: Owner) -> None:
    first = inject(owner, suppress=False, top_k=3)

    assert keys(inject(owner, suppress=False, top_k=3)) == keys(first)


@pytest.fixture
def material(owner: Owner) -> Material:
    """What a context was about to be made of: four turns with their neighbours."""
    items = gather_context(owner, request_for(query="boiler", top_k=4), now=NOW).items
    recalled, beside = ([item for item in items if bool(item.ways) == found] for found in (True, False))
    return Material(fields={}, episodes=(), evidence=recalled, neighbours=beside)


def test_what_others_marked_meanwhile_is_left_out(owner: Owner, place: Place, material: Material) -> None:
    theirs = {note.item_key for note in (material.evidence[1], *material.neighbours[:2])}
    ledger.mark_many(place, dict.fromkeys(theirs, "theirs"))

    laid = deliver(owner, material, request_for(query="boiler", suppress=True, mark=True))

    mine = {key for key, value in ledger.get_all(place).items() if value == "injected"}
    assert {item.item_key for item in laid.items} == mine
    assert len(mine) == 12 - len(theirs)


def test_what_others_marked_meanwhile_makes_room_for_what_had_none(
    owner: Owner, place: Place, material: Material
) -> None:
    request = request_for(query="boiler", suppress=True, mark=True, max_tokens=100)
    first = lay_out(material, Limits(max_tokens=100, counter=Costs(count=estimate_tokens)))
    ledger.mark_many(place, dict.fromkeys([item.item_key for item in first.items], "theirs"))

    laid = deliver(owner, material, request)

    assert laid.items
    assert not {item.item_key for item in laid.items} & {item.item_key for item in first.items}


def test_the_same_sentence_of_another_conversation_is_not_injected_again(owner: Owner, place: Place) -> None:
    for conversation_id in ("one", "another"):
        say(owner, turn("The cellar is damp."), conversation_id=conversation_id)

    first, second = (inject(owner, query="cellar damp") for _ in range(2))

    assert [item.text for item in first.items if "cellar" in item.text] == ["The cellar is damp."]
    assert not [item for item in second.items if "cellar" in item.text]
    assert {f"turn:{each}" for item in first.items for each in item.also} < set(ledger.get_all(place))


def test_what_others_said_in_other_words_meanwhile_is_left_out_and_stays_marked(
    owner: Owner, place: Place, material: Material
) -> None:
    best = material.evidence[0]
    best.also.append(uuid4())
    theirs = f"turn:{best.also[0]}"
    ledger.mark(place, theirs, "theirs")

    laid = deliver(owner, material, request_for(query="boiler", suppress=True, mark=True))

    assert best not in laid.items
    assert {theirs, best.item_key} <= set(ledger.get_all(place))


def test_what_others_took_is_replaced_by_what_comes_after_it(owner: Owner, place: Place, material: Material) -> None:
    whole = replace(material, evidence=material.evidence[:1], neighbours=[], reserve=material.evidence[1:])
    ledger.mark_many(place, dict.fromkeys([note.item_key for note in material.evidence[:2]], "theirs"))

    laid = deliver(owner, whole, request_for(query="boiler", suppress=True, mark=True))

    assert laid.items == material.evidence[2:3]


def test_who_lost_all_that_was_recalled_is_told_so(owner: Owner, place: Place, material: Material) -> None:
    ledger.mark_many(place, dict.fromkeys([note.item_key for note in material.every()], "theirs"))

    laid = deliver(owner, material, request_for(query="boiler", suppress=True, mark=True))

    assert (laid.items, laid.is_taken) == ([], True)


def test_who_lost_all_that_was_recalled_recalls_once_more(
    owner: Owner, place: Place, embedding_server: EmbeddingServer
) -> None:
    say(owner, *(turn(f"the cellar of house {number}") for number in range(130)), conversation_id="houses")
    bundle = gather_context(owner, request_for(query="cellar", top_k=1), now=NOW).bundle
    theirs = dict.fromkeys([note.item_key for note in (*bundle.results, *bundle.others)], "theirs")

    def mark_meanwhile(texts: list[str]) -> Response:
        ledger.mark_many(place, theirs)
        return embedding_server.answer_well(texts)

    embedding_server.answer = mark_meanwhile
    context = inject(owner, query="the cellar", top_k=1)

    assert len(theirs) < 130
    assert context.items
    assert not theirs.keys() & set(keys(context))


def ask_together(owner: Owner, *questions: dict[str, Any]) -> list[Context]:
    together = Barrier(len(questions))

    def ask(question: dict[str, Any]) -> Context:
        together.wait(PATIENCE_SECONDS)
        try:
            return inject(owner, **question)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(questions)) as agents:
        return list(agents.map(ask, questions))


def test_of_eight_at_once_each_memory_goes_to_one(owner: Owner, place: Place) -> None:
    questions = [{"top_k": 5, "max_tokens": (200, 400, 4_000)[number % 3]} for number in range(8)]

    contexts = ask_together(owner, *questions)

    delivered = Counter(key for context in contexts for key in keys(context))
    assert set(delivered.values()) == {1}
    assert set(delivered) == set(ledger.get_all(place))
    for context in contexts:
        assert all(one_line(item.text) in context.context for item in context.items)


@pytest.mark.parametrize("max_tokens", [100, 4_000], ids=["little room", "room for all"])
def test_of_six_at_once_nobody_goes_away_empty_while_there_is_enough(owner: Owner, max_tokens: int) -> None:
    say(owner, *(turn(f"the cellar of house {number}") for number in range(40)), conversation_id="houses")

    contexts = ask_together(owner, *[{"query": "cellar", "top_k": 2, "max_tokens": max_tokens}] * 6)

    delivered = [key for context in contexts for key in keys(context)]
    assert len(delivered) == len(set(delivered))
    assert all(context.items for context in contexts)

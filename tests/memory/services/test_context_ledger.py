"""Contexts and the ledger (B2): what was injected does not come again, and what two ask for at once only one gets."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from ledger import store as ledger
from memory.owner import Owner
from memory.services.context import Context, deliver, gather_context
from memory.services.context_layout import Counter as Costs
from memory.services.context_layout import Limits, Material, lay_out
from memory.services.layouts import one_line
from memory.tokens import estimate_tokens
from memory_project.redis import Place
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


def test_of_eight_at_once_each_memory_goes_to_one(owner: Owner, place: Place) -> None:
    together = Barrier(8)

    def ask(number: int) -> Context:
        together.wait(30)
        try:
            return inject(owner, top_k=5, max_tokens=(200, 400, 4_000)[number % 3])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as agents:
        contexts = list(agents.map(ask, range(8)))

    delivered = Counter(key for context in contexts for key in keys(context))
    assert set(delivered.values()) == {1}
    assert set(delivered) == set(ledger.get_all(place))
    for context in contexts:
        assert all(one_line(item.text) in context.context for item in context.items)

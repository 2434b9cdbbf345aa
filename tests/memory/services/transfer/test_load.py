"""Imports into accounts that have something already, interrupted imports, and archives of agents and users."""

from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO

import pytest

from memory.models import Account, Conversation, Fact, Memory, Turn
from memory.owner import Owner
from memory.services.transfer.load import load_archive
from memory.services.transfer.remap import new_id
from memory_project.ids import uuid7
from tests.memory.facts import know
from tests.memory.transfers import count_rows, export_bytes, import_bytes, new_import
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = 1_200


@pytest.fixture
def ana(owner: Owner, empty_redis: None) -> Owner:
    return replace(owner, user_id="ana")


def test_a_copy_in_another_account_has_new_ids_and_the_same_links(ana: Owner, stranger: Account) -> None:
    say(ana, turn("I like figs."), conversation_id="talk-1")
    fact = know(ana, "Likes figs.")
    before = export_bytes(ana.account_id)

    transfer = import_bytes(stranger.id, before)

    copy = Fact.objects.get(account_id=stranger.id)
    assert (transfer.remaps, copy.id, copy.text) == (True, new_id(stranger.id, fact.id), fact.text)
    assert copy.versions.count() == fact.versions.count()
    assert Turn.objects.get(account_id=stranger.id).log.conversation_id == "talk-1"
    assert export_bytes(ana.account_id) == before


def test_new_ids_are_in_the_order_of_the_former_ones() -> None:
    account_id, ids = uuid7(), [uuid7() for _ in range(50)]
    mapped = [new_id(account_id, each) for each in ids]

    assert (mapped, len({*mapped, *ids})) == (sorted(mapped), 100)
    assert {each.version for each in mapped} == {7}


def test_an_archive_that_is_imported_twice_is_there_once(ana: Owner, stranger: Account) -> None:
    say(ana, turn("I like figs."), conversation_id="talk-1")
    know(ana, "Likes figs.")
    archive = export_bytes(ana.account_id)

    first = import_bytes(stranger.id, archive)
    counts = count_rows(stranger.id)
    second = import_bytes(stranger.id, archive)

    assert count_rows(stranger.id) == counts
    assert (sum(first.existing.values()), sum(second.counts.values())) == (0, 0)
    assert sum(second.existing.values()) == sum(first.counts.values())


def test_what_the_account_has_under_another_id_is_left_alone(ana: Owner, stranger: Account) -> None:
    say(ana, turn("I like figs."), turn("And dates."), conversation_id="talk-1")
    say(ana, turn("I like nuts."), conversation_id="talk-2")
    theirs = replace(ana, account_id=stranger.id)
    say(theirs, turn("Hello."), conversation_id="talk-1")

    transfer = import_bytes(stranger.id, export_bytes(ana.account_id))

    assert transfer.left_out["memories"] == 1
    rows = Turn.objects.filter(account_id=stranger.id).order_by("conversation_id", "index")
    assert list(rows.values_list("text", flat=True)) == ["Hello.", "I like nuts."]


class Killed(Exception):  # noqa: N818 - it says what happened
    """The end of a process, as far as the import is concerned."""


def test_what_was_added_since_the_last_import_is_added_to_what_is_there(ana: Owner, stranger: Account) -> None:
    say(ana, turn("I like figs."), conversation_id="talk-1")
    import_bytes(stranger.id, export_bytes(ana.account_id))
    say(ana, turn("I like nuts."), turn("And dates."), conversation_id="talk-1")

    transfer = import_bytes(stranger.id, export_bytes(ana.account_id))

    turns = Turn.objects.filter(account_id=stranger.id).order_by("index")
    assert list(turns.values_list("index", "text")) == [(0, "I like figs."), (1, "I like nuts."), (2, "And dates.")]
    assert Conversation.objects.get(account_id=stranger.id).turn_count == 3
    assert (transfer.counts["memories"], transfer.left_out) == (2, {})
    say(replace(ana, account_id=stranger.id), turn("Hello again."), conversation_id="talk-1")


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 3, 6, 40])
def test_an_interrupted_import_goes_on(ana: Owner, stranger: Account, batches: int) -> None:
    for number in range(4):
        say(ana, *[turn(f"message {each}") for each in range(TURNS // 4)], conversation_id=f"talk-{number}")
    know(ana, "Likes figs.")
    archive, left = export_bytes(ana.account_id), batches
    transfer = new_import(stranger.id)

    def count_down(_counts: dict[str, int]) -> None:
        nonlocal left
        left -= bool(_counts)
        if left < 0:
            raise Killed

    try:
        load_archive(transfer, BytesIO(archive), now=datetime.now(UTC), report=count_down)
    except Killed:
        transfer.refresh_from_db()
        load_archive(transfer, BytesIO(archive), now=datetime.now(UTC))

    ours, copied = count_rows(ana.account_id), count_rows(stranger.id)
    assert copied == ours | {"memory_vectors": 0}
    assert sum(transfer.existing.values()) == 0


def test_an_archive_of_a_user_has_nothing_of_others(ana: Owner, stranger: Account) -> None:
    ben = replace(ana, user_id="ben")
    for each in (ana, ben):
        say(each, turn(f"{each.user_id} likes figs."), conversation_id=f"talk-{each.user_id}")
        know(each, f"{each.user_id} has a dog.")
    say(ana, turn("I am here as well."), conversation_id="talk-ben")

    import_bytes(stranger.id, export_bytes(ana.account_id, user_id="ana"))

    texts = set(Memory.objects.filter(account_id=stranger.id).values_list("text", flat=True))
    assert texts == {"ana likes figs.", "ana has a dog."}


def test_an_archive_of_an_agent_has_its_rows_alone(ana: Owner, stranger: Account) -> None:
    know(replace(ana, user_id=""), "The pump leaks.")
    know(replace(ana, user_id="", agent_id="planner"), "The valve is new.")

    import_bytes(stranger.id, export_bytes(ana.account_id, agent_id="planner"))

    assert [each.text for each in Fact.objects.filter(account_id=stranger.id)] == ["The valve is new."]

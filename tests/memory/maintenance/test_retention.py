"""Retention by the settings of accounts: what is archived and deleted, when, and what a legal hold keeps."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from ledger import store as ledger
from ledger.journal import flush_journal, last_journalled_id, restore_all_ledgers
from ledger.models import Injection
from memory.maintenance import Batch
from memory.maintenance.retention_jobs import CLEANUP_STAGES
from memory.models import Account, Conversation, Entity, Fact, Link, Memory, ModelUsage, Strategy, ToolInvocation, Turn
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation
from memory.services.conversations.staff_edits import set_legal_hold
from memory_project.redis import ConversationRef
from tests.api_client import ServiceClient
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.graphs import entity, link
from tests.memory.procedures import invoke, learn
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def after(days: float) -> datetime:
    return NOW + timedelta(days=days)


def set_retention(owner: Owner, **fields: Any) -> None:
    Account.objects.filter(id=owner.account_id).update(**fields)


def clean(stage: str, *, now: datetime, dry_run: bool = False) -> int:
    return CLEANUP_STAGES[stage](now=now, batch=Batch(size=100, dry_run=dry_run)).changed


def test_an_account_has_days_of_its_own(owner: Owner, stranger: Account) -> None:
    other = Owner(account_id=stranger.id, agent_id="assistant")
    set_retention(owner, archive_after_days=10)
    talk(owner, 1)
    talk(other, 1)

    assert clean("conversations", now=after(10.1)) == 1
    assert (find_conversation(owner, "c1").archived, find_conversation(other, "c1").archived) == (True, False)


def test_days_may_count_from_the_last_turn(owner: Owner) -> None:
    set_retention(owner, archive_by="turn")
    say(owner, turn("from an export", timestamp=NOW - timedelta(days=1_000)))

    assert clean("conversations", now=after(1)) == 1


def test_an_archived_conversation_is_kept_by_default(owner: Owner) -> None:
    talk(owner, 1)
    clean("conversations", now=after(91))

    assert clean("expired_conversations", now=after(3_000)) == 0


def test_an_archived_conversation_is_erased_with_what_was_learned_from_it_alone(owner: Owner) -> None:
    set_retention(owner, erase_after_days=30)
    said = say(owner, turn("the boiler is green")).turns[0]
    learned, own = know(owner, "The boiler is green."), know(owner, "The pump is blue.")
    Link.objects.create(account_id=owner.account_id, source_id=learned.id, target_id=said.id, type="DERIVED_FROM")
    clean("conversations", now=after(91))

    assert clean("expired_conversations", now=after(91 + 29)) == 0
    assert clean("expired_conversations", now=after(91 + 31), dry_run=True) == 1
    assert clean("expired_conversations", now=after(91 + 31)) == 1
    assert (Conversation.objects.count(), Turn.objects.count()) == (0, 0)
    assert list(Fact.objects.values_list("id", flat=True)) == [own.id]


def test_a_new_turn_saves_a_conversation_from_erasure(owner: Owner) -> None:
    set_retention(owner, erase_after_days=30)
    talk(owner, 1)
    clean("conversations", now=after(91))
    talk(owner, 1, start=1, now=after(100))

    assert clean("expired_conversations", now=after(200)) == 0
    assert clean("conversations", now=after(200)) == 1
    assert clean("expired_conversations", now=after(229)) == 0


def put_account_on_hold(owner: Owner) -> None:
    set_retention(owner, legal_hold=True)


def put_conversation_on_hold(owner: Owner) -> None:
    set_legal_hold(owner, "c1", value=True)


@pytest.mark.parametrize("hold", [put_account_on_hold, put_conversation_on_hold])
def test_a_legal_hold_keeps_conversations_and_their_invocations(owner: Owner, hold: Callable[[Owner], None]) -> None:
    set_retention(owner, erase_after_days=1, tool_days=1, journal_days=1)
    talk(owner, 1)
    invoke(owner, conversation_id="c1")
    hold(owner)
    clean("conversations", now=after(91))

    assert [clean(stage, now=after(900)) for stage in ("expired_conversations", "tool_invocations")] == [0, 0]


def test_a_held_conversation_keeps_the_entities_that_it_mentions_and_its_strategies(owner: Owner) -> None:
    set_retention(owner, strategy_days=1)
    said = {name: say(owner, turn("Hello, Ana."), conversation_id=name).turns[0] for name in ("c1", "c2")}
    named = {name: entity(owner, f"Ana of {name}", salience=0.05) for name in said}
    for name, first in said.items():
        Link.objects.create(account_id=owner.account_id, source_id=first.id, target_id=named[name].id, type="MENTIONS")
        learn(owner, name, conversation_id=name)
    Memory.objects.exclude(kind="turn").update(updated_at=NOW, last_accessed=None)
    set_legal_hold(owner, "c1", value=True)

    assert [clean(stage, now=after(40)) for stage in ("entities", "strategies")] == [1, 1]

    assert Entity.objects.get().id == named["c1"].id
    assert Strategy.objects.get().conversation_id == "c1"


def test_an_entity_that_faded_and_nobody_read_is_deleted_with_its_links(owner: Owner) -> None:
    faded, fresh = entity(owner, "Ana", salience=0.09), entity(owner, "Bob", salience=0.11)
    link(faded, fresh)
    Entity.objects.all().update(updated_at=NOW, last_accessed=None)

    assert clean("entities", now=after(29)) == 0
    assert clean("entities", now=after(31)) == 1
    assert list(Entity.objects.values_list("name", flat=True)) == ["Bob"]
    assert not Link.objects.exists()


@pytest.mark.parametrize(
    "kept", [{"pinned": True}, {"quarantined": True}, {"last_accessed": NOW + timedelta(days=20)}], ids=str
)
def test_an_entity_that_is_pinned_reviewed_or_read_stays(owner: Owner, kept: dict[str, Any]) -> None:
    entity(owner, "Ana", salience=0.05)
    Entity.objects.all().update(**{"updated_at": NOW, "last_accessed": None} | kept)

    assert clean("entities", now=after(40)) == 0


def test_an_account_may_keep_entities_for_ever(owner: Owner) -> None:
    set_retention(owner, entity_days=None)
    entity(owner, "Ana", salience=0.05)
    Entity.objects.all().update(updated_at=NOW)

    assert clean("entities", now=after(4_000)) == 0


def test_invocations_strategies_and_usage_go_after_their_days(owner: Owner) -> None:
    invoke(owner, conversation_id="c1")
    learn(owner)
    Strategy.objects.all().update(updated_at=NOW, last_accessed=None)
    ModelUsage.objects.create(account_id=owner.account_id, day=NOW.date(), use="summary", model="m")
    stages = ("tool_invocations", "strategies", "model_usage")
    assert [clean(stage, now=after(4_000)) for stage in stages] == [0, 0, 0]

    set_retention(owner, tool_days=10, strategy_days=10, usage_days=10)

    assert [clean(stage, now=after(9)) for stage in stages] == [0, 0, 0]
    assert [clean(stage, now=after(11.1)) for stage in stages] == [1, 1, 1]
    assert not any(model._default_manager.exists() for model in (ToolInvocation, Strategy, ModelUsage))


@pytest.mark.django_db(transaction=True)
def test_only_the_journal_of_ended_ledgers_goes_and_the_others_can_be_restored(owner: Owner) -> None:
    set_retention(owner, journal_days=10)
    restore_all_ledgers()
    ended, again, open_one = (ConversationRef(account_id=owner.account_id, conversation_id=name) for name in "abc")
    for conversation in (ended, again, open_one):
        ledger.mark(conversation, "item")
    for conversation in (ended, again):
        ledger.end_ledger(conversation)
    ledger.mark(again, "later")
    flush_journal(100)
    Injection.objects.all().update(at=NOW)

    assert [clean(stage, now=after(11)) for stage in ("injections", "ledger_ends")] == [2, 2]

    left = Injection.objects.order_by("conversation_id").values_list("conversation_id", "item_key")
    assert list(left) == [("b", "later"), ("c", "item")]
    restore_all_ledgers()
    assert [set(ledger.get_all(each)) for each in (ended, again, open_one)] == [set(), {"later"}, {"item"}]


@pytest.mark.django_db(transaction=True)
def test_the_newest_entry_of_the_journal_stays_since_flushes_go_on_from_it(owner: Owner) -> None:
    set_retention(owner, journal_days=10)
    restore_all_ledgers()
    ended = ConversationRef(account_id=owner.account_id, conversation_id="a")
    ledger.mark(ended, "item")
    ledger.end_ledger(ended)
    flush_journal(100)
    Injection.objects.all().update(at=NOW)
    newest = last_journalled_id()

    assert [clean(stage, now=after(11)) for stage in ("injections", "ledger_ends")] == [1, 0]

    assert last_journalled_id() == newest
    assert [row.event for row in Injection.objects.all()] == [Injection.Event.ENDED]


def test_a_preview_says_what_goes_and_why(owner: Owner) -> None:
    talk(owner, 1)
    Conversation.objects.all().update(updated_at=NOW - timedelta(days=4_000))
    output = StringIO()

    call_command("preview_retention", "--account", "workshop", "--json", stdout=output)
    call_command("preview_retention", stdout=StringIO())

    [archived, *others] = json.loads(output.getvalue())["workshop"]
    assert (archived["rule"], archived["rows"], archived["examples"]) == ("conversations", 1, ["c1"])
    assert "archive_after_days" in archived["reason"]
    assert [each["rows"] for each in others] == [0] * 7
    assert not find_conversation(owner, "c1").archived


def test_a_conversation_is_unarchived_over_http(api: ServiceClient, bound_api: ServiceClient, owner: Owner) -> None:
    talk(owner, 1)
    clean("conversations", now=after(91))
    talk(Owner(account_id=owner.account_id, agent_id="colleague"), 1, conversation_id="c2")

    answer = api.post("/conversations/c1/unarchive", {})

    assert (answer.status_code, answer.json()["archived"]) == (200, False)
    assert not Turn.objects.filter(archived=True).exists()
    assert api.post("/conversations/c1/unarchive", {}).status_code == 200
    assert bound_api.post("/conversations/c2/unarchive", {}).status_code == 404

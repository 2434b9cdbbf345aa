"""Turns of former versions are linked to those that they replace."""

from dataclasses import replace

import pytest

from memory.maintenance import Batch
from memory.maintenance.conversation_jobs import link_replacements
from memory.models import Account, Conversation, Link
from memory.owner import Owner
from tests.memory.episodes import NOW
from tests.memory.services.test_replacements import BEFORE, NOW_TRUE, links, store_statement

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def store_as_before(owner: Owner, *, talk: str = "") -> None:
    """Store two statements as they were stored before turns were compared."""
    store_statement(owner, BEFORE, days_ago=6, conversation_id=f"mon{talk}")
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id=f"sat{talk}")
    Link.objects.filter(type="REPLACES").delete()
    Conversation.objects.update(replacements_due=True)


def test_turns_of_former_versions_are_linked_once(owner: Owner) -> None:
    store_as_before(owner)

    done, again = (link_replacements(now=NOW, batch=Batch(size=10)) for _ in range(2))

    assert list(links()) == [(NOW_TRUE, BEFORE)]
    assert (done.changed, done.figures["links_made"], done.cursor) == (2, 1, "")
    assert (again.examined, again.changed) == (0, 0)


def test_a_new_conversation_is_not_due(owner: Owner) -> None:
    store_statement(owner, BEFORE, days_ago=6, conversation_id="mon")

    assert link_replacements(now=NOW, batch=Batch(size=10)).examined == 0


def test_a_run_goes_on_where_it_was_stopped(owner: Owner) -> None:
    store_as_before(owner)

    first = link_replacements(now=NOW, batch=Batch(size=1))

    assert (first.changed, first.cursor) == (1, "1")
    assert link_replacements(now=NOW, batch=Batch(size=1, cursor=first.cursor)).cursor == ""
    assert list(links()) == [(NOW_TRUE, BEFORE)]


def test_each_account_has_its_share_of_a_batch(owner: Owner, stranger: Account) -> None:
    for number in range(3):
        store_as_before(replace(owner, user_id=f"user-{number}"), talk=f"-{number}")
    store_as_before(Owner(account_id=stranger.id, agent_id="assistant"))

    link_replacements(now=NOW, batch=Batch(size=4))

    assert not Conversation.objects.filter(account_id=stranger.id, replacements_due=True).exists()
    assert Conversation.objects.filter(account_id=owner.account_id, replacements_due=True).count() == 4


def test_a_dry_run_counts_conversations_and_changes_nothing(owner: Owner) -> None:
    store_as_before(owner)

    assert link_replacements(now=NOW, batch=Batch(size=1, dry_run=True)).changed == 2
    assert links() == {}

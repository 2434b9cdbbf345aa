"""Conversations that several write to at the same time: who locks, locks in one order, and nobody waits for ever."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from memory import conf
from memory.maintenance import Batch, archive_conversations
from memory.models import Memory
from memory.owner import Owner
from memory.services import corrections
from memory.services.conversation_corrections import archive_conversation, delete_conversation, unarchive_conversation
from tests.beside import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOW
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

DUE = NOW + timedelta(days=conf.RETENTION_DAYS, seconds=1)
Act = Callable[[Owner], Any]


@pytest.mark.parametrize(
    ("act", "archived"),
    [
        (lambda staff: archive_conversation(staff, "c1", now=NOW), False),
        (lambda staff: unarchive_conversation(staff, "c1", now=NOW), True),
        (lambda staff: delete_conversation(staff, "c1"), False),
        (lambda staff: archive_conversations.run(now=DUE, batch=Batch(size=10)), False),
    ],
    ids=["archive", "unarchive", "delete", "job"],
)
def test_turns_are_locked_in_the_order_of_their_ids(
    owner: Owner, start_beside: Start, monkeypatch: pytest.MonkeyPatch, act: Act, archived: bool
) -> None:
    monkeypatch.setattr(corrections, "ROWS_A_TRANSACTION", 1)
    talk(owner, 2)
    low, high = Memory.objects.order_by("id").values_list("id", flat=True)
    Memory.objects.update(archived=archived)
    # written anew, it lies behind the other one
    Memory.objects.filter(id=low).update(salience=0.9)

    with transaction.atomic():
        Memory.objects.select_for_update().get(id=low)
        acting = start_beside(lambda: act(Owner(account_id=owner.account_id)))
        Memory.objects.select_for_update().get(id=high)

    acting.result(PATIENCE_SECONDS)

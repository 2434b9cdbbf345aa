"""The stage `ledgers` of the job `cleanup`: ledgers that nobody ends are cleared after a while."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ledger import store
from ledger.journal import flush_everything
from memory import conf
from memory.maintenance.base import Batch
from memory.maintenance.retention_jobs import end_idle_ledgers
from memory.owner import Owner
from memory_project.redis import ConversationRef

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

LATER = timedelta(days=conf.LEDGER_RETENTION_DAYS, minutes=1)


def mark_some(owner: Owner, *conversation_ids: str) -> list[ConversationRef]:
    refs = [ConversationRef(account_id=owner.account_id, conversation_id=each) for each in conversation_ids]
    for ref in refs:
        store.mark(ref, "skill:x")
    flush_everything()
    return refs


def test_idle_ledgers_are_cleared_batch_by_batch(owner: Owner) -> None:
    refs = mark_some(owner, "c1", "c2", "c:3")
    store.end_ledger(refs[1])
    flush_everything()
    now, cursor, changed = timezone.now() + LATER, "", 0

    while True:
        report = end_idle_ledgers(now=now, batch=Batch(size=1, cursor=cursor))
        changed, cursor = changed + report.changed, report.cursor
        if not cursor:
            break

    assert changed == 2
    assert [store.get_all(ref) for ref in refs] == [{}, {}, {}]
    flush_everything()
    assert end_idle_ledgers(now=now, batch=Batch(size=10)).examined == 0


def test_a_ledger_in_use_and_a_dry_run_change_nothing(owner: Owner) -> None:
    [ref] = mark_some(owner, "c1")
    now = timezone.now()

    fresh = end_idle_ledgers(now=now, batch=Batch(size=10))
    dry = end_idle_ledgers(now=now + LATER, batch=Batch(size=10, dry_run=True))

    assert (fresh.examined, dry.changed, store.get_all(ref)) == (0, 1, {"skill:x": "injected"})

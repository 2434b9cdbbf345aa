"""Bulk changes are requested with the ids of their rows, and done page by page, each page in one transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import DataError, IntegrityError, transaction
from django.db.models import F

from memory.audit import record_audit
from memory.errors import MemoryServiceError, Unprocessable, require_found
from memory.models import BulkChange, BulkChangePage
from memory.owner import Owner
from memory.services.bulk.actions import MAX_REFUSALS, BulkAction, BulkResult, find_action
from memory.services.row_changes import model_named, watch_rows
from memory_project.batches import batched
from memory_project.staff import STAFF_ACTOR, limit_of

PAGE_ROWS = 100
"""Rows of a transaction. A change of no more rows is made by the request that asks for it."""
PAGES_PER_STATEMENT = 200
MAX_BULK_ROWS = 500_000
"""Rows of one bulk change. Staff are asked to choose fewer."""


def request_bulk_change(
    owner: Owner, row_ids: Iterable[UUID], *, model: str, action: str, reason: str, undoes: UUID | None = None
) -> BulkChange:
    """Queue an action on these rows of the account, with an audit entry that has the reason. Changes no row yet.

    Raises NotFound for an unknown action, and Unprocessable without a reason or with too many rows.
    """
    find_action(model, action)
    if not reason.strip():
        raise Unprocessable("a bulk change needs a reason")
    with transaction.atomic():
        change = BulkChange.objects.create(
            account_id=owner.account_id, model=model, action=action, reason=reason, requested_by=owner.actor,
            undoes=undoes,
        )  # fmt: skip
        total = store_pages(change, row_ids)
        if total > MAX_BULK_ROWS:
            raise Unprocessable(f"a bulk change has at most {MAX_BULK_ROWS:,} rows")
        BulkChange.objects.filter(account_id=owner.account_id, id=change.id).update(total=total)
        audit_change(owner, change, "bulk_change", total)
    change.refresh_from_db()
    return change


def store_pages(change: BulkChange, row_ids: Iterable[UUID]) -> int:
    """Store the ids in pages and return their number, at most one page more than MAX_BULK_ROWS."""
    pages, total = BulkChangePage.objects, 0
    each_page = enumerate(batched(row_ids, PAGE_ROWS))
    for some in batched(each_page, PAGES_PER_STATEMENT):
        pages.bulk_create(
            BulkChangePage(account_id=change.account_id, change_id=change.pk, number=number, row_ids=ids)
            for number, ids in some
        )
        total += sum(len(ids) for _, ids in some)
        if total > MAX_BULK_ROWS:
            break
    return total


def continue_bulk_change(account_id: UUID, change_id: UUID, *, now: datetime) -> BulkChange:
    """Do the next page of a bulk change in one transaction, and return the change. Does nothing if it is finished.

    The change stops, with the reason among its refusals, if who requested it may no longer make it, or if the page is
    refused as a whole. Raises NotFound for an unknown change and for an action that this version does not know, with
    which another worker goes on, and RedisError and OperationalError.
    """
    mine = BulkChange.objects.filter(account_id=account_id, id=change_id)
    with transaction.atomic():
        change = require_found(mine.select_for_update(of=("self",)).first(), "bulk change")
        if change.status not in BulkChange.UNFINISHED:
            return change
        waiting = BulkChangePage.objects.filter(account_id=account_id, change_id=change_id, done_at=None)
        page = waiting.order_by("number").first()
        refusal = find_withdrawn_right(change, find_action(change.model, change.action))
        if page is not None and not refusal:
            refusal = do_page(change, page, now=now)
        if refusal:
            refusals = [refusal, *change.refusals][:MAX_REFUSALS]
            mine.update(status=BulkChange.Status.STOPPED, finished_at=now, refusals=refusals)
            audit_change(owner_of(change), change, "bulk_change_stopped", change.changed)
        elif not waiting.exists():
            mine.update(status=BulkChange.Status.COMPLETED, finished_at=now)
    change.refresh_from_db()
    return change


def owner_of(change: BulkChange) -> Owner:
    return Owner(account_id=change.account_id, actor=change.requested_by)


def find_withdrawn_right(change: BulkChange, action: BulkAction) -> str:
    """Return why the member of staff who requested the change may not make it any more, or "" for one who may."""
    if not change.requested_by.startswith(STAFF_ACTOR):
        return ""
    user = find_requester(change.requested_by)
    if user is None:
        return "who requested it is not an active member of staff any more"
    if not user.has_perm(action.codename):
        return "who requested it may not do this to such rows any more"
    limit = limit_of(user)
    return "" if limit is None or change.account_id in limit else "who requested it may not see this account any more"


def find_requester(actor: str) -> Any:
    """Return the active member of staff with this name in the audit log, which cuts long ones; None without one."""
    name = actor.removeprefix(STAFF_ACTOR)
    is_cut = len(actor) == BulkChange._meta.get_field("requested_by").max_length
    users = get_user_model()._default_manager.filter(is_active=True, is_staff=True)
    found = list(users.filter(**{"username__startswith" if is_cut else "username": name})[:2])
    return found[0] if len(found) == 1 else None


def do_page(change: BulkChange, page: BulkChangePage, *, now: datetime) -> str:
    """Do a page and count it. Return why it was refused as a whole, with nothing changed, or ""."""
    try:
        with transaction.atomic():
            notes = watch_rows(change.account_id, model_named(change.model), page.row_ids, reason=change.reason)
            owner = replace(owner_of(change), changes=notes)
            count_page(change, page, apply_page(owner, change, page, now=now))
    except MemoryServiceError as err:
        return str(err)
    except (IntegrityError, DataError) as err:
        return f"the database refused to change a page of rows ({type(err).__name__})"
    return ""


def apply_page(owner: Owner, change: BulkChange, page: BulkChangePage, *, now: datetime) -> BulkResult:
    """Act on the rows of the page, or undo what was done to them, and store which of them were changed."""
    action = find_action(change.model, change.action)
    apply = action.apply if change.undoes is None else action.undo
    if apply is None:
        raise Unprocessable("this action cannot be undone")
    done = apply(owner, page.row_ids, now)
    pages = BulkChangePage.objects.filter(account_id=page.account_id, id=page.id)
    pages.update(changed_ids=list(done.changed), done_at=now)
    return done


def count_page(change: BulkChange, page: BulkChangePage, done: BulkResult) -> None:
    """Add a page to the figures of its bulk change."""
    BulkChange.objects.filter(account_id=change.account_id, id=change.id).update(
        status=BulkChange.Status.RUNNING,
        examined=F("examined") + len(page.row_ids),
        changed=F("changed") + len(done.changed),
        refused=F("refused") + done.refused,
        refusals=sorted({*change.refusals, *done.refusals})[:MAX_REFUSALS],
    )


def stop_bulk_change(owner: Owner, change_id: UUID, *, now: datetime) -> BulkChange:
    """Stop a bulk change after its current page. What was done stays. Raises NotFound, and Unprocessable at its end."""
    with transaction.atomic():
        mine = BulkChange.objects.filter(account_id=owner.account_id, id=change_id)
        change = require_found(mine.select_for_update(of=("self",)).first(), "bulk change")
        if change.status not in BulkChange.UNFINISHED:
            raise Unprocessable("the bulk change has ended already")
        mine.update(status=BulkChange.Status.STOPPED, finished_at=now)
        audit_change(owner, change, "bulk_change_stopped", change.changed)
    change.refresh_from_db()
    return change


def request_undo(owner: Owner, change_id: UUID, *, reason: str) -> BulkChange:
    """Queue a bulk change that undoes another one: for the rows that it changed, and no others.

    Raises NotFound, and Unprocessable if it still runs, was undone already, or cannot be undone.
    """
    with transaction.atomic():
        mine = BulkChange.objects.filter(account_id=owner.account_id, id=change_id)
        change = require_found(mine.select_for_update(of=("self",)).first(), "bulk change")
        if change.undoes is not None or find_action(change.model, change.action).undo is None:
            raise Unprocessable("this bulk change cannot be undone")
        if change.status in BulkChange.UNFINISHED:
            raise Unprocessable("the bulk change is still running; stop it first")
        if change.undone_by is not None:
            raise Unprocessable("the bulk change was undone already")
        undoing = request_bulk_change(
            owner, changed_ids(change), model=change.model, action=change.action, reason=reason, undoes=change.id
        )
        mine.update(undone_by=undoing.id)
    return undoing


def changed_ids(change: BulkChange) -> Iterator[UUID]:
    pages = BulkChangePage.objects.filter(account_id=change.account_id, change_id=change.pk, done_at__isnull=False)
    for ids in pages.order_by("number").values_list("changed_ids", flat=True):
        yield from ids


def audit_change(owner: Owner, change: BulkChange, operation: str, rows: int) -> None:
    """Log the bulk change itself. Its rows are logged by what changes them."""
    what = {"model": change.model, "action": change.action, "reason": change.reason, "undoes": str(change.undoes or "")}
    record_audit(
        owner,
        operation=operation,
        memory_type="bulk",
        affected_ids=[change.id],
        result_count=rows,
        config_snapshot=what,
    )

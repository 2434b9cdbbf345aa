"""Erasing a user (B7) or what a filter finds: requests, their progress, and the receipts.

An erasure goes over all stores again until a whole pass finds nothing, and at least ERASURE_WAIT_SECONDS after its
request: by then, requests that had begun before have ended. Each batch is a transaction that also keeps the place.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory import conf
from memory.audit import record_audit
from memory.errors import Conflict, NotFound, Unprocessable, require_found
from memory.models import Account, Erasure, JobRun
from memory.owner import Owner
from memory.services.conversations.lifecycle import is_valid_id
from memory.services.custody.account_steps import ACCOUNT_STEPS, finish_deletion, has_running_jobs
from memory.services.custody.marks import digest_subject, is_signed, sign_receipt
from memory.services.custody.naming import Naming
from memory.services.custody.steps import (
    FILTER_STEPS,
    FIRST_ID,
    SCANNED_ROWS,
    SUBJECT_STEPS,
    Selection,
    Step,
    conversations_of,
    filtered_memories,
)
from memory.services.custody.stores import StoreRule, find_named, has_user, rule_of, tables
from memory.services.operations.jobs import request_installation_run, request_run

ERASE_JOB = "erase"
RECEIPT_FORMAT = 1
MAX_REASON_CHARACTERS = 500
Status = Erasure.Status
STEPS: Mapping[str, Mapping[str, Step]] = {
    Erasure.Scope.SUBJECT: SUBJECT_STEPS,
    Erasure.Scope.FILTER: FILTER_STEPS,
    Erasure.Scope.ACCOUNT: ACCOUNT_STEPS,
}
"""The steps of an erasure by its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureFilter:
    """Memories to erase: those of a user, of a channel, from before a time. At least one is given."""

    user_id: str = ""
    channel: str = ""
    before: datetime | None = None

    def to_selection(self, owner: Owner) -> Selection:
        """Return the selection. Raises Unprocessable for a filter that finds everything."""
        if not (self.user_id or self.channel or self.before):
            raise Unprocessable("a filter needs at least one of user_id, channel and before")
        return Selection(owner=owner, user_id=self.user_id, channel=self.channel, before=self.before)


def preview_subject(owner: Owner, user_id: str, *, with_names: bool = True) -> dict[str, int]:
    """Return how many rows of each table erasing the user would erase or change. Redis is not counted.

    Rows that only name the user are counted `with_names`, which reads every row of the account.
    """
    check_user_id(user_id)
    selection = Selection(owner=owner, user_id=user_id)
    counts = Counter({"conversations": conversations_of(selection).count()})
    for name, model in tables().items():
        if has_user(model) and name != "conversations":
            counts[name] += model._default_manager.filter(account_id=owner.account_id, user_id=user_id).count()
        if not with_names or rule_of(model) is StoreRule.KEEP:
            continue
        if name not in ("memory_terms", "memory_vectors", "conversations"):
            counts[f"{name} that name the user"] += count_named(owner, name, user_id)
    return dict(+counts)


def count_named(owner: Owner, table: str, user_id: str) -> int:
    """Return how many rows of a table name the user."""
    found, after = 0, FIRST_ID
    while True:
        ids, last = find_named(tables()[table], owner.account_id, Naming(user_id), after=after, scan=SCANNED_ROWS)
        found += len(ids)
        if last is None:
            return found
        after = last


def preview_filter(owner: Owner, wanted: ErasureFilter) -> dict[str, int]:
    """Return how many memories of each kind the filter finds; what is derived from them comes on top."""
    rows = filtered_memories(wanted.to_selection(owner))
    return dict(Counter(rows.order_by().values_list("kind", flat=True)))


def check_user_id(user_id: str) -> None:
    if not is_valid_id(user_id):
        raise Unprocessable("a user id has 1 to 100 characters, no NUL and no lone surrogate")


def check_reason(reason: str, user_id: str) -> None:
    """Raise Unprocessable for a reason that names the user whose memories are erased."""
    if user_id and (Naming(user_id).is_in(reason) or user_id in reason.split()):
        raise Unprocessable("the reason must not name the user: it stays in the receipt")


def request_subject(owner: Owner, user_id: str, *, reason: str = "", now: datetime) -> Erasure:
    """Mark a user as erased, so that nothing may name it any more, and queue the erasure.

    Returns the unfinished one if there is one. Raises Unprocessable for a reason that names the user.
    """
    check_user_id(user_id)
    check_reason(reason, user_id)
    digest = digest_subject(owner.account_id, user_id)
    # before the mark: who reads the account from now on looks for it
    Account.objects.filter(id=owner.account_id, has_erasures=False).update(has_erasures=True)
    draft = Erasure(
        account_id=owner.account_id,
        scope=Erasure.Scope.SUBJECT,
        subject_digest=digest,
        selection={"user_id": user_id},
        reason=reason[:MAX_REASON_CHARACTERS],
    )
    try:
        with transaction.atomic():
            return queue_erasure(owner, draft, now=now)
    except IntegrityError:  # erasure_of_subject_once_at_a_time
        rows = Erasure.objects.in_account(owner.account_id).filter(subject_digest=digest)
        return require_found(rows.unfinished().first(), "unfinished erasure of this user")


def request_filter(owner: Owner, wanted: ErasureFilter, *, reason: str = "", now: datetime) -> Erasure:
    """Queue the erasure of the memories that a filter finds when it runs, and that the owner may change.

    Raises Unprocessable for a filter that finds everything, and for a reason that names the user of the filter.
    """
    selection = wanted.to_selection(owner)
    check_reason(reason, selection.user_id)
    values = {"user_id": selection.user_id, "channel": selection.channel, "agent_id": owner.agent_id}
    values |= {"before": selection.before.isoformat() if selection.before else "", "acting_user": owner.user_id}
    values |= {"limited": "yes" if owner.limited_to_user else ""}
    draft = Erasure(
        account_id=owner.account_id, scope=Erasure.Scope.FILTER, selection=values, reason=reason[:MAX_REASON_CHARACTERS]
    )
    with transaction.atomic():
        return queue_erasure(owner, draft, now=now)


def queue_erasure(owner: Owner, draft: Erasure, *, now: datetime) -> Erasure:
    draft.requested_by, draft.requested_at = owner.actor, now
    draft.save(force_insert=True)
    actor = Owner(account_id=owner.account_id, actor=owner.actor)
    record_audit(actor, operation="erase", memory_type=draft.scope, affected_ids=[draft.id])
    if draft.scope == Erasure.Scope.ACCOUNT:
        # a run of the account would go with it before it ends
        request_installation_run(owner.actor, job=ERASE_JOB)
    elif not JobRun.objects.filter(account_id=owner.account_id, job=ERASE_JOB).queued().exists():
        request_run(actor, job=ERASE_JOB)
    return draft


def find_erasure(owner: Owner, erasure_id: UUID) -> Erasure:
    """Return an erasure of the account. Raises NotFound."""
    return require_found(Erasure.objects.in_account(owner.account_id).filter(id=erasure_id).first(), "erasure")


def find_subject(owner: Owner, user_id: str) -> Erasure:
    """Return the latest erasure of a user. Raises NotFound."""
    check_user_id(user_id)
    rows = Erasure.objects.in_account(owner.account_id).filter(subject_digest=digest_subject(owner.account_id, user_id))
    return require_found(rows.order_by("-id").first(), "erasure of this user")


def selection_of(erasure: Erasure) -> Selection:
    values: dict[str, Any] = dict(erasure.selection)
    owner = Owner(
        account_id=erasure.account_id,
        agent_id=values.get("agent_id", ""),
        user_id=values.get("acting_user", ""),
        limited_to_user=bool(values.get("limited")),
        actor=f"erasure:{erasure.id}",
    )
    before = values.get("before", "")
    return Selection(
        owner=owner,
        user_id=values.get("user_id", ""),
        channel=values.get("channel", ""),
        before=datetime.fromisoformat(before) if before else None,
        conversations=values.get("conversations", ()),
    )


def continue_erasure(account_id: UUID, erasure_id: UUID, *, now: datetime) -> Erasure:
    """Do the next batch of an erasure in one transaction, and return its row as it is then.

    `step` is empty between two passes: while the erasure has to wait, a batch does nothing. Raises NotFound.
    """
    with transaction.atomic():
        rows = Erasure.objects.in_account(account_id).filter(id=erasure_id).select_for_update(no_key=True)
        erasure = require_found(rows.first(), "erasure")
        if erasure.status == Status.COMPLETED:
            return erasure
        erasure.status, erasure.started_at = Status.RUNNING, erasure.started_at or now
        if erasure.step or not erasure.passes or has_settled(erasure, now=now):
            do_batch(erasure, STEPS[erasure.scope], now=now)
        if erasure.scope == Erasure.Scope.ACCOUNT and erasure.status == Status.COMPLETED:
            finish_deletion(erasure)
        else:
            erasure.save()
    return erasure


def has_settled(erasure: Erasure, *, now: datetime) -> bool:
    """Return True if requests that had begun before the erasure was requested have ended, and work that it cancelled.

    That work has lost its claim and stores nothing, but it may still hold texts of the user, or wait for a model.
    """
    requests_ended = erasure.requested_at + timedelta(seconds=conf.ERASURE_WAIT_SECONDS)
    return now >= max(requests_ended, read_lease(erasure) or requests_ended)


def read_lease(erasure: Erasure) -> datetime | None:
    """Return the time by which the last lease of cancelled work has run out; None if there was none."""
    text: str = erasure.selection.get("leased_until", "")
    return datetime.fromisoformat(text) if text else None


def do_batch(erasure: Erasure, steps: Mapping[str, Step], *, now: datetime) -> None:
    """Do the next batch, and set the columns that say where the erasure is then."""
    names = list(steps)
    name = erasure.step or names[0]
    report = steps[name](selection_of(erasure), erasure.cursor, now)
    counts = Counter(erasure.counts) + Counter(report.counts)
    erasure.counts, erasure.found = dict(counts), erasure.found + sum(report.counts.values())
    if report.conversations:
        known = list(erasure.selection.get("conversations", ()))
        erasure.selection = {**erasure.selection, "conversations": [*known, *report.conversations]}
    if report.leased_until:
        latest = max(report.leased_until, read_lease(erasure) or report.leased_until)
        erasure.selection = {**erasure.selection, "leased_until": latest.isoformat()}
    erasure.step, erasure.cursor = name, report.cursor
    if report.cursor:
        return
    following = names[names.index(name) + 1 :]
    erasure.step = following[0] if following else ""
    if not following:
        end_pass(erasure, now=now)


def end_pass(erasure: Erasure, *, now: datetime) -> None:
    """Complete the erasure if the pass found nothing, or begin another."""
    is_last = not erasure.found and has_settled(erasure, now=now)
    if erasure.scope == Erasure.Scope.ACCOUNT:
        is_last = is_last and not has_running_jobs(erasure.account_id)
    erasure.passes, erasure.found = erasure.passes + 1, 0
    if is_last or erasure.scope == Erasure.Scope.FILTER:
        erasure.status, erasure.completed_at, erasure.selection = Status.COMPLETED, now, None
        erasure.receipt = build_receipt(erasure)
        erasure.signature = sign_receipt(erasure.receipt)


def build_receipt(erasure: Erasure) -> dict[str, Any]:
    """Return what the receipt of a completed erasure says. It does not name the user."""
    return {
        "format": RECEIPT_FORMAT,
        "erasure_id": str(erasure.id),
        "account_id": str(erasure.account_id),
        "scope": erasure.scope,
        "subject_digest": erasure.subject_digest,
        "reason": erasure.reason,
        "requested_by": erasure.requested_by,
        "requested_at": erasure.requested_at.isoformat(),
        "completed_at": erasure.completed_at.isoformat() if erasure.completed_at else "",
        "passes": erasure.passes,
        "counts": dict(sorted(erasure.counts.items())),
    }


def verify_receipt(owner: Owner, receipt: Mapping[str, Any], signature: str) -> bool:
    """Return True if this installation signed exactly this receipt, for the owner's account."""
    return receipt.get("account_id") == str(owner.account_id) and is_signed(receipt, signature)


def readmit_user(owner: Owner, user_id: str, *, now: datetime) -> None:
    """Lift the marks of an erased user, who may be written to again.

    Raises NotFound if the user was not erased, Conflict while the erasure is going on.
    """
    check_user_id(user_id)
    digest = digest_subject(owner.account_id, user_id)
    with transaction.atomic():
        rows = Erasure.objects.refusing(owner.account_id, digest).order_by("id").select_for_update(no_key=True)
        found = list(rows)
        if not found:
            raise NotFound("no such mark")
        if any(each.status != Status.COMPLETED for each in found):
            raise Conflict("the user is being erased: try again when that is completed")
        ids = [each.id for each in found]
        Erasure.objects.in_account(owner.account_id).filter(id__in=ids).update(lifted_at=now)
        actor = Owner(account_id=owner.account_id, actor=owner.actor)
        record_audit(actor, operation="lift", memory_type="subject", affected_ids=ids)

"""Deleting an account: what it would delete, and the request, which the job of erasures carries out."""

from datetime import datetime

from django.db import transaction

from memory.errors import Conflict, Unprocessable, require_found
from memory.models import Account, ApiKey, Erasure
from memory.owner import Owner
from memory.services.accounts.register import revoke_keys
from memory.services.custody.account_steps import list_tables
from memory.services.custody.stores import tables
from memory.services.custody.subjects import MAX_REASON_CHARACTERS, queue_erasure

MAX_COUNTED = 10_000
"""Rows of a table that a preview counts at most."""


def preview_account(owner: Owner) -> dict[str, int]:
    """Return how many rows of each table deleting the account would delete. MAX_COUNTED + 1 means more than that."""
    counts = {}
    for name in list_tables():
        rows = tables()[name]._default_manager.filter(account_id=owner.account_id)
        if count := rows.order_by().values("pk")[: MAX_COUNTED + 1].count():
            counts[name] = count
    return counts


def request_account_deletion(owner: Owner, *, reason: str, now: datetime) -> Erasure:
    """Revoke the keys of the account and queue its deletion with all that is in it, for good.

    Returns the unfinished one if there is one. Raises Unprocessable without a reason, Conflict for an account under a
    legal hold, NotFound.
    """
    if not reason.strip():
        raise Unprocessable("deleting an account needs a reason")
    with transaction.atomic():
        rows = Account.objects.select_for_update(no_key=True).filter(id=owner.account_id)
        account = require_found(rows.first(), "account")
        if account.legal_hold:
            raise Conflict("the account is under a legal hold: lift that first")
        scope = Erasure.Scope.ACCOUNT
        waiting = Erasure.objects.in_account(account.id).unfinished().filter(scope=scope).first()
        if waiting is not None:
            return waiting
        keys = ApiKey.objects.filter(account_id=account.id).values_list("id", flat=True)
        revoke_keys(owner, list(keys), now=now)
        draft = Erasure(account_id=account.id, scope=scope, selection={}, reason=reason[:MAX_REASON_CHARACTERS])
        return queue_erasure(owner, draft, now=now)

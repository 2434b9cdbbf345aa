"""Claims of due rows, fair between accounts: each account with due rows gets an equal share of a batch.

So an account with a million rows in a queue does not hold up the others. Rows are claimed one account after another,
which is also the only way in which rows of a distributed table can be locked.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memory import conf
from memory.services.account_walk import accounts_that_have

Row = TypeVar("Row", bound=Model)
T = TypeVar("T")


def lock_due_rows(due: QuerySet[Row], *, order_by: str, limit: int, account_id: UUID | None) -> list[Row]:
    """Lock at most `limit` rows of the query in the transaction, earliest first, skipping locked ones.

    Shared out among the accounts as `take_shares` does it.
    """

    def lock_first(rows: QuerySet[Row], share: int) -> QuerySet[Row]:
        return rows.order_by(order_by, "id").select_for_update(skip_locked=True, no_key=True)[:share]

    return take_shares(due, lock_first, limit=limit, account_id=account_id)


def take_shares(
    due: QuerySet[Row], take: Callable[[QuerySet[Row], int], Iterable[T]], *, limit: int, account_id: UUID | None
) -> list[T]:
    """Return what `take` takes of each account's rows of the query, if at most its share; `limit` in all.

    Without an account, the rows are shared out among at most `limit` of the accounts that have any, chosen at random.
    What an account leaves of its share goes to those after it. One statement to find them, besides those of `take`.
    """
    accounts = [account_id] if account_id is not None else accounts_with(due, limit=limit)
    taken: list[T] = []
    for number, each in enumerate(accounts):
        share = -(-(limit - len(taken)) // (len(accounts) - number))
        taken += take(due.filter(account_id=each), share)
    return taken


def has_due_rows(due: QuerySet[Any], *, account_id: UUID | None) -> bool:
    """Return whether the query has rows, of the account or of any."""
    return bool(accounts_with(due, limit=1)) if account_id is None else due.filter(account_id=account_id).exists()


def count_due_rows(due: QuerySet[Any], *, account_id: UUID | None) -> int:
    """Return the number of rows in the query, of the account or of all."""
    return due.count() if account_id is None else due.filter(account_id=account_id).count()


def accounts_with(due: QuerySet[Any], *, limit: int) -> list[UUID]:
    """Return at most `limit` accounts that have rows in the query, in random order."""
    return list(accounts_that_have(due).order_by("?").values_list("id", flat=True)[:limit])


def backoff(work: str, attempts: int) -> timedelta:
    """Return the wait after a number of attempts: the base, doubled with each attempt, up to the limit.

    Both are settings whose names begin with the `work`, such as EMBED_BACKOFF_SECONDS and EMBED_BACKOFF_LIMIT_SECONDS.
    """
    wait_seconds = getattr(conf, f"{work}_BACKOFF_SECONDS") * 2 ** min(attempts - 1, 20)
    return timedelta(seconds=min(wait_seconds, getattr(conf, f"{work}_BACKOFF_LIMIT_SECONDS")))

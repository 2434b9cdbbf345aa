"""Claims of due rows, fair between accounts: each account with due rows gets an equal share of a batch.

So an account with a million rows in a queue does not hold up the others. Rows are claimed one account after another,
which is also the only way in which rows of a distributed table can be locked.
"""

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Exists, Model, OuterRef, QuerySet

from memory.models import Account

Row = TypeVar("Row", bound=Model)


def lock_due_rows(due: QuerySet[Row], *, order_by: str, limit: int, account_id: UUID | None) -> list[Row]:
    """Lock at most `limit` rows of the query in the transaction, earliest first, skipping locked ones.

    Without an account, the rows are shared out among at most `limit` of the accounts that have any, chosen at random.
    What an account leaves of its share goes to those after it. One statement to find them, and one for each.
    """
    accounts = [account_id] if account_id is not None else accounts_with(due, limit=limit)
    locked: list[Row] = []
    for number, each in enumerate(accounts):
        share = -(-(limit - len(locked)) // (len(accounts) - number))
        rows: Any = due.filter(account_id=each).order_by(order_by, "id")
        locked += rows.select_for_update(skip_locked=True, no_key=True)[:share]
    return locked


def accounts_with(due: QuerySet[Row], *, limit: int) -> list[UUID]:
    """Return at most `limit` accounts that have rows in the query, in random order."""
    rows_of_account = due.order_by().filter(account_id=OuterRef("id"))
    return list(Account.objects.filter(Exists(rows_of_account)).order_by("?").values_list("id", flat=True)[:limit])

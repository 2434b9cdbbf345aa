"""Batches of jobs, and walks through rows of all accounts, one account after the other.

So each statement reads rows of one account.

Jobs use them for rows that stay where they are when they were looked at. Rows that leave a queue when they are claimed
are shared out among the accounts instead (`services.claims`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from memory.models import Account

Row = TypeVar("Row", bound=Model)
T = TypeVar("T")
FIRST_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage(Generic[T]):
    """The next rows of a walk. `cursor` is where the next page begins, empty if no rows are left."""

    rows: Sequence[T]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch to do: at most `size` rows after `cursor` (that of the last report), in one account or in all of them."""

    size: int
    cursor: str = ""
    account_id: UUID | None = None
    dry_run: bool = False
    """Count without changing anything; `changed` is then how many rows would have changed."""
    is_resumed: bool = field(default=False, compare=False)
    """True if a worker died on this batch before."""
    renew: Callable[[], None] = field(default=lambda: None, compare=False)
    """Renew the lease, from within a batch that may outlast it. Raises if another worker has taken over."""

    def page_of(self, rows: QuerySet[Row], *, order_by: str = "id") -> AccountPage[Row]:
        """Return the rows of this batch, by account and `order_by`, and the cursor of the next."""
        return read_account_page(
            rows, after=self.cursor, limit=self.size, account_id=self.account_id, order_by=order_by
        )


def throttled(renew: Callable[[], None], *, seconds: float) -> Callable[[], None]:
    """Return a function that calls `renew`, but not more often than every so many seconds."""
    called_at = monotonic()

    def call() -> None:
        nonlocal called_at
        if monotonic() - called_at >= seconds:
            renew()
            called_at = monotonic()

    return call


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """The result of one batch; on a dry run, `changed` is what would have been changed.

    `cursor` (at most 200 characters) is where the next batch starts, and never where this one did; it is empty when
    nothing is left. `stopped` says that a model is down and further batches are of no use. `figures` are further counts
    of the job, which a run adds up.
    """

    examined: int
    changed: int
    failed: int = 0
    cursor: str = ""
    stopped: bool = False
    figures: Mapping[str, int] = field(default_factory=dict)


def read_account_page(
    rows: QuerySet[Row], *, after: str, limit: int, account_id: UUID | None, order_by: str = "id"
) -> AccountPage[Row]:
    """Return the next `limit` rows of the query behind the cursor `after`: of one account, or of all by account id.

    Within an account, they are in the order of a column with ids or times, then of their ids.
    """

    def read(account_id: UUID, place: str, room: int) -> QuerySet[Row]:
        behind = is_behind(place, order_by) if place else Q()
        return rows.filter(behind, account_id=account_id).order_by(*dict.fromkeys((order_by, "id")))[:room]

    found: list[Any] = walk_accounts(rows, read, after=after, limit=limit, account_id=account_id)
    cursor = f"{found[-1].account_id}/{format_place(found[-1], order_by)}" if len(found) == limit else ""
    return AccountPage(rows=found, cursor=cursor)


def walk_accounts(
    rows: QuerySet[Any],
    read: Callable[[UUID, str, int], Iterable[T]],
    *,
    after: str,
    limit: int,
    account_id: UUID | None,
) -> list[T]:
    """Return the next `limit` of what `read` reads of the accounts with rows in the query, by the accounts' ids.

    `read` is given an account, the place in it to begin behind, and how many are wanted at most. `after` is empty, or
    an account, a slash and a place. Besides those of `read`, one statement for each account and a last one.
    """
    account, _, place = after.partition("/")
    current = account_id or (UUID(account) if account else next_account_with(rows))
    found: list[T] = []
    while current is not None:
        found += read(current, place, limit - len(found))
        if account_id is not None or len(found) == limit:
            break
        current, place = next_account_with(rows, after=current), ""
    return found


def next_account_with(rows: QuerySet[Any], *, after: UUID | None = None) -> UUID | None:
    """Return the next account behind this one, by id, that has rows in the query, or None if there is none."""
    accounts = accounts_that_have(rows).filter(id__gt=after or FIRST_ID)
    return accounts.order_by("id").values_list("id", flat=True).first()


def accounts_that_have(rows: QuerySet[Any]) -> QuerySet[Account]:
    """Return the accounts that have rows in the query.

    A distributed database gathers the rows' accounts from all machines: it refuses to look rows up for each account.
    """
    if settings.DATABASE_IS_DISTRIBUTED:
        return Account.objects.filter(id__in=rows.order_by().values("account_id").distinct())
    return Account.objects.filter(Exists(rows.order_by().filter(account_id=OuterRef("id"))))


def group_by_account(rows: Iterable[T]) -> dict[UUID, list[T]]:
    """Return rows, or what else has an `account_id`, by account, in their order."""
    found: dict[UUID, list[T]] = {}
    for row in rows:
        found.setdefault(cast("Any", row).account_id, []).append(row)
    return found


def format_place(row: Any, order_by: str) -> str:
    return str(row.id) if order_by == "id" else f"{getattr(row, order_by).isoformat()},{row.id}"


def is_behind(place: str, order_by: str) -> Q:
    """Match the rows of an account behind the place of one of them."""
    time, _, row_id = place.rpartition(",")
    if order_by == "id":
        return Q(id__gt=UUID(row_id))
    at = datetime.fromisoformat(time)
    # the first condition is for the index
    return Q(**{f"{order_by}__gte": at}) & (Q(**{f"{order_by}__gt": at}) | Q(id__gt=UUID(row_id)))

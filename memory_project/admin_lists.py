"""Change lists of the admin over tables that have no end."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from memory_project.staff import limit_rows, visible_accounts

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

MAX_COUNTED = 10_000
MAX_ACCOUNTS = 30


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # has no parameter at run time
    """Counts no further than MOST_COUNTED rows and one: exact below, "more than" above, never a scan of the table."""

    most_counted = MAX_COUNTED

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        return int(rows.order_by().values("pk")[: MAX_COUNTED + 1].count())

    @property
    def is_bounded(self) -> bool:
        """True if there are more rows than the pages reach."""
        return self.count > MAX_COUNTED


class AccountFilter(admin.SimpleListFilter):
    """Filter by account.

    Offers the first accounts by name; an account's own page links to the lists of that account.
    """

    title = "account"
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        every = limit_rows(apps.get_model("memory", "Account")._default_manager.all(), request)
        accounts = list(every.order_by("name").values_list("id", "name")[: MAX_ACCOUNTS + 1])
        offered = [(str(id_), name) for id_, name in accounts[:MAX_ACCOUNTS]]
        if len(accounts) > MAX_ACCOUNTS:
            offered.append(("more", "… more: choose under Accounts"))
        return offered

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        account_id = chosen_account(request)
        return queryset.none() if account_id is None else queryset.filter(account_id=account_id)


def chosen_account(request: HttpRequest) -> UUID | None:
    """Return the account that the list is narrowed to, or the only one that the request may see.

    Return None for several accounts, for malformed ids and for accounts that it may not see.
    """
    visible, given = visible_accounts(request), request.GET.get(AccountFilter.parameter_name, "")
    if not given and visible is not None and len(visible) == 1:
        return next(iter(visible))
    account_id = read_uuid(given)
    return account_id if visible is None or account_id in visible else None


def read_uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None

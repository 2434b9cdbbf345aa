"""Template tags of the admin's first page and of the top of all pages, loaded as `admin_index` (see the settings)."""

from typing import Any
from uuid import UUID

from django import template
from django.db.models import Q
from django.http import HttpRequest

from memory.admin.text import excerpt_of
from memory.models import Account, FactReview
from memory_project.staff import is_limited, limit_and_choice, limit_rows

MAX_COUNTED = 1_000
MAX_OFFERED = 50
"""Accounts that the switcher offers, besides the chosen one."""

register = template.Library()


@register.simple_tag(takes_context=True)
def open_review_count(context: Any) -> str:
    """Return how many reviews are open, counted up to a limit.

    Return "" if there are none or the user may not see them.
    """
    request: HttpRequest = context["request"]
    if not request.user.has_perm("memory.view_factreview"):
        return ""
    rows = limit_rows(FactReview.objects.filter(status=FactReview.Status.OPEN), request)
    count = rows.values("pk")[: MAX_COUNTED + 1].count()
    return f"more than {MAX_COUNTED:,}" if count > MAX_COUNTED else str(count or "")


@register.simple_tag(takes_context=True)
def is_limited_to_accounts(context: Any) -> bool:
    """Return whether the member of staff is limited to some accounts."""
    return is_limited(context["request"])


@register.inclusion_tag("admin/memory/account_switcher.html", takes_context=True)
def account_switcher(context: Any) -> dict[str, Any]:
    """Return the accounts to choose from, the chosen one first. One who is limited to a single account has no choice.

    Nothing is offered to a user who is not signed in as staff.
    """
    request: HttpRequest = context["request"]
    user: Any = request.user
    if not (user.is_active and user.is_staff):
        return {"offered": []}
    limit, chosen = limit_and_choice(request)
    may_list = limit is not None or user.has_perm("memory.view_account")
    offered = read_offered(limit, chosen) if may_list else []
    is_only = limit is not None and len(offered) == 1
    return {"offered": offered, "chosen": str(chosen or ""), "is_only": is_only, "is_limited": limit is not None}


def read_offered(limit: frozenset[UUID] | None, chosen: UUID | None) -> list[tuple[str, str]]:
    """Return the ids and names of accounts: the chosen one, then the first ones by name."""
    rows = Account.objects.all() if limit is None else Account.objects.filter(pk__in=limit)
    first = rows.order_by("name").values("pk")[:MAX_OFFERED]
    # in one statement, since every page asks it
    found = rows.filter(Q(pk=chosen) | Q(pk__in=first)).order_by("name").values_list("id", "name")
    return [(str(id_), excerpt_of(name)) for id_, name in found]

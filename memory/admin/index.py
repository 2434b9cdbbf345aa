"""Template tags of all pages of the admin: menu, search box and account switcher, loaded as `admin_index`."""

from typing import Any
from uuid import UUID

from django import template
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse

from memory.admin.navigation import list_menu
from memory.admin.text import excerpt_of
from memory.models import Account
from memory_project.staff import limit_and_choice

MAX_OFFERED = 50
"""Accounts that the switcher offers, besides the chosen one."""

register = template.Library()


@register.inclusion_tag("admin/memory/menu.html", takes_context=True)
def console_menu(context: Any) -> dict[str, Any]:
    """Return the menu of all pages (`memory.admin.navigation`)."""
    request: HttpRequest = context["request"]
    home_url = reverse("admin:index")
    menu = list_menu(request, context.get("available_apps") or ())
    return {"groups": menu, "home_url": home_url, "is_home": request.path == home_url}


@register.inclusion_tag("admin/memory/search_box.html", takes_context=True)
def console_search(context: Any) -> dict[str, Any]:
    """Return the search box of all pages, with what was searched for."""
    request: HttpRequest = context["request"]
    url = reverse("search:page")
    return {"url": url, "typed": request.GET.get("q", "") if request.path == url else ""}


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

"""The menu on all pages: the lists and other pages that a member of staff may open, in groups.

A new list needs a line in `GROUPS`; `tests/memory/admin/test_navigation.py` finds lists without one. A page of its own,
which is no model's list, is a `Page`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that is no model's list. Whoever has the permission may open it; "" for all staff."""

    label: str
    url_name: str
    permission: str = ""


GROUPS: Mapping[str, Sequence[str | Page]] = {
    "Memories": (
        "memory.memory", "memory.episodicmemory", "memory.agentshorttermmemory", "memory.workingmemoryaccount",
        "memory.savedworkingmemory", "memory.valueaccount", "memory.userprofile", "memory.vector", "memory.link",
        Page(label="Playground", url_name="playground:page", permission="memory.view_memory"),
        Page(label="Remember something", url_name="remember:page", permission="memory.add_fact"),
    ),
    "Conversations": (
        "memory.conversation", "memory.turn", "memory.turnrecord", "memory.turnslot", "memory.participant",
        "memory.ledgeraccount", "ledger.injection",
    ),
    "Knowledge": (
        Page(label="Inbox", url_name="inbox:page", permission="memory.view_memory"),
        "memory.fact", "memory.factreview", "memory.facttombstone", "memory.entity", "memory.learning",
        "memory.learningvote",
    ),
    "Work": (
        "memory.goal", "memory.workepisode", "memory.artifact", "memory.strategy", "memory.strategyuse", "memory.tool",
        "memory.toolinvocation", "memory.workflowrun",
    ),
    "Sharing": (
        "memory.persistentcontext", "memory.contextentry", "memory.contextsnapshot", "memory.contextaccesslog",
        "memory.memorypool", "memory.blackboardposting", "memory.toolcacheentry", "memory.team", "memory.teammember",
    ),
    "Operations": (
        "memory.jobrun", "memory.bulkchange", "memory.auditentry", "memory.modelusage", "memory.erasure",
        "memory.idempotentrequest",
    ),
    "Access": (
        "memory.account", "memory.agent", "memory.apikey", "auth.user", "auth.group", "otp_totp.totpdevice",
        Page(label="Your two-factor authentication", url_name="totp:page"),
    ),
}  # fmt: skip
"""The groups with their lists, as labels of models, and pages."""

LABELS = {"memory.memory": "All memories"}
"""Labels of lists whose names are not those of their models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuLink:
    label: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuGroup:
    name: str
    links: Sequence[MenuLink]

    @property
    def is_open(self) -> bool:
        return any(link.is_current for link in self.links)


def list_menu(request: HttpRequest, apps: Iterable[Mapping[str, Any]]) -> list[MenuGroup]:
    """Return the groups of what the user may open. `apps` are those of Django's `each_context`."""
    lists = {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in apps
        for model in app["models"]
        if model["admin_url"]
    }
    groups = (MenuGroup(name=name, links=list(list_links(request, items, lists))) for name, items in GROUPS.items())
    return [group for group in groups if group.links]


def list_links(
    request: HttpRequest, items: Iterable[str | Page], lists: Mapping[str, Mapping[str, Any]]
) -> Iterator[MenuLink]:
    for item in items:
        if isinstance(item, Page):
            user: Any = request.user
            if user.has_perm(item.permission) if item.permission else user.is_staff:
                yield menu_link(request, item.label, reverse(item.url_name))
        elif item in lists:
            name = str(lists[item]["name"])
            yield menu_link(request, LABELS.get(item, name[:1].upper() + name[1:]), lists[item]["admin_url"])


def menu_link(request: HttpRequest, label: str, url: str) -> MenuLink:
    return MenuLink(label=label, url=url, is_current=request.path.startswith(url))

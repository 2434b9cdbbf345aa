"""Goals: as memories are, and as trees on a page of their own; each opens as its story, and ends there."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from memory.admin.base import describe_deletion
from memory.admin.deeds import ClaimField, Deed, DeedPages, holder_owner
from memory.admin.fields import PlainTextField
from memory.admin.goal_stories import describe_state, read_story
from memory.admin.goal_trees import SHOWN, read_related, read_tree_below, read_trees
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible
from memory.models import Account, Goal
from memory.owner import Owner
from memory.services.goals.plan import LARGEST_PRIORITY, block_goal, complete_goal, unblock_goal
from memory.services.goals.staff_edits import erase_goal
from memory_project.admin_lists import AccountFilter, chosen_account

MOST_ACCOUNTS = 50


class GoalForm(MemoryForm):
    """Whose it is stays, and its status follows from what is done on the page."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]
    priority = forms.IntegerField(
        min_value=-LARGEST_PRIORITY, max_value=LARGEST_PRIORITY, help_text="The greater, the more it matters."
    )
    result = PlainTextField(required=False, widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}))


class EndForm(forms.Form):
    result = ClaimField(required=False, label="What came of it")


class BlockForm(forms.Form):
    by = forms.UUIDField(label="By goal", help_text="Its id.")


def complete(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    return end(owner, goal, Goal.Status.COMPLETED, data["result"])


def abandon(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    return end(owner, goal, Goal.Status.ABANDONED, data["result"])


def end(owner: Owner, goal: Goal, status: Goal.Status, result: str) -> str:
    ended = complete_goal(owner, goal.pk, status=status, result=result, now=datetime.now(UTC))
    freed = f" What waited for it alone goes on: {len(ended.unblocked)}." if ended.unblocked else ""
    return f"{status.label}.{freed}"


def block(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    block_goal(owner, goal.pk, by=data["by"], now=datetime.now(UTC))
    return "Blocked, until that goal is completed or abandoned."


def unblock(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    unblock_goal(owner, goal.pk, by=data["by"], now=datetime.now(UTC))
    return "Taken out of its way."


@admin.register(Goal)
class GoalAdmin(DeedPages, MemoryPages):
    form = GoalForm
    change_list_template = "admin/memory/goal/change_list.html"
    change_form_template = "admin/memory/goal/change_form.html"
    list_display = (
        "excerpt", "status", "priority", "due", "state", "agent_id", "user_id", "channel", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", *MemoryPages.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "result")
    correctable = (
        "text", "priority", "deadline", "result", "event_time", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    shown = ("status", "completed_at", "user_id", "channel", *MemoryPages.shown)
    deeds = {
        "complete": Deed(run=complete, form=EndForm),
        "abandon": Deed(run=abandon, form=EndForm),
        "block": Deed(run=block, form=BlockForm),
        "unblock": Deed(run=unblock, form=BlockForm),
    }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., HttpResponse] = self.admin_site.admin_view(self.tree_view)
        return [path("tree/", view, name="memory_goal_tree"), *super().get_urls()]

    @admin.display(description="Deadline")
    def due(self, goal: Goal) -> str:
        return "-" if goal.deadline is None else f"{goal.deadline:%Y-%m-%d %H:%M}"

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        erase_goal(holder_owner(request, obj), obj.pk, now=datetime.now(UTC))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for goal in queryset.defer(*self.long_columns):
            self.delete_model(request, goal)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "with vectors and links: what waited for them alone goes on, what was below them has no parent"
        return describe_deletion(objs, also)

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        now = datetime.now(UTC)
        return {
            "tree": read_tree_below(row, now=now),
            **read_related(row),
            **describe_state(row, now=now),
            "story": read_story(request, row, now=now),
        }

    def tree_view(self, request: HttpRequest) -> HttpResponse:
        """The trees of an account, open goals alone unless asked for more."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        accounts = list(Account.objects.order_by("name").values_list("id", "name")[:MOST_ACCOUNTS])
        account_id = chosen_account(request) or (accounts[0][0] if accounts else None)
        show = request.GET.get("show", "open")
        show = show if show in SHOWN else "open"
        page = read_page(request)
        now = datetime.now(UTC)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Goals as trees",
            "accounts": [(str(id_), mark_invisible(name)) for id_, name in accounts],
            "account_id": str(account_id or ""),
            "show": show,
            "page": page,
            "tree": read_trees(account_id, show=show, page=page, now=now) if account_id else None,
        }
        return TemplateResponse(request, "admin/memory/goal/tree.html", context)


def read_page(request: HttpRequest) -> int:
    """A page's number, from 0 on; 0 for nonsense."""
    text = request.GET.get("p", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0

"""Goals: with their activity and their tree; completed, abandoned, blocked and unblocked on their pages."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from memory.admin.base import BoundedAdmin, holder_owner, read_number
from memory.admin.columns import time_column
from memory.admin.fields import PlainTextField
from memory.admin.goal_activity import format_result, read_activity
from memory.admin.goal_trees import SHOWN_CONDITIONS, read_related_goals, read_tree_below, read_trees
from memory.admin.memories import LONG_COLUMNS, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.object_actions import ChangeFormActionAdmin, ObjectAction
from memory.admin.text import excerpt_of, mark_invisible
from memory.kinds import spec_of
from memory.models import Account, Goal, Kind
from memory.owner import Owner
from memory.services.goals.plan import MAX_PRIORITY, block_goal, complete_goal, erase_goal, unblock_goal
from memory_project.admin_lists import AccountFilter, chosen_account
from memory_project.staff import limit_rows

MAX_ACCOUNTS = 50
CORRECTABLE_COLUMNS = tuple(
    column.name for column in Goal._meta.local_fields if column.name in spec_of(Kind.GOAL).correctable
)
"""Columns of its own that the declaration of the kind lets staff edit, in the order of the model."""


class GoalForm(OwnedMemoryForm):
    """The status follows from the actions on the page."""

    priority = forms.IntegerField(
        min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY, help_text="Goals with a greater number come first."
    )
    result = PlainTextField(rows=3, required=False)


class EndGoalForm(forms.Form):
    result = PlainTextField(rows=2, required=False, label="Result")


class CompleteGoalForm(EndGoalForm):
    force = forms.BooleanField(
        required=False,
        label="Complete although it is blocked",
        help_text="Without this, a goal that waits for goals that are not completed is left as it is.",
    )


class BlockForm(forms.Form):
    by = forms.UUIDField(label="Blocked by", help_text="The id of the goal that must be completed first.")


def end_goal(status: Goal.Status, owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    ended = complete_goal(owner, goal.pk, status=status, **data, now=datetime.now(UTC))
    count = len(ended.unblocked)
    unblocked = f" Goals that are no longer blocked: {count}." if count else ""
    return f"The goal is {status.label.lower()}.{unblocked}"


def block(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    block_goal(owner, goal.pk, by=data["by"], now=datetime.now(UTC))
    return "The goal is blocked until the other goal is completed."


def unblock(owner: Owner, goal: Goal, data: dict[str, Any]) -> str:
    unblock_goal(owner, goal.pk, by=data["by"], now=datetime.now(UTC))
    return "The goal is no longer blocked by the other goal."


@admin.register(Goal)
class GoalAdmin(ChangeFormActionAdmin, MemoryKindAdmin):
    form = GoalForm
    change_list_template = "admin/memory/goal/change_list.html"
    change_form_template = "admin/memory/goal/change_form.html"
    list_display = (
        "excerpt", "status", "priority", "due", "state", "agent_id", "user_id", "channel", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", *MemoryKindAdmin.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "result")
    editable_fields = ("text", *CORRECTABLE_COLUMNS, "event_time", "salience", "trust", "source", "metadata")
    detail_fields = ("status", "completed_at", "user_id", "channel", *MemoryKindAdmin.detail_fields)
    object_actions = {
        "complete": ObjectAction(run=partial(end_goal, Goal.Status.COMPLETED), form=CompleteGoalForm),
        "abandon": ObjectAction(run=partial(end_goal, Goal.Status.ABANDONED), form=EndGoalForm),
        "block": ObjectAction(run=block, form=BlockForm),
        "unblock": ObjectAction(run=unblock, form=BlockForm),
    }
    allow_add = False
    deletion_note = (
        "Their vectors and links are deleted too. Goals that only they blocked become active, and their subgoals have "
        "no parent."
    )

    due = time_column("Deadline", "deadline")
    # each is erased with what follows from it
    delete_rows = BoundedAdmin.delete_rows

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., HttpResponse] = self.admin_site.admin_view(self.tree_view)
        return [path("tree/", view, name="memory_goal_tree"), *super().get_urls()]

    def action_owner(self, request: HttpRequest, row: Any) -> Owner:
        return holder_owner(request, row)

    def remove_row(self, owner: Owner, row: Any) -> None:
        holder = replace(owner, agent_id=row.agent_id, user_id=row.user_id, channel=row.channel)
        erase_goal(holder, row.pk, now=datetime.now(UTC))

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        now = datetime.now(UTC)
        is_open = row.status in Goal.OPEN
        return {
            "subtitle": excerpt_of(row.text),
            "tree": read_tree_below(row, now=now),
            **read_related_goals(row),
            "is_open": is_open,
            "is_overdue": is_open and row.deadline is not None and row.deadline < now,
            "result": format_result(row),
            "holder": mark_invisible(", ".join(filter(None, [row.agent_id, row.user_id, row.channel]))),
            "activity": read_activity(request, row, now=now),
        }

    def tree_view(self, request: HttpRequest) -> HttpResponse:
        """Show the trees of an account, by default of open goals only."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        every = limit_rows(Account.objects.all(), request)
        accounts = list(every.order_by("name").values_list("id", "name")[:MAX_ACCOUNTS])
        account_id = chosen_account(request) or (accounts[0][0] if accounts else None)
        show = request.GET.get("show", "open")
        show = show if show in SHOWN_CONDITIONS else "open"
        page = read_page(request)
        context = {
            "accounts": [(str(id_), mark_invisible(name)) for id_, name in accounts],
            "account_id": str(account_id or ""),
            "show": show,
            "page": page,
            "tree": read_trees(account_id, show=show, page=page, now=datetime.now(UTC)) if account_id else None,
        }
        return self.render_page(request, "goal/tree.html", "Trees of goals", **context)


def read_page(request: HttpRequest) -> int:
    """Return the page number in the address, from 0; 0 for nonsense."""
    return read_number(request.GET.get("p", ""), max_digits=5) or 0

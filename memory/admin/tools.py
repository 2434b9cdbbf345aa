"""Tools and every use of them. Inputs and outputs are encrypted and shown only on the page of a use."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import AuditedAdmin
from memory.admin.columns import agent_column, change_url, column, list_link, row_link, text_column, turn_url
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import PlainTextField
from memory.admin.filters import LinkedRowFilter, RecentFilter
from memory.admin.text import excerpt_of, mark_invisible, render_json, text_excerpt
from memory.models import Conversation, StrategyTool, Tool, ToolInvocation
from memory_project.admin_lists import AccountFilter
from memory_project.encryption import SealBroken

MAX_STRATEGIES_SHOWN = 50
SEALED_COLUMNS = ("tool_input", "tool_output", "error_message")
UNREADABLE = (
    "This cannot be decrypted. It was encrypted with a key that is not in MEMORY_ENCRYPTION_KEYS, or it is damaged."
)


class ToolForm(forms.ModelForm):  # type: ignore[type-arg]
    description = PlainTextField(required=False)


def render_strategies(tool: Tool) -> SafeString | str:
    rows = StrategyTool.objects.filter(account_id=tool.account_id, tool=tool).order_by("-strategy_id")
    found = rows.values_list("strategy_id", text_excerpt("strategy__text"))[:MAX_STRATEGIES_SHOWN]
    links = ((row_link("strategy", strategy_id, excerpt_of(text)),) for strategy_id, text in found)
    return format_html_join("", "<div>{}</div>", links) or "none"


@admin.register(Tool)
class ToolAdmin(ListExportAdmin, AuditedAdmin):
    """The pages of tools, which exist from their first use on. Counts include uses that were deleted."""

    memory_type = "procedural"
    form = ToolForm
    list_display = ("named", "account", "uses", "latency", "last_used")
    list_filter = (AccountFilter,)
    search_fields = ("name",)
    search_help_text = "Search for a part of the name."
    long_columns = ("description",)
    detail_fields = readonly_fields = (
        "named", "account", "uses", "latency", "use_pages", "strategies", "created_at", "last_used", "id",
    )  # fmt: skip
    allow_add = False
    deletion_note = "All records of their use are deleted too, and strategies no longer refer to them."

    named = text_column("Tool", "name", empty="")
    uses = column(
        "Uses", lambda tool: f"{tool.usage_count:,}: {tool.success_count:,} succeeded, {tool.failure_count:,} failed"
    )
    latency = column("Average latency", lambda tool: format_latency(tool.avg_latency_ms))
    use_pages = column(
        "Uses",
        lambda tool: list_link(
            "toolinvocation", "Uses of this tool", account=tool.account_id, tool=tool.pk, since="ever"
        ),
    )
    strategies = column("Strategies that use it", render_strategies)

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        may_read = request.user.has_perm("memory.view_strategy")
        details = [name for name in self.detail_fields if may_read or name != "strategies"]
        return (("Content", {"fields": ("description",)}), ("Details", {"fields": details}))

    def name_row(self, row: Any) -> str:
        return mark_invisible(row.name)

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {"subtitle": excerpt_of(row.name)}


class ToolFilter(LinkedRowFilter):
    """A filter for one tool, set by a link on its page."""

    title = "tool"
    parameter_name = "tool"
    model = Tool
    column = "tool_name"
    attribute = "name"


def format_success(success: bool | None) -> str:
    return {True: "succeeded", False: "failed", None: "unknown"}[success]


def format_latency(latency_ms: float | None) -> str:
    return "unknown" if latency_ms is None else f"{latency_ms:,.0f} ms"


def name_conversation_turn(use: ToolInvocation) -> str:
    turn = "" if use.turn_index is None else f", turn {use.turn_index}"
    return f"{mark_invisible(use.conversation_id)}{turn}"


def render_conversation_turn(use: ToolInvocation) -> SafeString | str:
    rows = Conversation.objects.filter(account_id=use.account_id, conversation_id=use.conversation_id)
    row_id = rows.values_list("id", flat=True).first()
    name = name_conversation_turn(use)
    if row_id is None:
        return f"{name} (not found)"
    url = change_url("conversation", row_id) if use.turn_index is None else turn_url(row_id, use.turn_index)
    return format_html('<a href="{}">{}</a>', url, name)


def sealed_column(label: str, attribute: str) -> Any:
    """Return a column that decrypts and shows a sealed column of a use."""

    def render_sealed(use: ToolInvocation) -> SafeString | str:
        try:
            value = getattr(use, attribute)
        except (SealBroken, ImproperlyConfigured):
            return UNREADABLE
        return "none" if value is None or value == "" else render_json(value)

    return column(label, render_sealed)


@admin.register(ToolInvocation)
class ToolInvocationAdmin(ListExportAdmin, AuditedAdmin):
    """The uses of tools. Staff may delete one to get rid of its input and output."""

    memory_type = "procedural"
    list_display = ("tool_name_text", "time", "conversation_turn", "agent", "task", "outcome", "latency", "account")
    list_filter = (AccountFilter, RecentFilter, ToolFilter, "success")
    search_fields = ("tool_name__exact", "conversation_id__exact", "agent_id__exact", "task_type__exact")
    search_help_text = "Search for a complete tool, conversation, agent, type of task, or id."
    id_search_fields = ("id",)
    fields = (
        "tool_page", "time", "outcome", "latency", "input_json", "output_json", "error", "conversation_page", "agent",
        "user", "channel_text", "task", "account", "created_at", "id",
    )  # fmt: skip
    allow_add = allow_change = False
    deletion_note = "Their inputs and outputs are deleted too. The counts of the tools keep them."

    tool_name_text = text_column("Tool", "tool_name", empty="")
    tool_page = column("Tool", lambda use: row_link("tool", use.tool_id, mark_invisible(use.tool_name)))
    time = column("Time", lambda use: f"{use.timestamp:%Y-%m-%d %H:%M:%S} UTC")
    outcome = column("Outcome", lambda use: format_success(use.success))
    latency = column("Latency", lambda use: format_latency(use.latency_ms))
    conversation_turn = column("Conversation", name_conversation_turn)
    conversation_page = column("Conversation", render_conversation_turn)
    agent = agent_column()
    user = text_column("User", "user_id")
    channel_text = text_column("Channel", "channel")
    task = text_column("Type of task", "task_type")
    input_json = sealed_column("Input", "tool_input")
    output_json = sealed_column("Output", "tool_output")
    error = sealed_column("Error", "error_message")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolInvocation]:
        """Leave out the sealed columns. They are decrypted one by one, since a row that cannot be decrypted fails."""
        return super().get_queryset(request).defer(*SEALED_COLUMNS)

    def name_row(self, row: Any) -> str:
        return f"{mark_invisible(row.tool_name)} in {name_conversation_turn(row)}"

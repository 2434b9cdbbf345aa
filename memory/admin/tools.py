"""Tools, and every use of them. What went in and came out is encrypted: read on the use's own page, nowhere else."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import AuditedAdmin, describe_deletion
from memory.admin.documents import show_json
from memory.admin.fields import PlainTextField
from memory.admin.filters import RecentFilter
from memory.admin.text import mark_invisible, shorten
from memory.models import Conversation, StrategyTool, Tool, ToolInvocation
from memory_project.admin_lists import AccountFilter, read_uuid
from memory_project.encryption import SealBroken

MOST_STRATEGIES_NAMED = 50
SEALED = ("tool_input", "tool_output", "error_message")
UNREADABLE = "It cannot be read: it was sealed under another key than those in MEMORY_ENCRYPTION_KEYS, or is damaged."


class ToolForm(forms.ModelForm):  # type: ignore[type-arg]
    description = PlainTextField(required=False)


@admin.register(Tool)
class ToolAdmin(AuditedAdmin):
    """Made by their first use; here they are described. Counts are of all uses, deleted ones as well."""

    memory_type = "procedural"
    form = ToolForm
    list_display = ("named", "account", "uses", "latency", "last_used")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("name",)
    search_help_text = "Part of a name."
    shown = ("named", "account", "uses", "latency", "invocations", "strategies", "created_at", "last_used", "id")
    readonly_fields = shown

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        may_read = request.user.has_perm("memory.view_strategy")
        shown = [name for name in self.shown if may_read or name != "strategies"]
        return (("What it is for", {"fields": ("description",)}), ("What it is", {"fields": shown}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tool]:
        rows: QuerySet[Tool] = super().get_queryset(request)
        is_list = request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
        return rows.defer("description") if is_list else rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="Tool")
    def named(self, tool: Tool) -> str:
        return mark_invisible(tool.name)

    @admin.display(description="Uses")
    def uses(self, tool: Tool) -> str:
        return f"{tool.usage_count:,}: {tool.success_count:,} succeeded, {tool.failure_count:,} failed"

    @admin.display(description="Latency, on average")
    def latency(self, tool: Tool) -> str:
        return "unknown" if tool.avg_latency_ms is None else f"{tool.avg_latency_ms:,.0f} ms"

    @admin.display(description="Invocations")
    def invocations(self, tool: Tool) -> SafeString:
        query = urlencode({"account": str(tool.account_id), "tool": str(tool.pk), "since": "ever"})
        return format_html('<a href="{}?{}">The list of them</a>', reverse(INVOCATIONS), query)

    @admin.display(description="Strategies that call it")
    def strategies(self, tool: Tool) -> SafeString | str:
        rows = StrategyTool.objects.filter(account_id=tool.account_id, tool=tool).order_by("-strategy_id")
        found = rows.values_list("strategy_id", "strategy__text")[:MOST_STRATEGIES_NAMED]
        named = [(reverse("admin:memory_strategy_change", args=[pk]), shorten(text)) for pk, text in found]
        return format_html_join("", '<div><a href="{}">{}</a></div>', named) or "none"

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "and all records of their use; strategies no longer name them as theirs"
        return describe_deletion((mark_invisible(tool.name) for tool in objs), also)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        tool: Any = kwargs["obj"]
        headed = {**context, "subtitle": shorten(tool.name)}
        return super().render_change_form(request, headed, *args, **kwargs)


INVOCATIONS = "admin:memory_toolinvocation_changelist"


class ToolFilter(admin.SimpleListFilter):
    """One tool. Chosen by a link on its page; offered here is only the chosen one."""

    title = "tool"
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        tool_id = read_uuid(request.GET.get(self.parameter_name, ""))
        rows = Tool.objects.filter(id=tool_id) if tool_id else Tool.objects.none()
        self.chosen = rows.only("account_id", "name").first()
        return [(str(self.chosen.id), shorten(self.chosen.name))] if self.chosen else []

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.chosen is None:
            return queryset.none()
        # every index begins with the account
        return queryset.filter(account_id=self.chosen.account_id, tool_name=self.chosen.name)


@admin.register(ToolInvocation)
class ToolInvocationAdmin(AuditedAdmin):
    """A record: looked at, and deleted by who must be rid of what went in or came out."""

    memory_type = "procedural"
    list_display = (
        "by_tool", "at", "in_conversation", "by_agent", "of_task", "outcome", "took", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, RecentFilter, ToolFilter, "success")
    list_select_related = ("account",)
    search_fields = ("tool_name__exact", "conversation_id__exact", "agent_id__exact", "task_type__exact")
    search_help_text = "A tool, a conversation, an agent, a type of task, or an id, in full."
    fields = (
        "tool_page", "at", "outcome", "took", "given", "answered", "failed_with", "conversation_page", "by_agent",
        "by_user", "in_channel", "of_task", "account", "created_at", "id",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolInvocation]:
        """Without what is sealed: that is opened one by one, since a row that cannot be opened cannot be loaded."""
        return super().get_queryset(request).defer(*SEALED)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        row_id = read_uuid(search_term)
        if row_id is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(id=row_id), False

    @admin.display(description="Tool")
    def by_tool(self, use: ToolInvocation) -> str:
        return mark_invisible(use.tool_name)

    @admin.display(description="Tool")
    def tool_page(self, use: ToolInvocation) -> SafeString:
        url = reverse("admin:memory_tool_change", args=[use.tool_id])
        return format_html('<a href="{}">{}</a>', url, mark_invisible(use.tool_name))

    @admin.display(description="Time")
    def at(self, use: ToolInvocation) -> str:
        return f"{use.timestamp:%Y-%m-%d %H:%M:%S} UTC"

    @admin.display(description="Outcome")
    def outcome(self, use: ToolInvocation) -> str:
        return tell_success(use.success)

    @admin.display(description="Latency")
    def took(self, use: ToolInvocation) -> str:
        return tell_latency(use.latency_ms)

    @admin.display(description="Conversation")
    def in_conversation(self, use: ToolInvocation) -> str:
        return tell_place(use)

    @admin.display(description="Conversation")
    def conversation_page(self, use: ToolInvocation) -> SafeString | str:
        rows = Conversation.objects.filter(account_id=use.account_id, conversation_id=use.conversation_id)
        conversation_id = rows.values_list("id", flat=True).first()
        if conversation_id is None:
            return f"{tell_place(use)} (there is none)"
        page = reverse("admin:memory_conversation_change", args=[conversation_id])
        anchor = "" if use.turn_index is None else f"?turn={use.turn_index}#turn-{use.turn_index}"
        return format_html('<a href="{}{}">{}</a>', page, anchor, tell_place(use))

    @admin.display(description="Agent")
    def by_agent(self, use: ToolInvocation) -> str:
        return mark_invisible(use.agent_id) or "the account"

    @admin.display(description="User")
    def by_user(self, use: ToolInvocation) -> str:
        return mark_invisible(use.user_id) or "-"

    @admin.display(description="Channel")
    def in_channel(self, use: ToolInvocation) -> str:
        return mark_invisible(use.channel)

    @admin.display(description="Type of task")
    def of_task(self, use: ToolInvocation) -> str:
        return mark_invisible(use.task_type) or "-"

    @admin.display(description="Input")
    def given(self, use: ToolInvocation) -> SafeString | str:
        return unsealed(use, "tool_input")

    @admin.display(description="Output")
    def answered(self, use: ToolInvocation) -> SafeString | str:
        return unsealed(use, "tool_output")

    @admin.display(description="Error")
    def failed_with(self, use: ToolInvocation) -> SafeString | str:
        return unsealed(use, "error_message")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "and what went in and came out; the tool's counts keep them"
        return describe_deletion((f"{mark_invisible(use.tool_name)} in {tell_place(use)}" for use in objs), also)


def tell_success(success: bool | None) -> str:
    return {True: "succeeded", False: "failed", None: "nobody said"}[success]


def tell_latency(latency_ms: int | None) -> str:
    return "unknown" if latency_ms is None else f"{latency_ms:,} ms"


def tell_place(use: ToolInvocation) -> str:
    turn = "" if use.turn_index is None else f", turn {use.turn_index}"
    return f"{mark_invisible(use.conversation_id)}{turn}"


def unsealed(use: ToolInvocation, column: str) -> SafeString | str:
    try:
        value = getattr(use, column)
    except (SealBroken, ImproperlyConfigured):
        return UNREADABLE
    return "none" if value is None or value == "" else show_json(value)

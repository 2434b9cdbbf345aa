"""Strategies: as memories are, found by meaning, with how often they worked; and every use of them."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin
from memory.admin.deeds import Deed, DeedPages
from memory.admin.episodes import MeaningChangeList
from memory.admin.fields import ExternalIdField, PlainTextField
from memory.admin.meanings import MeaningPages
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.admin.workflow_runs import AgentIdsField
from memory.models import Conversation, Strategy, StrategyTool, StrategyUse
from memory.owner import Owner
from memory.retrieval.strategies import search_strategies
from memory.scoring import success_rate
from memory.services.strategies.learn import reinforce_strategy
from memory_project.admin_lists import AccountFilter, read_uuid

MOST_TOOLS_NAMED = 100


class StrategyChangeList(MeaningChangeList):
    search = staticmethod(search_strategies)


class StrategyForm(MemoryForm):
    """Its text follows from what is done, and when."""

    text = None  # type: ignore[assignment]
    description = PlainTextField(help_text="What is done; its text says when, besides.")
    context_pattern = PlainTextField(
        required=False, widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"})
    )
    task_type = ExternalIdField(required=False)
    tool_sequence = AgentIdsField(required=False, help_text="Tools in the order of their calls, a line each.")


def tell_rate(strategy: Strategy) -> str:
    """As it is weighed when a strategy is looked for."""
    rate = success_rate(strategy.success_count, strategy.failure_count)
    return f"{strategy.success_count} worked, {strategy.failure_count} did not: {rate:.2f}"


def count_success(owner: Owner, strategy: Any, data: dict[str, Any]) -> str:
    counted = reinforce_strategy(owner, strategy.pk, success=True, now=datetime.now(UTC))
    return f"Counted: {tell_rate(counted)}."


def count_failure(owner: Owner, strategy: Any, data: dict[str, Any]) -> str:
    counted = reinforce_strategy(owner, strategy.pk, success=False, now=datetime.now(UTC))
    return f"Counted: {tell_rate(counted)}."


@admin.register(Strategy)
class StrategyAdmin(MeaningPages, DeedPages, MemoryPages):
    """Learnt by agents. What it does is corrected here; how often it worked is counted."""

    form = StrategyForm
    change_form_template = "admin/memory/strategy/change_form.html"
    list_display = (
        "excerpt", "of_task", "tools", "rate", "last_used", "state", "agent_id", "user_id", "account",
    )  # fmt: skip
    long_columns = (*LONG_COLUMNS, "description", "context_pattern")
    correctable = ("description", "context_pattern", "task_type", "tool_sequence", *MemoryPages.correctable[1:])
    shown = ("rate", "uses_tools", "uses", "last_used", *MemoryPages.shown)
    deeds = {
        "worked": Deed(run=count_success),
        "did_not_work": Deed(run=count_failure),
    }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return StrategyChangeList

    @admin.display(description="Type of task")
    def of_task(self, strategy: Strategy) -> str:
        return mark_invisible(strategy.task_type) or "-"

    @admin.display(description="Tools")
    def tools(self, strategy: Strategy) -> str:
        return shorten(" → ".join(map(str, strategy.tool_sequence))) or "-"

    @admin.display(description="Success")
    def rate(self, strategy: Strategy) -> str:
        return tell_rate(strategy)

    @admin.display(description="Uses tools")
    def uses_tools(self, strategy: Strategy) -> SafeString | str:
        rows = StrategyTool.objects.filter(account_id=strategy.account_id, strategy=strategy).order_by("tool__name")
        named = [
            (reverse("admin:memory_tool_change", args=[tool_id]), mark_invisible(name))
            for tool_id, name in rows.values_list("tool_id", "tool__name")[:MOST_TOOLS_NAMED]
        ]
        return format_html_join(" · ", '<a href="{}">{}</a>', named) or "none"

    @admin.display(description="Uses")
    def uses(self, strategy: Strategy) -> SafeString:
        query = urlencode({"account": str(strategy.account_id), "q": str(strategy.pk)})
        url = reverse("admin:memory_strategyuse_changelist")
        return format_html('<a href="{}?{}">The list of them</a>', url, query)


@admin.register(StrategyUse)
class StrategyUseAdmin(ReadOnlyAdmin):
    """How a strategy did, in a conversation or none in particular."""

    list_display = ("used_at", "success", "of_strategy", "in_conversation", "by_agent", "account")
    list_filter = (AccountFilter, "success")
    search_fields = ("agent_id__exact",)
    search_help_text = "An agent, or the id of a strategy, in full."
    fields = ("used_at", "success", "of_strategy", "in_conversation", "by_agent", "account", "id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[StrategyUse]:
        rows: QuerySet[StrategyUse] = super().get_queryset(request)
        return rows.select_related("account", "conversation").only(
            *(field.attname for field in StrategyUse._meta.concrete_fields),
            "conversation__conversation_id", "account__name",
        )  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        strategy_id = read_uuid(search_term)
        if strategy_id is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(strategy_id=strategy_id), False

    @admin.display(description="Strategy")
    def of_strategy(self, use: StrategyUse) -> SafeString:
        url = reverse("admin:memory_strategy_change", args=[use.strategy_id])
        return format_html('<a href="{}">{}</a>', url, use.strategy_id)

    @admin.display(description="Conversation")
    def in_conversation(self, use: StrategyUse) -> SafeString | str:
        conversation: Conversation | None = use.conversation
        if conversation is None:
            return "none in particular"
        url = reverse("admin:memory_conversation_change", args=[conversation.pk])
        return format_html('<a href="{}">{}</a>', url, shorten(conversation.conversation_id))

    @admin.display(description="Agent")
    def by_agent(self, use: StrategyUse) -> str:
        return mark_invisible(use.agent_id) or "the account"

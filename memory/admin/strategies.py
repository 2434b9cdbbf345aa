"""Strategies: found by meaning, with how often they worked, and the uses of strategies."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin, holder_owner
from memory.admin.columns import agent_column, column, link_column, list_link, row_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, IdListField, PlainTextField
from memory.admin.memories import LONG_COLUMNS, MeaningSearchAdmin, MemoryForm, MemoryKindAdmin
from memory.admin.object_actions import ChangeFormActionAdmin, ObjectAction
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import Strategy, StrategyTool, StrategyUse
from memory.owner import Owner
from memory.retrieval.kind_searches import search_strategies
from memory.scoring import success_rate
from memory.services.strategies.learn import reinforce_strategy
from memory_project.admin_lists import AccountFilter

MAX_TOOLS_SHOWN = 100


class StrategyForm(MemoryForm):
    """The text follows from the description and the context pattern."""

    text = None  # type: ignore[assignment]
    description = PlainTextField(help_text="The steps of the strategy. Its text also names the situation.")
    context_pattern = PlainTextField(rows=3, required=False)
    task_type = ExternalIdField(required=False)
    tool_sequence = IdListField(required=False, help_text="The tools in the order of their calls, one per line.")


def format_rate(strategy: Strategy) -> str:
    """Return the uses and the success rate, as it is weighed when strategies are searched."""
    rate = success_rate(strategy.success_count, strategy.failure_count)
    return f"{strategy.success_count} worked, {strategy.failure_count} did not: {rate:.2f}"


def count_use(success: bool, owner: Owner, strategy: Strategy, data: dict[str, Any]) -> str:
    counted = reinforce_strategy(owner, strategy.pk, success=success, now=datetime.now(UTC))
    return f"The use is counted: {format_rate(counted)}."


def render_tools(strategy: Strategy) -> SafeString | str:
    rows = StrategyTool.objects.filter(account_id=strategy.account_id, strategy=strategy).order_by("tool__name")
    found = rows.values_list("tool_id", "tool__name")[:MAX_TOOLS_SHOWN]
    links = ((row_link("tool", tool_id, mark_invisible(name)),) for tool_id, name in found)
    return format_html_join(" · ", "{}", links) or "none"


@admin.register(Strategy)
class StrategyAdmin(MeaningSearchAdmin, ChangeFormActionAdmin):
    """The pages of strategies, which agents learn. Staff correct them and count uses."""

    form = StrategyForm
    meaning_search = staticmethod(search_strategies)
    change_form_template = "admin/memory/strategy/change_form.html"
    list_display = (
        "excerpt", "task_type_text", "tools", "rate", "last_used", "state", "agent_id", "user_id", "account",
    )  # fmt: skip
    long_columns = (*LONG_COLUMNS, "description", "context_pattern")
    editable_fields = (
        "description", "context_pattern", "task_type", "tool_sequence", *MemoryKindAdmin.editable_fields[1:],
    )  # fmt: skip
    detail_fields = ("rate", "tool_pages", "uses", "last_used", *MemoryKindAdmin.detail_fields)
    object_actions = {
        "worked": ObjectAction(run=partial(count_use, True)),
        "did_not_work": ObjectAction(run=partial(count_use, False)),
    }
    allow_add = False

    task_type_text = text_column("Type of task", "task_type")
    tools = column("Tools", lambda strategy: excerpt_of(" → ".join(map(str, strategy.tool_sequence))) or "-")
    rate = column("Success", format_rate)
    tool_pages = column("Tools", render_tools)
    uses = column(
        "Uses", lambda row: list_link("strategyuse", "Uses of this strategy", account=row.account_id, q=row.pk)
    )

    def action_owner(self, request: HttpRequest, row: Any) -> Owner:
        return holder_owner(request, row)

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {"subtitle": excerpt_of(row.text)}


def render_conversation(use: StrategyUse) -> SafeString | str:
    conversation = use.conversation
    if conversation is None:
        return "none"
    return row_link("conversation", conversation.pk, excerpt_of(conversation.conversation_id))


@admin.register(StrategyUse)
class StrategyUseAdmin(ListExportAdmin, ReadOnlyAdmin):
    """The uses of strategies, each with its outcome and the conversation, if there was one."""

    list_display = ("used_at", "success", "strategy_page", "conversation_page", "agent", "account")
    list_filter = (AccountFilter, "success")
    search_fields = ("agent_id__exact",)
    search_help_text = "Search for a complete agent, or for the id of a strategy."
    id_search_fields = ("strategy_id",)
    fields = ("used_at", "success", "strategy_page", "conversation_page", "agent", "account", "id")

    strategy_page = link_column("Strategy", "strategy", "strategy_id")
    conversation_page = column("Conversation", render_conversation)
    agent = agent_column()

    def get_queryset(self, request: HttpRequest) -> QuerySet[StrategyUse]:
        rows: QuerySet[StrategyUse] = super().get_queryset(request)
        return rows.select_related("account", "conversation").only(
            *(field.attname for field in StrategyUse._meta.concrete_fields),
            "conversation__conversation_id", "account__name",
        )  # fmt: skip

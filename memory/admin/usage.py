"""Use of language models and its cost, by day."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, Sum
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin
from memory.admin.change_lists import LeanChangeList
from memory.admin.columns import column, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.filters import ConditionFilter, RecentFilter
from memory.models import ModelUsage
from memory_project.admin_lists import AccountFilter

SUMMED = ("calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost")


class DayFilter(RecentFilter):
    title = "day"
    column = "day"
    spans = {"month": ("Past 30 days", timedelta(days=30)), "year": ("Past year", timedelta(days=365))}


class FailureFilter(ConditionFilter):
    title = "failures"
    parameter_name = "failed"
    options = {"some": ("Some calls failed", Q(failed_calls__gt=0)), "none": ("No failures", Q(failed_calls=0))}


class UsageChangeList(LeanChangeList):
    """The list and the sums of all its rows, which are few: one per day, account, use and model."""

    sums: dict[str, Any]
    totals = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        sums = self.sums = self.queryset.order_by().aggregate(**{name: Sum(name, default=0) for name in SUMMED})
        calls = format_calls(sums["calls"], sums["failed_calls"])
        tokens = format_tokens(sums["prompt_tokens"], sums["completion_tokens"])
        self.totals = f"Total: calls {calls}; tokens {tokens}; cost {format_cost(sums['cost'])}."


def format_calls(calls: int, failed: int) -> str:
    return f"{calls:,} ({failed:,} failed)" if failed else f"{calls:,}"


def format_tokens(prompt: int, completion: int) -> str:
    return f"{prompt:,} in, {completion:,} out"


def format_cost(cost: Decimal) -> str:
    """Format a cost with two decimals, or with as many as it has."""
    whole, _, decimals = f"{cost:f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2}"


@admin.register(ModelUsage)
class ModelUsageAdmin(ListExportAdmin, ReadOnlyAdmin):
    """The rows of the statistics. Providers count the tokens, and costs are at the prices of the time of the call."""

    change_list_template = "admin/memory/modelusage/change_list.html"
    list_display = ("date", "account", "use_name", "model_name", "call_counts", "tokens", "price")
    list_filter = (AccountFilter, DayFilter, FailureFilter)
    search_fields = ("use__exact", "model__exact")
    search_help_text = "Search for a complete use (such as summary) or model."
    ordering = ("-day", "-pk")
    counted_row, counted_rows = "row of model usage", "rows of model usage"

    date = column("Day", lambda usage: usage.day.isoformat())
    use_name = text_column("Use", "use", empty="")
    model_name = text_column("Model", "model", empty="")
    call_counts = column("Calls", lambda usage: format_calls(usage.calls, usage.failed_calls))
    tokens = column("Tokens", lambda usage: format_tokens(usage.prompt_tokens, usage.completion_tokens))
    price = column("Cost", lambda usage: format_cost(usage.cost))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return UsageChangeList

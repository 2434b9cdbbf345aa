"""What language models were asked for and what it cost, to look at."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet, Sum
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin
from memory.admin.filters import RecentFilter
from memory.admin.text import mark_invisible
from memory.models import ModelUsage
from memory_project.admin_lists import AccountFilter

SUMMED = ("calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost")


class DayFilter(RecentFilter):
    """Whole days."""

    title = "day"
    column = "day"
    spans = {"month": timedelta(days=30), "year": timedelta(days=365)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return (("month", "Past 30 days"), ("year", "Past year"), ("ever", "Any time"))


class FailureFilter(admin.SimpleListFilter):
    title = "failures"
    parameter_name = "failed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return (("some", "Some calls failed"), ("none", "None"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        conditions = {"some": {"failed_calls__gt": 0}, "none": {"failed_calls": 0}}
        return queryset.filter(**conditions.get(self.value() or "", {}))


class UsageChangeList(ChangeList):
    """The list and, above it, the sums of what it is narrowed to: a row a day, account, use and model are few."""

    sums: dict[str, Any]
    told = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        sums = self.sums = self.queryset.order_by().aggregate(**{name: Sum(name, default=0) for name in SUMMED})
        calls = tell_calls(sums["calls"], sums["failed_calls"])
        tokens = tell_tokens(sums["prompt_tokens"], sums["completion_tokens"])
        self.told = f"In all: calls {calls}; tokens {tokens}; cost {sums['cost']:f}."


def tell_calls(calls: int, failed: int) -> str:
    return f"{calls:,} ({failed:,} failed)" if failed else f"{calls:,}"


def tell_tokens(prompt: int, completion: int) -> str:
    return f"{prompt:,} in, {completion:,} out"


@admin.register(ModelUsage)
class ModelUsageAdmin(ReadOnlyAdmin):
    """Tokens are the provider's own count, costs by the prices of their moment."""

    change_list_template = "admin/memory/modelusage/change_list.html"
    list_display = ("on", "account", "used_for", "by_model", "answered", "tokens", "cost")
    list_filter = (AccountFilter, DayFilter, FailureFilter)
    list_select_related = ("account",)
    search_fields = ("use__exact", "model__exact")
    search_help_text = "A use (summary, …) or a model, in full."
    ordering = ("-day", "-pk")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return UsageChangeList

    @admin.display(description="Day")
    def on(self, usage: ModelUsage) -> str:
        return usage.day.isoformat()

    @admin.display(description="Calls")
    def answered(self, usage: ModelUsage) -> str:
        return tell_calls(usage.calls, usage.failed_calls)

    @admin.display(description="Tokens")
    def tokens(self, usage: ModelUsage) -> str:
        return tell_tokens(usage.prompt_tokens, usage.completion_tokens)

    @admin.display(description="Use")
    def used_for(self, usage: ModelUsage) -> str:
        return mark_invisible(usage.use)

    @admin.display(description="Model")
    def by_model(self, usage: ModelUsage) -> str:
        return mark_invisible(usage.model)

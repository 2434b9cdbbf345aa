"""Filters whose own queries are bounded: never every value of a column, never a count."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


class RecentFilter(admin.SimpleListFilter):
    """How far back to look; a week unless told otherwise, so that a list reads few partitions."""

    title = "time"
    parameter_name = "since"
    column = "timestamp"
    spans = {"hour": timedelta(hours=1), "day": timedelta(days=1), "month": timedelta(days=30)}
    default_span = timedelta(days=7)

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return (("hour", "Past hour"), ("day", "Past day"), ("month", "Past 30 days"), ("ever", "Any time"))

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        return [{**first, "display": "Past 7 days"}, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "ever":
            return queryset
        span = self.spans.get(self.value() or "", self.default_span)
        return queryset.filter(**{f"{self.column}__gte": datetime.now(UTC) - span})


class VectorFilter(admin.SimpleListFilter):
    """By whether a memory waits to be embedded."""

    title = "vector"
    parameter_name = "vector"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return (("stored", "Stored"), ("waiting", "Waits to be made"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("stored", "waiting"):
            return queryset
        return queryset.filter(embed_after__isnull=self.value() == "stored")


class OperationFilter(admin.SimpleListFilter):
    """The operations that the service records most; any other is found by searching for its name."""

    title = "operation"
    parameter_name = "operation"
    known = (
        "store", "retrieve", "update", "delete", "archive", "unarchive", "quarantine", "release", "pin", "unpin",
        "bury", "unbury", "embed", "create", "revoke", "run_job", "mark", "evict", "clear", "promote", "confirm",
        "correct", "supersede", "retract", "reject", "review", "lift", "merge", "split", "complete", "abandon",
        "block", "unblock", "reinforce", "deep_replay", "erase_audit", "set_audit_level",
    )  # fmt: skip

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.known]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(operation=self.value()) if self.value() else queryset

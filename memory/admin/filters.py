"""List filters whose own queries are bounded: they never read every value of a column and never count rows."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from memory.admin.text import excerpt_of
from memory_project.admin_lists import read_uuid
from memory_project.staff import limit_rows

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


class ConditionFilter(admin.SimpleListFilter):
    """A filter that offers fixed conditions: a label and a condition, possibly on the current time, per choice."""

    options: ClassVar[Mapping[str, tuple[str, Q | Callable[[datetime], Q]]]] = {}

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return [(value, label) for value, (label, _) in self.options.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        _, condition = self.options.get(self.value() or "", ("", Q()))
        return queryset.filter(condition if isinstance(condition, Q) else condition(datetime.now(UTC)))


class KnownValueFilter(admin.SimpleListFilter):
    """A filter for the most frequent values of the column `parameter_name`. Other values are found by searching."""

    known: ClassVar[tuple[str, ...]] = ()

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.known]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class LinkedFilter(admin.SimpleListFilter):
    """A filter that is set by a link on another page. It offers only the value that the link chose."""

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        chosen = request.GET.get(str(self.parameter_name), "")
        return [(chosen, excerpt_of(chosen))] if chosen else []

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class UserFilter(LinkedFilter):
    """A linked filter for the rows of one user. A search also finds rows of others that hold the id as a word."""

    title = "user"
    parameter_name = "user_id"


class LinkedRowFilter(LinkedFilter):
    """A linked filter for one row of `model`: the list's `column` equals the row's `attribute`."""

    model: ClassVar[type[Model]]
    column: ClassVar[str]
    attribute: ClassVar[str] = "id"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        row_id = read_uuid(request.GET.get(str(self.parameter_name), ""))
        rows = limit_rows(self.model._default_manager.filter(pk=row_id), request)
        self.chosen = rows.only("account_id", "name").first() if row_id else None
        return [(str(self.chosen.pk), excerpt_of(self.chosen.name))] if self.chosen else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.chosen is None:
            return queryset.none()
        # every index begins with the account
        value = getattr(self.chosen, self.attribute)
        return queryset.filter(**{"account_id": self.chosen.account_id, self.column: value})


class NarrowingFilter(admin.SimpleListFilter):
    """A filter that leaves rows out without a choice, too: then the list has those `which_rows`, of "{nouns}"."""

    which_rows: ClassVar[str]
    everything: ClassVar[str]
    """The choice that leaves nothing out."""


class RecentFilter(NarrowingFilter):
    """A filter for how far back to look. Without a choice it is a week, so that a list reads few partitions."""

    title = "time"
    parameter_name = "since"
    which_rows, everything = "{nouns} of the past 7 days", "ever"
    column = "timestamp"
    spans: ClassVar[Mapping[str, tuple[str, timedelta]]] = {
        "hour": ("Past hour", timedelta(hours=1)),
        "day": ("Past day", timedelta(days=1)),
        "month": ("Past 30 days", timedelta(days=30)),
    }
    default_span = timedelta(days=7)

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[tuple[str, str]]:
        return [*((value, label) for value, (label, _) in self.spans.items()), (self.everything, "Any time")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        return [{**first, "display": "Past 7 days"}, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == self.everything:
            return queryset
        _, span = self.spans.get(self.value() or "", ("", self.default_span))
        return queryset.filter(**{f"{self.column}__gte": datetime.now(UTC) - span})


class VectorFilter(ConditionFilter):
    """A filter for memories whose vector is stored or still has to be made."""

    title = "vector"
    parameter_name = "vector"
    options = {
        "stored": ("Stored", Q(embed_after=None)),
        "waiting": ("Waiting for embedding", Q(embed_after__isnull=False)),
    }

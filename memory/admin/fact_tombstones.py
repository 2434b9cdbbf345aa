"""Tombstones of rejected facts: that something was rejected, by whom, and how often it was met since. Never what."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin, describe_deletion, staff_owner
from memory.admin.text import mark_invisible
from memory.models import FactTombstone
from memory.services.facts.tombstones import lift_tombstone
from memory_project.admin_lists import AccountFilter


class MetFilter(admin.SimpleListFilter):
    title = "met again"
    parameter_name = "met"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (("yes", "Yes"), ("no", "Not yet"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        conditions = {"yes": {"met_count__gt": 0}, "no": {"met_count": 0}}
        return queryset.filter(**conditions.get(self.value() or "", {}))


@admin.register(FactTombstone)
class FactTombstoneAdmin(ReadOnlyAdmin):
    """Lifted, the claim may be learnt again; what was rejected stays rejected. Deleting one is lifting it."""

    list_display = ("named", "account", "by", "rejected_at", "times_met", "last_met_at")
    list_filter = (AccountFilter, MetFilter)
    list_select_related = ("account",)
    search_fields = ("rejected_by__exact", "fact_digest__startswith")
    search_help_text = "Who rejected it, in full; or the beginning of a digest."
    actions = ("lift",)
    fields = (
        "named", "account", "by", "rejected_at", "about", "times_met", "last_met_at", "claim_digest", "fact_digest",
        "id",
    )  # fmt: skip

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return bool(request.user.has_perm("memory.delete_facttombstone"))

    def get_actions(self, request: HttpRequest) -> Any:
        """Without the action that deletes: lifting is the word for it."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.display(description="Tombstone")
    def named(self, tombstone: FactTombstone) -> str:
        return tombstone.fact_digest[:12]

    @admin.display(description="Rejected by")
    def by(self, tombstone: FactTombstone) -> str:
        return mark_invisible(tombstone.rejected_by) or "-"

    @admin.display(description="About")
    def about(self, tombstone: FactTombstone) -> str:
        digests: list[str] = tombstone.entity_digests
        return f"{len(digests)} names, as keyed digests" if digests else "nothing by name"

    @admin.display(description="Met again")
    def times_met(self, tombstone: FactTombstone) -> str:
        return f"{tombstone.met_count}×"

    @admin.action(description="Lift selected %(verbose_name_plural)s", permissions=["delete"])
    def lift(self, request: HttpRequest, queryset: QuerySet[FactTombstone]) -> None:
        lifted = 0
        for tombstone in queryset:
            lift_tombstone(staff_owner(request, tombstone.account_id), tombstone.pk)
            self.log_change(request, tombstone, "Lifted.")
            lifted += 1
        told = f"Lifted: {lifted}. The claims may be learnt again; what was rejected stays rejected."
        self.message_user(request, told, messages.SUCCESS)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        lift_tombstone(staff_owner(request, obj.account_id), obj.pk)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs, "so that the claim may be learnt again")

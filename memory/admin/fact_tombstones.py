"""Tombstones of rejected facts: who rejected something, and how often it was extracted again, but never what."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin, staff_owner
from memory.admin.columns import column, text_column
from memory.admin.filters import ConditionFilter
from memory.models import FactTombstone
from memory.owner import Owner
from memory.services.facts.tombstones import lift_tombstone
from memory_project.admin_lists import AccountFilter


class ExtractedAgainFilter(ConditionFilter):
    title = "extracted again"
    parameter_name = "met"
    options = {"yes": ("Yes", Q(met_count__gt=0)), "no": ("Not yet", Q(met_count=0))}


def describe_entities(tombstone: FactTombstone) -> str:
    count = len(tombstone.entity_digests)
    return f"{count} names, as keyed digests" if count else "no names"


def lift_row(owner: Owner, tombstone: FactTombstone) -> None:
    lift_tombstone(owner, tombstone.pk)


@admin.register(FactTombstone)
class FactTombstoneAdmin(ReadOnlyAdmin):
    """The pages of tombstones. Deleting one lifts it: the claim may be learned again, the fact stays rejected."""

    list_display = ("named", "account", "rejected_by_text", "rejected_at", "times_extracted", "last_met_at")
    list_filter = (AccountFilter, ExtractedAgainFilter)
    search_fields = ("rejected_by__exact", "fact_digest__startswith")
    search_help_text = "Search for the complete name of whoever rejected it, or for the beginning of a digest."
    actions = ("lift",)
    fields = (
        "named", "account", "rejected_by_text", "rejected_at", "entities", "times_extracted", "last_met_at",
        "claim_digest", "fact_digest", "id",
    )  # fmt: skip
    allow_delete = True
    deletion_note = "The claim may be learned again."

    named = column("Tombstone", lambda tombstone: tombstone.fact_digest[:12])
    rejected_by_text = text_column("Rejected by", "rejected_by")
    entities = column("Entities", describe_entities)
    times_extracted = column("Extracted again", lambda tombstone: f"{tombstone.met_count}×")

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions without the one that deletes, which is called lifting here."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.action(description="Lift selected %(verbose_name_plural)s", permissions=["delete"])
    def lift(self, request: HttpRequest, queryset: QuerySet[FactTombstone]) -> None:
        self.change_each(request, queryset, lift_row, done="Lifted", log="Lifted.")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        lift_row(staff_owner(request, obj.account_id), obj)

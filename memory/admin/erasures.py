"""Erasures of users and of filters, with their receipts. They are requested over the API or by `erase_subject`."""

from django.contrib import admin

from memory.admin.base import ReadOnlyAdmin
from memory.models import Erasure
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup


@admin.register(Erasure)
class ErasureAdmin(ReadOnlyAdmin):
    changed_by = StaffGroup.OPERATOR
    list_display = (
        "__str__", "account", "scope", "status", "step", "passes", "reason", "requested_by", "requested_at",
        "completed_at", "lifted_at",
    )  # fmt: skip
    list_filter = (AccountFilter, "scope", "status")
    list_select_related = ("account",)
    search_fields = ("id__exact", "subject_digest__exact")
    search_help_text = "Search for a complete id or subject digest."
    exclude = ("selection",)

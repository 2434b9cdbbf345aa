"""Links between memories, which are the edges of the graph. Staff may add links of any type that no service owns."""

from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from memory.admin.base import AuditedAdmin
from memory.admin.columns import link_column
from memory.admin.exports import ListExportAdmin
from memory.models import Link, Memory
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.links import STRUCTURAL_TYPES
from memory.owner import Owner
from memory.services.goals.plan import delete_goal_link
from memory_project.admin_lists import AccountFilter
from memory_project.staff import limit_rows


class LinkForm(forms.ModelForm):  # type: ignore[type-arg]
    """The ids of both memories. They belong to one account, which is then the link's."""

    request: ClassVar[HttpRequest]
    source_memory = forms.UUIDField(label="From memory", help_text="Its id.", required=False)
    target_memory = forms.UUIDField(label="To memory", help_text="Its id.", required=False)

    class Meta:
        model = Link
        fields = ("type", "weight", "properties")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance._state.adding and not self.errors:
            self.set_ends(cleaned)
        return cleaned

    def clean_type(self) -> str:
        """Refuse types of the service: rows repeat what such links say, so a link alone would contradict them."""
        link_type: str = self.cleaned_data["type"]
        if link_type != self.instance.type:
            for own in sorted({link_type, self.instance.type} & STRUCTURAL_TYPES):
                raise ValidationError(
                    f"Links of the type {own} are made by the service. Use the pages of goals, facts and entities."
                )
        return link_type

    def set_ends(self, cleaned: dict[str, Any]) -> None:
        ends: list[Any] = [cleaned.get("source_memory"), cleaned.get("target_memory")]
        rows = limit_rows(Memory.objects.filter(id__in=[end for end in ends if end]), self.request)
        accounts = dict(rows.values_list("id", "account_id"))
        if ends[0] == ends[1] or any(end not in accounts for end in ends):
            raise ValidationError("Give the ids of two different memories that exist.")
        if len(set(accounts.values())) > 1:
            raise ValidationError("The two memories belong to different accounts. A link stays within one account.")
        self.instance.source_id, self.instance.target_id = ends
        self.instance.account_id = accounts[ends[0]]


@admin.register(Link)
class LinkAdmin(ListExportAdmin, AuditedAdmin):
    memory_type = "link"
    form = LinkForm
    list_display = ("type", "from_memory", "to_memory", "weight", "account", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("type__exact",)
    search_help_text = "Search for a complete type, or for the id of a memory at either end."
    id_search_fields = ("source_id", "target_id")

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ("source_memory", "target_memory", "type", "weight", "properties")
        return ("account", "from_memory", "to_memory", "type", "weight", "properties", "created_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return () if obj is None else ("account", "from_memory", "to_memory", "created_at")

    def get_form(self, request: HttpRequest, obj: Any | None = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        return type(form.__name__, (form,), {"request": request})

    def remove_row(self, owner: Owner, row: Any) -> None:
        if row.type in (SUBGOAL_OF, BLOCKED_BY):
            delete_goal_link(owner, row, now=datetime.now(UTC))
        else:
            super().remove_row(owner, row)

    from_memory = link_column("From", "memory", "source_id")
    to_memory = link_column("To", "memory", "target_id")

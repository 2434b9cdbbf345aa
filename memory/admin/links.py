"""Links: the graph's edges, to browse, add, weigh and delete. The service's own are not made here."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.base import AuditedAdmin
from memory.admin.vectors import link_to_memory
from memory.models import Link, Memory
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.links import STRUCTURAL_TYPES
from memory.services.goals.staff_edits import delete_goal_link
from memory_project.admin_lists import AccountFilter, read_uuid

WHERE_OWN_LINKS_ARE_MADE = "links of this type come of what is done on the pages of goals, facts and entities."


class LinkForm(forms.ModelForm):  # type: ignore[type-arg]
    """The ends by their ids; they lie in one account, which is then the link's."""

    source_memory = forms.UUIDField(label="From", help_text="A memory's id.", required=False)
    target_memory = forms.UUIDField(label="To", help_text="A memory's id.", required=False)

    class Meta:
        model = Link
        fields = ("type", "weight", "properties")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance._state.adding and not self.errors:
            self.connect(cleaned)
        return cleaned

    def clean_type(self) -> str:
        """What the service's own links say, rows say as well: the status of a goal, for one. A link alone would not."""
        link_type: str = self.cleaned_data["type"]
        if link_type != self.instance.type:
            for own in sorted({link_type, self.instance.type} & STRUCTURAL_TYPES):
                raise ValidationError(f"{own} is the service's own: {WHERE_OWN_LINKS_ARE_MADE}")
        return link_type

    def connect(self, cleaned: dict[str, Any]) -> None:
        ends: list[Any] = [cleaned.get("source_memory"), cleaned.get("target_memory")]
        accounts = dict(Memory.objects.filter(id__in=[end for end in ends if end]).values_list("id", "account_id"))
        if ends[0] == ends[1] or any(end not in accounts for end in ends):
            raise ValidationError("A link is between two memories; give the ids of both.")
        if len(set(accounts.values())) > 1:
            raise ValidationError("The two memories belong to different accounts, and nothing crosses an account.")
        self.instance.source_id, self.instance.target_id = ends
        self.instance.account_id = accounts[ends[0]]


@admin.register(Link)
class LinkAdmin(AuditedAdmin):
    memory_type = "link"
    form = LinkForm
    list_display = ("type", "from_memory", "to_memory", "weight", "account", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("type__exact",)
    search_help_text = "A type, or the id of a memory at either end."

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ("source_memory", "target_memory", "type", "weight", "properties")
        return ("account", "from_memory", "to_memory", "type", "weight", "properties", "created_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return () if obj is None else ("account", "from_memory", "to_memory", "created_at")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        memory_id = read_uuid(search_term)
        if memory_id is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(Q(source_id=memory_id) | Q(target_id=memory_id)), False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        if obj.type in (SUBGOAL_OF, BLOCKED_BY):
            delete_goal_link(self.owner_of(request, obj), obj, now=datetime.now(UTC))
        else:
            super().delete_model(request, obj)

    @admin.display(description="From")
    def from_memory(self, link: Link) -> SafeString:
        return link_to_memory(link.source_id)

    @admin.display(description="To")
    def to_memory(self, link: Link) -> SafeString:
        return link_to_memory(link.target_id)

"""Pages of memories that are found by meaning from their list: with their similarity to what was asked, if something
was."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from memory.admin.memories import MemoryPages

if TYPE_CHECKING:
    Pages = MemoryPages
else:
    # mixed into pages of any kind
    Pages = object


class MeaningPages(Pages):
    """The kind's `get_changelist` says by which search: a `MeaningChangeList`."""

    change_list_template = "admin/memory/episodicmemory/change_list.html"

    def get_list_display(self, request: HttpRequest) -> Any:
        first, *others = super().get_list_display(request)
        return (first, "similarity", *others) if request.GET.get("meaning", "").strip() else (first, *others)

    @admin.display(description="Similarity")
    def similarity(self, memory: Any) -> str:
        similarity = getattr(memory, "similarity", None)
        return "" if similarity is None else f"{similarity:.3f}"

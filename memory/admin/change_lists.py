"""Change lists that read no long columns, and that say why they are empty."""

from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.filters import NarrowingFilter
from memory_project.staff import is_limited, visible_accounts


class LeanChangeList(ChangeList):
    """A list that reads no long columns, only the excerpts that the page declares in `list_annotations`."""

    empty_sentence = ""
    """Says why no row is listed; "" if there are rows."""
    all_query = "?"
    """The query of the list of all rows, if no row is listed."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        pages: Any = self.model_admin
        lean: QuerySet[Any] = rows.defer(*pages.long_columns).annotate(**pages.list_annotations)
        return lean

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.result_count:
            self.show_admin_actions = False
            self.empty_sentence = self.describe_emptiness(request)

    def describe_emptiness(self, request: HttpRequest) -> str:
        nouns = getattr(self.model_admin, "counted_rows", self.opts.verbose_name_plural)
        if self.query or self.has_active_filters:
            return f"No {nouns} match the search and the filters."
        where = ""
        if visible_accounts(request) is not None:
            where = " in your accounts" if is_limited(request) else " in the chosen account"
        for each in self.list_filter:
            if isinstance(each, type) and issubclass(each, NarrowingFilter):
                self.all_query = f"?{each.parameter_name}={each.everything}"
                return f"There are no {each.which_rows.format(nouns=nouns)}{where}."
        return f"There are no {nouns}{where} yet."

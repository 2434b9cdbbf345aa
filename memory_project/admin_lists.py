"""Change lists of the admin over tables that have no end."""

from functools import cached_property

from django.core.paginator import Paginator
from django.db.models import QuerySet

MOST_COUNTED = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # has no parameter at run time
    """Counts no further than MOST_COUNTED rows and one: exact below, "more than" above, never a scan of the table."""

    most_counted = MOST_COUNTED

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        return int(rows.order_by().values("pk")[: MOST_COUNTED + 1].count())

    @property
    def is_bounded(self) -> bool:
        """There are more rows than the pages reach."""
        return self.count > MOST_COUNTED

"""Template tags of the admin's first page, which loads them as `admin_index` (see the settings)."""

from typing import Any

from django import template
from django.http import HttpRequest

from memory.models import FactReview

MAX_COUNTED = 1_000

register = template.Library()


@register.simple_tag(takes_context=True)
def open_review_count(context: Any) -> str:
    """Return how many reviews are open, counted up to a limit.

    Return "" if there are none or the user may not see them.
    """
    request: HttpRequest = context["request"]
    if not request.user.has_perm("memory.view_factreview"):
        return ""
    count = FactReview.objects.filter(status=FactReview.Status.OPEN).values("pk")[: MAX_COUNTED + 1].count()
    return f"more than {MAX_COUNTED:,}" if count > MAX_COUNTED else str(count or "")

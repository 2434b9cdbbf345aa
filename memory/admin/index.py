"""What the admin's first page says beside its lists. Its template loads this as `admin_index` (see the settings)."""

from typing import Any

from django import template
from django.http import HttpRequest

from memory.models import FactReview

MOST_COUNTED = 1_000

register = template.Library()


@register.simple_tag(takes_context=True)
def open_review_count(context: Any) -> str:
    """How many reviews wait, to a limit; empty for none, and for who may not see them."""
    request: HttpRequest = context["request"]
    if not request.user.has_perm("memory.view_factreview"):
        return ""
    waiting = FactReview.objects.filter(status=FactReview.Status.OPEN).values("pk")[: MOST_COUNTED + 1].count()
    if waiting > MOST_COUNTED:
        return f"more than {MOST_COUNTED:,}"
    return str(waiting) if waiting else ""

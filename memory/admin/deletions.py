"""Counts of what is deleted with a memory, for the page that asks before."""

from typing import Any

from django.db.models import Q

from memory.admin.bulk import describe_count
from memory.models import Link, Vector
from memory_project.admin_lists import MAX_COUNTED


def count_deleted_with(memory: Any) -> dict[str, str]:
    """Return how many vectors and links are deleted with a memory, counted up to a limit. Two statements."""
    links = Link.objects.filter(Q(source_id=memory.pk) | Q(target_id=memory.pk), account_id=memory.account_id)
    vectors = Vector.objects.whole().filter(account_id=memory.account_id, memory_id=memory.pk)
    return {"links": describe_count(links, MAX_COUNTED), "vectors": describe_count(vectors, MAX_COUNTED)}

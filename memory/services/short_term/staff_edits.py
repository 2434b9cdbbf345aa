"""Staff's hand in short-term entries: a value is corrected in its place, and goes on expiring as it would have."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Cast

from memory.errors import NotFound, StaleVersion
from memory.models import AgentShortTermMemory
from memory.owner import Owner
from memory.services.short_term.keep import record_change
from memory.tiers.base import keyed_json
from memory_project.fields import VerbatimJSONField


def correct_entry(owner: Owner, entry_id: UUID, *, value: Any, seen: datetime | None, now: datetime) -> None:
    """Give a live entry another value, to be promoted anew. `seen` is the `updated_at` that the caller has read.

    Raises NotFound, StaleVersion where it was written since then, TooLarge; ValueError for what has no JSON.
    """
    text = keyed_json(value)
    with transaction.atomic():
        rows = AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id)
        entry = rows.select_for_update(no_key=True).first()
        if entry is None:
            raise NotFound("no such entry")
        if entry.updated_at != seen:
            raise StaleVersion("it was written since the page was opened: read it again")
        # the text that was measured, which need not be made again
        written = Cast(Value(text), VerbatimJSONField())
        AgentShortTermMemory.objects.filter(id=entry_id).update(memory_value=written, promoted_at=None, updated_at=now)
        record_change(owner, "update", entry)

"""Links in bulk: what is there already is left alone, and both ends must be in the account."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory.models import Link

ABOUT = "ABOUT"
DERIVED_FROM = "DERIVED_FROM"
MENTIONS = "MENTIONS"
PROMOTED_FROM = "PROMOTED_FROM"
SUPERSEDES = "SUPERSEDES"
WORKS_ON = "WORKS_ON"
"""From a turn's slot, a work episode or an artifact to the goal that it was for."""
PRODUCED = "PRODUCED"
"""From the slot that says what was done to the artifact that came of it."""
USED = "USED"
"""From a turn's slot to a memory, or an artifact, that it went by."""
DUPLICATE_OF = "DUPLICATE_OF"
"""From an archived memory to the one that says the same, and stands for it; its properties take the merge back."""
NOT_DUPLICATE_OF = "NOT_DUPLICATE_OF"
"""Between two that staff took apart. Of no weight: nobody is to walk along it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link before it is stored; the same source, type and target again is the same link."""

    source_id: UUID
    type: str
    target_id: UUID
    weight: float = 1.0
    properties: dict[str, Any] = field(default_factory=dict)


def insert_links(account_id: UUID, links: Iterable[NewLink]) -> None:
    """One statement, in the caller's transaction, in one order everywhere. Raises IntegrityError where an end is gone:
    lock the ends first."""
    rows: Sequence[Link] = [
        Link(
            account_id=account_id,
            source_id=link.source_id,
            type=link.type,
            target_id=link.target_id,
            weight=link.weight,
            properties=link.properties,
        )
        for link in sorted(links, key=lambda link: (link.source_id, link.type, link.target_id))
    ]
    if rows:
        Link.objects.bulk_create(rows, ignore_conflicts=True)

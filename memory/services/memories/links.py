"""Types of links that the service makes, and their bulk insert."""

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
"""Leads from a turn slot, a work episode or an artifact to its goal."""
PRODUCED = "PRODUCED"
"""Leads from the action slot of a turn to an artifact that the action produced."""
USED = "USED"
"""Leads from a turn slot to a memory or an artifact that it relied on."""
DUPLICATE_OF = "DUPLICATE_OF"
"""Leads from an archived memory to the one it was merged into. Its properties have what undoing the merge needs."""
NOT_DUPLICATE_OF = "NOT_DUPLICATE_OF"
"""Links two memories whose merge staff undid. The weight is 0, so that no graph walk follows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link before it is stored. Source, type and target identify a link."""

    source_id: UUID
    type: str
    target_id: UUID
    weight: float = 1.0
    properties: dict[str, Any] = field(default_factory=dict)


def insert_links(account_id: UUID, links: Iterable[NewLink]) -> None:
    """Insert links that do not exist yet, in the caller's transaction. One statement.

    All callers insert in one order. Lock the ends before: raises IntegrityError if one is gone or in another account.
    """
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

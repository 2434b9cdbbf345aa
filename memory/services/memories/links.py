"""Links between memories: the types that the service makes, and their insertion."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory.models.statements import Ids, binary_cursor
from memory_project.ids import uuid7

# types of the links that the service makes
ABOUT = "ABOUT"
DERIVED_FROM = "DERIVED_FROM"
MENTIONS = "MENTIONS"
PROMOTED_FROM = "PROMOTED_FROM"
SUPERSEDES = "SUPERSEDES"
REPLACES = "REPLACES"
"""Leads from a statement to an earlier one that it replaces. The weight is the probability that it does."""
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

# as arrays: with a parameter for each value, making the statement took longer than running it
INSERT_LINKS = """
INSERT INTO memory_links (id, account_id, source_id, type, target_id, weight, properties)
SELECT new.id, %s::uuid, new.source_id, new.type, new.target_id, new.weight, new.properties::jsonb
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::uuid[], %s::float8[], %s::text[])
    AS new (id, source_id, type, target_id, weight, properties)
ON CONFLICT DO NOTHING
"""


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
    rows = sorted(links, key=lambda link: (link.source_id.int, link.type, link.target_id.int))
    if not rows:
        return
    columns: list[Any] = [
        Ids([uuid7() for _ in rows]),
        Ids([each.source_id for each in rows]),
        [each.type for each in rows],
        Ids([each.target_id for each in rows]),
        [float(each.weight) for each in rows],
        [json.dumps(each.properties) for each in rows],
    ]
    with binary_cursor() as cursor:
        cursor.execute(INSERT_LINKS, [account_id, *columns])

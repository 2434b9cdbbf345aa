"""How the best candidates hang together: links among them, to what the question names, and to open goals."""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.owner import Owner
from memory.retrieval.plans import LinkBetween
from memory.retrieval.statements import Sql, numbered

MOST_LINKS = 2_000

BETWEEN = numbered(
    Sql(
        # OFFSET 0: each is looked up by its index, however many links the planner expects
        text="""SELECT linked.source_id, linked.target_id, linked.type, linked.weight
        FROM unnest(%(ids)s::uuid[]) AS near (id) CROSS JOIN LATERAL (
            SELECT * FROM memory_links WHERE account_id = %(account_id)s AND source_id = near.id
            AND target_id = ANY(%(ids)s::uuid[]) OFFSET 0
        ) AS linked ORDER BY linked.weight DESC, linked.id LIMIT %(most)s""",
        parameters={},
    )
)


def read_links(owner: Owner, ids: Collection[UUID]) -> Sequence[LinkBetween]:
    """The links among these memories, which the owner was found to see, the weightiest first. One statement."""
    if len(ids) < 2:
        return []
    _columns, rows = BETWEEN.read({"account_id": owner.account_id, "ids": list(ids), "most": MOST_LINKS})
    return [
        LinkBetween(source=source, target=target, type=type_, weight=weight) for source, target, type_, weight in rows
    ]

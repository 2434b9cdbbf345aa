"""Memories and links for tests of walks, stored without services; and a hub with as many neighbours as one likes."""

from typing import Any, TypeVar
from uuid import UUID

from django.db import connection

from memory.models import Entity, Kind, Link, MemoryRow
from memory.models.writer import insert_memories
from memory.owner import Owner
from memory_project.ids import uuid7
from tests.memory.episodes import NOW
from tests.memory.rows import row_of

M = TypeVar("M", bound=MemoryRow)

HUB_LINKS, OTHER_LINKS = 10_000, 90_000

# uuids that tell the hub's neighbours (from 1 on) by their number
NUMBERED = "md5('leaf ' || number)::uuid"

COPY_LEAVES = """
INSERT INTO memories ({columns})
SELECT {values} FROM memories AS model, generate_series(1, %(leaves)s) AS number WHERE model.id = %(hub)s
"""

LINK_HUB = f"""
INSERT INTO memory_links (id, account_id, source_id, target_id, type, weight, properties, created_at)
SELECT gen_random_uuid(), %(account)s, %(hub)s, {NUMBERED}, 'KNOWS', random(), '{{}}', now()
FROM generate_series(1, %(leaves)s) AS number
"""

LINK_LEAVES = """
INSERT INTO memory_links (id, account_id, source_id, target_id, type, weight, properties, created_at)
SELECT gen_random_uuid(), %(account)s, md5('leaf ' || source)::uuid, md5('leaf ' || target)::uuid, 'RELATED_TO',
    random(), '{}', now()
FROM generate_series(1, %(leaves)s) AS source, generate_series(1, 20) AS number,
    LATERAL (SELECT 1 + (source * 7 + number * number * 31) %% %(leaves)s AS target) AS drawn
WHERE source <> target LIMIT %(links)s ON CONFLICT DO NOTHING
"""


def node(owner: Owner, text: str = "something", *, kind: Kind = Kind.ENTITY, **fields: Any) -> MemoryRow:
    """A memory of the owner's. `fields` are columns of it."""
    return store_node(owner, row_of(kind, text, account_id=owner.account_id, **fields))


def entity(owner: Owner, name: str = "Ana", *, type: str = "person", **fields: Any) -> Entity:  # noqa: A002
    """Store an entity with a name and a type."""
    return store_node(owner, Entity(kind=Kind.ENTITY, name=name, type=type, text=name, **fields))


def store_node(owner: Owner, row: M) -> M:
    """Columns of the owner's that the row has no value of its own for are filled in."""
    row.account_id, row.identity = owner.account_id, row.identity or str(row.id)
    row.agent_id, row.user_id = row.agent_id or owner.agent_id, row.user_id or owner.user_id
    row.event_time = row.event_time or NOW
    insert_memories([row])
    return row


def link(
    source: MemoryRow,
    target: MemoryRow,
    type: str = "KNOWS",  # noqa: A002
    weight: float = 1.0,
    **properties: Any,
) -> Link:
    return Link.objects.create(
        id=uuid7(),
        account_id=source.account_id,
        source_id=source.id,
        target_id=target.id,
        type=type,
        weight=weight,
        properties=properties,
    )


def make_hub(owner: Owner, *, neighbours: int = HUB_LINKS, others: int = OTHER_LINKS) -> tuple[UUID, UUID]:
    """A hub of 10,000 neighbours among 100,000 links, and one of its neighbours."""
    hub = node(owner, "hub")
    columns = [str(field.column) for field in Entity._meta.concrete_fields]
    own = {"id": NUMBERED, "identity": "'leaf ' || number", "salience": "random()"}
    values = [own.get(column, f"model.{column}") for column in columns]
    given: dict[str, Any] = {"account": owner.account_id, "hub": hub.id, "leaves": neighbours, "links": others}
    with connection.cursor() as cursor:
        cursor.execute(COPY_LEAVES.format(columns=", ".join(columns), values=", ".join(values)), given)
        # foreign keys are checked by a plan that earlier tests may have had made for a table of few rows
        cursor.execute("ANALYZE memories")
        cursor.execute(LINK_HUB, given)
        cursor.execute(LINK_LEAVES, given)
        # those that a walk looks into as well: what is known of them may be of tests before
        cursor.execute("ANALYZE memories, memory_links, conversation_participants")
        cursor.execute("SELECT md5('leaf 1')::uuid")
        leaf: UUID = cursor.fetchone()[0]
    return hub.id, leaf

"""Rows of entities: what is searched of them, locking them, and writing many that were changed at once."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from memory.identity import entity_identity, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind, Memory
from memory.models.binary import binary_cursor
from memory.models.entities import LONGEST_NAME
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import Rewording, reword_memories

WRITE = """
WITH new AS MATERIALIZED (
    SELECT * FROM unnest(%s::uuid[], %s::int[], %s::float8[], %s::bool[], %s::timestamptz[], %s::timestamptz[],
        %s::text[], %s::text[], %s::jsonb[], %s::text[], %s::jsonb[], %s::uuid[])
    AS new (id, version, salience, archived, expires_at, event_time, identity, name, aliases, description, properties,
        merged_into_id)
), remembered AS (
    UPDATE memories m SET version = new.version, salience = new.salience, archived = new.archived,
        expires_at = new.expires_at, event_time = new.event_time, identity = new.identity, updated_at = %s
    FROM new WHERE m.id = new.id AND m.account_id = %s
)
UPDATE entities e SET name = new.name, aliases = new.aliases, description = new.description,
    properties = new.properties, merged_into_id = new.merged_into_id
FROM new WHERE e.memory_ptr_id = new.id
"""

State = tuple[Any, ...]
"""What may be changed of an entity, to be compared."""


def entity_text(name: str, aliases: Sequence[str], description: str) -> str:
    """What is searched of an entity, and embedded: its name, its aliases in brackets, its description.

    >>> entity_text("Ana Lima", ["Anita"], "A baker.")
    'Ana Lima (Anita). A baker.'
    """
    named = f"{name} ({', '.join(aliases)})" if aliases else name
    return f"{named}. {description}" if description.strip() else named


def text_of(entity: Entity) -> str:
    return entity_text(entity.name, entity.aliases, entity.description)


def without_doubles(names: Iterable[str], *, besides: Collection[str] = ()) -> list[str]:
    """The names as they are written, each once (whatever its case and such), and none of `besides`."""
    seen = {normalize_name(name) for name in besides}
    kept = []
    for name in names:
        if normalize_name(name) not in seen:
            seen.add(normalize_name(name))
            kept.append(name)
    return kept


def name_row(holder: Owner, entity: Entity, name: str) -> EntityName:
    """What keeps a name for an entity. `holder` is whose it is, in the entity's channel (`holder_of`)."""
    return EntityName(
        account_id=entity.account_id,
        entity_id=entity.id,
        identity=entity_identity(holder, type=entity.type, name=name),
        name_digest=name_digest(holder, name),
        # what is typed, in one form: width and ligatures may make it longer than it was written
        name=normalize_name(name)[:LONGEST_NAME],
    )


def lock_rows(account_id: UUID, entity_ids: Collection[UUID]) -> list[Entity]:
    """Until the transaction ends nobody else changes, merges or deletes them. Those that there still are, in order.

    References to them may be added meanwhile: they take `lock_entities`.
    """
    if not entity_ids:
        return []
    rows: Any = Entity.objects.filter(account_id=account_id, kind=Kind.ENTITY, id__in=entity_ids).order_by("id")
    # memories before what their kinds hold, as everybody locks them
    return list(rows.select_for_update(no_key=True, of=("memory_ptr", "self")))


def lock_rows_alone(account_id: UUID, entity_ids: Collection[UUID]) -> list[Entity]:
    """As `lock_rows`, and nobody comes to refer to them."""
    rows: Any = Entity.objects.filter(account_id=account_id, kind=Kind.ENTITY, id__in=entity_ids).order_by("id")
    return list(rows.select_for_update(of=("memory_ptr", "self")))


def state_of(entity: Entity) -> State:
    """Lists and objects as JSON: to Python, 1 is True."""
    return (
        *(entity.salience, entity.archived, entity.expires_at, entity.event_time, entity.identity, entity.name),
        *(json.dumps(entity.aliases), entity.description, json.dumps(entity.properties), entity.merged_into_id),
    )


def write_changed(
    owner: Owner, entities: Iterable[Entity], states: dict[UUID, State], *, embedded: Embedded, now: datetime
) -> list[Entity]:
    """Write those locked entities that are no longer in the states that they were in; which those are.

    Each at its next version; one whose text is another loses its vectors. One statement, and those of
    `reword_memories` where a text is another.
    """
    changed = [entity for entity in entities if state_of(entity) != states[entity.id]]
    reworded = [entity for entity in changed if entity.text != text_of(entity)]
    if reworded:
        rewordings = [Rewording(row=entity, text=text_of(entity)) for entity in reworded]
        reword_memories(owner, rewordings, embedded=embedded, now=now)
    for entity in changed:
        entity.version += entity not in reworded
        entity.updated_at = now
    if changed:
        write_rows(owner, changed, now=now)
    return changed


def write_rows(owner: Owner, entities: Sequence[Entity], *, now: datetime) -> None:
    names = ("id", "version", "salience", "archived", "expires_at", "event_time", "identity", "name")
    columns: list[list[Any]] = [[getattr(entity, name) for entity in entities] for name in names]
    columns.append([json.dumps(entity.aliases) for entity in entities])
    columns.append([entity.description for entity in entities])
    columns.append([json.dumps(entity.properties) for entity in entities])
    columns.append([entity.merged_into_id for entity in entities])
    with binary_cursor() as cursor:
        cursor.execute(WRITE, [*columns, now, owner.account_id])


GIVEN = "given"
SIDES = ("source", "target")


@dataclass(slots=True, kw_only=True)
class Part:
    """A locked entity that is part of another one, or is about to be, or has been.

    `names` are the rows that keep its names, `links`, by side, those that it was the end of, by their ids;
    `dropped` are those that would have been there twice, whole, by their ids (`entity_links`). `properties` and the
    `description` are what the whole had not.
    """

    entity: Entity
    properties: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    names: set[UUID] = field(default_factory=set)
    links: dict[str, set[UUID]] = field(default_factory=lambda: {side: set() for side in SIDES})
    dropped: dict[UUID, dict[str, Any]] = field(default_factory=dict)

    @property
    def id(self) -> UUID:
        return self.entity.id

    @classmethod
    def read(cls, entity: Entity) -> Self:
        given: dict[str, Any] = entity.metadata.get(GIVEN, {})
        links = given.get("links", {})
        return cls(
            entity=entity,
            properties=given.get("properties", {}),
            description=given.get("description", ""),
            names=to_ids(given.get("names", [])),
            links={side: to_ids(links.get(side, [])) for side in SIDES},
            dropped={UUID(each["id"]): each for each in links.get("dropped", [])},
        )

    def note(self) -> dict[str, Any]:
        """The entity's metadata with what it gave, or without, once it is part of nothing."""
        metadata = {name: value for name, value in self.entity.metadata.items() if name != GIVEN}
        if self.entity.merged_into_id is None:
            return metadata
        links: dict[str, Any] = {side: to_texts(self.links[side]) for side in SIDES}
        links["dropped"] = [self.dropped[link_id] for link_id in sorted(self.dropped)]
        details = {"properties": self.properties, "description": self.description}
        return {**metadata, GIVEN: {**details, "names": to_texts(self.names), "links": links}}


def to_ids(texts: Iterable[str]) -> set[UUID]:
    return {UUID(text) for text in texts}


def to_texts(ids: Iterable[UUID]) -> list[str]:
    return [str(each) for each in sorted(ids)]


def merged_into(account_id: UUID, entity_ids: Collection[UUID]) -> list[UUID]:
    """The ids of what was merged into these."""
    rows: Any = Entity.objects.filter(account_id=account_id, merged_into_id__in=entity_ids)
    return list(rows.values_list("id", flat=True))


def lock_parts(account_id: UUID, entity_ids: Collection[UUID]) -> list[Part]:
    """The parts of these, in the order of their ids. Under their holder's lock, there will be no others."""
    return [Part.read(row) for row in lock_rows_alone(account_id, merged_into(account_id, entity_ids))]


def write_parts(parts: Iterable[Part]) -> None:
    """What they gave, where that is something else now. One statement."""
    notes = {part.entity: part.note() for part in parts}
    changed = sorted((entity for entity, note in notes.items() if note != entity.metadata), key=lambda row: row.id)
    for entity in changed:
        entity.metadata = notes[entity]
    if changed:
        rows = [Memory(id=entity.id, metadata=entity.metadata) for entity in changed]
        Memory.objects.bulk_update(rows, ["metadata"])


def hand_over(parts: Sequence[Part], whole: Entity) -> None:
    """The parts are that one's from now on. One statement where there are any."""
    for part in parts:
        part.entity.merged_into = whole
    rows: Any = Entity.objects.filter(pk__in=[part.id for part in parts])
    if parts:
        rows.update(merged_into=whole)


def give_details(part: Part, whole: Entity, *, properties: dict[str, Any], description: str) -> None:
    """Of these, give the whole what it has not."""
    part.properties = {name: value for name, value in properties.items() if name not in whole.properties}
    part.description = "" if whole.description else description
    whole.properties = {**whole.properties, **part.properties}
    whole.description = whole.description or part.description


def take_details_back(part: Part, whole: Entity) -> tuple[dict[str, Any], str]:
    """What the part gave and is as it was is the whole's no longer; the properties and the description."""
    taken = {
        name: value
        for name, value in part.properties.items()
        if name in whole.properties and whole.properties[name] == value
    }
    whole.properties = {name: value for name, value in whole.properties.items() if name not in taken}
    description = part.description if part.description == whole.description else ""
    if description:
        whole.description = ""
    part.properties, part.description = {}, ""
    return taken, description

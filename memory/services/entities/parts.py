"""The parts of an entity: those that were merged into it, archived, and what each of them gave to the whole.

Parts leave in any order, so each has written down what is its own and nothing that is another part's: in its metadata
(`given`), not in what it gave, which is its writers'. What was merged into one that is merged itself is a part of the
last one from then on, so no part has parts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from memory.models import Entity, Memory
from memory.services.entities.rows import lock_rows_alone

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

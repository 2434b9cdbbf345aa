"""Entities: who and what is spoken of. A name that is known comes back to its entity, and what is new adds to it.

Names are their holder's (`identity.holder`): what one user calls by a name says nothing of another's. Writers of one
holder's knowledge take turns (`lock_holder`), then lock the entities in the order of everybody who locks memories; the
database refuses a name that would stand for two.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record, texts_kept
from memory.errors import Conflict, NotFound, Unprocessable
from memory.identity import entity_identity, normalize_name
from memory.models import Entity, EntityName, Kind
from memory.models.entities import LONGEST_NAME, LONGEST_TYPE
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.entities.resolve import (
    Sought,
    claims_on,
    find_misspelt,
    holder_of,
    identities_of,
    lock_holder,
)
from memory.services.entities.resolve import known_by_names as known_by_names
from memory.services.entities.rows import (
    State,
    lock_rows,
    name_row,
    state_of,
    text_of,
    without_doubles,
    write_changed,
)
from memory.services.entities.rows import entity_text as entity_text
from memory.services.facts.references import holds
from memory.services.memories.store import OwnVector, store_memories
from memory_project.ids import uuid7

MOST_ALIASES = 100
DEFAULT_SALIENCE = 0.5
TAKEN = "another entity of this type goes by one of these names, or the entity has as many aliases as it may have"
WITHHELD = "the entity that goes by this name is quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDraft:
    """What is said of an entity. `event_time` is when it was met; `own` a vector of `text` that the client brought."""

    name: str
    type: str
    aliases: Sequence[str] = ()
    description: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    salience: float | None = None
    event_time: datetime | None = None
    source: str = "agent"
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def text(self) -> str:
        return entity_text(self.name, self.aliases, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a draft came to. `refused_aliases` are names that it gave, and that the entity did not get.

    `alias_owners` tell which other entity each of them stands for, a quarantined one perhaps; there is none for an
    alias that was one too many. Whoever gave both names may mean both entities.
    """

    entity: Entity
    is_new: bool
    refused_aliases: tuple[str, ...] = ()
    alias_owners: Mapping[str, UUID] = field(default_factory=dict)


def visible_entities(owner: Owner, *, now: datetime) -> QuerySet[Entity]:
    """Those that the owner knows of in the active channel and `_global`; none that was merged into another."""
    rows: Any = Entity.objects.visible_to(owner, Kind.ENTITY).in_channels(owner).live(now)
    found: QuerySet[Entity] = rows
    return found


def find_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Of whatever channel. Raises NotFound."""
    rows: Any = Entity.objects.visible_to(owner, Kind.ENTITY).live(now)
    entity: Entity | None = rows.filter(id=entity_id).first()
    if entity is None:
        raise NotFound("no such entity")
    return entity


def lock_entities(owner: Owner, entity_ids: Collection[UUID]) -> list[Entity]:
    """Keep entities of the owner's holder from being deleted or merged, for as long as the transaction lasts.

    Those that are live, in the order of their ids; others may lock them the same way. The account, acting for itself,
    locks any of its own.
    """
    if not entity_ids:
        return []
    rows = Entity.objects.filter(account_id=owner.account_id, kind=Kind.ENTITY, id__in=set(entity_ids))
    statement, parameters = rows.filter(archived=False, quarantined=False).order_by("id").query.sql_with_params()
    # Django has no words for it
    locked: Any = Entity.objects.raw(f"{statement} FOR KEY SHARE OF memories", parameters)
    return [entity for entity in locked if holds(owner, entity)]


def upsert_entity(owner: Owner, draft: EntityDraft, *, embedded: Embedded, now: datetime) -> Resolved:
    """`upsert_entities` of one."""
    [resolved] = upsert_entities(owner, [draft], embedded=embedded, now=now)
    return resolved


def upsert_entities(
    owner: Owner, drafts: Sequence[EntityDraft], *, embedded: Embedded, now: datetime
) -> list[Resolved]:
    """Find the entities that these are of, or make them, in the order of the drafts; part of a caller's transaction.

    One that is known gets the aliases and properties that it had not, a description where it had none, the greater
    salience, the earlier time; one that was archived comes back. A name is looked for among the holder's of its type,
    in the active channel, then `_global`, then among misspellings (`entity_resolution`); new ones are of the active
    channel. Two at once that name the same thing make one.

    Embed the drafts' texts (`texts_to_embed`) first, outside transactions. Raises Conflict for an alias that names
    another entity and for a name whose entity is quarantined, Unprocessable for names, types and numbers out of bounds.
    """
    checked = [checked_draft(draft) for draft in drafts]
    with transaction.atomic():
        found = take_drafts(owner, checked, embedded=embedded, now=now)
        resolved = [each for each in found if each is not None]
        if len(resolved) < len(found):
            raise Conflict(WITHHELD)
        if any(each.refused_aliases for each in resolved):
            raise Conflict(TAKEN)
    return resolved


def upsert_leniently(
    owner: Owner, drafts: Sequence[EntityDraft], *, embedded: Embedded, now: datetime
) -> list[Resolved | None]:
    """`upsert_entities`, but for what nobody said on purpose: aliases that are taken are left out and reported, with
    whose they are.

    None stands for a draft whose name is that of a quarantined entity.
    """
    checked = [checked_draft(draft) for draft in drafts]
    with transaction.atomic():
        return take_drafts(owner, checked, embedded=embedded, now=now)


def take_drafts(
    owner: Owner, drafts: Sequence[EntityDraft], *, embedded: Embedded, now: datetime
) -> list[Resolved | None]:
    if not drafts:
        return []
    lock_holder(owner)
    upserts = find_known(owner, drafts, embedded=embedded)
    found = [upserts.take(draft, now=now) for draft in drafts]
    upserts.store(embedded=embedded, now=now)
    return found


def texts_to_embed(owner: Owner, drafts: Sequence[EntityDraft]) -> list[str]:
    """What is to be embedded before `upsert_entities`: the drafts' texts, and what known ones will say with them.

    Two statements. What is stored meanwhile, or is a misspelling, may say something else: the job embeds it.
    Raises Unprocessable.
    """
    checked = [checked_draft(draft) for draft in drafts]
    names = {draft.id: identities_of(owner, type=draft.type, names=[draft.name]) for draft in checked}
    claims = claims_on(owner.account_id, {identity for identities in names.values() for identity in identities})
    rows: Any = Entity.objects.filter(account_id=owner.account_id, id__in=set(claims.values()))
    known: dict[UUID | None, Entity] = {row.id: row for row in rows} if claims else {}
    texts = []
    for draft in checked:
        texts.append(draft.text)
        entity = known.get(named(owner, draft, claims))
        if entity is not None:
            aliases = [*entity.aliases, *without_doubles([draft.name, *draft.aliases], besides=entity.names)]
            texts.append(entity_text(entity.name, aliases, entity.description or draft.description))
    return texts


def checked_draft(draft: EntityDraft) -> EntityDraft:
    """With names without blanks around them, each once, and its type in lower case. Raises Unprocessable."""
    name = checked_name(draft.name)
    aliases = without_doubles([checked_name(alias) for alias in draft.aliases], besides=[name])
    if len(aliases) > MOST_ALIASES:
        raise Unprocessable(f"an entity has at most {MOST_ALIASES} aliases")
    check_salience(draft.salience)
    return replace(draft, name=name, aliases=aliases, type=normalize_type(draft.type))


def checked_name(name: str) -> str:
    stripped = name.strip()
    if not stripped or not normalize_name(stripped) or len(stripped) > LONGEST_NAME:
        raise Unprocessable(f"a name has 1 to {LONGEST_NAME} characters")
    return stripped


def normalize_type(given: str) -> str:
    """A type without what writers differ in. Raises Unprocessable for none, or one too long.

    >>> normalize_type(" Public  Place")
    'public place'
    """
    bare = " ".join(given.casefold().split())
    if not 1 <= len(bare) <= LONGEST_TYPE:
        raise Unprocessable(f"a type has 1 to {LONGEST_TYPE} characters")
    return bare


def check_salience(salience: float | None) -> None:
    if salience is not None and not 0 <= salience <= 1:
        raise Unprocessable("a salience is from 0 to 1")


def find_known(owner: Owner, drafts: Sequence[EntityDraft], *, embedded: Embedded) -> "Upserts":
    """Whatever the drafts' names stand for already, locked. Three statements at most."""
    identities = [
        identity
        for draft in drafts
        for identity in identities_of(owner, type=draft.type, names=[draft.name, *draft.aliases])
    ]
    claims = claims_on(owner.account_id, identities)
    nearly = find_nearly(owner, [draft for draft in drafts if not named(owner, draft, claims)], embedded=embedded)
    locked = lock_rows(owner.account_id, {*claims.values(), *nearly.values()})
    upserts = Upserts(owner=owner, claims=claims, nearly=nearly)
    for entity in locked:
        upserts.entities[entity.id] = entity
        upserts.states[entity.id] = state_of(entity)
    return upserts


def named(owner: Owner, draft: EntityDraft, claims: dict[str, UUID]) -> UUID | None:
    """The entity that goes by the draft's name."""
    identities = identities_of(owner, type=draft.type, names=[draft.name])
    return next((claims[identity] for identity in identities if identity in claims), None)


def find_nearly(owner: Owner, drafts: Sequence[EntityDraft], *, embedded: Embedded) -> dict[UUID, UUID]:
    """By the drafts' ids, the entities whose names they are misspellings of. Drafts without a vector have none."""
    vectors = {draft.id: embedded.vectors.get(draft.text) for draft in drafts}
    vectors |= {draft.id: draft.own.vector for draft in drafts if draft.own and draft.own.model == embedded.model}
    looked_for = [draft for draft in drafts if vectors[draft.id] is not None]
    sought = [Sought(name=draft.name, type=draft.type, vector=vectors[draft.id]) for draft in looked_for]  # type: ignore[arg-type]
    found = find_misspelt(owner, sought, model=embedded.model)
    return {draft.id: entity_id for draft, entity_id in zip(looked_for, found, strict=True) if entity_id is not None}


@dataclass(slots=True, kw_only=True)
class Upserts:
    """Drafts on their way into entities, under the holder's lock: what is changed in memory, to be written at once.

    `claims` say who goes by which names, `nearly` whose misspellings drafts are; `states` are what known ones were.
    """

    owner: Owner
    claims: dict[str, UUID]
    nearly: dict[UUID, UUID]
    entities: dict[UUID, Entity] = field(default_factory=dict)
    states: dict[UUID, State] = field(default_factory=dict)
    own: dict[UUID, tuple[str, OwnVector]] = field(default_factory=dict)
    names: list[EntityName] = field(default_factory=list)

    def take(self, draft: EntityDraft, *, now: datetime) -> Resolved | None:
        """The draft's entity, known or new, with what the draft adds; None for a quarantined one."""
        known = self.find(draft, now=now)
        if known is not None and known.quarantined:
            return None
        entity = known or self.make(draft, now=now)
        refused = self.add_names(entity, [draft.name, *draft.aliases])
        if known is not None:
            add_details(entity, draft, now=now)
        owners = {name: owner_id for name, owner_id in refused.items() if owner_id is not None}
        return Resolved(entity=entity, is_new=known is None, refused_aliases=tuple(refused), alias_owners=owners)

    def find(self, draft: EntityDraft, *, now: datetime) -> Entity | None:
        claimed = named(self.owner, draft, self.claims)
        # deleted before it was locked: its name is free again
        if claimed is not None and claimed in self.entities:
            return self.entities[claimed]
        nearly = self.entities.get(self.nearly.get(draft.id, draft.id))
        return nearly if nearly is not None and is_live(nearly, now=now) else None

    def make(self, draft: EntityDraft, *, now: datetime) -> Entity:
        entity = Entity(
            id=draft.id,
            account_id=self.owner.account_id,
            agent_id=self.owner.agent_id,
            user_id=self.owner.user_id,
            channel=self.owner.channel,
            kind=Kind.ENTITY,
            identity=entity_identity(self.owner, type=draft.type, name=draft.name),
            name=draft.name,
            type=draft.type,
            description=draft.description,
            properties=draft.properties,
            salience=DEFAULT_SALIENCE if draft.salience is None else draft.salience,
            event_time=draft.event_time or now,
            source=draft.source,
        )
        self.entities[entity.id] = entity
        if draft.own is not None:
            self.own[entity.id] = (draft.text, draft.own)
        return entity

    def add_names(self, entity: Entity, names: Iterable[str]) -> dict[str, UUID | None]:
        """Give an entity those names that nobody goes by, and take no more than it may have; which were refused, with
        who goes by them: of two, the one of the active channel."""
        refused: dict[str, UUID | None] = {}
        for name in names:
            identities = identities_of(self.owner, type=entity.type, names=[name])
            claimed = [self.claims[identity] for identity in identities if identity in self.claims]
            # one of an entity that is gone is free
            claimed = [entity_id for entity_id in claimed if entity_id in self.entities]
            if entity.id in claimed:
                continue
            if claimed or len(entity.aliases) >= MOST_ALIASES:
                refused[name] = claimed[0] if claimed else None
            else:
                self.keep_name(entity, name)
        return refused

    def keep_name(self, entity: Entity, name: str) -> None:
        row = name_row(holder_of(entity), entity, name)
        self.names.append(row)
        self.claims[row.identity] = entity.id
        if name != entity.name:
            entity.aliases = [*entity.aliases, name]

    def store(self, *, embedded: Embedded, now: datetime) -> None:
        new = [entity for entity in self.entities.values() if entity.id not in self.states]
        for entity in new:
            entity.text = text_of(entity)
        own = {entity.id: self.own[entity.id][1] for entity in new if self.own.get(entity.id, ("",))[0] == entity.text}
        if new and len(store_memories(self.owner, new, embedded=embedded, own=own, now=now)) < len(new):
            raise Conflict("somebody else is making the same entity")
        known = [entity for entity in self.entities.values() if entity.id in self.states]
        changed = write_changed(self.owner, known, self.states, embedded=embedded, now=now)
        EntityName.objects.bulk_create(sorted(self.names, key=lambda row: row.identity))
        if changed:
            texts = texts_kept(self.owner, (entity.text for entity in changed))
            record_entities(self.owner, "update", changed, metadata=texts)


def is_live(entity: Entity, *, now: datetime) -> bool:
    return not (entity.archived or entity.quarantined or (entity.expires_at is not None and entity.expires_at <= now))


def add_details(entity: Entity, draft: EntityDraft, *, now: datetime) -> None:
    """What a draft says of a known entity, but for names. What is archived or expired comes back."""
    entity.description = entity.description or draft.description
    entity.properties = {**entity.properties, **draft.properties}
    if draft.salience is not None:
        entity.salience = max(entity.unfaded_salience, draft.salience)
    if draft.event_time is not None:
        entity.event_time = min(entity.event_time, draft.event_time)
    entity.archived = False
    if entity.expires_at is not None and entity.expires_at <= now:
        entity.expires_at = None


def record_entities(owner: Owner, operation: str, entities: Sequence[Entity], **columns: Any) -> None:
    record(
        owner,
        operation=operation,
        memory_type="semantic",
        affected_ids=[entity.id for entity in entities],
        result_count=len(entities),
        **columns,
    )

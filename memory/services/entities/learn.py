"""Upserting entities: a known name returns its entity, and whatever the draft adds is stored with it.

Names belong to their holder (`identity.holder_key`): what one user calls by a name says nothing about another's.
Writers of one holder's knowledge are serialized (`lock_holder`), then lock the entities in the order in which all code
locks memories; the database refuses a name that would stand for two entities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import record_audit, texts_metadata
from memory.errors import Conflict, Unprocessable
from memory.identity import entity_identity, normalize_name
from memory.masking import masks_secrets
from memory.models import Entity, EntityName, Kind
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import (
    SoughtName,
    check_size_of_properties,
    entity_ids_by_identity,
    find_misspelt_entities,
    identities_of_names,
    lock_holder,
    owner_of_row,
)
from memory.services.entities.store import (
    EntityState,
    distinct_names,
    entity_state,
    entity_text,
    is_live_entity,
    lock_entity_rows,
    make_name_row,
    normalize_type,
    text_of_entity,
    update_changed_entities,
)
from memory.services.memories.store import ClientVector, MemoryDraft, store_memories

MAX_ALIASES = 100
DEFAULT_SALIENCE = 0.5
NAME_TAKEN = f"another entity of this type has one of these names, or the entity would have over {MAX_ALIASES} aliases"
NAME_QUARANTINED = "the entity with this name is quarantined; staff can release it"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDraft(MemoryDraft):
    """An entity as a caller describes it. `event_time` is when it was met."""

    name: str
    type: str
    aliases: Sequence[str] = ()
    description: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    salience: float | None = None

    @property
    def text(self) -> str:
        return entity_text(self.name, self.aliases, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEntity:
    """The entity of a draft. `refused_aliases` are names of the draft that the entity did not get.

    `alias_owners` maps each of them to the entity that has the name, which may be quarantined; an alias beyond
    MAX_ALIASES has no owner. The author of both names may mean both entities.
    """

    entity: Entity
    is_new: bool
    refused_aliases: tuple[str, ...] = ()
    alias_owners: Mapping[str, UUID] = field(default_factory=dict)


def upsert_entity(owner: Owner, draft: EntityDraft, *, embedded: EmbeddedTexts, now: datetime) -> ResolvedEntity:
    """Find or create one entity, as `upsert_entities` does."""
    [resolved] = upsert_entities(owner, [draft], embedded=embedded, now=now)
    return resolved


@masks_secrets
def upsert_entities(
    owner: Owner, drafts: Sequence[EntityDraft], *, embedded: EmbeddedTexts, now: datetime
) -> list[ResolvedEntity]:
    """Find or create the entities of the drafts, and return them in the same order. Joins the caller's transaction.

    A known entity gets the aliases and properties that it lacks, a description where it has none, the greater salience
    and the earlier time; an archived one is restored. A name is looked up among the holder's names of its type: in the
    active channel, in `_global`, then among misspellings (`resolve`). New entities belong to the active channel.
    Concurrent calls for the same name create one entity.

    Embed the texts (`entity_texts_to_embed`) first, outside transactions. Raises Conflict for an alias that names
    another entity and for a name of a quarantined entity; Unprocessable for names, types and numbers out of bounds.
    """
    with transaction.atomic():
        found = upsert_entities_leniently(owner, drafts, embedded=embedded, now=now)
        resolved = [each for each in found if each is not None]
        if len(resolved) < len(found):
            raise Conflict(NAME_QUARANTINED)
        if any(each.refused_aliases for each in resolved):
            raise Conflict(NAME_TAKEN)
    return resolved


@masks_secrets
def upsert_entities_leniently(
    owner: Owner, drafts: Sequence[EntityDraft], *, embedded: EmbeddedTexts, now: datetime
) -> list[ResolvedEntity | None]:
    """Upsert entities that were extracted: aliases that are taken are left out and reported with their owners.

    The result is None for a draft with the name of a quarantined entity. Otherwise as `upsert_entities`.
    """
    checked = [normalize_entity_draft(draft) for draft in drafts]
    if not checked:
        return []
    # without a savepoint in a transaction of the caller
    with transaction.atomic(savepoint=False):
        lock_holder(owner)
        upserts = lock_known_entities(owner, checked, embedded=embedded)
        found = [upserts.upsert_draft(draft, now=now) for draft in checked]
        upserts.store(embedded=embedded, now=now)
    return found


def entity_texts_to_embed(owner: Owner, drafts: Sequence[EntityDraft]) -> list[str]:
    """Return the texts to embed before `upsert_entities`: of the drafts, and of known entities as they will be.

    Two statements. The text of an entity that is stored in the meantime, or met under a misspelling, may differ: the
    job embeds it. Raises Unprocessable.
    """
    checked = [normalize_entity_draft(draft) for draft in drafts]
    names = {draft.id: identities_of_names(owner, type=draft.type, names=[draft.name]) for draft in checked}
    claims = entity_ids_by_identity(
        owner.account_id, {identity for identities in names.values() for identity in identities}
    )
    rows = Entity.objects.filter(account_id=owner.account_id, id__in=set(claims.values()))
    known: dict[UUID | None, Entity] = {row.id: row for row in rows} if claims else {}
    texts = []
    for draft in checked:
        texts.append(draft.text)
        entity = known.get(entity_id_of_name(owner, draft, claims))
        if entity is not None:
            aliases = [*entity.aliases, *distinct_names([draft.name, *draft.aliases], excluded=entity.names)]
            texts.append(entity_text(entity.name, aliases, entity.description or draft.description))
    return texts


def normalize_entity_draft(draft: EntityDraft) -> EntityDraft:
    """Return the draft with stripped, distinct names and a lower-case type. Raises Unprocessable."""
    name = clean_entity_name(draft.name)
    aliases = distinct_names([clean_entity_name(alias) for alias in draft.aliases], excluded=[name])
    if len(aliases) > MAX_ALIASES:
        raise Unprocessable(f"an entity can have at most {MAX_ALIASES} aliases")
    check_salience(draft.salience)
    return replace(draft, name=name, aliases=aliases, type=normalize_type(draft.type))


def clean_entity_name(name: str) -> str:
    stripped = name.strip()
    if not stripped or not normalize_name(stripped) or len(stripped) > MAX_ENTITY_NAME_CHARACTERS:
        raise Unprocessable(f"a name must have 1 to {MAX_ENTITY_NAME_CHARACTERS} characters")
    return stripped


def check_salience(salience: float | None) -> None:
    if salience is not None and not 0 <= salience <= 1:
        raise Unprocessable("salience must be between 0 and 1")


def lock_known_entities(owner: Owner, drafts: Sequence[EntityDraft], *, embedded: EmbeddedTexts) -> "EntityUpserts":
    """Lock the entities that the drafts' names stand for already. Three statements at most."""
    identities = [
        identity
        for draft in drafts
        for identity in identities_of_names(owner, type=draft.type, names=[draft.name, *draft.aliases])
    ]
    claims = entity_ids_by_identity(owner.account_id, identities)
    nearly = find_misspelt_drafts(
        owner, [draft for draft in drafts if not entity_id_of_name(owner, draft, claims)], embedded=embedded
    )
    locked = lock_entity_rows(owner.account_id, {*claims.values(), *nearly.values()})
    entities = {entity.id: entity for entity in locked}
    states = {entity.id: entity_state(entity) for entity in locked}
    return EntityUpserts(owner=owner, claims=claims, nearly=nearly, entities=entities, states=states)


def entity_id_of_name(owner: Owner, draft: EntityDraft, claims: dict[str, UUID]) -> UUID | None:
    """Return the entity with the draft's name, or None. `claims` maps identities of names to entities."""
    identities = identities_of_names(owner, type=draft.type, names=[draft.name])
    return next((claims[identity] for identity in identities if identity in claims), None)


def find_misspelt_drafts(owner: Owner, drafts: Sequence[EntityDraft], *, embedded: EmbeddedTexts) -> dict[UUID, UUID]:
    """Return the entities that drafts with a vector misspell, by draft id."""
    vectors = {draft.id: embedded.vectors.get(draft.text) for draft in drafts}
    vectors |= {draft.id: draft.own.vector for draft in drafts if draft.own and draft.own.model == embedded.model}
    looked_for = [draft for draft in drafts if vectors[draft.id] is not None]
    sought = [SoughtName(name=draft.name, type=draft.type, vector=vectors[draft.id]) for draft in looked_for]  # type: ignore[arg-type]
    found = find_misspelt_entities(owner, sought, model=embedded.model)
    return {draft.id: entity_id for draft, entity_id in zip(looked_for, found, strict=True) if entity_id is not None}


@dataclass(slots=True, kw_only=True)
class EntityUpserts:
    """Upserts under the holder's lock: entities are changed in memory, then written together by `store`.

    `claims` maps identities of names to entities, `nearly` drafts to entities that they misspell; `states` are the
    states of known entities before the change.
    """

    owner: Owner
    claims: dict[str, UUID]
    nearly: dict[UUID, UUID]
    entities: dict[UUID, Entity]
    states: dict[UUID, EntityState]
    own: dict[UUID, tuple[str, ClientVector]] = field(default_factory=dict)
    names: list[EntityName] = field(default_factory=list)

    def upsert_draft(self, draft: EntityDraft, *, now: datetime) -> ResolvedEntity | None:
        """Return the draft's entity, known or new, with what the draft adds; None for a quarantined one."""
        known = self.find_known(draft, now=now)
        if known is not None and known.quarantined:
            return None
        entity = known or self.add_entity(draft, now=now)
        refused = self.add_names(entity, [draft.name, *draft.aliases])
        if known is not None:
            add_draft_details(entity, draft, now=now)
        owners = {name: owner_id for name, owner_id in refused.items() if owner_id is not None}
        return ResolvedEntity(entity=entity, is_new=known is None, refused_aliases=tuple(refused), alias_owners=owners)

    def find_known(self, draft: EntityDraft, *, now: datetime) -> Entity | None:
        claimed = entity_id_of_name(self.owner, draft, self.claims)
        # an entity that was deleted before it was locked has freed its name
        if claimed is not None and claimed in self.entities:
            return self.entities[claimed]
        nearly = self.entities.get(self.nearly.get(draft.id, draft.id))
        return nearly if nearly is not None and is_live_entity(nearly, now=now) else None

    def add_entity(self, draft: EntityDraft, *, now: datetime) -> Entity:
        entity = Entity(
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
            **draft.shared_columns(now=now),
        )
        self.entities[entity.id] = entity
        if draft.own is not None:
            self.own[entity.id] = (draft.text, draft.own)
        return entity

    def add_names(self, entity: Entity, names: Iterable[str]) -> dict[str, UUID | None]:
        """Give an entity the free ones of the names, up to MAX_ALIASES. Returns the refused ones with their owners.

        Where a name is taken in both channels, the owner is the one of the active channel.
        """
        refused: dict[str, UUID | None] = {}
        for name in names:
            identities = identities_of_names(self.owner, type=entity.type, names=[name])
            claimed = [self.claims[identity] for identity in identities if identity in self.claims]
            # names of deleted entities are free
            claimed = [entity_id for entity_id in claimed if entity_id in self.entities]
            if entity.id in claimed:
                continue
            if claimed or len(entity.aliases) >= MAX_ALIASES:
                refused[name] = claimed[0] if claimed else None
            else:
                row = make_name_row(owner_of_row(entity), entity, name)
                self.names.append(row)
                self.claims[row.identity] = entity.id
                if name != entity.name:
                    entity.aliases = [*entity.aliases, name]
        return refused

    def store(self, *, embedded: EmbeddedTexts, now: datetime) -> None:
        new = [entity for entity in self.entities.values() if entity.id not in self.states]
        for entity in new:
            entity.text = text_of_entity(entity)
        own = {entity.id: self.own[entity.id][1] for entity in new if self.own.get(entity.id, ("",))[0] == entity.text}
        if new and len(store_memories(self.owner, new, embedded=embedded, own=own, now=now)) < len(new):
            raise Conflict("the same entity is being created at the same time: try again")
        known = [entity for entity in self.entities.values() if entity.id in self.states]
        changed = update_changed_entities(self.owner, known, self.states, embedded=embedded, now=now)
        EntityName.objects.bulk_create(sorted(self.names, key=lambda row: row.identity))
        if changed:
            texts = texts_metadata(self.owner, (entity.text for entity in changed))
            record_entities(self.owner, "update", changed, metadata=texts)


def add_draft_details(entity: Entity, draft: EntityDraft, *, now: datetime) -> None:
    """Add what a draft says, except names, to a known entity, and restore an archived or expired one.

    Raises TooLarge for more properties than an entity may have.
    """
    entity.description = entity.description or draft.description
    if draft.properties:
        entity.properties = {**entity.properties, **draft.properties}
        check_size_of_properties(entity.properties)
    if draft.salience is not None:
        entity.salience = max(entity.unfaded_salience, draft.salience)
    if draft.event_time is not None:
        entity.event_time = min(entity.event_time, draft.event_time)
    entity.archived = False
    if entity.expires_at is not None and entity.expires_at <= now:
        entity.expires_at = None


def record_entities(owner: Owner, operation: str, entities: Sequence[Entity], **columns: Any) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="semantic",
        affected_ids=[entity.id for entity in entities],
        result_count=len(entities),
        **columns,
    )

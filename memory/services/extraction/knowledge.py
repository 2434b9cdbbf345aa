"""Storing what was extracted from a run of turns: entities, facts, relationships, preferences, and where each is from.

Everything happens in the transaction that marks the turns as looked through. One extraction at a time writes what a
holder knows. Facts (`extracted_facts`) are taken in their order. Each item stands or falls for itself
(`extraction_material`): nothing that somebody says, or stored before, keeps the rest of a conversation from being
looked through.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.extraction.knowledge import (
    ExtractedEntity,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
)
from memory.identity import normalize_name
from memory.models import Link
from memory.owner import Owner
from memory.scoring import CONFIDENCE_OF
from memory.services.entities.learn import EntityDraft, Resolved, upsert_leniently
from memory.services.entities.relate import Related, RelationshipDraft, relate
from memory.services.entities.resolve import lock_holder
from memory.services.entities.rows import entity_text
from memory.services.extraction.counts import Fate, Tally
from memory.services.extraction.facts import believed, referred_ids, store_facts
from memory.services.extraction.material import SOURCE, Material, Taken, attempt, attempt_all
from memory.services.memories.links import MENTIONS, NewLink, insert_links
from memory.services.profiles import learn_preferences, look_up_profile

MOST_TURNS = 50
"""That a relationship names as its evidence: the latest."""


def texts_of(extraction: Extraction) -> list[str]:
    """What is to be embedded before the transaction."""
    entities = [entity_text(entity.name, entity.aliases, entity.description) for entity in extraction.entities]
    return [*entities, *(fact.claim for fact in extraction.facts)]


def store_extraction(material: Material) -> Tally:
    """Store it, in the caller's transaction; what became of each item."""
    lock_holder(material.owner)
    taken = Taken(tally=Tally.of(material.extraction))
    # before anything else is locked: clients lock the fact that they change first, too
    referred = [number for fact in material.extraction.facts for number in (*fact.corrects, *fact.contradicts)]
    believed(material.owner, referred_ids(material, taken, referred))
    store_entities(material, taken)
    store_facts(material, taken)
    store_relationships(material, taken)
    store_preferences(material, taken)
    return taken.tally


def store_entities(material: Material, taken: Taken) -> None:
    """The entities, and that their turns mention them."""
    extracted = material.extraction.entities
    resolved = attempt_all(taken, "entities", extracted, partial(put_entities, material))
    new: set[UUID] = set()
    for entity, found in zip(extracted, resolved, strict=True):
        if isinstance(found, Fate):
            leave_entity(taken, entity, found)
        else:
            take_entity(taken, entity, found, new)


def put_entities(material: Material, extracted: Sequence[ExtractedEntity]) -> list[Resolved | None]:
    drafts = [entity_draft(material, entity) for entity in extracted]
    with transaction.atomic():
        resolved = upsert_leniently(material.owner, drafts, embedded=material.embedded, now=material.now)
        mentions = [
            NewLink(source_id=turn_id, type=MENTIONS, target_id=found.entity.id)
            for entity, found in zip(extracted, resolved, strict=True)
            if found is not None
            for turn_id in material.turn_ids(entity.evidence)
        ]
        insert_links(material.owner.account_id, mentions)
    return resolved


def leave_entity(taken: Taken, entity: ExtractedEntity, fate: Fate) -> None:
    if fate is Fate.FAILED:
        taken.failed |= {normalize_name(name) for name in (*entity.aliases, entity.name)}


def take_entity(taken: Taken, entity: ExtractedEntity, found: Resolved | None, new: set[UUID]) -> None:
    """`new` are those that were made so far: two names may turn out to be one entity's."""
    said = (*entity.aliases, entity.name)
    keys = [normalize_name(name) for name in said]
    taken.entities |= dict.fromkeys(keys, None if found is None else found.entity)
    names = [*said, *(() if found is None else found.entity.names)]
    taken.names |= dict.fromkeys(keys, names)
    if found is None:
        taken.tally.refuse("withheld")
        return
    is_new = found.is_new and found.entity.id not in new
    new.add(found.entity.id)
    taken.tally.count("entities", Fate.LEARNT if is_new else Fate.MERGED)


def entity_draft(material: Material, entity: ExtractedEntity) -> EntityDraft:
    return EntityDraft(
        name=entity.name,
        type=entity.type,
        aliases=entity.aliases,
        description=entity.description,
        event_time=material.said_at(entity.evidence),
        source=SOURCE,
    )


def store_relationships(material: Material, taken: Taken) -> None:
    """All at once; where one of them is refused (its properties are full), each for itself."""
    found = material.extraction.relationships
    whole = [each for each in found if taken.stands("relationships", map(normalize_name, (each.source, each.target)))]
    new: set[UUID] = set()
    for related in attempt_all(taken, "relationships", whole, partial(put_relationships, material, taken)):
        if related is None:
            taken.tally.refuse("ends")
        elif isinstance(related, Related):
            # two that turned out to be one relationship are new once
            is_new = related.is_new and related.link.id not in new
            new.add(related.link.id)
            taken.tally.count("relationships", Fate.LEARNT if is_new else Fate.MERGED)


def put_relationships(
    material: Material, taken: Taken, relationships: Sequence[ExtractedRelationship]
) -> list[Related | None]:
    """None for one that has no two ends."""
    drafts = [relationship_draft(material, taken, each) for each in relationships]
    kept = with_former_evidence(material.owner, [draft for draft in drafts if draft is not None])
    related = iter(relate(material.owner, kept, now=material.now))
    return [None if draft is None else next(related) for draft in drafts]


def relationship_draft(
    material: Material, taken: Taken, relationship: ExtractedRelationship
) -> RelationshipDraft | None:
    """None where an end is withheld, or both turned out to be one."""
    ends = taken.entity_ids([relationship.source, relationship.target])
    if len(ends) != 2:
        return None
    turns = [str(turn_id) for turn_id in material.turn_ids(relationship.evidence)]
    return RelationshipDraft(
        source_id=ends[0],
        target_id=ends[1],
        type=relationship.type,
        weight=CONFIDENCE_OF[relationship.certainty],
        properties={"certainty": relationship.certainty, "turns": turns, "source": SOURCE},
    )


def with_former_evidence(owner: Owner, drafts: Sequence[RelationshipDraft]) -> list[RelationshipDraft]:
    """With the turns that said so before, and the certainty and weight that it has if they are greater."""
    if not drafts:
        return []
    ends = {
        "source_id__in": [draft.source_id for draft in drafts],
        "target_id__in": [each.target_id for each in drafts],
    }
    links = Link.objects.filter(account_id=owner.account_id, type__in={draft.type for draft in drafts}, **ends)
    known = {(link.source_id, link.type, link.target_id): link for link in links}
    return [add_evidence(draft, known.get(draft.key)) for draft in drafts]


def add_evidence(draft: RelationshipDraft, link: Link | None) -> RelationshipDraft:
    if link is None:
        return draft
    before = link.properties.get("turns")
    turns = [*(before if isinstance(before, list) else []), *draft.properties["turns"]]
    properties = draft.properties | {"turns": list(dict.fromkeys(map(str, turns)))[-MOST_TURNS:]}
    if link.weight >= (draft.weight or 0.0):
        properties["certainty"] = link.properties.get("certainty", properties["certainty"])
    return replace(draft, weight=max(link.weight, draft.weight or 0.0), properties=properties)


def store_preferences(material: Material, taken: Taken) -> None:
    """Into the user's profile, each with the fact and the turns that say so. Nobody's without a user."""
    preferences = material.extraction.preferences
    if not material.owner.user_id:
        taken.tally.refuse("nobody", len(preferences))
        return
    known = known_preferences(material) if preferences else {}
    for preference in preferences:
        if preference.fact in taken.rejected:
            taken.tally.refuse("rejected")
        elif taken.stands("preferences", () if preference.fact is None else (preference.fact,)):
            topics = attempt(taken, "preferences", partial(learn_preference, material, taken, preference))
            if not isinstance(topics, Fate):
                count_preference(taken, preference, known, is_taken=bool(topics))


def known_preferences(material: Material) -> dict[str, Any]:
    """By topic, whose case makes no other one."""
    profile = look_up_profile(material.owner, material.owner.user_id)
    return {} if profile is None else {topic.casefold(): value for topic, value in profile.preferences.items()}


def count_preference(taken: Taken, preference: ExtractedPreference, known: dict[str, Any], *, is_taken: bool) -> None:
    """One that was not taken over says what is known, or something else than what was set by hand, or said later."""
    topic = preference.topic.casefold()
    if known.get(topic) == preference.value:
        taken.tally.count("preferences", Fate.MERGED)
    elif is_taken:
        taken.tally.counts["preferences_replaced"] += topic in known
        known[topic] = preference.value
        taken.tally.count("preferences", Fate.LEARNT)
    else:
        taken.tally.refuse("kept")


def learn_preference(material: Material, taken: Taken, preference: ExtractedPreference) -> list[str]:
    fact_id = taken.facts.get(preference.fact) if preference.fact is not None else None
    provenance = {
        "fact_id": None if fact_id is None else str(fact_id),
        "turn_ids": [str(turn_id) for turn_id in material.turn_ids(preference.evidence)],
        "at": material.said_at(preference.evidence).isoformat(),
    }
    said = {preference.topic: preference.value}
    return learn_preferences(material.owner, material.owner.user_id, said, provenance=provenance, now=material.now)

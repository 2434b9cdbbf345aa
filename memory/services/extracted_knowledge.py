"""Storing what was extracted from a run of turns: entities, facts, relationships, preferences, and where each is from.

Everything happens in the transaction that marks the turns as looked through. One extraction at a time writes what a
holder knows. Facts are taken in their order; one that contradicts what is believed goes by `contradictions`. A
correction ("no, I meant …") is no contradiction: the old fact was wrong, and is replaced whatever the policy.

What a service refuses is passed over and counted, each item for itself: nothing that somebody says, or stored before,
keeps the rest of a conversation from being looked through.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.errors import MemoryServiceError
from memory.extraction.knowledge import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
)
from memory.identity import normalize_name
from memory.models import Entity, Fact, Link, Turn
from memory.owner import Owner
from memory.scoring import CONFIDENCE_OF
from memory.services.contradictions import Rival, contradicting, is_about_user, prefer_new, rivals_of
from memory.services.embedding import Embedded
from memory.services.entities import EntityDraft, Resolved, upsert_leniently
from memory.services.entity_resolution import lock_holder
from memory.services.entity_rows import entity_text
from memory.services.fact_changes import replace_wrong_fact, supersede_fact
from memory.services.fact_reviews import open_review
from memory.services.fact_tombstones import count_met, rejected_among
from memory.services.facts import FactDraft, Learnt, learn_facts
from memory.services.links import MENTIONS, NewLink, insert_links
from memory.services.profiles import learn_preferences
from memory.services.relationships import RelationshipDraft, create_relationships

logger = logging.getLogger(__name__)

SOURCE = "extraction"
MOST_TURNS = 50
"""That a relationship names as its evidence: the latest."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What was extracted from which turns. `known` are the facts that the extractor was shown, by number."""

    owner: Owner
    turns: Mapping[int, Turn]
    extraction: Extraction
    known: Mapping[int, UUID]
    embedded: Embedded
    now: datetime

    def turn_ids(self, evidence: Iterable[int]) -> list[UUID]:
        return [self.turns[index].id for index in evidence]

    def said_at(self, evidence: Sequence[int]) -> datetime:
        return self.turns[evidence[0]].event_time


@dataclass(slots=True, kw_only=True)
class Taken:
    """What was stored so far, by the extraction's own names and numbers. `names` are all that an entity goes by."""

    entities: dict[str, Entity | None] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[int, UUID] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    def entity_ids(self, names: Iterable[str]) -> list[UUID]:
        found = (self.entities.get(normalize_name(name)) for name in names)
        return list(dict.fromkeys(entity.id for entity in found if entity is not None))

    def is_withheld(self, names: Iterable[str]) -> bool:
        """Whether staff has put one of them away."""
        return any(self.entities.get(normalize_name(name), True) is None for name in names)

    def all_names(self, names: Iterable[str]) -> list[str]:
        return [each for name in names for each in self.names.get(normalize_name(name), [name])]

    def learn(self, number: int, learnt: Learnt) -> None:
        self.facts[number] = learnt.fact.id
        self.counts["facts"] += learnt.is_new


def texts_of(extraction: Extraction) -> list[str]:
    """What is to be embedded before the transaction."""
    entities = [entity_text(entity.name, entity.aliases, entity.description) for entity in extraction.entities]
    return [*entities, *(fact.claim for fact in extraction.facts)]


def store_extraction(material: Material) -> Counter[str]:
    """Store it, in the caller's transaction; what came of it, by noun, and what was passed over, by reason."""
    lock_holder(material.owner)
    taken = Taken(counts=Counter(material.extraction.dropped))
    # before anything else is locked: clients lock the fact that they change first, too
    referred = [number for fact in material.extraction.facts for number in (*fact.corrects, *fact.contradicts)]
    believed(material.owner, referred_ids(material, taken, referred))
    store_entities(material, taken)
    store_facts(material, taken)
    store_relationships(material, taken)
    store_preferences(material, taken)
    return taken.counts


def attempt(taken: Taken, act: Callable[[], T]) -> T | None:
    """None, and counted, where a service refuses it; nothing of it is stored then."""
    try:
        with transaction.atomic():
            return act()
    except MemoryServiceError as err:
        logger.info("passed over in extraction: %s", err.code)
        taken.counts["refused"] += 1
        return None


def store_entities(material: Material, taken: Taken) -> None:
    """The entities, and that their turns mention them."""
    extracted = material.extraction.entities
    drafts = [entity_draft(material, entity) for entity in extracted]
    resolved = upsert_leniently(material.owner, drafts, embedded=material.embedded, now=material.now)
    mentions = []
    for entity, found in zip(extracted, resolved, strict=True):
        take_entity(taken, entity, found)
        if found is not None:
            mentions += [
                NewLink(source_id=turn_id, type=MENTIONS, target_id=found.entity.id)
                for turn_id in material.turn_ids(entity.evidence)
            ]
    insert_links(material.owner.account_id, mentions)


def take_entity(taken: Taken, entity: ExtractedEntity, found: Resolved | None) -> None:
    said = (*entity.aliases, entity.name)
    keys = [normalize_name(name) for name in said]
    taken.counts["withheld"] += found is None
    taken.counts["entities"] += found is not None and found.is_new
    taken.entities |= dict.fromkeys(keys, None if found is None else found.entity)
    names = [*said, *(() if found is None else found.entity.names)]
    taken.names |= dict.fromkeys(keys, names)


def entity_draft(material: Material, entity: ExtractedEntity) -> EntityDraft:
    return EntityDraft(
        name=entity.name,
        type=entity.type,
        aliases=entity.aliases,
        description=entity.description,
        event_time=material.said_at(entity.evidence),
        source=SOURCE,
    )


def store_facts(material: Material, taken: Taken) -> None:
    """Those that stand alone at once, then the others in their order: they may refer to what came before them."""
    facts = without_rejected(material, taken)
    plain = [fact for fact in facts if not (fact.corrects or fact.contradicts)]
    store_plain(material, taken, plain)
    for fact in facts:
        if fact.corrects or fact.contradicts:
            attempt(taken, partial(store_against, material, taken, fact))


def without_rejected(material: Material, taken: Taken) -> list[ExtractedFact]:
    """The facts that nobody rejected, about nobody whom staff has put away; that the others were met is counted."""
    facts = [fact for fact in of_somebody(material, taken) if not taken.is_withheld(fact.entities)]
    taken.counts["withheld"] += len(material.extraction.facts) - taken.counts["nobody"] - len(facts)
    rejected = rejected_among(material.owner, [(fact.claim, taken.all_names(fact.entities)) for fact in facts])
    met = [tombstone for tombstone in rejected if tombstone is not None]
    count_met(met, now=material.now)
    taken.counts["rejected"] += len(met)
    taken.rejected |= {fact.number for fact, tombstone in zip(facts, rejected, strict=True) if tombstone is not None}
    return [fact for fact, tombstone in zip(facts, rejected, strict=True) if tombstone is None]


def of_somebody(material: Material, taken: Taken) -> Sequence[ExtractedFact]:
    """Without a user there is no "the user": who reads the claim later would take it for another's."""
    facts = material.extraction.facts
    kept = facts if material.owner.user_id else [fact for fact in facts if not is_about_user(fact.claim)]
    taken.counts["nobody"] += len(facts) - len(kept)
    return kept


def store_plain(material: Material, taken: Taken, facts: Sequence[ExtractedFact]) -> None:
    """All at once; where one of them is refused, each for itself."""

    def learn(some: Sequence[ExtractedFact]) -> list[Learnt]:
        drafts = [fact_draft(material, taken, fact) for fact in some]
        return learn_facts(material.owner, drafts, embedded=material.embedded, now=material.now)

    try:
        with transaction.atomic():
            learnt: Sequence[Learnt | None] = learn(facts)
    except MemoryServiceError:
        each = [attempt(taken, partial(learn, [fact])) for fact in facts]
        learnt = [found[0] if found else None for found in each]
    for fact, one in zip(facts, learnt, strict=True):
        if one is not None:
            taken.learn(fact.number, one)


def fact_draft(material: Material, taken: Taken, fact: ExtractedFact) -> FactDraft:
    return FactDraft(
        claim=fact.claim,
        confidence=CONFIDENCE_OF[fact.certainty],
        certainty=fact.certainty,
        temporal=fact.temporal,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        entity_ids=taken.entity_ids(fact.entities),
        turn_ids=material.turn_ids(fact.evidence),
        source=SOURCE,
        event_time=material.said_at(fact.evidence),
        conversation_id=material.turns[fact.evidence[0]].conversation_id,
        metadata={"extractor": material.extraction.source},
    )


def store_against(material: Material, taken: Taken, fact: ExtractedFact) -> None:
    """A fact that corrects or contradicts others, as far as they are still believed."""
    owner, embedded, now = material.owner, material.embedded, material.now
    draft = fact_draft(material, taken, fact)
    if wrong := believed(owner, referred_ids(material, taken, fact.corrects)):
        also = [each.id for each in wrong[1:]]
        stored = replace_wrong_fact(owner, wrong[0].id, draft, also=also, embedded=embedded, now=now)
        taken.facts[fact.number] = stored.id
        taken.counts["corrections"] += 1
        return
    contradicted = believed(owner, referred_ids(material, taken, fact.contradicts))
    settle(material, taken, fact, draft, rivals_of(owner, draft, contradicted, embedded=embedded))


def settle(material: Material, taken: Taken, fact: ExtractedFact, draft: FactDraft, rivals: Sequence[Rival]) -> None:
    """What MEMORY_CONTRADICTIONS says."""
    said_at = material.said_at(fact.evidence)
    against = contradicting(draft, rivals, said_at=said_at)
    taken.counts["contradictions"] += len(against)
    policy = "flag_review" if any(rival.similarity is None for rival in against) else conf.CONTRADICTIONS
    if against and policy == "flag_review":
        for rival in against:
            ask_staff(material, draft, rival)
        taken.counts["reviews"] += len(against)
    elif against and policy == "prefer_old":
        taken.counts["prefer_old"] += 1
    else:
        verdict = prefer_new(draft, rivals, said_at=said_at)
        learn_in_place(material, taken, fact, verdict.draft, verdict.outdated)


def ask_staff(material: Material, draft: FactDraft, rival: Rival) -> None:
    open_review(
        material.owner,
        old=rival.fact,
        draft=draft,
        similarity=rival.similarity,
        embedded=material.embedded,
        now=material.now,
    )


def learn_in_place(
    material: Material, taken: Taken, fact: ExtractedFact, draft: FactDraft, outdated: Sequence[Fact]
) -> None:
    """Learn the draft, in the place of the facts that are outdated by it, if there are any."""
    owner, embedded, now = material.owner, material.embedded, material.now
    if not outdated:
        taken.learn(fact.number, learn_facts(owner, [draft], embedded=embedded, now=now)[0])
        return
    also = [each.id for each in outdated[1:]]
    stored = supersede_fact(owner, outdated[0].id, draft, also=also, embedded=embedded, now=now)
    taken.facts[fact.number] = stored.id
    taken.counts["facts"] += 1


def referred_ids(material: Material, taken: Taken, numbers: Iterable[int]) -> list[UUID]:
    """The facts of these numbers: known ones, or of this extraction."""
    found = (material.known.get(number) or taken.facts.get(number) for number in numbers)
    return list(dict.fromkeys(fact_id for fact_id in found if fact_id is not None))


def believed(owner: Owner, fact_ids: Sequence[UUID]) -> list[Fact]:
    """Those of them that are still active, in their order, locked until the transaction ends."""
    if not fact_ids:
        return []
    rows: Any = Fact.objects.visible_to(owner).filter(id__in=fact_ids, user_id=owner.user_id)
    locked = rows.order_by("id").select_for_update(of=("memory_ptr", "self"))
    active = {fact.id: fact for fact in locked if fact.status == Fact.Status.ACTIVE and not fact.quarantined}
    return [active[fact_id] for fact_id in fact_ids if fact_id in active]


def store_relationships(material: Material, taken: Taken) -> None:
    """All at once; where one of them is refused (its properties are full), each for itself."""
    relationships = material.extraction.relationships
    drafts = [draft for each in relationships if (draft := relationship_draft(material, taken, each)) is not None]
    drafts = with_former_evidence(material.owner, drafts)

    def relate(some: Sequence[RelationshipDraft]) -> list[Link]:
        return create_relationships(material.owner, some, now=material.now)

    try:
        with transaction.atomic():
            taken.counts["relationships"] += len(relate(drafts))
    except MemoryServiceError:
        for draft in drafts:
            stored = attempt(taken, partial(relate, [draft]))
            taken.counts["relationships"] += len(stored or ())


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
    if not material.owner.user_id:
        return
    for preference in material.extraction.preferences:
        if preference.fact in taken.rejected:
            continue
        learnt = attempt(taken, partial(learn_preference, material, taken, preference))
        taken.counts["preferences"] += len(learnt or ())


def learn_preference(material: Material, taken: Taken, preference: ExtractedPreference) -> list[str]:
    fact_id = taken.facts.get(preference.fact) if preference.fact is not None else None
    provenance = {
        "fact_id": None if fact_id is None else str(fact_id),
        "turn_ids": [str(turn_id) for turn_id in material.turn_ids(preference.evidence)],
        "at": material.said_at(preference.evidence).isoformat(),
    }
    said = {preference.topic: preference.value}
    return learn_preferences(material.owner, material.owner.user_id, said, provenance=provenance, now=material.now)

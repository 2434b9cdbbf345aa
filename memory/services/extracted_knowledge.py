"""Storing what was extracted from a run of turns: entities, facts, relationships, preferences, and where each is from.

Everything happens in the transaction that marks the turns as looked through. One extraction at a time writes what a
holder knows. Facts are taken in their order; one that contradicts what is believed goes by MEMORY_CONTRADICTIONS:

- `prefer_new` supersedes the old fact, `prefer_old` leaves the new one out, `flag_review` asks staff.
- Contradicting is believed only of facts that share an entity (or are both about the user alone) and whose claims are
  near in meaning (`CONTRADICTION_SIMILARITY`). Where a vector is missing, nobody can tell: staff is asked.
- A correction ("no, I meant …") is no contradiction: the old fact was wrong, and is replaced whatever the policy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.django import CosineDistance

from memory import conf
from memory.extraction.knowledge import ExtractedEntity, ExtractedFact, ExtractedRelationship, Extraction
from memory.identity import normalize_name
from memory.models import Entity, Fact, Link, Turn, Vector
from memory.models.binary import Embedding, half_vector
from memory.owner import Owner
from memory.scoring import CONFIDENCE_OF
from memory.services.embedding import Embedded
from memory.services.entities import EntityDraft, upsert_leniently
from memory.services.entity_resolution import lock_holder
from memory.services.entity_rows import entity_text
from memory.services.fact_changes import replace_wrong_fact, supersede_fact
from memory.services.fact_reviews import open_review
from memory.services.fact_tombstones import count_met, rejected_among
from memory.services.facts import FactDraft, learn_facts
from memory.services.links import ABOUT, MENTIONS, NewLink, insert_links
from memory.services.profiles import learn_preferences
from memory.services.relationships import RelationshipDraft, create_relationships

SOURCE = "extraction"
CONTRADICTION_SIMILARITY = 0.5
"""Cosine of two claims, from which on one may contradict the other."""


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
    """What was stored so far, by the extraction's own names and numbers."""

    entities: dict[str, Entity] = field(default_factory=dict)
    facts: dict[int, UUID] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def entity_ids(self, names: Iterable[str]) -> list[UUID]:
        found = (self.entities.get(normalize_name(name)) for name in names)
        return list(dict.fromkeys(entity.id for entity in found if entity is not None))


def texts_of(extraction: Extraction) -> list[str]:
    """What is to be embedded before the transaction."""
    entities = [entity_text(entity.name, entity.aliases, entity.description) for entity in extraction.entities]
    return [*entities, *(fact.claim for fact in extraction.facts)]


def store_extraction(material: Material) -> Counter[str]:
    """Store it, in the caller's transaction; what came of it, by noun, and what was passed over, by reason."""
    lock_holder(material.owner)
    taken = Taken(counts=Counter(material.extraction.dropped))
    store_entities(material, taken)
    store_facts(material, taken)
    store_relationships(material, taken)
    store_preferences(material, taken)
    return taken.counts


def store_entities(material: Material, taken: Taken) -> None:
    """The entities, and that their turns mention them."""
    extracted = material.extraction.entities
    drafts = [entity_draft(material, entity) for entity in extracted]
    resolved = upsert_leniently(material.owner, drafts, embedded=material.embedded, now=material.now)
    mentions = []
    for entity, found in zip(extracted, resolved, strict=True):
        if found is None:
            taken.counts["withheld"] += 1
            continue
        taken.counts["entities"] += found.is_new
        taken.entities |= {normalize_name(name): found.entity for name in (*entity.aliases, entity.name)}
        mentions += [
            NewLink(source_id=turn_id, type=MENTIONS, target_id=found.entity.id)
            for turn_id in material.turn_ids(entity.evidence)
        ]
    insert_links(material.owner.account_id, mentions)


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
    drafts = [fact_draft(material, taken, fact) for fact in plain]
    learnt = learn_facts(material.owner, drafts, embedded=material.embedded, now=material.now)
    for fact, each in zip(plain, learnt, strict=True):
        taken.facts[fact.number] = each.fact.id
        taken.counts["facts"] += each.is_new
    for fact in facts:
        if fact.corrects or fact.contradicts:
            store_against(material, taken, fact)


def without_rejected(material: Material, taken: Taken) -> list[ExtractedFact]:
    """The facts that nobody rejected; that the others were met again is counted."""
    facts = material.extraction.facts
    rejected = rejected_among(material.owner, [(fact.claim, fact.entities) for fact in facts])
    met = [tombstone for tombstone in rejected if tombstone is not None]
    count_met(met, now=material.now)
    taken.counts["rejected"] += len(met)
    return [fact for fact, tombstone in zip(facts, rejected, strict=True) if tombstone is None]


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
    """A fact that corrects or contradicts others: the nearest of them, as far as they are still believed."""
    owner, embedded, now = material.owner, material.embedded, material.now
    draft = fact_draft(material, taken, fact)
    if wrong := believed(owner, referred(material, taken, fact.corrects)):
        stored = replace_wrong_fact(owner, wrong[0].id, draft, embedded=embedded, now=now)
        taken.facts[fact.number] = stored.id
        taken.counts["corrections"] += 1
        return
    rivals = rivals_of(draft, believed(owner, referred(material, taken, fact.contradicts)), material)
    if not rivals:
        learnt = learn_facts(owner, [draft], embedded=embedded, now=now)[0]
        taken.facts[fact.number] = learnt.fact.id
        taken.counts["facts"] += learnt.is_new
        return
    decide(material, taken, fact, draft, rivals[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A believed fact that a new one contradicts. `similarity` is None where one of them has no vector yet."""

    fact: Fact
    similarity: float | None


def decide(material: Material, taken: Taken, fact: ExtractedFact, draft: FactDraft, rival: Rival) -> None:
    """What MEMORY_CONTRADICTIONS says."""
    owner, embedded, now = material.owner, material.embedded, material.now
    taken.counts["contradictions"] += 1
    policy = conf.CONTRADICTIONS if rival.similarity is not None else "flag_review"
    said_at = material.said_at(fact.evidence)
    if policy == "prefer_new" and said_at < rival.fact.event_time:
        # said before what it contradicts, and only looked through later: it was true until then
        learn_earlier(material, taken, fact, draft, until=rival.fact.valid_from or rival.fact.event_time)
    elif policy == "flag_review":
        open_review(owner, old=rival.fact, draft=draft, similarity=rival.similarity, embedded=embedded, now=now)
        taken.counts["reviews"] += 1
    elif policy == "prefer_new":
        draft = replace(draft, valid_from=draft.valid_from or said_at)
        stored = supersede_fact(owner, rival.fact.id, draft, embedded=embedded, now=now)
        taken.facts[fact.number] = stored.id
        taken.counts["facts"] += 1
    else:
        taken.counts["prefer_old"] += 1


def learn_earlier(material: Material, taken: Taken, fact: ExtractedFact, draft: FactDraft, *, until: datetime) -> None:
    """Learn what held until the other fact began, unless it says itself when it ended."""
    is_open = draft.valid_to is None and (draft.valid_from is None or draft.valid_from < until)
    draft = replace(draft, valid_to=until) if is_open else draft
    learnt = learn_facts(material.owner, [draft], embedded=material.embedded, now=material.now)[0]
    taken.facts[fact.number] = learnt.fact.id
    taken.counts["facts"] += learnt.is_new


def referred(material: Material, taken: Taken, numbers: Iterable[int]) -> list[UUID]:
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


def rivals_of(draft: FactDraft, facts: Sequence[Fact], material: Material) -> list[Rival]:
    """Those of the facts that share an entity with the draft and are near it in meaning, nearest first."""
    ids = [fact.id for fact in facts]
    links = Link.objects.filter(account_id=material.owner.account_id, source_id__in=ids, type=ABOUT)
    about: dict[UUID, set[UUID]] = {}
    for source_id, target_id in links.values_list("source_id", "target_id"):
        about.setdefault(source_id, set()).add(target_id)
    mine = set(draft.entity_ids)
    sharing = [fact for fact in facts if mine & about.get(fact.id, set()) or not (mine or about.get(fact.id))]
    similarities = similarities_to(draft.claim, sharing, material)
    rivals = [Rival(fact=fact, similarity=similarities.get(fact.id)) for fact in sharing]
    near = [rival for rival in rivals if rival.similarity is None or rival.similarity >= CONTRADICTION_SIMILARITY]
    return sorted(near, key=lambda rival: -1.0 if rival.similarity is None else -rival.similarity)


def similarities_to(claim: str, facts: Sequence[Fact], material: Material) -> dict[UUID, float]:
    """Cosines, by fact, where both have vectors of the current model."""
    vector: Embedding | None = material.embedded.vectors.get(claim)
    if vector is None or not facts:
        return {}
    rows = Vector.objects.filter(
        account_id=material.owner.account_id,
        memory_id__in=[fact.id for fact in facts],
        model=material.embedded.model,
        width=len(vector),
    )
    distances = rows.values_list("memory_id", CosineDistance("vector", half_vector(vector)))
    return {memory_id: 1 - distance for memory_id, distance in distances}


def store_relationships(material: Material, taken: Taken) -> None:
    drafts = [
        draft
        for relationship in material.extraction.relationships
        if (draft := relationship_draft(material, taken, relationship)) is not None
    ]
    if drafts:
        create_relationships(material.owner, drafts, now=material.now)
        taken.counts["relationships"] += len(drafts)


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


def store_preferences(material: Material, taken: Taken) -> None:
    """Into the user's profile, each with the fact and the turns that say so. Nobody's without a user."""
    if not material.owner.user_id:
        return
    for preference in material.extraction.preferences:
        turn_ids = material.turn_ids(preference.evidence)
        provenance = {
            "fact_id": str(taken.facts[preference.fact]) if preference.fact in taken.facts else None,
            "turn_ids": [str(turn_id) for turn_id in turn_ids],
            "at": material.said_at(preference.evidence).isoformat(),
        }
        learn_preferences(
            material.owner,
            material.owner.user_id,
            {preference.topic: preference.value},
            provenance=provenance,
            now=material.now,
        )
        taken.counts["preferences"] += 1

"""Storing what was extracted from a run of turns: entities, facts, relationships, preferences, and where each is from.

Everything happens in the transaction that marks the turns as looked through. One extraction at a time writes what a
holder knows. Facts (`extracted_facts`) are taken in their order. Each item stands or falls for itself
(`extraction_material`): nothing that somebody says, or stored before, keeps the rest of a conversation from being
looked through.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.extraction.knowledge import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
)
from memory.identity import normalize_name
from memory.models import Fact, FactReview, Link
from memory.owner import Owner
from memory.scoring import CONFIDENCE_OF
from memory.services.entities.learn import EntityDraft, Resolved, upsert_leniently
from memory.services.entities.relate import Related, RelationshipDraft, relate
from memory.services.entities.resolve import lock_holder
from memory.services.entities.rows import entity_text
from memory.services.extraction.material import SOURCE, Fate, Material, Stored, Taken, Tally, attempt, attempt_all
from memory.services.facts.learn import FactDraft, learn_facts
from memory.services.facts.review import Rival, contradicting, is_about_user, open_review, prefer_new, rivals_of
from memory.services.facts.supersede import replace_wrong_fact, supersede_fact
from memory.services.facts.tombstones import count_met, rejected_among
from memory.services.memories.links import MENTIONS, NewLink, insert_links
from memory.services.profiles import learn_preferences, look_up_profile


def store_facts(material: Material, taken: Taken) -> None:
    """Those that stand alone at once, then the others in their order: they may refer to what came before them."""
    facts = [fact for fact in without_rejected(material, taken) if stands(taken, fact)]
    plain = [fact for fact in facts if not (fact.corrects or fact.contradicts)]
    for fact, stored in zip(plain, attempt_all(taken, "facts", plain, partial(learn, material, taken)), strict=True):
        taken.take_fact(fact.number, stored)
    for fact in facts:
        # what it refers to may have failed since
        if (fact.corrects or fact.contradicts) and stands(taken, fact):
            taken.take_fact(fact.number, attempt(taken, "facts", partial(store_against, material, taken, fact)))


def stands(taken: Taken, fact: ExtractedFact) -> bool:
    names = map(normalize_name, fact.entities)
    is_whole = taken.stands("facts", [*names, *fact.corrects, *fact.contradicts])
    if not is_whole:
        taken.failed.add(fact.number)
    return is_whole


def learn(material: Material, taken: Taken, facts: Sequence[ExtractedFact]) -> list[Stored]:
    drafts = [fact_draft(material, taken, fact) for fact in facts]
    learnt = learn_facts(material.owner, drafts, embedded=material.embedded, now=material.now)
    return [Stored.of(each.fact, is_new=each.is_new) for each in learnt]


def without_rejected(material: Material, taken: Taken) -> list[ExtractedFact]:
    """The facts that nobody rejected, about nobody whom staff has put away; that the others were met is counted."""
    about_somebody = of_somebody(material, taken)
    facts = [fact for fact in about_somebody if not taken.is_withheld(fact.entities)]
    taken.tally.refuse("withheld", len(about_somebody) - len(facts))
    rejected = rejected_among(material.owner, [(fact.claim, taken.all_names(fact.entities)) for fact in facts])
    met = [tombstone for tombstone in rejected if tombstone is not None]
    count_met(met, now=material.now)
    taken.tally.refuse("rejected", len(met))
    taken.rejected |= {fact.number for fact, tombstone in zip(facts, rejected, strict=True) if tombstone is not None}
    return [fact for fact, tombstone in zip(facts, rejected, strict=True) if tombstone is None]


def of_somebody(material: Material, taken: Taken) -> Sequence[ExtractedFact]:
    """Without a user there is no "the user": who reads the claim later would take it for another's."""
    facts = material.extraction.facts
    kept = facts if material.owner.user_id else [fact for fact in facts if not is_about_user(fact.claim)]
    taken.tally.refuse("nobody", len(facts) - len(kept))
    return kept


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


def store_against(material: Material, taken: Taken, fact: ExtractedFact) -> Stored:
    """A fact that corrects or contradicts others, as far as they are still believed."""
    owner, embedded, now = material.owner, material.embedded, material.now
    draft = fact_draft(material, taken, fact)
    if wrong := believed(owner, referred_ids(material, taken, fact.corrects)):
        also = [each.id for each in wrong[1:]]
        stored = replace_wrong_fact(owner, wrong[0].id, draft, also=also, embedded=embedded, now=now)
        return in_place_of(wrong, stored, draft, corrections=1)
    contradicted = believed(owner, referred_ids(material, taken, fact.contradicts))
    said_at = material.said_at(fact.evidence)
    return settle(material, draft, rivals_of(owner, draft, contradicted, embedded=embedded), said_at=said_at)


def settle(material: Material, draft: FactDraft, rivals: Sequence[Rival], *, said_at: datetime) -> Stored:
    """What MEMORY_CONTRADICTIONS says."""
    against = contradicting(draft, rivals, said_at=said_at)
    policy = "flag_review" if any(rival.similarity is None for rival in against) else conf.CONTRADICTIONS
    beside = {"contradictions": len(against)}
    if against and policy == "flag_review":
        reviews = [ask_staff(material, draft, rival) for rival in against]
        is_new = any(review.new_fact_id == draft.id for review in reviews)
        beside["reviews"] = len(against)
        return Stored(fate=Fate.LEARNT if is_new else Fate.MERGED, beside=beside)
    if against and policy == "prefer_old":
        return Stored(fate=Fate.REFUSED, reason="prefer_old", beside=beside)
    verdict = prefer_new(draft, rivals, said_at=said_at)
    return learn_in_place(material, verdict.draft, verdict.outdated, **beside)


def ask_staff(material: Material, draft: FactDraft, rival: Rival) -> FactReview:
    return open_review(
        material.owner,
        old=rival.fact,
        draft=draft,
        similarity=rival.similarity,
        embedded=material.embedded,
        now=material.now,
    )


def learn_in_place(material: Material, draft: FactDraft, outdated: Sequence[Fact], **beside: int) -> Stored:
    """Learn the draft, in the place of the facts that are outdated by it, if there are any."""
    owner, embedded, now = material.owner, material.embedded, material.now
    if not outdated:
        learnt = learn_facts(owner, [draft], embedded=embedded, now=now)[0]
        return Stored.of(learnt.fact, is_new=learnt.is_new, **beside)
    also = [each.id for each in outdated[1:]]
    stored = supersede_fact(owner, outdated[0].id, draft, also=also, embedded=embedded, now=now)
    return in_place_of(outdated, stored, draft, successions=1, **beside)


def in_place_of(olds: Sequence[Fact], stored: Fact, draft: FactDraft, **beside: int) -> Stored:
    """The draft, which may have been known as one of the old facts: that one is believed on."""
    ended = sum(old.id != stored.id for old in olds)
    return Stored.of(stored, is_new=stored.id == draft.id, facts_superseded=ended, **beside)


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

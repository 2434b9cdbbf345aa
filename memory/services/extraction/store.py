"""Storing what was extracted from turns: entities, facts, relationships and preferences, each linked to its turns.

Everything happens in the transaction that marks the turns as extracted, and one extraction at a time writes the
knowledge of a holder. Facts are stored in their order. Each item stands or falls by itself (`outcomes`): nothing that
someone says, or stored before, keeps the rest of a conversation from being extracted.

A fact that contradicts an active one is handled as the account or MEMORY_CONTRADICTIONS says. Contradictions of subject
and attribute are looked up here (`facts.contradict`), under the lock of the holder: what another extraction stored
since this one began is seen. The extractor names further ones. A correction ("no, I meant …") is not a contradiction:
the old fact was wrong and is replaced whatever the setting.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from memory.extraction.knowledge import ExtractedEntity, ExtractedFact, ExtractedRelationship, Extraction
from memory.extraction.rules.attributes import ClaimReading, contradicts, read_meaning
from memory.identity import normalize_name
from memory.models import Fact, Kind, Link, Memory
from memory.models.memory import EXTRACTED_SOURCE
from memory.owner import Owner
from memory.scoring import CONFIDENCE_BY_CERTAINTY
from memory.services.entities.learn import EntityDraft, ResolvedEntity, upsert_entities_leniently
from memory.services.entities.relate import RelationshipDraft, StoredRelationship, create_relationships
from memory.services.entities.resolve import filter_by_holder, lock_holder
from memory.services.entities.store import entity_text
from memory.services.extraction.forget import find_requests, find_to_lock, forget_requested
from memory.services.extraction.outcomes import (
    ExtractionInput,
    FactResult,
    ItemCounts,
    ItemOutcome,
    StoredItems,
    store_alone,
    store_each,
)
from memory.services.extraction.preferences import store_all_preferences
from memory.services.facts.contradict import SaidClaim, find_contradicted, find_policy, is_next_date, is_old_move
from memory.services.facts.copies import find_copy_ids
from memory.services.facts.learn import FactDraft, learn_facts
from memory.services.facts.outdate import end_outdated, find_ending, find_outdated
from memory.services.facts.plans import find_begun_ids, retract_begun
from memory.services.facts.review import filter_contradicted, find_rivals, is_about_user, open_review, prefer_new
from memory.services.facts.supersede import replace_wrong_fact, supersede_fact
from memory.services.facts.tombstones import count_tombstone_matches, find_tombstones
from memory.services.memories.links import MENTIONS, NewLink, insert_links
from memory.services.memories.trust import least_trust
from memory.services.profiles import read_preferences
from memory.services.replaced_evidence import weaken_partial_replacements

MAX_EVIDENCE_TURNS = 50
"""Maximum of turns that a relationship names as its evidence; the latest are kept."""


def extraction_texts(extraction: Extraction) -> list[str]:
    """Return the texts to embed before the transaction."""
    entities = [entity_text(entity.name, entity.aliases, entity.description) for entity in extraction.entities]
    return [*entities, *(fact.claim for fact in extraction.facts)]


def store_extractions(owner: Owner, work: Sequence[ExtractionInput], *, now: datetime) -> ItemCounts:
    """Store the extractions of the owner's turns in the caller's transaction and return the counts of their items.

    Everything is locked in the order of clients: the facts that change and their copies first, the profile last.
    """
    lock_holder(owner)
    turns = {turn.id: turn for inputs in work for turn in inputs.turns.values()}
    turn_ids = list(turns)
    asked = find_requests(list(turns.values()))
    forgotten, said = find_to_lock(owner, asked, now=now)
    outdated = {each.fact_id for each in find_outdated(owner, turn_ids)} | forgotten
    contested = lock_contested(owner, work, outdated, turns=said.union(turn_ids) if asked else (), now=now)
    # before facts are replaced, from which preferences were learned
    known = read_preferences(owner)
    stored = []
    for inputs in work:
        items = StoredItems(counts=ItemCounts.of(inputs.extraction))
        store_entities(inputs, items)
        store_facts(inputs, items, contested=contested)
        store_relationships(inputs, items)
        stored.append((inputs, items))
    if stored:
        may_end = outdated.union(*(items.facts.values() for _inputs, items in stored))
        ended = end_outdated(owner, find_ending(owner, turn_ids, may_end=may_end), now=now)
        stored[0][1].counts.figures["facts_superseded"] += len(ended)
        weaken_partial_replacements(owner.account_id, turn_ids)
        retracted = forget_requested(owner, asked, may_end=may_end, now=now)
        stored[0][1].counts.figures["facts_forgotten"] += len(retracted)
        for _inputs, items in stored:
            items.facts = {number: fact_id for number, fact_id in items.facts.items() if fact_id not in retracted}
    store_all_preferences(owner, stored, known=known, now=now)
    counts = ItemCounts()
    for _inputs, items in stored:
        counts.add(items.counts)
    return counts


def lock_contested(
    owner: Owner,
    work: Sequence[ExtractionInput],
    outdated: Collection[UUID],
    *,
    turns: Collection[UUID] = (),
    now: datetime,
) -> set[ExtractedFact]:
    """Lock the facts that may end, with their copies, and return the extracted facts that may contradict others.

    `outdated` are further facts that may end, and `turns` are locked as well: all by id in one statement, as a recall
    that counts reads of both locks them.
    """
    facts = [(inputs, fact) for inputs in work for fact in inputs.extraction.facts]
    said = [said_claim(inputs, fact) for inputs, fact in facts]
    contradicted = find_contradicted(owner, said, now=now)
    ids = {fact.id for found in contradicted for fact in found}.union(outdated)
    for inputs, fact in facts:
        ids |= {inputs.known[number] for number in (*fact.corrects, *fact.contradicts) if number in inputs.known}
    if ids or turns:
        ids |= find_copy_ids(owner.account_id, ids).union(turns) | find_begun_ids(owner.account_id, ids)
        rows = Memory.objects.filter(account_id=owner.account_id, id__in=ids).order_by("id").select_for_update()
        list(rows.values_list("id", flat=True))
    against_known = {fact for (_inputs, fact), found in zip(facts, contradicted, strict=True) if found}
    # what begins later may contradict what is believed again once a plan before it is over
    begins = {fact for (_inputs, fact), each in zip(facts, said, strict=True) if begins_later(fact, each)}
    return against_known | begins | find_contested([fact for _inputs, fact in facts])


def store_entities(inputs: ExtractionInput, items: StoredItems) -> None:
    """Store the entities, linked from the turns that mention them."""
    extracted = inputs.extraction.entities
    resolved = store_each(items, "entities", extracted, partial(upsert_extracted_entities, inputs))
    new: set[UUID] = set()
    for entity, found in zip(extracted, resolved, strict=True):
        if not isinstance(found, ItemOutcome):
            note_entity(items, entity, found, new)
        elif found is ItemOutcome.FAILED:
            items.failed |= {normalize_name(name) for name in (*entity.aliases, entity.name)}


def upsert_extracted_entities(
    inputs: ExtractionInput, extracted: Sequence[ExtractedEntity]
) -> list[ResolvedEntity | None]:
    drafts = [
        EntityDraft(
            name=entity.name,
            type=entity.type,
            aliases=entity.aliases,
            description=entity.description,
            event_time=inputs.time_of(entity.evidence),
            source=EXTRACTED_SOURCE,
            trust=least_trust(inputs.turns[index].trust for index in entity.evidence if index in inputs.turns),
        )
        for entity in extracted
    ]
    with transaction.atomic():
        resolved = upsert_entities_leniently(inputs.owner, drafts, embedded=inputs.embedded, now=inputs.now)
        mentions = [
            NewLink(source_id=turn_id, type=MENTIONS, target_id=found.entity.id)
            for entity, found in zip(extracted, resolved, strict=True)
            if found is not None
            for turn_id in inputs.turn_ids(entity.evidence)
        ]
        insert_links(inputs.owner.account_id, mentions)
    return resolved


def note_entity(items: StoredItems, entity: ExtractedEntity, found: ResolvedEntity | None, new: set[UUID]) -> None:
    """Record a stored entity. `new` are those created so far, since two names may resolve to one entity."""
    extracted = (*entity.aliases, entity.name)
    keys = [normalize_name(name) for name in extracted]
    items.entities |= dict.fromkeys(keys, None if found is None else found.entity)
    names = [*extracted, *(() if found is None else found.entity.names)]
    items.names |= dict.fromkeys(keys, names)
    if found is None:
        items.counts.refuse("withheld")
        return
    is_new = found.is_new and found.entity.id not in new
    new.add(found.entity.id)
    items.counts.count("entities", ItemOutcome.LEARNT if is_new else ItemOutcome.MERGED)


def said_claim(inputs: ExtractionInput, fact: ExtractedFact) -> SaidClaim:
    """Return what a fact claims. One that names no known turn is refused when it is stored, by itself."""
    said_at = next((inputs.turns[index].event_time for index in fact.evidence if index in inputs.turns), inputs.now)
    return SaidClaim(claim=fact.claim, certainty=fact.certainty, temporal=fact.temporal, said_at=said_at)


def begins_later(fact: ExtractedFact, said: SaidClaim) -> bool:
    return fact.valid_from is not None and fact.valid_from > said.said_at


def find_contested(facts: Sequence[ExtractedFact]) -> set[ExtractedFact]:
    """Return the facts that contradict an earlier one of them."""
    earlier: dict[str, list[ClaimReading]] = defaultdict(list)
    contested = set()
    for fact in facts:
        reading = read_meaning(fact.claim)
        against = [known for key in reading.sought_keys for known in earlier[key]]
        if reading.ended_claims or any(contradicts(reading, known) for known in against):
            contested.add(fact)
        earlier[reading.key].append(reading)
    return contested


def store_facts(inputs: ExtractionInput, items: StoredItems, *, contested: Collection[ExtractedFact]) -> None:
    """Store plain facts together, then the others in order: these may refer to facts before them.

    `contested` are facts that are not plain, since they may contradict believed facts or one another.
    """
    facts = [fact for fact in drop_rejected_facts(inputs, items) if can_store_fact(items, fact)]
    others = {fact for fact in facts if fact.corrects or fact.contradicts or fact in contested}
    plain = [fact for fact in facts if fact not in others]
    results = store_each(items, "facts", plain, partial(learn_plain_facts, inputs, items))
    for fact, result in zip(plain, results, strict=True):
        items.add_fact(fact.number, result)
    for fact in facts:
        # a fact that it refers to may have failed since
        if fact in others and can_store_fact(items, fact):
            with store_alone(items, "facts") as single:
                single.result = store_conflicting_fact(inputs, items, fact)
            items.add_fact(fact.number, single.result)


def can_store_fact(items: StoredItems, fact: ExtractedFact) -> bool:
    names = map(normalize_name, fact.entities)
    is_whole = items.can_store("facts", [*names, *fact.corrects, *fact.contradicts])
    if not is_whole:
        items.failed.add(fact.number)
    return is_whole


def learn_plain_facts(inputs: ExtractionInput, items: StoredItems, facts: Sequence[ExtractedFact]) -> list[FactResult]:
    drafts = [build_fact_draft(inputs, items, fact) for fact in facts]
    learned = learn_facts(inputs.owner, drafts, embedded=inputs.embedded, now=inputs.now)
    return [FactResult.of(each.fact, is_new=each.is_new) for each in learned]


def drop_rejected_facts(inputs: ExtractionInput, items: StoredItems) -> list[ExtractedFact]:
    """Return the facts about someone that staff have not rejected and whose entities are not withheld.

    Those that are left out are counted, and so are matched tombstones.
    """
    found = inputs.extraction.facts
    # without a user, claims about "the user" would be taken for claims about someone else
    about_someone = found if inputs.owner.user_id else [fact for fact in found if not is_about_user(fact.claim)]
    items.counts.refuse("nobody", len(found) - len(about_someone))
    facts = [fact for fact in about_someone if not items.is_withheld(fact.entities)]
    items.counts.refuse("withheld", len(about_someone) - len(facts))
    tombstones = find_tombstones(inputs.owner, [(fact.claim, items.all_names(fact.entities)) for fact in facts])
    matched = [tombstone for tombstone in tombstones if tombstone is not None]
    count_tombstone_matches(inputs.owner, matched, now=inputs.now)
    items.counts.refuse("rejected", len(matched))
    items.rejected |= {fact.number for fact, tombstone in zip(facts, tombstones, strict=True) if tombstone is not None}
    return [fact for fact, tombstone in zip(facts, tombstones, strict=True) if tombstone is None]


def build_fact_draft(inputs: ExtractionInput, items: StoredItems, fact: ExtractedFact) -> FactDraft:
    return FactDraft(
        claim=fact.claim,
        confidence=CONFIDENCE_BY_CERTAINTY[fact.certainty],
        certainty=fact.certainty,
        temporal=fact.temporal,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        said_at=min(inputs.time_of(fact.evidence), inputs.now),
        entity_ids=items.entity_ids(fact.entities),
        turn_ids=inputs.turn_ids(fact.evidence),
        source=EXTRACTED_SOURCE,
        event_time=inputs.time_of(fact.evidence),
        conversation_id=inputs.turns[fact.evidence[0]].conversation_id,
        metadata={"extractor": inputs.extraction.source},
    )


def store_conflicting_fact(inputs: ExtractionInput, items: StoredItems, fact: ExtractedFact) -> FactResult:
    """Store a fact that corrects or contradicts others, as far as these are still active."""
    owner, embedded, now = inputs.owner, inputs.embedded, inputs.now
    draft = build_fact_draft(inputs, items, fact)
    if wrong := lock_active_facts(owner, referenced_fact_ids(inputs, items, fact.corrects)):
        also = [each.id for each in wrong[1:]]
        stored = replace_wrong_fact(owner, wrong[0].id, draft, also=also, withdraws=False, embedded=embedded, now=now)
        return superseding_result(wrong, stored, draft, corrections=1)
    said_at, said = inputs.time_of(fact.evidence), said_claim(inputs, fact)
    named = lock_active_facts(owner, referenced_fact_ids(inputs, items, fact.contradicts))
    contradicted = [each for each in named if not is_next_date(said, each)]
    [sure] = [[]] if is_old_move(draft) else find_contradicted(owner, [said], now=now)
    rivals = find_rivals(owner, draft, contradicted, sure=sure, embedded=embedded) if sure or contradicted else []
    against = filter_contradicted(draft, rivals, said_at=said_at)
    is_unknown = any(rival.similarity is None and not rival.is_sure for rival in against)
    policy = "" if not against else "flag_review" if is_unknown else find_policy(owner)
    counts = {"contradictions": len(against)}
    if against and policy == "flag_review":
        reviews = [
            open_review(owner, old=rival.fact, draft=draft, similarity=rival.similarity, embedded=embedded, now=now)
            for rival in against
        ]
        is_new = any(review.new_fact_id == draft.id for review in reviews)
        counts["reviews"] = len(against)
        return FactResult(outcome=ItemOutcome.LEARNT if is_new else ItemOutcome.MERGED, extra_counts=counts)
    if against and policy == "prefer_old":
        return FactResult(outcome=ItemOutcome.REFUSED, reason="prefer_old", extra_counts=counts)
    verdict = prefer_new(draft, rivals, said_at=said_at)
    if not verdict.outdated:
        learned = learn_facts(owner, [verdict.draft], embedded=embedded, now=now)[0]
        return FactResult.of(learned.fact, is_new=learned.is_new, **counts)
    first, *also = (fact.id for fact in verdict.outdated)
    stored = supersede_fact(owner, first, verdict.draft, also=also, withdraws=False, embedded=embedded, now=now)
    retract_begun(owner, verdict.outdated, at=said_at, now=now)
    return superseding_result(verdict.outdated, stored, verdict.draft, successions=1, **counts)


def superseding_result(olds: Sequence[Fact], stored: Fact, draft: FactDraft, **counts: int) -> FactResult:
    """Return the result of a replacement. The draft may equal one of the old facts, which stays active then."""
    ended = sum(old.id != stored.id for old in olds)
    return FactResult.of(stored, is_new=stored.id == draft.id, facts_superseded=ended, **counts)


def referenced_fact_ids(inputs: ExtractionInput, items: StoredItems, numbers: Iterable[int]) -> list[UUID]:
    """Return the facts of these numbers, known ones or those of this extraction."""
    found = (inputs.known.get(number) or items.facts.get(number) for number in numbers)
    return list(dict.fromkeys(fact_id for fact_id in found if fact_id is not None))


def lock_active_facts(owner: Owner, fact_ids: Sequence[UUID]) -> list[Fact]:
    """Lock facts and return those that are still active, in the given order."""
    if not fact_ids:
        return []
    rows = Fact.objects.visible_to(owner, Kind.FACT).filter(filter_by_holder(owner), id__in=fact_ids)
    locked = rows.order_by("id").select_for_update()
    active = {fact.id: fact for fact in locked if fact.status == Fact.Status.ACTIVE and not fact.quarantined}
    return [active[fact_id] for fact_id in fact_ids if fact_id in active]


def store_relationships(inputs: ExtractionInput, items: StoredItems) -> None:
    """Store the relationships together or, if one is refused (its properties are full), each by itself."""
    whole = [
        each
        for each in inputs.extraction.relationships
        if items.can_store("relationships", map(normalize_name, (each.source, each.target)))
    ]
    new: set[UUID] = set()
    for related in store_each(items, "relationships", whole, partial(store_relationship_drafts, inputs, items)):
        if related is None:
            items.counts.refuse("ends")
        elif isinstance(related, StoredRelationship):
            # count two that turn out to be one relationship as new only once
            is_new = related.is_new and related.link.id not in new
            new.add(related.link.id)
            items.counts.count("relationships", ItemOutcome.LEARNT if is_new else ItemOutcome.MERGED)


def store_relationship_drafts(
    inputs: ExtractionInput, items: StoredItems, relationships: Sequence[ExtractedRelationship]
) -> list[StoredRelationship | None]:
    """Store relationships; the result is None for one without two ends."""
    drafts = [build_relationship_draft(inputs, items, each) for each in relationships]
    kept = [draft for draft in drafts if draft is not None]
    if kept:
        former = Link.objects.filter(
            account_id=inputs.owner.account_id,
            type__in={draft.type for draft in kept},
            source_id__in=[draft.source_id for draft in kept],
            target_id__in=[draft.target_id for draft in kept],
        )
        known = {(link.source_id, link.type, link.target_id): link for link in former}
        kept = [merge_evidence(draft, known[draft.key]) if draft.key in known else draft for draft in kept]
    related = iter(create_relationships(inputs.owner, kept, now=inputs.now))
    return [None if draft is None else next(related) for draft in drafts]


def build_relationship_draft(
    inputs: ExtractionInput, items: StoredItems, relationship: ExtractedRelationship
) -> RelationshipDraft | None:
    """Return the draft of a relationship, or None if an end is withheld or both resolved to one entity."""
    ends = items.entity_ids([relationship.source, relationship.target])
    if len(ends) != 2:
        return None
    turns = [str(turn_id) for turn_id in inputs.turn_ids(relationship.evidence)]
    return RelationshipDraft(
        source_id=ends[0],
        target_id=ends[1],
        type=relationship.type,
        weight=CONFIDENCE_BY_CERTAINTY[relationship.certainty],
        properties={"certainty": relationship.certainty, "turns": turns, "source": EXTRACTED_SOURCE},
    )


def merge_evidence(draft: RelationshipDraft, link: Link) -> RelationshipDraft:
    """Add the turns that are already evidence of the stored relationship, and its certainty and weight if greater."""
    before = link.properties.get("turns")
    turns = [*(before if isinstance(before, list) else []), *draft.properties["turns"]]
    properties = draft.properties | {"turns": list(dict.fromkeys(map(str, turns)))[-MAX_EVIDENCE_TURNS:]}
    if link.weight >= (draft.weight or 0.0):
        properties["certainty"] = link.properties.get("certainty", properties["certainty"])
    return replace(draft, weight=max(link.weight, draft.weight or 0.0), properties=properties)

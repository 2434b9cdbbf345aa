"""Storing extracted facts: in their order, without what was rejected, against what they correct or contradict.

A fact that contradicts what is believed goes by `contradictions`. A correction ("no, I meant …") is no contradiction:
the old fact was wrong, and is replaced whatever the policy.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from memory import conf
from memory.extraction.knowledge import ExtractedFact
from memory.identity import normalize_name
from memory.models import Fact, FactReview
from memory.owner import Owner
from memory.scoring import CONFIDENCE_OF
from memory.services.extraction.counts import Fate
from memory.services.extraction.material import SOURCE, Material, Stored, Taken, attempt, attempt_all
from memory.services.facts.contradict import Rival, contradicting, is_about_user, prefer_new, rivals_of
from memory.services.facts.learn import FactDraft, learn_facts
from memory.services.facts.review import open_review
from memory.services.facts.supersede import replace_wrong_fact, supersede_fact
from memory.services.facts.tombstones import count_met, rejected_among


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

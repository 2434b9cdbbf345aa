"""Repairing facts that stand side by side although they contradict each other, such as those of former releases.

`read_attributes` reads the attributes of facts that have none yet. `find_disputed_keys` finds subjects and attributes
of which several facts are believed, and `resolve_disputed_key` compares these facts in the order in which they were
said. `find_denials` finds facts that deny a believed one word by word, which may have no attribute, and
`resolve_denial` compares the two. `resolve_outdated` ends a fact whose statement was replaced (`outdate`). An account
that prefers new facts has the earlier ones ended; others get one review for each pair.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Count, F, Q, QuerySet, Value, When

from memory.audit import record_audit
from memory.extraction.rules.attributes import read_meaning
from memory.extraction.rules.denials import denied_claims
from memory.models import Certainty, Fact, FactReview, Kind
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.duplicates.texts import normalized_text_hash
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import filter_by_holder, lock_holder
from memory.services.facts.contradict import SaidClaim, find_policy, is_contradicted, is_old_move
from memory.services.facts.copies import find_copy_ids
from memory.services.facts.learn import FactDraft
from memory.services.facts.outdate import end_outdated, find_ending, find_sources
from memory.services.facts.plans import find_begun_ids
from memory.services.facts.review import filter_contradicted, find_last_mentions, find_rivals
from memory.services.facts.store import links_from_facts, lock_for_change, next_belief_at
from memory.services.facts.supersede import close_fact
from memory.services.memories.links import ABOUT, SUPERSEDES, NewLink, insert_links
from memory.services.profiles import forget_preferences
from memory.services.replaced_evidence import link_replaced_evidence

ACTOR = "job:find_contradictions"
MAX_FACTS_OF_KEY = 200
"""Facts of one subject and attribute that are compared, those said last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputedKey:
    """A subject and attribute of which a holder believes several facts. Without a user the agent holds them."""

    account_id: UUID
    attribute: str
    user_id: str
    agent_id: str


def read_attributes(facts: Sequence[Fact]) -> None:
    """Store the attributes of these facts, which have none yet."""
    for fact in facts:
        # of a claim that was changed meanwhile the attribute is known by then
        unread = Fact.objects.filter(account_id=fact.account_id, id=fact.id, attribute=None)
        unread.update(attribute=read_meaning(fact.text).key)


def find_disputed_keys(facts: Sequence[Fact], *, now: datetime) -> list[DisputedKey]:
    """Return the keys of these facts that several believed facts of one holder share. One statement."""
    ours = dict.fromkeys(map(key_of_fact, facts))
    rows = keyed_facts(now).filter(
        Q(user_id__in={key.user_id for key in ours if key.user_id})
        | Q(user_id="", agent_id__in={key.agent_id for key in ours if not key.user_id}),
        account_id__in={key.account_id for key in ours},
        attribute__in={key.attribute for key in ours},
    )
    by_holder = rows.order_by().annotate(holder=Case(When(user_id="", then=F("agent_id")), default=Value("")))
    counted = by_holder.values("account_id", "attribute", "user_id", "holder").annotate(facts=Count("id"))
    shared = counted.filter(facts__gt=1).values_list("account_id", "attribute", "user_id", "holder")
    found = {
        DisputedKey(account_id=account, attribute=attribute or "", user_id=user, agent_id=agent)
        for account, attribute, user, agent in shared
    }
    return [key for key in ours if key in found]


def key_of_fact(fact: Fact) -> DisputedKey:
    """Return the key of a fact whose attribute is known."""
    return DisputedKey(
        account_id=fact.account_id,
        attribute=fact.attribute or "",
        user_id=fact.user_id,
        agent_id="" if fact.user_id else fact.agent_id,
    )


def believed_facts(now: datetime) -> "QuerySet[Fact]":
    """Return the believed facts of all accounts that are not over: a plan ends once its day has passed."""
    return Fact.objects.live(now).filter(Q(valid_to=None) | Q(valid_to__gt=now), status=Fact.Status.ACTIVE)


def keyed_facts(now: datetime) -> "QuerySet[Fact]":
    """Return the believed facts of all accounts that are not over and whose attribute is known."""
    return believed_facts(now).filter(attribute__gt="")


def find_denials(facts: Sequence[Fact], *, now: datetime) -> list[Fact]:
    """Return those of these facts that deny a believed fact of their holder. One statement, none for no denials."""
    denied = {fact.id: wordings_denied_by(fact) for fact in facts}
    wanted = {wording for wordings in denied.values() for wording in wordings}
    if not wanted:
        return []
    accounts = {fact.account_id for fact in facts}
    rows = believed_facts(now).filter(account_id__in=accounts, wording__in=wanted)
    found = {
        (holder_of_fact(fact), fact.wording) for fact in rows.only("id", "account_id", "user_id", "agent_id", "wording")
    }
    return [fact for fact in facts if any((holder_of_fact(fact), each) in found for each in denied[fact.id])]


def wordings_denied_by(fact: Fact) -> set[int]:
    hashes = (normalized_text_hash(Kind.FACT, claim) for claim in denied_claims(fact.text))
    return {each for each in hashes if each is not None}


def holder_of_fact(fact: Fact) -> Owner:
    agent_id = "" if fact.user_id else fact.agent_id
    return Owner(account_id=fact.account_id, user_id=fact.user_id, agent_id=agent_id, actor=ACTOR)


def resolve_denial(denial: Fact, *, dry_run: bool, now: datetime) -> Counter[str]:
    """Compare a fact with those that it denies: end the earlier ones, or have them reviewed. Counts as the other."""
    holder = holder_of_fact(denial)
    with transaction.atomic():
        lock_holder(holder)
        rows = believed_facts(now).filter(filter_by_holder(holder), account_id=denial.account_id)
        facts = list(rows.filter(Q(id=denial.id) | Q(wording__in=wordings_denied_by(denial))))
        return compare_facts(holder, facts, dry_run=dry_run, now=now)


def resolve_outdated(fact: Fact, *, dry_run: bool, now: datetime) -> Counter[str]:
    """End a fact whose statement was replaced, where the account prefers new facts. Counts as the other."""
    holder = holder_of_fact(fact)
    with transaction.atomic():
        lock_holder(holder)
        others = find_copy_ids(fact.account_id, [fact.id]) | find_begun_ids(fact.account_id, [fact.id])
        lock_for_change(holder, {fact.id, *others}, now=now)
        outdated = find_ending(holder, find_sources(fact.account_id, [fact.id]), may_end=[fact.id])
        if dry_run:
            return Counter(contradictions=len(outdated))
        ended = end_outdated(holder, outdated, now=now)
        forget_preferences(holder, ended, now=now)
        return Counter(contradictions=len(outdated), facts_superseded=len(ended))


def resolve_disputed_key(key: DisputedKey, *, dry_run: bool, now: datetime) -> Counter[str]:
    """End, or have reviewed, the facts of a key that later ones surely contradict. Counts what was found and done."""
    holder = Owner(account_id=key.account_id, user_id=key.user_id, agent_id=key.agent_id, actor=ACTOR)
    with transaction.atomic():
        lock_holder(holder)
        rows = keyed_facts(now).filter(filter_by_holder(holder), account_id=key.account_id, attribute=key.attribute)
        facts = list(rows.order_by("-event_time", "-id")[:MAX_FACTS_OF_KEY])
        return compare_facts(holder, facts, dry_run=dry_run, now=now)


def compare_facts(holder: Owner, facts: Sequence[Fact], *, dry_run: bool, now: datetime) -> Counter[str]:
    """End, or have reviewed, those of the facts that later ones contradict, in the caller's transaction."""
    counts: Counter[str] = Counter()
    said_at = find_last_mentions(holder, facts)
    in_order = sorted(facts, key=lambda fact: (said_at[fact.id], fact.id))
    ended: set[UUID] = set()
    for place, later in enumerate(in_order):
        earlier = [fact for fact in in_order[:place] if fact.id not in ended and shares_channel(fact, later)]
        for fact in find_ended(holder, later, earlier, said_at=said_at[later.id]):
            ended.add(fact.id)
            counts += Counter(contradictions=1) if dry_run else resolve_pair(holder, fact, later, now=now)
    # after all facts are locked: clients lock the fact that they change before the profile
    forget_preferences(holder, [fact for fact in facts if fact.status == Fact.Status.SUPERSEDED], now=now)
    return counts


def shares_channel(one: Fact, other: Fact) -> bool:
    """Return True if an owner of one fact's channel reads the other as well."""
    return one.channel == other.channel or GLOBAL_CHANNEL in (one.channel, other.channel)


def find_ended(holder: Owner, later: Fact, earlier: Sequence[Fact], *, said_at: datetime) -> list[Fact]:
    """Return the earlier facts that the later one surely contradicts, except for those of an open or former review."""
    said = SaidClaim(claim=later.text, certainty=later.certainty, temporal=later.temporal, said_at=said_at)
    reading = read_meaning(later.text)
    against = [fact for fact in earlier if is_contradicted(said, reading, fact)]
    if not against or said.certainty == Certainty.UNCERTAIN:
        return []
    draft = FactDraft(
        claim=later.text,
        certainty=later.certainty,
        temporal=later.temporal,
        valid_from=later.stated_from,
        valid_to=later.valid_to,
        said_at=said_at,
        entity_ids=[link.target_id for link in links_from_facts([later], ABOUT)],
    )
    if is_old_move(draft):
        return []
    rivals = find_rivals(holder, draft, (), sure=against, embedded=EmbeddedTexts(model="", width=0, vectors={}))
    rivals = filter_contradicted(draft, rivals, said_at=said_at)
    disputed = find_disputed_facts(holder, later, [rival.fact for rival in rivals])
    begins = later.valid_from or said_at
    return [
        rival.fact
        for rival in rivals
        if rival.fact.id not in disputed and (rival.fact.stated_from is None or rival.fact.stated_from < begins)
    ]


def find_disputed_facts(holder: Owner, later: Fact, facts: Sequence[Fact]) -> set[UUID]:
    """Return the facts whose replacement staff is deciding on, or that were reviewed together with the later one."""
    ids = [fact.id for fact in facts]
    reviews = FactReview.objects.filter(account_id=holder.account_id)
    deciding = reviews.filter(old_fact_id__in=ids, status=FactReview.Status.OPEN).values_list("old_fact_id", flat=True)
    together = reviews.filter(Q(old_fact_id=later.id) | Q(new_fact_id=later.id))
    return {*deciding, *(fact_id for pair in together.values_list("old_fact_id", "new_fact_id") for fact_id in pair)}


def resolve_pair(holder: Owner, old: Fact, new: Fact, *, now: datetime) -> Counter[str]:
    """End the old fact where the new one begins, or open a review if the account does not prefer new facts.

    Does nothing if a client changed one of them since they were compared: the next run compares them again.
    """
    lock_for_change(holder, [old.id, new.id], now=now)
    if not are_unchanged(old, new, now=now):
        return Counter()
    if find_policy(holder) != "prefer_new":
        FactReview.objects.bulk_create(
            [FactReview(account_id=holder.account_id, old_fact_id=old.id, new_fact_id=new.id)], ignore_conflicts=True
        )
        return Counter(contradictions=1, reviews=1)
    begins = new.valid_from or new.event_time
    close_fact(holder, old, at=max(begins, old.valid_from or begins), now=next_belief_at(old, now))
    insert_links(holder.account_id, [NewLink(source_id=new.id, type=SUPERSEDES, target_id=old.id)])
    replaced = link_replaced_evidence(holder.account_id, newer=new.id, older=[old.id])
    record_audit(holder, operation="supersede", memory_type="semantic", affected_ids=[new.id, old.id])
    return Counter(contradictions=1, facts_superseded=1, turns_replaced=replaced)


def are_unchanged(old: Fact, new: Fact, *, now: datetime) -> bool:
    """Return True if both locked facts are still believed and not over, in the versions that were read."""
    rows = believed_facts(now).filter(account_id=old.account_id, id__in=[old.id, new.id])
    return dict(rows.values_list("id", "version")) == {old.id: old.version, new.id: new.version}

"""Promotion (X13): what is prominent in a project's channel becomes known in `_global`, to the same holder.

A fact is prominent that is believed with PROMOTE_CONFIDENCE as it is now, was read PROMOTE_ACCESS_COUNT times, and was
learnt in PROMOTE_CONVERSATIONS conversations: its own, and those of the turns that it is DERIVED_FROM. It is promoted
once, whatever becomes of the copy: PROMOTED_FROM tells. What `_global` does not take, as it was rejected or is in
quarantine there, is refused, and met again by the next run.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Count, Exists, F, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from memory import conf
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Fact, Kind, Link
from memory.models.facts import true_at
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.facts.learn import identity_of, is_away
from memory.services.facts.references import links_from
from memory.services.facts.supersede import lock_facts, promote_fact
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM

logger = logging.getLogger(__name__)

ACTOR = "job:promote"
REFUSALS = (Conflict, Forbidden, NotFound, Unprocessable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From when on a fact is prominent: each is reached at its own value."""

    promote_confidence: float = conf.PROMOTE_CONFIDENCE
    promote_access_count: int = conf.PROMOTE_ACCESS_COUNT
    promote_conversations: int = conf.PROMOTE_CONVERSATIONS

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """For the audit log."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How `_global` knows a claim: not at all (`beliefs` 0), or with so many beliefs and links from it."""

    beliefs: int = 0
    links: int = 0
    is_away: bool = False


def prominent_facts(*, now: datetime, thresholds: Thresholds) -> QuerySet[Fact]:
    """Those of all accounts that are to be promoted: true, live, in a project's channel, and not promoted before."""
    facts: Any = Fact.objects
    promoted = Link.objects.filter(account_id=OuterRef("account_id"), target_id=OuterRef("pk"), type=PROMOTED_FROM)
    rows = facts.live(now).filter(
        true_at(now),
        ~Exists(promoted),
        status=Fact.Status.ACTIVE,
        confidence__gte=thresholds.promote_confidence,
        access_count__gte=thresholds.promote_access_count,
    )
    rows = rows.exclude(channel=GLOBAL_CHANNEL).alias(conversations=conversations_of_a_fact())
    found: QuerySet[Fact] = rows.filter(conversations__gte=thresholds.promote_conversations)
    return found


def conversations_of_a_fact() -> Any:
    """How many there are: its own, if any, and others whose turns it is DERIVED_FROM."""
    own = Case(When(conversation_id="", then=0), default=1)
    turns = Link.objects.filter(
        account_id=OuterRef("account_id"), source_id=OuterRef("pk"), type=DERIVED_FROM, target__kind=Kind.TURN
    )
    others = turns.exclude(target__conversation_id=OuterRef("conversation_id")).order_by().values("source_id")
    counted = others.annotate(number=Count("target__conversation_id", distinct=True)).values("number")
    return own + Coalesce(Subquery(counted), 0)


def find_prominent(
    *, after: UUID | None, account_id: UUID | None, limit: int, now: datetime, thresholds: Thresholds
) -> list[Fact]:
    """The next of them behind that id, of one account or of all."""
    rows = prominent_facts(now=now, thresholds=thresholds)
    if account_id is not None:
        rows = rows.filter(account_id=account_id)
    if after is not None:
        rows = rows.filter(pk__gt=after)
    return list(rows.order_by("pk")[:limit])


def promote_each(facts: Sequence[Fact], *, now: datetime, thresholds: Thresholds) -> Counter[str]:
    """Promote these, each in a transaction of its own; what was done, by name.

    Facts that became copies (`facts_promoted`), that `_global` knew (`facts_known`; `facts_revived` of them were
    archived or expired there), `refused` and `failed` ones; and what came of it, `links_made` and `versions_made`. What
    somebody else promoted, or changed, meanwhile is none of them.
    """
    # outside of transactions: it may take seconds
    embedded = embed_texts([fact.text for fact in facts])
    done: Counter[str] = Counter()
    for fact in facts:
        done += promote_one(fact, embedded=embedded, now=now, thresholds=thresholds)
    return done


def promote_one(fact: Fact, *, embedded: Embedded, now: datetime, thresholds: Thresholds) -> Counter[str]:
    try:
        with transaction.atomic():
            return promote_if_prominent(fact, embedded=embedded, now=now, thresholds=thresholds)
    except REFUSALS as err:
        logger.info("fact %s is not promoted: %s", fact.pk, err.code)
        return Counter(refused=1)
    except Exception as err:  # noqa: BLE001 - the outermost loop of the works
        # its words may be the fact's
        logger.error("promotion of fact %s failed: %s", fact.pk, type(err).__name__)
        return Counter(failed=1)


def promote_if_prominent(found: Fact, *, embedded: Embedded, now: datetime, thresholds: Thresholds) -> Counter[str]:
    """In the caller's transaction: nothing where it is prominent no longer, once it is locked."""
    owner = Owner(
        account_id=found.account_id,
        agent_id=found.agent_id,
        user_id=found.user_id,
        channel=found.channel,
        actor=ACTOR,
    )
    fact = lock_with_copy(owner, found, now=now)
    if not prominent_facts(now=now, thresholds=thresholds).filter(pk=fact.pk).exists():
        return Counter()
    before = standing_of(owner, fact, now=now)
    reason = f"prominent in {fact.channel}"
    promote_fact(owner, fact.pk, reason=reason, thresholds=thresholds.snapshot, embedded=embedded, now=now)
    return figures_of(before, standing_of(owner, fact, now=now))


def lock_with_copy(owner: Owner, found: Fact, *, now: datetime) -> Fact:
    """Lock it, what `_global` has of it, and what both refer to, in the order of everybody who locks memories."""
    known = copies_of(owner, found).values_list("pk", flat=True)
    linked = [link.target_id for link in links_from([found], ABOUT, DERIVED_FROM)]
    return lock_facts(owner, [found.pk], alone=set(known), shared=linked, now=now)[0]


def copies_of(owner: Owner, fact: Fact) -> QuerySet[Fact]:
    """The fact of `_global` that says the same, if there is one."""
    identity = identity_of(replace(owner, channel=GLOBAL_CHANNEL), fact)
    rows: Any = Fact.objects
    found: QuerySet[Fact] = rows.filter(account_id=fact.account_id, kind=Kind.FACT, identity=identity)
    return found


def standing_of(owner: Owner, fact: Fact, *, now: datetime) -> Standing:
    copies: Any = copies_of(owner, fact)
    known = copies.annotate(links=Count("links_out"), beliefs=F("belief_number")).first()
    if known is None:
        return Standing()
    return Standing(beliefs=known.beliefs, links=known.links, is_away=is_away(known, now=now))


def figures_of(before: Standing, after: Standing) -> Counter[str]:
    return Counter(
        facts_promoted=int(not before.beliefs),
        facts_known=int(before.beliefs > 0),
        facts_revived=int(before.is_away),
        links_made=after.links - before.links,
        versions_made=after.beliefs - before.beliefs,
    )

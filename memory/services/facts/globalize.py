"""Globalizing facts (X13): copies of prominent facts of a project's channel in `_global`, for the same holder.

A fact is prominent if it is believed with PROMOTE_CONFIDENCE after fading, was read PROMOTE_ACCESS_COUNT times, and was
learned in PROMOTE_CONVERSATIONS conversations: its own, and those of the turns that it is DERIVED_FROM. It is copied
once, whatever becomes of the copy: a PROMOTED_FROM link says so. A copy that `_global` refuses, because the claim was
rejected or is in quarantine there, is tried again by the next run.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Count, Exists, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from memory import conf
from memory.audit import record_audit
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Fact, FactVersion, Kind, Link, Turn
from memory.models.facts import true_at
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.entities.resolve import owner_of_row
from memory.services.facts.learn import FactDraft, LearnedFact, identity_of_fact, is_hidden_fact, store_fact_drafts
from memory.services.facts.lock import lock_facts, refuse_inactive
from memory.services.facts.store import links_from_facts, lock_for_reference, next_belief_at
from memory.services.facts.supersede import live_entities_of_facts
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, NewLink, insert_links

logger = logging.getLogger(__name__)

ACTOR = "job:globalize_facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalizeThresholds:
    """Smallest values, included, from which a fact is prominent."""

    promote_confidence: float = conf.PROMOTE_CONFIDENCE
    promote_access_count: int = conf.PROMOTE_ACCESS_COUNT
    promote_conversations: int = conf.PROMOTE_CONVERSATIONS


DOCUMENTED_THRESHOLDS = GlobalizeThresholds()


def find_prominent_facts(*, now: datetime, thresholds: GlobalizeThresholds = DOCUMENTED_THRESHOLDS) -> QuerySet[Fact]:
    """Return the facts of all accounts to be globalized: true, live, in a project's channel and not copied before."""
    promoted = Link.objects.filter(account_id=OuterRef("account_id"), target_id=OuterRef("pk"), type=PROMOTED_FROM)
    rows = Fact.objects.live(now).filter(
        true_at(now),
        ~Exists(promoted),
        status=Fact.Status.ACTIVE,
        confidence__gte=thresholds.promote_confidence,
        access_count__gte=thresholds.promote_access_count,
    )
    counted = rows.exclude(channel=GLOBAL_CHANNEL).alias(conversations=conversation_count())
    return counted.filter(conversations__gte=thresholds.promote_conversations)


def conversation_count() -> Any:
    """Return the expression that counts a fact's conversation, if any, and others whose turns it is DERIVED_FROM."""
    own = Case(When(conversation_id="", then=0), default=1)
    turns = Link.objects.filter(
        account_id=OuterRef("account_id"), source_id=OuterRef("pk"), type=DERIVED_FROM, target__kind=Kind.TURN
    )
    others = turns.exclude(target__conversation_id=OuterRef("conversation_id")).order_by().values("source_id")
    counted = others.annotate(number=Count("target__conversation_id", distinct=True)).values("number")
    return own + Coalesce(Subquery(counted), 0)


def globalize_facts(
    facts: Sequence[Fact], *, now: datetime, thresholds: GlobalizeThresholds = DOCUMENTED_THRESHOLDS
) -> Counter[str]:
    """Globalize facts, each in a transaction of its own. Returns counts by name.

    `facts_promoted` became new copies; `facts_known` existed in `_global`, `facts_revived` of them archived or expired;
    others were `refused` or `failed`. `links_made` and `versions_made` count rows. A fact that was globalized or
    changed by somebody else in the meantime is counted nowhere.
    """
    # outside transactions, as it may take seconds
    embedded = embed_texts([fact.text for fact in facts])
    counts: Counter[str] = Counter()
    for fact in facts:
        try:
            with transaction.atomic():
                done = globalize_if_prominent(fact, embedded=embedded, now=now, thresholds=thresholds)
        except (Conflict, Forbidden, NotFound, Unprocessable) as err:
            logger.info("fact %s was not globalized: %s", fact.pk, err.code)
            done = Counter(refused=1)
        except Exception as err:  # noqa: BLE001 - the outermost loop of the job
            # only the type: the message may quote the fact
            logger.error("globalizing fact %s failed: %s", fact.pk, type(err).__name__)
            done = Counter(failed=1)
        counts += done
    return counts


def globalize_if_prominent(
    found: Fact, *, embedded: EmbeddedTexts, now: datetime, thresholds: GlobalizeThresholds
) -> Counter[str]:
    """Globalize a fact in the caller's transaction if it is still prominent once it is locked."""
    owner = owner_of_row(found, actor=ACTOR)
    known = find_global_copy(owner, found).values_list("pk", flat=True)
    linked = [link.target_id for link in links_from_facts([found], ABOUT, DERIVED_FROM)]
    # with its copy and what both refer to, in the order in which all code locks memories
    [fact] = lock_facts(owner, [found.pk], alone=set(known), shared=linked, now=now)
    prominent = find_prominent_facts(now=now, thresholds=thresholds).filter(account_id=owner.account_id, pk=fact.pk)
    if not prominent.exists():
        return Counter()
    links = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("pk")).order_by().values("source_id")
    counted = Coalesce(Subquery(links.annotate(number=Count("id")).values("number")), 0)
    copies: Any = find_global_copy(owner, fact).annotate(links=counted)
    before = copies.first()
    reason = f"prominent in {fact.channel}"
    globalize_fact(owner, fact.pk, reason=reason, thresholds=asdict(thresholds), embedded=embedded, now=now)
    after = copies.all().get()
    if before is None:
        return Counter(facts_promoted=1, links_made=after.links, versions_made=after.belief_number)
    return Counter(
        facts_known=1,
        facts_revived=int(is_hidden_fact(before, now=now)),
        links_made=after.links - before.links,
        versions_made=after.belief_number - before.belief_number,
    )


def find_global_copy(owner: Owner, fact: Fact) -> QuerySet[Fact]:
    """Return the query for the equal fact of `_global`, at most one."""
    identity = identity_of_fact(replace(owner, channel=GLOBAL_CHANNEL), fact)
    return Fact.objects.filter(account_id=fact.account_id, identity=identity)


def globalize_fact(
    owner: Owner,
    fact_id: UUID,
    *,
    reason: str,
    thresholds: Mapping[str, Any] | None = None,
    embedded: EmbeddedTexts,
    now: datetime,
) -> Fact:
    """Make a fact known in every channel: copy it to `_global` for the same holder. Returns the copy.

    Embed its claim first. An equal fact of `_global` is confirmed and linked instead. `thresholds` are those that the
    fact had to reach, for the audit log. Raises NotFound, Forbidden, Conflict where the fact is not active, or is in
    `_global` already.
    """
    with transaction.atomic():
        [fact] = lock_facts(owner, [fact_id], now=now)
        refuse_inactive(fact)
        if fact.channel == GLOBAL_CHANNEL:
            raise Conflict("the fact is in _global already")
        # for the fact's holder: globalizing does not make another agent a participant of the conversation
        holder = replace(owner, agent_id=fact.agent_id, user_id=fact.user_id, channel=GLOBAL_CHANNEL, joins=False)
        draft = FactDraft(
            claim=fact.text,
            confidence=fact.unfaded_confidence,
            certainty=fact.certainty,
            temporal=fact.temporal,
            valid_from=fact.stated_from,
            said_at=None if fact.stated_from else fact.valid_from,
            valid_to=fact.valid_to,
            entity_ids=live_entities_of_facts(fact, now=now),
            source=fact.source,
            event_time=fact.event_time,
            conversation_id=fact.conversation_id,
            metadata=fact.metadata,
        )
        [copy] = store_fact_drafts(
            holder,
            [draft],
            conversations={},
            reason=FactVersion.Reason.PROMOTED,
            embedded=embedded,
            now=next_belief_at(fact, now),
        )
        turn_ids = link_global_copy(fact, copy, reason=reason, now=now)
        snapshot = {} if thresholds is None else {"config_snapshot": dict(thresholds)}
        record_globalization(owner, fact, copy, turn_ids=turn_ids, metadata={"reason": reason}, **snapshot)
    return copy.fact


def link_global_copy(fact: Fact, copy: LearnedFact, *, reason: str, now: datetime) -> list[UUID]:
    """Link a copy to its original (PROMOTED_FROM) and to the original's turns (DERIVED_FROM). Returns those turns."""
    owner = Owner(account_id=fact.account_id)
    linked = [link.target_id for link in links_from_facts([fact], DERIVED_FROM)]
    locked = lock_for_reference(owner, ids=linked, now=now)
    turn_ids = [turn_id for turn_id in linked if turn_id in locked]
    links = [NewLink(source_id=copy.fact.id, type=DERIVED_FROM, target_id=turn_id) for turn_id in turn_ids]
    properties = {"reason": reason}
    links.append(NewLink(source_id=copy.fact.id, type=PROMOTED_FROM, target_id=fact.id, properties=properties))
    insert_links(fact.account_id, links)
    if copy.is_new and fact.source_turn_id in turn_ids:
        rows = Fact.objects.filter(account_id=fact.account_id, id=copy.fact.id)
        rows.update(source_turn_id=fact.source_turn_id)
        copy.fact.source_turn_id = fact.source_turn_id
    return turn_ids


def record_globalization(
    owner: Owner, fact: Fact, copy: LearnedFact, *, turn_ids: Sequence[UUID], **columns: Mapping[str, Any]
) -> None:
    turns = Turn.objects.filter(account_id=fact.account_id, id__in=turn_ids)
    sources = set(turns.values_list("conversation_id", flat=True))
    conversations = sources | {fact.conversation_id} - {""}
    record_audit(
        owner,
        operation="promote",
        memory_type="semantic",
        affected_ids=[copy.fact.id, fact.id],
        target_channels=[GLOBAL_CHANNEL],
        promoted_from_channel=fact.channel,
        promotion_confidence=fact.confidence,
        promotion_access_count=fact.access_count,
        promotion_conversation_count=len(conversations),
        **columns,
    )

"""Ending facts whose statement was replaced, where the claims of both do not contradict each other.

"Piano is on Mondays at 4" teaches a fact; the rules do not understand "piano got bumped to thurs, same hour", but the
two statements are compared, and a REPLACES link says how probably the later one replaces the earlier one. If that and
the claim make it probable (`extraction.fact_endings`), the fact ends when the later statement was made. The turn that
made it SUPERSEDES the fact, and replaces the earlier turn at least as probably.

Facts of what is to come end too: "The tiler comes on 11 May", "his new date is 19 May".

Only what rests on the earlier statement alone ends: an extracted fact without further evidence, learned from a short
turn, and replaced by the same speaker, who does not far more surely replace another statement with it; what was only
answered to the earlier one is none. Of "I work at Globex, parking costs 40 euros" the fact of Globex ends unless the
later statement speaks more of parking than of Globex. It happens when either of the two turns is extracted,
or by the job `find_contradictions` where they got their vectors later, in accounts that prefer new facts. A fact that
ended so is learned again once somebody says it again, and stays ended if the turn that replaced it is erased.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from memory.audit import record_audit
from memory.dates import Bound, Tense, find_dates
from memory.extraction.fact_endings import ENDING_FLOOR, FactEnding, ending_probability
from memory.extraction.statement_words import part_about, read_words
from memory.models import Fact, Link
from memory.models.memory import EXTRACTED_SOURCE
from memory.owner import Owner
from memory.scoring import COMPETING_MARGIN, MAX_STATEMENT_CHARACTERS, POSSIBLE_REPLACEMENT
from memory.services.facts.contradict import find_policy
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.plans import retract_begun
from memory.services.facts.store import next_belief_at
from memory.services.facts.supersede import close_fact
from memory.services.memories.links import DERIVED_FROM, REPLACES, SUPERSEDES, NewLink, insert_links
from memory.services.replaced_evidence import add_links, weaken_partial_replacements

FIND_REPLACED = """
SELECT fact.id, newer.id, older.id, newer.event_time, fact.text, older.text, newer.text, link.weight,
    fact.temporal = 'future', ARRAY (
        SELECT other.text FROM memory_links AS also JOIN memories AS other
            ON other.account_id = %(account_id)s AND other.id = also.source_id
        WHERE also.account_id = %(account_id)s AND also.type = 'DERIVED_FROM' AND also.target_id = older.id
            AND other.kind = 'fact' AND other.id <> fact.id AND lower(other.text) <> lower(fact.text)
    )
FROM memory_links AS link
JOIN memories AS newer ON newer.account_id = %(account_id)s AND newer.id = link.source_id AND newer.kind = 'turn'
JOIN memories AS older ON older.account_id = %(account_id)s AND older.id = link.target_id AND older.kind = 'turn'
JOIN memory_links AS derived ON derived.account_id = %(account_id)s AND derived.type = 'DERIVED_FROM'
    AND derived.target_id = older.id
JOIN memories AS fact ON fact.account_id = %(account_id)s AND fact.id = derived.source_id AND fact.kind = 'fact'
WHERE link.account_id = %(account_id)s AND link.type = 'REPLACES' AND link.weight >= %(least)s
    AND (link.source_id = ANY(%(turn_ids)s::uuid[]) OR link.target_id = ANY(%(turn_ids)s::uuid[]))
    AND newer.role = older.role AND newer.name IS NOT DISTINCT FROM older.name
    AND newer.user_id = older.user_id AND newer.channel = older.channel AND newer.event_time > older.event_time
    AND NOT newer.quarantined AND length(older.text) <= %(characters)s
    AND fact.agent_id = older.agent_id AND fact.user_id = older.user_id AND fact.channel = older.channel
    AND fact.status = 'active' AND fact.temporal IN ('current', 'future') AND fact.retracted_at IS NULL
    AND (fact.valid_to IS NULL OR fact.valid_to > newer.event_time)
    AND (fact.temporal = 'future' OR fact.valid_from IS NULL OR fact.valid_from < newer.event_time)
    AND fact.source = %(source)s AND NOT (fact.pinned OR fact.archived OR fact.quarantined)
    AND NOT EXISTS (
        SELECT FROM memory_links AS stronger WHERE stronger.account_id = %(account_id)s AND stronger.type = 'REPLACES'
            AND stronger.source_id = newer.id AND stronger.weight > link.weight + %(margin)s
            AND NOT EXISTS (
                SELECT FROM memories AS answer
                WHERE answer.account_id = %(account_id)s AND answer.id = stronger.target_id AND answer.kind = 'turn'
                    AND answer.conversation_id = older.conversation_id
                    AND answer.role <> older.role AND answer.index > older.index
            )
    )
    AND NOT EXISTS (
        SELECT FROM memory_links AS also WHERE also.account_id = %(account_id)s AND also.type = 'DERIVED_FROM'
            AND also.source_id = fact.id AND also.target_id <> older.id
    )
ORDER BY newer.event_time, newer.id, fact.id"""


IS_TO_COME = re.compile(
    r"\b(?:will|going to|goes|moves|changes|(?:is|are|am) \w+ing|from|starting|as of)\b|'(?:ll|s|re|m) \w+ing\b|'ll\b",
    re.IGNORECASE,
)
"""Words of a statement about what is to come, if it names a day to come."""
BEGINNINGS = frozenset({Bound.WITHIN, Bound.SINCE})


class OutdatedFact(NamedTuple):
    """A fact and a later turn that may end it, the turn it was learned from, and how surely that one was replaced."""

    fact_id: UUID
    turn_id: UUID
    older_id: UUID
    said_at: datetime
    claim: str
    statement: str
    replacing: str
    weight: float
    is_planned: bool = False
    others: Sequence[str] = ()
    """The claims of other facts that the earlier statement taught."""

    @property
    def probability(self) -> float:
        """The probability that the fact ends: 0 where the later statement speaks of something else that was said."""
        if self.is_asked or not self.is_what_was_replaced:
            return 0.0
        return ending_probability(FactEnding(self.claim, self.statement, self.replacing, self.weight))

    @property
    def is_asked(self) -> bool:
        """Return True if what either statement says of the claim is a question: "Is standup at ten now? Thanks!"."""
        claim = read_words(self.claim)
        return any(
            part_about(claim, read_words(text)).text.rstrip().endswith(("?", "？"))
            for text in (self.statement, self.replacing)
        )

    @property
    def ends_at(self) -> datetime:
        """The time of the later statement, or the day to come from which it holds: "rent is going up in January".

        A plan ends when another one is made.
        """
        if self.is_planned or not IS_TO_COME.search(self.replacing):
            return self.said_at
        # "from January" is read as "in January" is
        text = re.sub(r"\bfrom (?=[A-Z])", "in ", self.replacing)
        dates = find_dates(text, at=self.said_at, tense=Tense.FUTURE)
        is_ahead = len(dates) == 1 and dates[0].bound in BEGINNINGS and dates[0].start > self.said_at
        return dates[0].start if is_ahead else self.said_at

    @property
    def is_what_was_replaced(self) -> bool:
        """Return False if the later statement speaks more of another part of the earlier one than of what is claimed.

        Of several facts it has to speak more of this one: a name that is common to all does not tell which is meant.
        """
        claimed, replacing = read_words(self.claim).content, read_words(self.replacing).content
        untold = read_words(self.statement).content - claimed
        own = claimed.difference(*(read_words(other).content for other in self.others))
        return len(replacing & own) - len(replacing & untold) >= bool(self.others)


def find_replaced_facts(owner: Owner, turn_ids: Collection[UUID]) -> list[OutdatedFact]:
    """Return the believed facts that may end because of these turns, or because of what may replace them.

    A fact comes once for each turn that may end it, the earliest of them first. One statement.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            FIND_REPLACED,
            {
                "account_id": owner.account_id,
                "turn_ids": list(turn_ids),
                "least": POSSIBLE_REPLACEMENT,
                "margin": COMPETING_MARGIN,
                "characters": MAX_STATEMENT_CHARACTERS,
                "source": EXTRACTED_SOURCE,
            },
        )
        return [OutdatedFact._make(row) for row in cursor.fetchall()]


def find_outdated(owner: Owner, turn_ids: Collection[UUID]) -> list[OutdatedFact]:
    """Return the believed facts that end because of these turns, or because of what replaced them, each once."""
    outdated: dict[UUID, OutdatedFact] = {}
    for found in find_replaced_facts(owner, turn_ids):
        if found.fact_id not in outdated and found.probability >= ENDING_FLOOR:
            outdated[found.fact_id] = found
    return list(outdated.values())


def find_outdated_among(facts: Sequence[Fact]) -> list[Fact]:
    """Return those of these facts that end, as far as links tell. Two statements for each account."""
    by_account: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for fact in facts:
        by_account[fact.account_id].append(fact.id)
    outdated = {
        each.fact_id
        for account_id, ids in by_account.items()
        for each in find_outdated(Owner(account_id=account_id), find_sources(account_id, ids))
    }
    return [fact for fact in facts if fact.id in outdated]


def find_sources(account_id: UUID, fact_ids: Collection[UUID]) -> list[UUID]:
    """Return the memories that these facts were derived from."""
    rows = Link.objects.filter(account_id=account_id, type=DERIVED_FROM, source_id__in=fact_ids)
    return list(rows.values_list("target_id", flat=True))


def find_ending(owner: Owner, turn_ids: Collection[UUID], *, may_end: Collection[UUID]) -> list[OutdatedFact]:
    """Return what ends of the locked facts `may_end`: nothing, unless the account prefers new facts."""
    outdated = [each for each in find_outdated(owner, turn_ids) if each.fact_id in may_end]
    return outdated if outdated and find_policy(owner) == "prefer_new" else []


def end_outdated(owner: Owner, outdated: Sequence[OutdatedFact], *, now: datetime) -> list[Fact]:
    """End facts, which are locked with their copies, and those of the copies that follow them. Returns all of these."""
    rows = Fact.objects.filter(account_id=owner.account_id, id__in=[found.fact_id for found in outdated])
    facts = {fact.id: fact for fact in rows}
    ended: list[Fact] = []
    links = []
    for found in outdated:
        fact = facts[found.fact_id]
        copies = find_following_copies([fact], locked=find_copy_ids(owner.account_id, [fact.id]))
        for each in (fact, *copies):
            close_fact(owner, each, at=found.ends_at, now=max(now, next_belief_at(each, now)))
            properties = {"probability": round(found.probability, 3)}
            links.append(NewLink(source_id=found.turn_id, type=SUPERSEDES, target_id=each.id, properties=properties))
            ended.append(each)
        if found.is_planned:
            retract_begun(owner, [fact], at=found.said_at, now=now)
    if ended:
        insert_links(owner.account_id, links)
        add_links(
            owner.account_id,
            [
                NewLink(source_id=each.turn_id, type=REPLACES, target_id=each.older_id, weight=each.probability)
                for each in outdated
            ],
        )
        weaken_partial_replacements(owner.account_id, [found.turn_id for found in outdated])
        record_audit(owner, operation="supersede", memory_type="semantic", affected_ids=[each.id for each in ended])
    return ended

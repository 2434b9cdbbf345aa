"""Patterns become strategies (X12): what was done where it ended well is learnt, or counted where it is known.

A work is known where a strategy of the same holder and channel calls the same tools in the same order for a task that
is alike (`extraction.patterns`), whoever learnt it. A use is counted once a strategy, conversation and outcome, so that
a conversation that is reopened and ends again, or an agent that counted it itself, counts nothing twice. Where it ended
badly nothing is learnt, but what is known counts a failure.

What was learnt, and that a source was looked at, is one transaction for each source. Nothing here waits for a source
that somebody is writing to: the next run finds it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from memory.extraction.patterns import ALIKE_SHARE, Pattern, task_likeness
from memory.identity import holder
from memory.models import Conversation, Kind, Strategy, StrategyUse
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.entities.resolve import of_holder
from memory.services.strategies.learn import (
    PATTERNS,
    StrategyDraft,
    Use,
    count_use,
    holder_of,
    lock_rows,
    put_strategy,
    strategy_identity,
)
from memory.services.strategies.sources import Source, Work

logger = logging.getLogger(__name__)

# as it was read, or else it is looked at again
MARK_CONVERSATIONS = """
UPDATE conversations SET patterns_extracted_at = %s FROM (
    SELECT c.id FROM conversations c
    JOIN unnest(%s::uuid[], %s::timestamptz[], %s::text[]) AS read (id, ended_at, outcome) USING (id, ended_at, outcome)
    WHERE c.patterns_extracted_at IS NULL FOR NO KEY UPDATE OF c SKIP LOCKED
) AS same WHERE conversations.id = same.id
"""
MARK_GOALS = """
UPDATE goals SET patterns_extracted_at = %s FROM (
    SELECT g.memory_ptr_id FROM goals g
    JOIN unnest(%s::uuid[], %s::timestamptz[], %s::text[]) AS read (id, completed_at, status)
        ON read.id = g.memory_ptr_id AND read.completed_at = g.completed_at AND read.status = g.status
    WHERE g.patterns_extracted_at IS NULL FOR NO KEY UPDATE OF g SKIP LOCKED
) AS same WHERE goals.memory_ptr_id = same.memory_ptr_id
"""


class Outdated(Exception):  # noqa: N818 - it says what happened
    """Somebody has written to the source since it was read, or is writing to it: what was done is taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What became of some sources: how many are looked at now, how many failed, and what came of it by name.

    `strategies_learnt`, `strategies_counted` (known ones that worked, or did not, once more; `strategies_revived` of
    them were archived or expired), `refused` ones, which are in quarantine, and sources with `nothing_to_learn`.
    """

    marked: int
    failed: int
    figures: Counter[str]


def look_at(sources: Sequence[Source], *, now: datetime, renew: Callable[[], None]) -> Looked:
    """Learn from what ended. Sources that wait for their goals are left."""
    idle = [source for source in sources if not source.works and not source.waits]
    marked = mark(idle, now=now)
    figures = Counter(nothing_to_learn=marked)
    failed = 0
    busy = [source for source in sources if source.works]
    # outside of transactions: it may take seconds
    embedded = embed_texts(unknown_texts(busy, now=now))
    for source in busy:
        renew()
        try:
            figures += look_at_one(source, embedded=embedded, now=now)
            marked += 1
        except Outdated:
            continue
        except Exception as err:  # noqa: BLE001 - the outermost loop of the works
            # its words may be the conversation's
            logger.error("patterns of %s failed: %s", source.row, type(err).__name__)
            failed += 1
    return Looked(marked=marked, failed=failed, figures=figures)


def mark(sources: Sequence[Source], *, now: datetime) -> int:
    """Say of these, all conversations or all goals, that they were looked at; of how many, as they were read. One
    statement, none for none."""
    if not sources:
        return 0
    rows = [source.row for source in sources]
    is_goal = not isinstance(rows[0], Conversation)
    states = [row.outcome if isinstance(row, Conversation) else row.status for row in rows]
    with connection.cursor() as cursor:
        parameters: list[Any] = [now, [row.pk for row in rows], [source.ended_at for source in sources], states]
        cursor.execute(MARK_GOALS if is_goal else MARK_CONVERSATIONS, parameters)
        return int(cursor.rowcount)


def unknown_texts(sources: Iterable[Source], *, now: datetime) -> list[str]:
    """Of what seems to be new: it is embedded before it is known whether it is."""
    by_account: dict[UUID, list[tuple[Source, Work]]] = {}
    for source in sources:
        if source.success:
            by_account.setdefault(source.owner.account_id, []).extend((source, work) for work in source.works)
    texts = []
    for account_id, found in by_account.items():
        known = list(known_strategies(account_id, [work.pattern for _, work in found], now=now))
        texts += [draft_of(source, work).text for source, work in found if best_match(source, work, known) is None]
    return texts


def known_strategies(account_id: UUID, patterns: Iterable[Pattern], *, now: datetime) -> Any:
    """Those that call the same tools in the same order as one of these, be they in quarantine or not."""
    rows: Any = Strategy.objects.filter(account_id=account_id, kind=Kind.STRATEGY, archived=False)
    sequences = [list(steps) for steps in dict.fromkeys(pattern.steps for pattern in patterns)]
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=now), tool_sequence__in=sequences)


def best_match(source: Source, work: Work, known: Iterable[Strategy]) -> Strategy | None:
    """The one that the work followed: of the same holder and channel, for the task that is most alike; of several the
    oldest."""
    whose = (holder(source.owner), source.owner.channel)
    scored = [
        (-task_likeness(work.pattern, pattern_of(strategy)), strategy.pk, strategy)
        for strategy in known
        if (holder_of(strategy), strategy.channel) == whose and tuple(strategy.tool_sequence) == work.pattern.steps
    ]
    score, _, strategy = min(scored, default=(0.0, None, None))
    return strategy if -score >= ALIKE_SHARE else None


def pattern_of(strategy: Strategy) -> Pattern:
    task = strategy.context_pattern or ("" if strategy.source == PATTERNS else strategy.description)
    return Pattern(steps=tuple(strategy.tool_sequence), task=task, task_type=strategy.task_type)


def look_at_one(source: Source, *, embedded: Embedded, now: datetime) -> Counter[str]:
    """One transaction. Raises Outdated."""
    is_conversation = isinstance(source.row, Conversation)
    with transaction.atomic():
        # conversations before the memories in them, as everybody locks them; goals behind, being memories
        if is_conversation and not mark([source], now=now):
            raise Outdated
        done = settle_works(source, embedded=embedded, now=now)
        if not is_conversation and not mark([source], now=now):
            raise Outdated
    return done or Counter(nothing_to_learn=1)


def settle_works(source: Source, *, embedded: Embedded, now: datetime) -> Counter[str]:
    known, counted = lock_matching(source, now=now), uses_in(source)
    done: Counter[str] = Counter()
    for work in source.works:
        strategy = best_match(source, work, known)
        if strategy is None and source.success:
            strategy, figures = learn(source, work, embedded=embedded, now=now)
            known.append(strategy)
            done += figures
        if strategy is not None and strategy.quarantined:
            done["refused"] += 1
        elif strategy is not None and (strategy.pk, work.conversation) not in counted:
            counted.add((strategy.pk, work.conversation))
            count_use(source.owner, strategy, use_of(source, work), now=source.ended_at)
            done["uses"] += 1
    return told(done)


def told(done: Counter[str]) -> Counter[str]:
    """The figures: the first use of a strategy that was learnt is no count of a known one."""
    uses = done.pop("uses", 0)
    return done + Counter(strategies_counted=uses - done["strategies_learnt"])


def lock_matching(source: Source, *, now: datetime) -> list[Strategy]:
    """The strategies that its works followed, alone, in the order of everybody who locks memories."""
    owner = source.owner
    rows = known_strategies(owner.account_id, [work.pattern for work in source.works], now=now)
    rows = rows.filter(of_holder(owner), channel=owner.channel)
    known = list(rows)
    matches = [best_match(source, work, known) for work in source.works]
    return list(lock_rows(rows.filter(pk__in={match.pk for match in matches if match is not None})))


def uses_in(source: Source) -> set[tuple[UUID, UUID | None]]:
    """What is counted in its conversations already, by strategy: of uses that ended as it did."""
    places = {work.conversation for work in source.works if work.conversation is not None}
    uses = StrategyUse.objects.filter(account_id=source.owner.account_id, conversation_id__in=places)
    return set(uses.filter(success=bool(source.success)).values_list("strategy_id", "conversation_id"))


def use_of(source: Source, work: Work) -> Use:
    return Use(success=bool(source.success), conversation=work.conversation)


def learn(source: Source, work: Work, *, embedded: Embedded, now: datetime) -> tuple[Strategy, Counter[str]]:
    """New; or one that was archived, or had expired; or that which such a one was merged into, which is known."""
    draft = draft_of(source, work)
    strategy, is_new = put_strategy(source.owner, draft, embedded=embedded, now=now)
    is_itself = strategy.identity == strategy_identity(source.owner, draft)
    return strategy, Counter(strategies_learnt=int(is_new), strategies_revived=int(is_itself and not is_new))


def draft_of(source: Source, work: Work) -> StrategyDraft:
    row, goal = source.row, work.goal
    named = {"conversation_id": row.conversation_id, "goal_id": "" if goal is None else str(goal)}
    return StrategyDraft(
        description=work.pattern.description,
        context_pattern=work.pattern.task,
        tool_sequence=work.pattern.steps,
        task_type=work.pattern.task_type,
        conversation_id=row.conversation_id,
        source=PATTERNS,
        event_time=source.ended_at,
        metadata={"learnt_from": {name: value for name, value in named.items() if value}},
    )

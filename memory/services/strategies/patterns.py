"""Extracting strategies from work (X12): tool calls that ended well become a strategy, or count as use of a known one.

A run is known if a strategy of the same holder and channel, learned by any agent, calls the same tools in the same
order for a similar task (`extraction.patterns`). A use is counted once for each strategy, conversation and outcome, so
that a conversation that is reopened and ends again, or an agent that counted the use itself, counts nothing twice.
Where work ended badly nothing is learned, but known strategies count a failure.

Each source is one transaction, which also marks it as extracted. A source that is being written to is skipped: the next
run finds it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from memory.extraction.patterns import MIN_TASK_LIKENESS, Pattern, task_likeness
from memory.identity import holder_key
from memory.models import Conversation, Strategy, StrategyUse
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.entities.resolve import filter_by_holder, holder_of_row
from memory.services.memories.trust import least_trust_of_conversations
from memory.services.strategies.failures import learn_from_failures
from memory.services.strategies.learn import (
    PATTERN_SOURCE,
    StrategyDraft,
    count_strategy_use,
    lock_strategy_rows,
    strategy_identity,
    upsert_strategy,
)
from memory.services.strategies.sources import PatternRun, WorkSource, lock_kept_conversations

logger = logging.getLogger(__name__)

# marks only rows that are as they were read; others are extracted again
MARK_EXTRACTED = """
UPDATE {table} SET patterns_extracted_at = %s FROM (
    SELECT source.account_id, source.id FROM {table} source
    JOIN unnest(%s::uuid[], %s::uuid[], %s::timestamptz[], %s::text[]) AS read (account_id, id, ended_at, state)
        ON read.account_id = source.account_id AND read.id = source.id AND read.ended_at = source.{ended_at}
            AND read.state = source.{state}
    WHERE {condition} FOR NO KEY UPDATE OF source SKIP LOCKED
) AS same WHERE {table}.account_id = same.account_id AND {table}.id = same.id
"""
MARK_CONVERSATIONS_EXTRACTED = MARK_EXTRACTED.format(
    table="conversations",
    ended_at="ended_at",
    state="outcome",
    condition="source.patterns_extracted_at IS NULL AND NOT source.erasing",
)
MARK_GOALS_EXTRACTED = MARK_EXTRACTED.format(
    table="memories",
    ended_at="completed_at",
    state="status",
    condition="source.kind = 'goal' AND source.patterns_extracted_at IS NULL",
)


class SourceChanged(Exception):  # noqa: N818 - it says what happened
    """The source was or is being written to since it was read: its transaction is rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResults:
    """Numbers of sources that were marked and that failed, and counts by name.

    `strategies_learnt`; `failures_learnt`: those about repeated failures; `strategies_counted`: known ones that were
    used again, `strategies_revived` of them archived or expired; `refused`: quarantined ones; `nothing_to_learn`:
    sources without a result.
    """

    marked: int
    failed: int
    figures: Counter[str]


def extract_patterns(sources: Sequence[WorkSource], *, now: datetime, renew: Callable[[], None]) -> PatternResults:
    """Learn strategies from sources, except those that wait for their goals. `renew` is called before each."""
    figures = learn_from_failures(sources, now=now)
    idle = [source for source in sources if not source.runs and not source.waits_for_goals]
    marked = mark_extracted(idle, now=now)
    figures += Counter(nothing_to_learn=marked)
    failed = 0
    busy = [source for source in sources if source.runs]
    # outside transactions, as it may take seconds
    embedded = embed_texts(texts_of_new_strategies(busy, now=now))
    for source in busy:
        renew()
        try:
            figures += extract_from_source(source, embedded=embedded, now=now)
            marked += 1
        except SourceChanged:
            continue
        except Exception as err:  # noqa: BLE001 - the outermost loop of the job
            # only the type: the message may quote the conversation
            logger.error("extracting patterns of %s failed: %s", source.row, type(err).__name__)
            failed += 1
    return PatternResults(marked=marked, failed=failed, figures=figures)


def mark_extracted(sources: Sequence[WorkSource], *, now: datetime) -> int:
    """Mark sources, all conversations or all goals, as extracted if they are as they were read. Returns how many.

    One statement; none for no sources.
    """
    if not sources:
        return 0
    rows = [source.row for source in sources]
    is_goal = not isinstance(rows[0], Conversation)
    states = [row.outcome if isinstance(row, Conversation) else row.status for row in rows]
    with connection.cursor() as cursor:
        keys = [[row.account_id for row in rows], [row.pk for row in rows]]
        parameters: list[Any] = [now, *keys, [source.ended_at for source in sources], states]
        cursor.execute(MARK_GOALS_EXTRACTED if is_goal else MARK_CONVERSATIONS_EXTRACTED, parameters)
        return int(cursor.rowcount)


def texts_of_new_strategies(sources: Iterable[WorkSource], *, now: datetime) -> list[str]:
    """Return the texts of runs that no known strategy matches. They are embedded before the runs are stored."""
    by_account: dict[UUID, list[tuple[WorkSource, PatternRun]]] = {}
    for source in sources:
        if source.success:
            by_account.setdefault(source.owner.account_id, []).extend((source, run) for run in source.runs)
    texts = []
    for account_id, found in by_account.items():
        known = list(strategies_with_same_tools(account_id, [run.pattern for _, run in found], now=now))
        texts += [
            strategy_draft_from_run(source, run).text
            for source, run in found
            if find_best_match(source, run, known) is None
        ]
    return texts


def strategies_with_same_tools(account_id: UUID, patterns: Iterable[Pattern], *, now: datetime) -> Any:
    """Return the strategies, quarantined or not, that call the same tools in the same order as one of the patterns."""
    rows = Strategy.objects.filter(account_id=account_id, archived=False)
    sequences = [list(steps) for steps in dict.fromkeys(pattern.steps for pattern in patterns)]
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=now), tool_sequence__in=sequences)


def find_best_match(source: WorkSource, run: PatternRun, known: Iterable[Strategy]) -> Strategy | None:
    """Return the strategy that the run followed: of its holder and channel, for the most similar task; else None.

    Of equally similar ones the oldest is returned.
    """
    scope = (holder_key(source.owner), source.owner.channel)
    scored = [
        (-task_likeness(run.pattern, pattern_of_strategy(strategy)), strategy.pk, strategy)
        for strategy in known
        if (holder_of_row(strategy), strategy.channel) == scope and tuple(strategy.tool_sequence) == run.pattern.steps
    ]
    score, _, strategy = min(scored, default=(0.0, None, None))
    return strategy if -score >= MIN_TASK_LIKENESS else None


def pattern_of_strategy(strategy: Strategy) -> Pattern:
    task = strategy.context_pattern or ("" if strategy.source == PATTERN_SOURCE else strategy.description)
    return Pattern(steps=tuple(strategy.tool_sequence), task=task, task_type=strategy.task_type)


def extract_from_source(source: WorkSource, *, embedded: EmbeddedTexts, now: datetime) -> Counter[str]:
    """Learn from one source in one transaction. Raises SourceChanged."""
    is_conversation = isinstance(source.row, Conversation)
    with transaction.atomic():
        # conversations are locked before the memories in them, as everywhere; goals, being memories, after those
        if is_conversation and not mark_extracted([source], now=now):
            raise SourceChanged
        called_in = {run.conversation_pk for run in source.runs if run.conversation_pk is not None}
        if not is_conversation and not lock_kept_conversations(source.owner.account_id, id__in=called_in) >= called_in:
            raise SourceChanged
        done = store_runs(source, embedded=embedded, now=now)
        if not is_conversation and not mark_extracted([source], now=now):
            raise SourceChanged
    return done or Counter(nothing_to_learn=1)


def store_runs(source: WorkSource, *, embedded: EmbeddedTexts, now: datetime) -> Counter[str]:
    known = lock_matching_strategies(source, now=now)
    # with the source's outcome, as strategy and conversation
    conversations = {run.conversation_pk for run in source.runs if run.conversation_pk is not None}
    uses = StrategyUse.objects.filter(account_id=source.owner.account_id, conversation_id__in=conversations)
    found = uses.filter(success=bool(source.success)).values_list("strategy_id", "conversation_id")
    counted: set[tuple[UUID, UUID | None]] = set(found)
    counts: Counter[str] = Counter()
    used = 0
    for run in source.runs:
        strategy = find_best_match(source, run, known)
        if strategy is None and source.success:
            strategy, figures = learn_from_run(source, run, embedded=embedded, now=now)
            known.append(strategy)
            counts += figures
        if strategy is not None and strategy.quarantined:
            counts["refused"] += 1
        elif strategy is not None and (strategy.pk, run.conversation_pk) not in counted:
            counted.add((strategy.pk, run.conversation_pk))
            count_strategy_use(
                source.owner,
                strategy,
                success=bool(source.success),
                conversation_pk=run.conversation_pk,
                now=source.ended_at,
            )
            used += 1
    # the first use of a learned strategy does not count as use of a known one
    return counts + Counter(strategies_counted=used - counts["strategies_learnt"])


def lock_matching_strategies(source: WorkSource, *, now: datetime) -> list[Strategy]:
    """Lock the strategies that the source's runs followed, in the order in which all code locks memories."""
    owner = source.owner
    rows = strategies_with_same_tools(owner.account_id, [run.pattern for run in source.runs], now=now)
    rows = rows.filter(filter_by_holder(owner), channel=owner.channel)
    known = list(rows)
    matches = [find_best_match(source, run, known) for run in source.runs]
    return list(lock_strategy_rows(rows.filter(pk__in={match.pk for match in matches if match is not None})))


def learn_from_run(
    source: WorkSource, run: PatternRun, *, embedded: EmbeddedTexts, now: datetime
) -> tuple[Strategy, Counter[str]]:
    """Store the run's strategy, and count whether it was new or revived.

    A strategy that was merged into another counts as neither: that one was known.
    """
    trust = least_trust_of_conversations(source.owner.account_id, [source.row.conversation_id])
    draft = replace(strategy_draft_from_run(source, run), trust=trust)
    strategy, is_new = upsert_strategy(source.owner, draft, embedded=embedded, now=now)
    is_itself = strategy.identity == strategy_identity(source.owner, draft)
    return strategy, Counter(strategies_learnt=int(is_new), strategies_revived=int(is_itself and not is_new))


def strategy_draft_from_run(source: WorkSource, run: PatternRun) -> StrategyDraft:
    row, goal = source.row, run.goal_id
    named = {"conversation_id": row.conversation_id, "goal_id": "" if goal is None else str(goal)}
    return StrategyDraft(
        description=run.pattern.description,
        context_pattern=run.pattern.task,
        tool_sequence=run.pattern.steps,
        task_type=run.pattern.task_type,
        conversation_id=row.conversation_id,
        source=PATTERN_SOURCE,
        event_time=source.ended_at,
        metadata={"learnt_from": {name: value for name, value in named.items() if value}},
    )

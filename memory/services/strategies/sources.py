"""Sources of strategies: ended conversations and completed goals whose tool calls no job has examined yet.

In a conversation whose outcome was stated, the calls for each goal are one run of a pattern, and the calls for no goal
another one. A completed goal is a source of its own for its calls in conversations without a stated outcome. So each
call is examined once: a conversation leaves out the calls for a goal that was examined before the conversation ended.

A run belongs to the holder of its source (`identity.holder_key`): what others called in the conversation, or for the
goal, is left out, and the task is described in the holder's own words of the source's channel, never in another's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from memory.extraction.patterns import MAX_READ_TASK_CHARACTERS, Pattern, Trail, format_task
from memory.models import Conversation, Goal, ToolInvocation, Turn, TurnRecord
from memory.owner import Owner
from memory.services.account_walk import AccountPage, Batch, group_by_account
from memory.services.entities.resolve import holder_of_row, owner_of_row

ACTOR = "job:patterns"
MAX_OPENING_TURNS = 10
"""Turns whose messages of the user are searched for the task."""

Outcome = Conversation.Outcome
ConversationKey = tuple[UUID, str]
"""Account id and conversation id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRun:
    """A pattern that was followed, in which conversation (the last one, by primary key), and for which goal."""

    pattern: Pattern
    conversation_pk: UUID | None
    goal_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSource:
    """A conversation or goal (`row`) that ended, with the runs of patterns in it. `success` is None if not stated.

    `waits_for_goals`: its goals have to be examined first.
    """

    row: Conversation | Goal
    owner: Owner
    ended_at: datetime
    success: bool | None
    runs: Sequence[PatternRun]
    waits_for_goals: bool = False


def lock_kept_conversations(account_id: UUID, **conditions: Any) -> set[UUID]:
    """Lock conversations in the caller's transaction, except those being erased. Returns their primary keys."""
    rows = Conversation.objects.filter(account_id=account_id, erasing=False, **conditions).order_by("id")
    return set(rows.select_for_update(no_key=True).values_list("id", flat=True))


def next_source_rows(rows: QuerySet[Any], column: str, batch: Batch, *, now: datetime) -> AccountPage[Any]:
    ended = rows.filter(**{f"{column}__lte": now, "patterns_extracted_at": None})
    return batch.page_of(ended, order_by=column)


def next_conversation_sources(batch: Batch, *, now: datetime) -> AccountPage[WorkSource]:
    """Return the next conversations that ended, whatever their outcome, by account and end."""
    page = next_source_rows(Conversation.objects.defer("saved_session", "metadata"), "ended_at", batch, now=now)
    rows = page.rows
    stated = group_by_account(row for row in rows if row.outcome)
    runs = {pk: found for of_account in stated.values() for pk, found in runs_in_conversations(of_account)}
    waiting = conversations_with_waiting_goals([row for row in rows if not row.outcome])
    sources = [
        WorkSource(
            row=row,
            owner=owner_of_row(row, actor=ACTOR),
            ended_at=row.ended_at,
            success=row.outcome == Outcome.SUCCESS if row.outcome else None,
            runs=runs.get(row.pk, ()),
            waits_for_goals=(row.account_id, row.conversation_id) in waiting,
        )
        for row in rows
    ]
    return AccountPage(rows=sources, cursor=page.cursor)


def conversations_with_waiting_goals(rows: Sequence[Conversation]) -> set[ConversationKey]:
    """Return the conversations with work on a completed goal that has not been examined yet."""
    waiting: set[ConversationKey] = set()
    for account_id, of_account in group_by_account(rows).items():
        records = TurnRecord.objects.filter(
            account_id=account_id,
            conversation_id__in=[row.conversation_id for row in of_account],
            goal__status=Goal.Status.COMPLETED,
            goal__patterns_extracted_at=None,
        )
        found = records.order_by().values_list("conversation_id", flat=True).distinct()
        waiting |= {(account_id, each) for each in found}
    return waiting


def runs_in_conversations(rows: Sequence[Conversation]) -> Iterator[tuple[UUID, list[PatternRun]]]:
    """Yield the runs in each conversation of one account, by the conversation's primary key."""
    account_id = rows[0].account_id
    trails = read_trails(account_id, {row.conversation_id: owner_of_row(row) for row in rows})
    goal_ids = {goal for of_one in trails.values() for goal in of_one if goal is not None}
    rows_of_goals = Goal.objects.filter(account_id=account_id, pk__in=goal_ids)
    columns = ("account", "agent_id", "user_id", "channel", "text", "quarantined", "patterns_extracted_at")
    goals = {goal.pk: goal for goal in rows_of_goals.only(*columns)}
    openings = read_opening_messages([row for row in rows if trails.get(row.conversation_id)])
    for row in rows:
        others = (row.title, *openings.get(row.pk, ()))
        runs = []
        for goal_id, trail in trails.get(row.conversation_id, {}).items():
            goal = None if goal_id is None else goals.get(goal_id)
            if goal is not None and holder_of_row(goal) != holder_of_row(row):
                goal = None
            extracted_at = None if goal is None else goal.patterns_extracted_at
            if extracted_at is not None and row.ended_at is not None and extracted_at < row.ended_at:
                # while the conversation was open, with the calls made in it by then
                continue
            is_usable = goal is not None and not goal.quarantined and goal.channel == row.channel
            texts = (goal.text if goal is not None and is_usable else "", *others)
            runs += make_runs(trail, texts, conversation_pk=row.pk, goal_id=None if goal is None else goal.pk)
        yield row.pk, runs


def read_trails(account_id: UUID, owners: Mapping[str, Owner]) -> dict[str, dict[UUID | None, Trail]]:
    """Return the trails that are patterns, by conversation and goal, of calls for the conversations' `owners`."""
    called = ToolInvocation.objects.filter(account_id=account_id, conversation_id__in=list(owners))
    trails: dict[tuple[str, UUID | None], Trail] = defaultdict(Trail)
    for call in read_calls_in_order(called):
        if call.is_for(owners[call.conversation_id]):
            trails[call.conversation_id, call.goal_id].add(call.name, task_type=call.task_type, success=call.success)
    found: dict[str, dict[UUID | None, Trail]] = defaultdict(dict)
    for (conversation_id, goal_id), trail in trails.items():
        if trail.is_pattern:
            found[conversation_id][goal_id] = trail
    return found


class ToolCall(NamedTuple):
    """A call of a tool in a conversation, by whom, and for which goal, if any."""

    agent_id: str
    user_id: str
    conversation_id: str
    goal_id: UUID | None
    name: str
    task_type: str
    success: bool | None

    def is_for(self, owner: Owner) -> bool:
        """Return True if it was made for the owner's user; where no user was named, by the owner's agent."""
        return self.user_id == owner.user_id if self.user_id else self.agent_id == owner.agent_id


def read_calls_in_order(called: Any) -> Iterator[ToolCall]:
    """Yield calls in the order of their times, in chunks, as there may be many."""
    columns = ("agent_id", "user_id", "conversation_id", "record__goal_id")
    rows = called.order_by("timestamp", "id").values_list(*columns, "tool_name", "task_type", "success")
    return map(ToolCall._make, rows.iterator())


def read_opening_messages(rows: Sequence[Conversation]) -> dict[UUID, list[str]]:
    """Return the beginnings of the user's first messages in each conversation, by primary key.

    Only turns of the conversation's holder and channel count. No query for no conversations.
    """
    if not rows:
        return {}
    turns = Turn.objects.filter(account_id=rows[0].account_id, log_id__in=[row.pk for row in rows])
    messages = turns.filter(role=Turn.Role.USER, index__lt=MAX_OPENING_TURNS, quarantined=False)
    # of the holder: the user, or the agent where there is none
    messages = messages.filter(~Q(user_id="") | Q(agent_id=F("log__agent_id")))
    messages = messages.filter(user_id=F("log__user_id"), channel=F("log__channel"))
    found: dict[UUID, list[str]] = defaultdict(list)
    said = messages.order_by("log_id", "index").values_list("log_id", Left("text", MAX_READ_TASK_CHARACTERS))
    for log_id, text in said:
        found[log_id].append(text)
    return found


def make_runs(
    trail: Trail, texts: Iterable[str], *, conversation_pk: UUID | None, goal_id: UUID | None
) -> list[PatternRun]:
    """Return one run, or none where neither the texts nor the calls say what it was for."""
    pattern = Pattern(steps=tuple(trail.steps), task=format_task(texts), task_type=trail.task_type)
    if not pattern.task and not pattern.task_type:
        return []
    return [PatternRun(pattern=pattern, conversation_pk=conversation_pk, goal_id=goal_id)]


def next_goal_sources(batch: Batch, *, now: datetime) -> AccountPage[WorkSource]:
    """Return the next goals that were completed, by account and end."""
    page = next_source_rows(Goal.objects.filter(status=Goal.Status.COMPLETED), "completed_at", batch, now=now)
    rows = page.rows
    runs = {goal: found for of_account in group_by_account(rows).values() for goal, found in runs_for_goals(of_account)}
    sources = [
        WorkSource(
            row=row,
            owner=owner_of_row(row, actor=ACTOR),
            ended_at=row.completed_at,
            success=True,
            runs=runs.get(row.pk, ()),
        )
        for row in rows
    ]
    return AccountPage(rows=sources, cursor=page.cursor)


def runs_for_goals(rows: Sequence[Goal]) -> Iterator[tuple[UUID, list[PatternRun]]]:
    """Yield the runs for each goal of one account: what its holder called in conversations without a stated outcome."""
    account_id, goals = rows[0].account_id, {row.pk: row for row in rows}
    owners = {row.pk: owner_of_row(row) for row in rows}
    records = TurnRecord.objects.filter(account_id=account_id, goal_id__in=list(goals))
    worked_in = set(records.order_by().values_list("conversation_id", flat=True).distinct())
    stated_by_nobody = Conversation.objects.filter(account_id=account_id, conversation_id__in=worked_in, outcome="")
    unstated = dict(stated_by_nobody.values_list("conversation_id", "pk"))
    called = ToolInvocation.objects.filter(account_id=account_id, record__goal_id__in=list(goals))
    trails: dict[UUID, Trail] = defaultdict(Trail)
    last: dict[UUID, UUID] = {}
    for call in read_calls_in_order(called):
        if call.goal_id is not None and call.conversation_id in unstated and call.is_for(owners[call.goal_id]):
            trails[call.goal_id].add(call.name, task_type=call.task_type, success=call.success)
            last[call.goal_id] = unstated[call.conversation_id]
    for goal_id, trail in trails.items():
        if trail.is_pattern:
            text = "" if goals[goal_id].quarantined else goals[goal_id].text
            yield goal_id, make_runs(trail, [text], conversation_pk=last[goal_id], goal_id=goal_id)

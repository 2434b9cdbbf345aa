"""Where patterns of work come from: conversations that ended, and goals that were completed, nobody looked at yet.

Of a conversation whose outcome was stated, the calls for each goal are a work of their own, and those for none another.
A completed goal is a source of its own where nobody stated an outcome: of its calls in such conversations. So each call
is looked at once: a conversation leaves out those for a goal that was looked at before it ended.

A work is its holder's (`identity.holder`), who is the source's: what others called in the conversation, or for the
goal, is no part of it, and it is told in the holder's own words of the source's channel, never in another's.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Left

from memory.extraction.patterns import LOOKED_AT, Pattern, Trail, tell_task
from memory.identity import holder
from memory.models import Conversation, Goal, ToolInvocation, Turn, TurnRecord
from memory.owner import Owner

ACTOR = "job:patterns"
FIRST_TURNS = 10
"""Among these the user's first message is looked for."""

Outcome = Conversation.Outcome
Place = tuple[UUID, str]
"""An account, and the id that a conversation has in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Behind which source to go on: sources are looked at in the order in which they ended."""

    ended_at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.ended_at.isoformat()},{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        moment, _, row_id = text.partition(",")
        return cls(ended_at=datetime.fromisoformat(moment), id=UUID(row_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which sources to look at: at most `limit` of one account, or of all, behind `after`, that ended by `now`."""

    now: datetime
    limit: int
    after: Position | None = None
    account_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A pattern that was followed, in which conversation (its row, the last one), and the id of its goal, if any."""

    pattern: Pattern
    conversation: UUID | None
    goal: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What ended, with what was done in it. `row` is the conversation or the goal; `success` None: nobody said.

    `waits`: it has goals that are still to be looked at.
    """

    row: Conversation | Goal
    owner: Owner
    ended_at: datetime
    success: bool | None
    works: Sequence[Work]
    waits: bool = False

    @property
    def position(self) -> Position:
        return Position(ended_at=self.ended_at, id=self.row.pk)


def next_rows(rows: Any, column: str, stretch: Stretch) -> list[Any]:
    rows = rows.filter(**{f"{column}__lte": stretch.now, "patterns_extracted_at": None})
    if stretch.account_id is not None:
        rows = rows.filter(account_id=stretch.account_id)
    if (after := stretch.after) is not None:
        later = Q(**{f"{column}__gt": after.ended_at})
        rows = rows.filter(
            later | Q(**{column: after.ended_at, "pk__gt": after.id}), **{f"{column}__gte": after.ended_at}
        )
    return list(rows.order_by(column, "pk")[: stretch.limit])


def owner_of(row: Conversation | Goal) -> Owner:
    return Owner(
        account_id=row.account_id, agent_id=row.agent_id, user_id=row.user_id, channel=row.channel, actor=ACTOR
    )


def holder_of(row: Conversation | Goal) -> str:
    return holder(owner_of(row))


def by_account(rows: Iterable[Any]) -> Mapping[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.account_id].append(row)
    return found


def next_conversations(stretch: Stretch) -> list[Source]:
    """The next ones that ended, whatever their outcome."""
    rows = next_rows(Conversation.objects.defer("saved_session", "metadata"), "ended_at", stretch)
    stated = [row for row in rows if row.outcome]
    works = {place: found for of_account in by_account(stated).values() for place, found in works_in(of_account)}
    waiting = places_with_waiting_goals([row for row in rows if not row.outcome])
    return [
        Source(
            row=row,
            owner=owner_of(row),
            ended_at=row.ended_at,
            success=row.outcome == Outcome.SUCCESS if row.outcome else None,
            works=works.get(row.pk, ()),
            waits=(row.account_id, row.conversation_id) in waiting,
        )
        for row in rows
    ]


def places_with_waiting_goals(rows: Sequence[Conversation]) -> set[Place]:
    """In which of these somebody worked on a goal that is completed, and still to be looked at."""
    waiting: set[Place] = set()
    for account_id, of_account in by_account(rows).items():
        records = TurnRecord.objects.filter(
            account_id=account_id,
            conversation_id__in=[row.conversation_id for row in of_account],
            goal__status=Goal.Status.COMPLETED,
            goal__patterns_extracted_at=None,
        )
        found = records.order_by().values_list("conversation_id", flat=True).distinct()
        waiting |= {(account_id, each) for each in found}
    return waiting


def works_in(rows: Sequence[Conversation]) -> Iterator[tuple[UUID, list[Work]]]:
    """By conversation (its row), of conversations of one account."""
    account_id = rows[0].account_id
    trails = trails_in(account_id, {row.conversation_id: owner_of(row) for row in rows})
    goals = read_goals(account_id, {goal for of_one in trails.values() for goal in of_one if goal is not None})
    openings = first_messages([row for row in rows if trails.get(row.conversation_id)])
    for row in rows:
        others = (row.title, openings.get(row.pk, ""))
        works = []
        for goal_id, trail in trails.get(row.conversation_id, {}).items():
            goal = None if goal_id is None else own_goal(row, goals.get(goal_id))
            if goal is not None and was_looked_at(goal, before=row.ended_at):
                continue
            named = None if goal is None else goal.pk
            works += make_works(trail, (told_by(goal, row), *others), conversation=row.pk, goal=named)
        yield row.pk, works


def own_goal(row: Conversation, goal: Goal | None) -> Goal | None:
    """The goal, if it is that of the conversation's holder."""
    return goal if goal is not None and holder_of(goal) == holder_of(row) else None


def told_by(goal: Goal | None, row: Conversation) -> str:
    """What a goal of the conversation's holder says of a work in it: nothing in another channel, or in quarantine."""
    return "" if goal is None or goal.quarantined or goal.channel != row.channel else goal.text


def was_looked_at(goal: Goal, *, before: datetime | None) -> bool:
    """Whether it was while the conversation was open: with what had been called in that."""
    looked_at = goal.patterns_extracted_at
    return looked_at is not None and before is not None and looked_at < before


def trails_in(account_id: UUID, owners: Mapping[str, Owner]) -> dict[str, dict[UUID | None, Trail]]:
    """By conversation and goal, those that are patterns: of what was called for the conversation's owner (`owners`)."""
    called = ToolInvocation.objects.filter(account_id=account_id, conversation_id__in=list(owners))
    trails: dict[tuple[str, UUID | None], Trail] = defaultdict(Trail)
    for call in in_order(called):
        if call.is_for(owners[call.place]):
            trails[call.place, call.goal].add(call.name, task_type=call.task_type, success=call.success)
    found: dict[str, dict[UUID | None, Trail]] = defaultdict(dict)
    for (place, goal_id), trail in trails.items():
        if trail.is_pattern:
            found[place][goal_id] = trail
    return found


class Call(NamedTuple):
    """A tool that was called in a conversation, for a goal if any, and by whom."""

    agent_id: str
    user_id: str
    place: str
    goal: UUID | None
    name: str
    task_type: str
    success: bool | None

    def is_for(self, owner: Owner) -> bool:
        """Whether it was made for the owner's user; where none was named, by the owner's agent."""
        return self.user_id == owner.user_id if self.user_id else self.agent_id == owner.agent_id


def in_order(called: Any) -> Iterator[Call]:
    """First called first; read piece by piece, as there may be many."""
    columns = ("agent_id", "user_id", "conversation_id", "record__goal_id")
    rows = called.order_by("timestamp", "id").values_list(*columns, "tool_name", "task_type", "success")
    return map(Call._make, rows.iterator())


def read_goals(account_id: UUID, goal_ids: Collection[UUID]) -> dict[UUID, Goal]:
    """No query for none."""
    rows: Any = Goal.objects
    whose = ("account", "agent_id", "user_id", "channel")
    found = rows.filter(account_id=account_id, pk__in=goal_ids)
    found = found.only(*whose, "text", "quarantined", "patterns_extracted_at")
    return {goal.pk: goal for goal in found} if goal_ids else {}


def first_messages(rows: Sequence[Conversation]) -> dict[UUID, str]:
    """The beginning of what a user said first, by conversation (its row): of turns of its holder, in its channel. No
    query for none."""
    if not rows:
        return {}
    turns: Any = Turn.objects.filter(account_id=rows[0].account_id, log_id__in=[row.pk for row in rows])
    said = turns.filter(role=Turn.Role.USER, index__lt=FIRST_TURNS, quarantined=False)
    # as `holder` has it: the user's, or the agent's where there is none
    said = said.filter(~Q(user_id="") | Q(agent_id=F("log__agent_id")))
    said = said.filter(user_id=F("log__user_id"), channel=F("log__channel"))
    first = said.order_by("log_id", "index").distinct("log_id")
    return dict(first.values_list("log_id", Left("text", LOOKED_AT)))


def make_works(trail: Trail, told: Iterable[str], *, conversation: UUID | None, goal: UUID | None) -> list[Work]:
    """One, or none where nobody can say what it was for."""
    pattern = Pattern(steps=tuple(trail.steps), task=tell_task(told), task_type=trail.task_type)
    if not pattern.task and not pattern.task_type:
        return []
    return [Work(pattern=pattern, conversation=conversation, goal=goal)]


def next_goals(stretch: Stretch) -> list[Source]:
    """The next ones that were completed."""
    rows = next_rows(Goal.objects.filter(status=Goal.Status.COMPLETED), "completed_at", stretch)
    works = {goal: found for of_account in by_account(rows).values() for goal, found in works_for(of_account)}
    return [
        Source(row=row, owner=owner_of(row), ended_at=row.completed_at, success=True, works=works.get(row.pk, ()))
        for row in rows
    ]


def works_for(rows: Sequence[Goal]) -> Iterator[tuple[UUID, list[Work]]]:
    """By goal, of goals of one account: what its holder called for it where nobody stated an outcome."""
    account_id, goals = rows[0].account_id, {row.pk: row for row in rows}
    owners = {row.pk: owner_of(row) for row in rows}
    records = TurnRecord.objects.filter(account_id=account_id, goal_id__in=list(goals))
    places = unstated_places(account_id, set(records.order_by().values_list("conversation_id", flat=True).distinct()))
    called = ToolInvocation.objects.filter(account_id=account_id, record__goal_id__in=list(goals))
    trails: dict[UUID, Trail] = defaultdict(Trail)
    last: dict[UUID, UUID] = {}
    for call in in_order(called):
        if call.goal is not None and call.place in places and call.is_for(owners[call.goal]):
            trails[call.goal].add(call.name, task_type=call.task_type, success=call.success)
            last[call.goal] = places[call.place]
    for goal_id, trail in trails.items():
        if trail.is_pattern:
            told = "" if goals[goal_id].quarantined else goals[goal_id].text
            yield goal_id, make_works(trail, [told], conversation=last[goal_id], goal=goal_id)


def unstated_places(account_id: UUID, conversation_ids: Collection[str]) -> dict[str, UUID]:
    """Those conversations of whose outcome nobody said anything, with their rows. No query for none."""
    rows = Conversation.objects.filter(account_id=account_id, conversation_id__in=conversation_ids, outcome="")
    return dict(rows.values_list("conversation_id", "pk")) if conversation_ids else {}

"""Old structured turns for tests, and the job that compresses them, at a given time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, JobRun, Link, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.records.record import RecordedTurn
from tests.memory.episodes import NOW
from tests.memory.records import add_record

CHATTER = "Great question! Let me walk you through the things that I looked at along the way. Hope this helps."
WEEK = timedelta(days=7)
LATER = NOW + timedelta(days=20)
MUCH_LATER = NOW + timedelta(days=200)


def long_turn(number: int, *, status: str = "succeeded") -> Slots:
    """Return all four slots, with chatter that compression may remove."""
    decided = Point(what=f"retry table t_{number} in batches of 500", why="the lock timed out")
    return Slots(
        observation=Observation(text=f"{CHATTER} The import of table t_{number} failed with E12{number:02}. {CHATTER}"),
        reasoning=Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=Rationale(decisions=[decided])),
        action=Action(
            text=f"{CHATTER} Ran it again. {CHATTER}",
            calls=[Call(tool="import_table", arguments={"table": f"t_{number}"}, result="ok, 81,204 rows")],
        ),
        outcome=Outcome(status=status, text=f"Table t_{number} has all of its 81,204 rows. {CHATTER}"),
    )


def work(owner: Owner, count: int, *, start: int = 0, **fields: Any) -> list[RecordedTurn]:
    """Record turns `start` and following of a conversation, a minute apart."""
    now: datetime = fields.pop("now", NOW)
    return [
        add_record(owner, slots=long_turn(number), now=now + timedelta(minutes=number), **fields)
        for number in range(start, start + count)
    ]


def compress(now: datetime = LATER, *, account: Account | None = None, dry_run: bool = False) -> JobRun:
    run = JobRun(job="compress", account=account, dry_run=dry_run)
    return run_at_once(JOBS["compress"], run, clock=lambda: now)


def levels(conversation_id: str = "chat-1") -> list[int]:
    rows = TurnRecord.objects.filter(conversation_id=conversation_id).order_by("number")
    return list(rows.values_list("level", flat=True))


def slots_of(record_id: UUID, **conditions: Any) -> list[TurnSlot]:
    rows = TurnSlot.objects.filter(record_id=record_id, **conditions)
    return list(rows.order_by("level", "id"))


def episodes(**conditions: Any) -> list[WorkEpisode]:
    rows = WorkEpisode.objects.filter(**conditions)
    return list(rows.order_by("first_number", "level"))


def targets(source_id: UUID, link_type: str) -> Sequence[UUID]:
    rows = Link.objects.filter(source_id=source_id, type=link_type).order_by("target_id")
    return list(rows.values_list("target_id", flat=True))

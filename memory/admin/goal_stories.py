"""A goal's page as its story: where it stands, and what was done for it, card by card.

Cards are read sort by sort, so a page costs the same queries whatever is on it; each sort only for who may see it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.http import urlencode

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.goal_timelines import (
    BEGINNING,
    EVENTS,
    Place,
    Sort,
    Stretch,
    read_place,
    read_stretch,
)
from memory.admin.goal_trees import OtherGoal, other_goal
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible
from memory.admin.turn_cards import Sight, TurnCard, read_turn_cards
from memory.admin.work_cards import WorkCard, read_work_cards
from memory.models import Goal, Link

RESULT_CHARACTERS = 10_000
STORY = "story"
"""The anchor of the story on its page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to the goal itself; `other` is the goal that it happened with."""

    told: str
    other: OtherGoal | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An entry of the story: exactly one of the four is set. `day` is, where a new day begins."""

    at: datetime
    day: date | None
    turn: TurnCard | None = None
    work: WorkCard | None = None
    artifact: ArtifactCard | None = None
    event: Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A page of it, and the addresses of its neighbours. `is_part`: there is more than this page."""

    cards: Sequence[Card]
    earlier: str
    later: str
    is_part: bool


def read_story(request: HttpRequest, goal: Goal, *, now: datetime) -> Story:
    """The page that the address asks for, else the last one."""
    sight = Sight.of(request)
    before, after = (read_place(request.GET.get(name, "")) for name in ("before", "after"))
    if "beginning" in request.GET:
        after = BEGINNING
    stretch = read_stretch(goal, sorts_of(sight), now=now, before=before, after=after)
    return Story(
        cards=list(make_cards(stretch, read_rows(goal, stretch, sight))),
        earlier=address(before=stretch.earlier),
        later=address(after=stretch.later),
        is_part=stretch.earlier is not None or stretch.later is not None,
    )


def address(**places: Place | None) -> str:
    """Of a neighbouring page; empty where there is none."""
    named = {name: str(place) for name, place in places.items() if place is not None}
    return f"?{urlencode(named)}#{STORY}" if named else ""


def sorts_of(sight: Sight) -> list[Sort]:
    seen = ((Sort.TURN, sight.turns), (Sort.EPISODE, sight.episodes), (Sort.ARTIFACT, sight.artifacts))
    return [*(sort for sort, is_seen in seen if is_seen), *EVENTS]


def read_rows(goal: Goal, stretch: Stretch, sight: Sight) -> dict[Sort, Mapping[Any, Any]]:
    """What the entries are, by sort and id."""
    account_id = goal.account_id
    artifact_ids = stretch.ids(Sort.ARTIFACT)
    others = read_others(account_id, [*stretch.ids(Sort.BLOCKED), *stretch.ids(Sort.PART)])
    return {
        Sort.TURN: read_turn_cards(account_id, stretch.ids(Sort.TURN), sight),
        Sort.EPISODE: read_work_cards(account_id, stretch.ids(Sort.EPISODE), sight),
        Sort.ARTIFACT: read_artifacts(account_id, artifact_ids=artifact_ids) if artifact_ids else {},
        Sort.BLOCKED: {id_: Event(told="Blocked by", other=ends[1]) for id_, ends in others.items()},
        Sort.PART: {id_: Event(told="Got a part", other=ends[0]) for id_, ends in others.items()},
        Sort.SET: {goal.pk: Event(told="Set as a goal")},
        Sort.DUE: {goal.pk: Event(told="Its deadline passed")},
        Sort.ENDED: {goal.pk: Event(told=goal.get_status_display(), text=tell_result(goal))},
    }


def read_others(account_id: UUID, link_ids: Sequence[UUID]) -> dict[UUID, tuple[OtherGoal, OtherGoal]]:
    """The goals at both ends of the links."""
    if not link_ids:
        return {}
    links = Link.objects.filter(account_id=account_id, pk__in=link_ids)
    ends = [
        column
        for end in ("source", "target")
        for column in (f"{end}_id", Left(f"{end}__text", EXCERPT_CHARACTERS + 1), f"{end}__goal__status")
    ]
    return {row[0]: (other_goal(*row[1:4]), other_goal(*row[4:])) for row in links.values_list("id", *ends)}


def tell_result(goal: Goal) -> str:
    return mark_invisible(goal.result[:RESULT_CHARACTERS])


def make_cards(stretch: Stretch, rows: Mapping[Sort, Mapping[Any, Any]]) -> Iterator[Card]:
    """In order; an entry whose row went between the two statements is left out."""
    names = {Sort.TURN: "turn", Sort.EPISODE: "work", Sort.ARTIFACT: "artifact"}
    last_day: date | None = None
    for entry in stretch.entries:
        shown = rows[entry.sort].get(entry.id)
        if shown is not None:
            day = entry.at.date()
            yield Card(at=entry.at, day=day if day != last_day else None, **{names.get(entry.sort, "event"): shown})
            last_day = day


def describe_state(goal: Goal, *, now: datetime) -> dict[str, Any]:
    """Where the goal stands, for the head of its page."""
    is_open = goal.status in Goal.OPEN
    return {
        "is_open": is_open,
        "is_overdue": is_open and goal.deadline is not None and goal.deadline < now,
        "result": tell_result(goal),
        "holder": mark_invisible(", ".join(filter(None, [goal.agent_id, goal.user_id, goal.channel]))),
    }

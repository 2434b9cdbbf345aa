"""Requests to forget something, for the inbox: the facts that are retracted, and the turns that still say them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memory.admin.beliefs import NamedLink
from memory.admin.columns import change_url, turn_url
from memory.admin.text import excerpt_of
from memory.models import Fact, Turn
from memory.owner import Owner
from memory.services.entities.resolve import owner_of_row
from memory.services.extraction.forget import Covered, find_forgotten, find_requests

MAX_SHOWN = 20

NONE_RETRACTED = (
    "No fact was retracted for it: none fits, too many do, or the account does not retract what users take back."
)
STILL_SAID = "What fits it is retracted, but turns still say it."
ALL_BURIED = "What fits it is retracted, and its turns are buried. Something else may still say it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The retracted facts that a request covers, and the turns that they rest on and that searches still find."""

    facts: Sequence[Fact]
    turns: Sequence[Turn]

    @property
    def note(self) -> str:
        if not self.facts:
            return NONE_RETRACTED
        return STILL_SAID if self.turns else ALL_BURIED


def read_forgotten(asking: Sequence[Turn], *, now: datetime) -> dict[UUID, Forgotten]:
    """Return what became of what each of the turns asks to be forgotten. Three statements for each of their owners."""
    by_owner: dict[Owner, list[Turn]] = defaultdict(list)
    for turn in asking:
        by_owner[owner_of_row(turn)].append(turn)
    found: dict[UUID, Forgotten] = {}
    for owner, turns in by_owner.items():
        asked = find_requests(turns)
        wider = [replace(each, request=each.request.wider) if each.request.wider else each for each in asked]
        covered = find_forgotten(owner, [*asked, *wider], status=Fact.Status.RETRACTED, now=now)
        meant: dict[UUID, list[int]] = {turn.pk: [] for turn in turns}
        for place, each in enumerate(asked):
            meant[each.turn.pk].append(place if covered.facts[place] else place + len(asked))
        found |= {turn_id: collect_forgotten(covered, places) for turn_id, places in meant.items()}
    return found


def collect_forgotten(covered: Covered, places: Sequence[int]) -> Forgotten:
    """Return what the requests at these places cover, each fact and each turn once."""
    facts = {fact.pk: fact for place in places for fact in covered.facts[place]}
    turns = {turn.pk: turn for place in places for turn in covered.turns_of(place) if not turn.buried}
    return Forgotten(
        facts=list(facts.values())[:MAX_SHOWN], turns=sorted(turns.values(), key=lambda turn: turn.pk)[:MAX_SHOWN]
    )


def link_facts(found: Forgotten) -> list[NamedLink]:
    return [NamedLink(name=excerpt_of(fact.text), type="", url=change_url("fact", fact.pk)) for fact in found.facts]


def link_turns(found: Forgotten, asking: Turn) -> list[NamedLink]:
    def name(turn: Turn) -> str:
        where = "" if turn.log_id == asking.log_id else " of another conversation"
        return f"turn {turn.index}{where}"

    return [NamedLink(name=name(turn), type="", url=turn_url(turn.log_id, turn.index)) for turn in found.turns]

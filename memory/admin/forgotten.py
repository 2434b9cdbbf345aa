"""Requests to forget something, for the inbox: the facts that are retracted, and the turns that still say them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.admin.beliefs import NamedLink
from memory.admin.columns import change_url, turn_url
from memory.admin.text import excerpt_of
from memory.models import Fact, Turn
from memory.services.entities.resolve import owner_of_row
from memory.services.extraction.forget import find_forgotten, find_requests

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


def read_forgotten(asking: Turn, *, now: datetime) -> Forgotten:
    """Return what became of what a turn asks to be forgotten. A few statements."""
    asked = find_requests([asking])
    wider = [replace(each, request=each.request.wider) if each.request.wider else each for each in asked]
    covered = find_forgotten(owner_of_row(asking), [*asked, *wider], status=Fact.Status.RETRACTED, now=now)
    facts: dict[Any, Fact] = {}
    turns: dict[Any, Turn] = {}
    for place in range(len(asked)):
        meant = place if covered.facts[place] else place + len(asked)
        facts |= {fact.pk: fact for fact in covered.facts[meant]}
        turns |= {turn.pk: turn for turn in covered.turns_of(meant) if not turn.buried}
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

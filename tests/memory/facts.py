"""Facts for tests: learned through the service without the embedder."""

from datetime import datetime, timedelta
from typing import Any

from memory.models import Fact, FactVersion
from memory.owner import Owner
from memory.services.facts.learn import FactDraft, LearnedFact, learn_fact
from memory.services.facts.store import find_fact, visible_facts
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction

CLAIM = "Ana lives in Berlin."


def day(number: float) -> datetime:
    """Return the time so many days after NOW."""
    return NOW + timedelta(days=number)


def fact_draft(claim: str = CLAIM, *, angle: float | None = None, **fields: Any) -> FactDraft:
    """`fields` are those of the draft; with an `angle`, its vector is known."""
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return FactDraft(claim=claim, own=own, **fields)


def learn_claim(owner: Owner, claim: str = CLAIM, *, now: datetime = NOW, **fields: Any) -> LearnedFact:
    return learn_fact(owner, fact_draft(claim, **fields), embedded=NOTHING, now=now)


def know(owner: Owner, claim: str = CLAIM, *, now: datetime = NOW, **fields: Any) -> Fact:
    return learn_claim(owner, claim, now=now, **fields).fact


def claims(owner: Owner, *, now: datetime = NOW, **asked: Any) -> list[str]:
    """Return the claims that are true now, oldest first."""
    return [fact.text for fact in visible_facts(owner, now=now, **asked).order_by("id")]


def reread(owner: Owner, fact: Fact) -> Fact:
    return find_fact(owner, fact.id)


def versions_of(fact: Fact) -> list[FactVersion]:
    return list(FactVersion.objects.filter(fact_id=fact.id).order_by("number"))

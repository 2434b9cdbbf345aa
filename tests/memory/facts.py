"""Facts for tests: learnt through the service without the embedder, about entities made as they are."""

from datetime import datetime, timedelta
from typing import Any

from memory.identity import entity_identity
from memory.models import Entity, Fact, FactVersion, Kind
from memory.owner import Owner
from memory.services.facts import FactDraft, Learnt, find_fact, learn_fact, visible_facts
from memory.services.memories import OwnVector, store_memories
from tests.memory.episodes import MODEL, NOTHING, NOW, direction

CLAIM = "Ana lives in Berlin."


def day(number: float) -> datetime:
    """So many days after NOW."""
    return NOW + timedelta(days=number)


def fact_draft(claim: str = CLAIM, *, angle: float | None = None, **fields: Any) -> FactDraft:
    """`fields` are those of the draft; with an `angle`, its vector is known."""
    own = None if angle is None else OwnVector(model=MODEL, vector=direction(angle))
    return FactDraft(claim=claim, own=own, **fields)


def tell(owner: Owner, claim: str = CLAIM, *, now: datetime = NOW, **fields: Any) -> Learnt:
    return learn_fact(owner, fact_draft(claim, **fields), embedded=NOTHING, now=now)


def know(owner: Owner, claim: str = CLAIM, *, now: datetime = NOW, **fields: Any) -> Fact:
    return tell(owner, claim, now=now, **fields).fact


def claims(owner: Owner, *, now: datetime = NOW, **asked: Any) -> list[str]:
    """What is true, oldest first."""
    return [fact.text for fact in visible_facts(owner, now=now, **asked).order_by("id")]


def reread(owner: Owner, fact: Fact) -> Fact:
    return find_fact(owner, fact.id)


def versions_of(fact: Fact) -> list[FactVersion]:
    return list(FactVersion.objects.filter(fact_id=fact.id).order_by("number"))


def make_entity(owner: Owner, name: str = "Ana", *, type: str = "person", aliases: tuple[str, ...] = ()) -> Entity:  # noqa: A002 - the documented name of the field
    entity = Entity(
        kind=Kind.ENTITY,
        identity=entity_identity(owner, type=type, name=name),
        text=" ".join([name, *aliases]),
        name=name,
        type=type,
        aliases=list(aliases),
        event_time=NOW,
    )
    store_memories(owner, [entity], embedded=NOTHING, own={}, now=NOW)
    return entity

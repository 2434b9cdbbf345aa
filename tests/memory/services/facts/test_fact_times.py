"""Validity and belief times of facts: after any history of operations, reads match a naive list of beliefs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Conflict, MemoryServiceError, Unprocessable
from memory.models import Fact
from memory.owner import Owner
from memory.services.facts.learn import learn_fact
from memory.services.facts.store import visible_facts
from memory.services.facts.supersede import (
    correct_fact,
    reject_fact,
    replace_wrong_fact,
    retract_fact,
    supersede_fact,
)
from tests.memory.episodes import NOTHING
from tests.memory.facts import fact_draft
from tests.properties import examples

pytestmark = pytest.mark.django_db

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = range(7)


def time_of(number: int) -> datetime:
    return BEGINNING + timedelta(days=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Values that were believed from `recorded` until `retracted`."""

    claim: str
    confidence: float
    starts: datetime | None
    ends: datetime | None
    recorded: datetime
    retracted: datetime | None = None
    is_stated: bool = True

    @property
    def stated_from(self) -> datetime | None:
        return self.starts if self.is_stated else None

    def without_late_start(self) -> "Belief":
        """Drop the time when it was said as its start, if it was over by then."""
        is_late = not self.is_stated and self.starts is not None and self.ends is not None and self.ends <= self.starts
        return replace(self, starts=None) if is_late else self

    def holds(self, as_of: datetime, known_at: datetime | None) -> bool:
        is_true = (self.starts is None or self.starts <= as_of) and (self.ends is None or as_of < self.ends)
        if known_at is None:
            return is_true and self.retracted is None
        return is_true and self.recorded <= known_at and (self.retracted is None or known_at < self.retracted)

    @property
    def values(self) -> tuple[str, float, datetime | None, datetime | None]:
        return self.claim, self.confidence, self.starts, self.ends


@dataclass(slots=True, kw_only=True)
class NaiveFact:
    """A fact and its beliefs. `known_as` is what identifies it: claim and times; None if only its id does."""

    id: UUID
    status: str = "active"
    beliefs: list[Belief] = field(default_factory=list)
    known_as: tuple[Any, ...] | None = None
    closed: tuple[Belief, Belief] | None = None
    """The beliefs before and after a successor ended it."""
    successors: list["NaiveFact"] = field(default_factory=list)
    was_wrong: bool = False

    @property
    def last(self) -> Belief:
        return self.beliefs[-1]

    @property
    def sameness(self) -> tuple[Any, ...]:
        last = self.last
        return (last.claim, None, None) if last.ends is None else (last.claim, last.stated_from, last.ends)

    def end(self, status: str, at: datetime) -> None:
        self.status, self.known_as = status, None
        self.beliefs[-1] = with_end(self.last, max(at, self.last.recorded))

    @property
    def is_replaced(self) -> bool:
        return self.was_wrong or any(each.status in ("active", "superseded") for each in self.successors)

    def reopened_values(self) -> dict[str, Any]:
        """Return the changes of the present belief if the end that its successor made is undone."""
        if self.closed is None or self.last.retracted is not None or self.last.ends != self.closed[1].ends:
            return {}
        before, after = self.closed
        is_dropped = before.starts != after.starts and self.last.starts == after.starts
        return {"ends": before.ends, **({"starts": before.starts, "is_stated": False} if is_dropped else {})}

    def believe(self, at: datetime, **changes: Any) -> None:
        at = max(at, self.last.recorded)
        former = self.last
        if former.retracted is None:
            self.beliefs[-1] = with_end(former, at)
        self.beliefs.append(replace(former, recorded=at, retracted=None, **changes).without_late_start())


def with_end(belief: Belief, at: datetime) -> Belief:
    return replace(belief, retracted=at)


def check_span(starts: datetime | None, ends: datetime | None) -> None:
    if starts is not None and ends is not None and ends <= starts:
        raise Unprocessable("ends before it begins")


@dataclass(slots=True, kw_only=True)
class NaiveModel:
    facts: list[NaiveFact] = field(default_factory=list)
    rejected: set[str] = field(default_factory=set)

    def true_at(self, as_of: datetime, known_at: datetime | None) -> list[tuple[Any, ...]]:
        beliefs = [belief for fact in self.facts for belief in fact.beliefs if belief.holds(as_of, known_at)]
        return sorted((belief.values for belief in beliefs), key=str)

    def at(self, number: int) -> NaiveFact:
        """One of the active ones, if there are any; of all, for a negative number."""
        active = [fact for fact in self.facts if fact.status == "active" and number >= 0]
        return (active or self.facts)[number % len(active or self.facts)]

    def active(self, number: int) -> NaiveFact:
        fact = self.at(number)
        if fact.status != "active":
            raise Conflict(fact.status)
        return fact

    def believed(self, number: int) -> NaiveFact:
        fact = self.at(number)
        if fact.last.retracted is not None:
            raise Conflict(fact.status)
        return fact

    def learn(self, draft: dict[str, Any], *, fact_id: UUID, at: datetime, is_stated: bool = True) -> NaiveFact:
        if draft["claim"] in self.rejected:
            raise Conflict("rejected")
        if draft["starts"] is None:
            draft, is_stated = draft | {"starts": successor_start(draft, at)}, False
        new = NaiveFact(id=fact_id, beliefs=[Belief(recorded=at, is_stated=is_stated, **draft)])
        known = self.known(new.sameness)
        if known is None:
            new.known_as = new.sameness
            self.facts.append(new)
            return new
        starts = draft["starts"]
        is_earlier = known.last.starts is not None and (starts or at) < known.last.starts
        if draft["confidence"] > known.last.confidence or is_earlier:
            confidence = max(draft["confidence"], known.last.confidence)
            beginning = {"starts": starts, "is_stated": is_stated} if is_earlier else {}
            known.believe(at, confidence=confidence, **beginning)
        return known

    def known(self, sameness: tuple[Any, ...]) -> NaiveFact | None:
        return next((each for each in self.facts if each.known_as == sameness), None)

    def name(self, fact: NaiveFact) -> None:
        """Let a closed fact be known by its times, unless another one is."""
        if fact.status == "active":
            fact.known_as = fact.sameness
        else:
            is_other = fact.last.ends is None or self.known(fact.sameness) not in (None, fact)
            fact.known_as = None if is_other else fact.sameness

    def supersede(self, number: int, draft: dict[str, Any], *, fact_id: UUID, at: datetime) -> None:
        old = self.active(number)
        at = max(at, old.last.recorded)
        starts = draft["starts"] or at
        if draft["claim"] in self.rejected:
            raise Conflict("rejected")
        if old.last.stated_from is not None and starts <= old.last.stated_from:
            old.end("superseded", at)
        else:
            if old.last.ends is None or old.last.ends > starts:
                before = old.last
                old.believe(at, ends=starts)
                old.closed = before, old.last
            old.status = "superseded"
            self.name(old)
        new = self.learn(draft | {"starts": successor_start(draft, starts)}, fact_id=fact_id, at=at)
        old.successors += [new] * (new is not old)

    def replace(self, number: int, draft: dict[str, Any], *, fact_id: UUID, at: datetime) -> None:
        old = self.active(number)
        at = max(at, old.last.recorded)
        if draft["claim"] in self.rejected:
            raise Conflict("rejected")
        old.end("superseded", at)
        is_stated = draft["starts"] is not None or old.last.is_stated
        draft = draft | {"starts": successor_start(draft, old.last.starts)}
        new = self.learn(draft, fact_id=fact_id, at=at, is_stated=is_stated)
        old.was_wrong |= new is not old

    def correct(self, number: int, changes: dict[str, Any], *, at: datetime) -> None:
        fact = self.believed(number)
        values = dict(zip(("claim", "confidence", "starts", "ends"), fact.last.values, strict=True))
        others = {name: value for name, value in changes.items() if value != values[name]}
        if not others:
            return
        if others.get("claim") in self.rejected:
            raise Conflict("rejected")
        beginning: dict[str, Any] = {"is_stated": True} if "starts" in others else {}
        after = NaiveFact(id=fact.id, beliefs=[replace(fact.last, **others, **beginning).without_late_start()])
        check_span(after.last.starts, after.last.ends)
        if fact.status == "active" and self.known(after.sameness) not in (None, fact):
            raise Conflict("the same")
        fact.believe(at, **others, **beginning)
        self.name(fact)

    def retract(self, number: int, *, at: datetime) -> None:
        fact = self.believed(number)
        fact.end("retracted", at)
        self.reopen([fact], at=at)

    def reject(self, number: int, *, at: datetime) -> None:
        claim = self.believed(number).last.claim
        self.rejected.add(claim)
        rejected = [fact for fact in self.facts if fact.last.claim == claim and fact.last.retracted is None]
        for fact in rejected:
            fact.end("rejected", at)
        self.reopen(rejected, at=at)

    def reopen(self, ended: list[NaiveFact], *, at: datetime) -> None:
        enders = [id(fact) for fact in ended if not fact.is_replaced]
        for fact in sorted(self.facts, key=lambda each: each.id):
            is_theirs = any(id(each) in enders for each in fact.successors)
            if not is_theirs or fact.status != "superseded" or fact.is_replaced or fact.last.claim in self.rejected:
                continue
            belief = replace(fact.last, **fact.reopened_values())
            again = NaiveFact(id=fact.id, beliefs=[belief])
            if self.known(again.sameness) in (None, fact):
                fact.believe(max(at, fact.last.retracted or at), **fact.reopened_values())
                fact.status = "active"
                self.name(fact)


def successor_start(draft: dict[str, Any], starts: datetime | None) -> datetime | None:
    """Return the start of a successor: none if it is over by then and has no start of its own."""
    is_over = starts is not None and draft["ends"] is not None and draft["ends"] <= starts
    begins: datetime | None = draft["starts"]
    return begins or (None if is_over else starts)


@st.composite
def drafts(draw: st.DrawFn) -> dict[str, Any]:
    starts = draw(st.sampled_from([None, *DAYS]))
    lasts = draw(st.sampled_from([None, None, 1, 3]))
    ends = None if lasts is None else (starts or 0) + lasts
    return {
        "claim": draw(st.sampled_from(["Ana lives in Berlin", "Ana lives in Munich", "Ana owns a boat"])),
        "confidence": draw(st.sampled_from([0.5, 0.7, 0.95])),
        "starts": None if starts is None else time_of(starts),
        "ends": None if ends is None else time_of(ends),
    }


changes = st.fixed_dictionaries(
    {},
    optional={
        "claim": st.sampled_from(["Ana lives in Berlin", "Ana lives in Hamburg"]),
        "confidence": st.sampled_from([0.5, 0.95]),
        "starts": st.none() | st.sampled_from(DAYS).map(time_of),
        "ends": st.none() | st.sampled_from(DAYS).map(time_of),
    },
)
numbers = st.sampled_from([0, 0, 0, 1, 1, 2, -1])
steps = st.lists(
    st.tuples(
        # mostly at the time of the previous step or later; sometimes a clock is behind
        st.sampled_from([0, 0, 1, 1, 2, -1]),
        st.one_of(
            st.tuples(st.just("learn"), drafts()),
            st.tuples(st.just("supersede"), numbers, drafts()),
            st.tuples(st.just("replace"), numbers, drafts()),
            st.tuples(st.just("correct"), numbers, changes),
            st.tuples(st.sampled_from(["retract", "retract", "retract", "reject"]), numbers),
        ),
    ),
    min_size=5,
    max_size=12,
)
times = st.tuples(st.sampled_from(DAYS), st.sampled_from([None, *DAYS]))


def draft_of(draft: dict[str, Any], fact_id: UUID) -> Any:
    return fact_draft(
        draft["claim"], confidence=draft["confidence"], valid_from=draft["starts"], valid_to=draft["ends"], id=fact_id
    )


COLUMNS = {"starts": "valid_from", "ends": "valid_to"}


def act(owner: Owner, model: NaiveModel, step: tuple[Any, ...], *, fact_id: UUID, at: datetime) -> None:
    """Run the step in the database, on the fact that the model chooses."""
    name, *rest = step
    if name == "learn":
        learn_fact(owner, draft_of(rest[0], fact_id), embedded=NOTHING, now=at)
        return
    meant = model.at(rest[0]).id
    if name in ("supersede", "replace"):
        follow = supersede_fact if name == "supersede" else replace_wrong_fact
        follow(owner, meant, draft_of(rest[1], fact_id), embedded=NOTHING, now=at)
    elif name == "correct":
        named = {COLUMNS.get(column, column): value for column, value in rest[1].items()}
        correct_fact(owner, meant, changes=named, embedded=NOTHING, now=at)
    else:
        (retract_fact if name == "retract" else reject_fact)(owner, meant, now=at)


def act_naively(model: NaiveModel, step: tuple[Any, ...], *, fact_id: UUID, at: datetime) -> None:
    name, *rest = step
    more = {"fact_id": fact_id} if name in ("learn", "supersede", "replace") else {}
    getattr(model, name)(*rest, **more, at=at)


def refusal(act: Callable[[], None]) -> type[MemoryServiceError] | None:
    try:
        with transaction.atomic():
            act()
    except MemoryServiceError as err:
        return type(err)
    return None


def values(fact: Fact) -> tuple[Any, ...]:
    return fact.text, fact.confidence, fact.valid_from, fact.valid_to


@examples(15)
@given(first=drafts(), history=steps, asked=st.lists(times, min_size=10, max_size=16, unique=True))
def test_reads_at_any_two_times_match_a_naive_list_of_beliefs(
    owner: Owner, first: dict[str, Any], history: list[tuple[int, tuple[Any, ...]]], asked: list[tuple[int, int | None]]
) -> None:
    # another agent for each history
    owner, model, now = replace(owner, agent_id=uuid4().hex), NaiveModel(), 2
    for later, step in [(0, ("learn", first)), *history]:
        now = max(0, now + later)
        fact_id = uuid4()
        refused = refusal(partial(act, owner, model, step, fact_id=fact_id, at=time_of(now)))
        assert refused is refusal(partial(act_naively, model, step, fact_id=fact_id, at=time_of(now)))

    for day, known in asked:
        as_of, known_at = time_of(day), None if known is None else time_of(known)
        found = visible_facts(owner, as_of=as_of, known_at=known_at, now=time_of(now))
        assert sorted(map(values, found), key=str) == model.true_at(as_of, known_at)

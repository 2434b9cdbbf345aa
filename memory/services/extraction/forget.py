"""Carrying out what users ask to be forgotten ("Forget what I said about my address").

The facts that rest on what this user said before alone, and say what is to be forgotten, are retracted: nothing is
erased, and they are learned again once the user says it again. The turns that say it and the turn that asks are buried
unless they say something else: no search finds them, and lists show them. Erasure is for staff and the API.

Where no fact fits, too many do, a turn that says more still says it, or the account does not prefer what is new, the
request waits in the inbox of staff (`ForgetState.OPEN` in the metadata of the turn).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction

from memory.audit import record_audit
from memory.errors import require_found
from memory.extraction.forget_requests import ForgetRequest, only_asks_to_forget, read_forget_requests
from memory.extraction.knowledge import Chunk, ChunkTurn
from memory.extraction.orders import gives_orders
from memory.extraction.rules import RuleExtractor
from memory.extraction.rules.names import personal_name
from memory.extraction.rules.subjects import THE_USER
from memory.extraction.statement_words import says_no_more
from memory.models import Fact, Kind, Link, Turn
from memory.models.memory import EXTRACTED_SOURCE
from memory.owner import Owner
from memory.services.entities.resolve import filter_by_holder
from memory.services.facts.contradict import MAX_CANDIDATES, find_policy
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.store import end_beliefs
from memory.services.memories.correct import mark_memories
from memory.services.memories.links import DERIVED_FROM
from memory.services.memories.store import audit_memories
from memory.services.profiles import forget_preferences

MAX_FORGOTTEN = 20
"""Facts that one request retracts. Where more fit, staff decide."""
FORGET_KEY = "forget_request"
"""The key in the metadata of a turn that asked to forget something."""


class ForgetState(StrEnum):
    """The state of a request: it was carried out, staff have to look at it, or did so."""

    DONE = "done"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedToForget:
    """A turn that asks to forget something, the request, and the claims that rules make of what is taken back."""

    turn: Turn
    request: ForgetRequest
    claims_stated: tuple[str, ...]

    @property
    def speaker(self) -> str:
        return personal_name(as_chunk_turn(self.turn)) or THE_USER


def find_requests(turns: Sequence[Turn]) -> list[AskedToForget]:
    """Return what users ask to be forgotten in these turns. No statement."""
    return [
        AskedToForget(turn=turn, request=request, claims_stated=claims_of(turn, request.stated))
        for turn in turns
        if turn.role == Turn.Role.USER and not gives_orders(turn.text)
        for request in read_forget_requests(turn.text)
    ]


def as_chunk_turn(turn: Turn, text: str = "") -> ChunkTurn:
    return ChunkTurn(index=turn.index, role=turn.role, speaker=turn.name, text=text, timestamp=turn.event_time)


def claims_of(turn: Turn, stated: str) -> tuple[str, ...]:
    if not stated:
        return ()
    chunk = Chunk(turns=[as_chunk_turn(turn, f"{stated[0].upper()}{stated[1:]}.")])
    extraction = RuleExtractor().extract(chunk, meter=lambda usage: None, deadline_seconds=1)
    return tuple(fact.claim for fact in extraction.facts)


def find_forgotten(owner: Owner, asked: Sequence[AskedToForget], *, now: datetime) -> dict[int, list[Fact]]:
    """Return the believed facts that each request covers, by its place. Two statements; none without a request.

    They are the owner's, were extracted, and rest on turns alone that the same speaker said before the request.
    """
    if not asked:
        return {}
    rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now).filter(filter_by_holder(owner))
    believed = rows.filter(status=Fact.Status.ACTIVE, source=EXTRACTED_SOURCE, pinned=False)
    newest = list(believed.order_by("-recorded_at", "-id")[:MAX_CANDIDATES])
    evidence = read_evidence(owner.account_id, [fact.id for fact in newest])
    return {
        place: [
            fact
            for fact in newest
            if is_said_before(evidence.get(fact.id, []), each.turn)
            and each.request.covers(fact.text, speaker=each.speaker, claims_stated=each.claims_stated)
        ]
        for place, each in enumerate(asked)
    }


def read_evidence(account_id: UUID, fact_ids: Collection[UUID]) -> dict[UUID, list[Turn]]:
    """Return the turns that each fact was learned from."""
    links = Link.objects.filter(account_id=account_id, type=DERIVED_FROM, source_id__in=fact_ids)
    pairs = list(links.values_list("source_id", "target_id"))
    turns = Turn.objects.filter(account_id=account_id).in_bulk({target for _fact, target in pairs})
    found: dict[UUID, list[Turn]] = {}
    for fact_id, target in pairs:
        if target in turns:
            found.setdefault(fact_id, []).append(turns[target])
    return found


def is_said_before(evidence: Sequence[Turn], asking: Turn) -> bool:
    """Return True if all of the evidence was said by who asks, before asking."""
    return bool(evidence) and all(
        (turn.role, turn.name, turn.user_id) == (asking.role, asking.name, asking.user_id)
        and (turn.event_time, turn.log_id == asking.log_id and turn.index)
        < (asking.event_time, turn.log_id == asking.log_id and asking.index)
        for turn in evidence
    )


def find_to_lock(owner: Owner, asked: Sequence[AskedToForget], *, now: datetime) -> tuple[set[UUID], set[UUID]]:
    """Return the known facts that requests cover, and the turns that these were learned from."""
    if not asked:
        return set(), set()
    facts = {fact.id for covered in find_forgotten(owner, asked, now=now).values() for fact in covered}
    said = {turn.id for turns in read_evidence(owner.account_id, facts).values() for turn in turns}
    return facts, said


def forget_requested(
    owner: Owner, asked: Sequence[AskedToForget], *, may_end: Collection[UUID], now: datetime
) -> set[UUID]:
    """Carry out the requests as far as they cover facts of `may_end`, which are locked. Returns what was retracted.

    Facts are changed first, then turns, and the profile last.
    """
    if not asked:
        return set()
    covered = find_forgotten(owner, asked, now=now)
    prefers_new = find_policy(owner) == "prefer_new"
    retracted: dict[UUID, Fact] = {}
    done: dict[int, bool] = {}
    for place, facts in covered.items():
        done[place] = prefers_new and 0 < len(facts) <= MAX_FORGOTTEN and {fact.id for fact in facts} <= set(may_end)
        retracted |= {fact.id: fact for fact in facts} if done[place] else {}
    evidence = read_evidence(owner.account_id, retracted)
    ended = retract_all(owner, list(retracted.values()), now=now)
    silent = [turn.id for turn in find_silent(owner, evidence, retracted)]
    for place, facts in covered.items():
        said = {turn.id for fact in facts for turn in evidence.get(fact.id, [])}
        is_done = done[place] and said <= set(silent)
        # a turn that is extracted again may have nothing left to forget
        before = asked[place].turn.metadata.get(FORGET_KEY, ForgetState.OPEN)
        note_request(asked[place].turn, ForgetState.DONE if is_done else before)
    only_asking = dict.fromkeys(each.turn.id for each in asked if only_asks_to_forget(each.turn.text))
    mark_memories(owner, [*silent, *only_asking], mark="bury", now=now)
    forget_preferences(owner, ended, now=now)
    return {fact.id for fact in ended}


def retract_all(owner: Owner, facts: Sequence[Fact], *, now: datetime) -> list[Fact]:
    """End the belief in locked facts and in the copies that follow them. Returns all of these."""
    if not facts:
        return []
    copies = find_following_copies(facts, locked=find_copy_ids(owner.account_id, [fact.id for fact in facts]))
    ended = [*facts, *copies]
    end_beliefs(ended, status=Fact.Status.RETRACTED, now=now)
    record_audit(owner, operation="retract", memory_type="semantic", affected_ids=[each.id for each in ended])
    return ended


def find_silent(owner: Owner, evidence: dict[UUID, list[Turn]], retracted: dict[UUID, Fact]) -> list[Turn]:
    """Return the turns that say nothing but what was retracted."""
    claims: dict[UUID, list[str]] = {}
    turns = {turn.id: turn for said in evidence.values() for turn in said}
    for fact_id, said in evidence.items():
        for turn in said:
            claims.setdefault(turn.id, []).append(retracted[fact_id].text)
    links = Link.objects.filter(account_id=owner.account_id, type=DERIVED_FROM, target_id__in=turns)
    believed = Fact.objects.filter(account_id=owner.account_id, status=Fact.Status.ACTIVE)
    telling = set(links.filter(source_id__in=believed.values("id")).values_list("target_id", flat=True))
    return [turn for turn in turns.values() if turn.id not in telling and says_no_more(turn.text, claims[turn.id])]


def note_request(turn: Turn, state: str) -> None:
    """Note in the metadata of a turn what became of its request."""
    turn.metadata = turn.metadata | {FORGET_KEY: state}
    Turn.objects.filter(account_id=turn.account_id, id=turn.id).update(metadata=turn.metadata)


def close_request(owner: Owner, turn_id: UUID) -> None:
    """Record that staff have seen to a request. Raises NotFound."""
    with transaction.atomic():
        rows = Turn.objects.visible_to(owner, Kind.TURN).filter(id=turn_id)
        turn = require_found(rows.select_for_update(no_key=True).first(), "turn")
        note_request(turn, ForgetState.CLOSED)
        audit_memories(owner, "update", [turn], metadata={"columns": ["metadata"]})

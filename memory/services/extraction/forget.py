"""Carrying out what users ask to be forgotten ("Forget what I said about my address").

The facts that rest on what this user said before alone, and say what is to be forgotten, are retracted: nothing is
erased, and they are learned again once the user says it again. The turns that say it and the turn that asks are buried
unless they say something else: no search finds them, and lists show them. Their conversations are summarized again
without them, and entities that nothing else mentions are archived. A password or a code is no fact: of these the turns
that gave it are buried. Erasure is for staff and the API.

Where no fact fits, too many do, a turn that says more still says it, or the account does not prefer what is new, the
request waits in the inbox of staff (`ForgetState.OPEN` in the metadata of the turn).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Length

from memory.audit import record_audit
from memory.errors import require_found
from memory.extraction.forget_requests import ForgetRequest, only_asks_to_forget, read_forget_requests
from memory.extraction.knowledge import Chunk, ChunkTurn
from memory.extraction.orders import gives_orders
from memory.extraction.rules import RuleExtractor
from memory.extraction.rules.names import personal_name
from memory.extraction.rules.subjects import THE_USER
from memory.extraction.statement_words import read_words, says_no_more
from memory.models import Entity, Fact, Kind, Link, Turn
from memory.models.links import STRUCTURAL_TYPES
from memory.models.memory import EXTRACTED_SOURCE
from memory.owner import Owner
from memory.services.entities.resolve import filter_by_holder
from memory.services.extraction.given import find_giving_turns, ids_to_bury
from memory.services.facts.contradict import MAX_CANDIDATES, find_policy
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.store import end_beliefs
from memory.services.memories.correct import mark_memories
from memory.services.memories.links import ABOUT, DERIVED_FROM, MENTIONS
from memory.services.memories.store import audit_memories
from memory.services.profiles import forget_preferences

MAX_FORGOTTEN = 20
"""Facts that one request retracts. Where more fit, staff decide."""
MAX_REPEATS, MAX_REPEATING_CHARACTERS, MAX_WORDS_AROUND = 1_000, 1_000, 2
"""Turns of an assistant that are looked at, their length, and words around the claim that one repeats at most."""
SPEAKER = re.compile(r"(?:The user|[A-Z][\w-]+)(?:'s)? ")
"""The beginning of a claim about a speaker, for which an assistant says "you"."""
FORGET_KEY = "forget_request"
"""The key in the metadata of a turn that asked to forget something."""

NAMING = (ABOUT, MENTIONS)
SAID_COLUMNS = ("role", "name", "user_id", "event_time", "log_id", "index", "buried")


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

    def filter_covered(self, facts: Sequence[Fact], evidence: Mapping[UUID, Sequence[Turn]]) -> list[Fact]:
        """Return the facts that the request covers and that rest on what its speaker said before."""
        covered = [
            fact
            for fact in facts
            if is_said_before(evidence.get(fact.id, []), self.turn)
            and self.request.covers(fact.text, speaker=self.speaker, claims_stated=self.claims_stated)
        ]
        return covered if self.request.is_about_one([fact.text for fact in covered]) else []


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The facts that each request covers, by its place. `is_whole` is False if there were too many to look at all."""

    facts: dict[int, list[Fact]]
    evidence: dict[UUID, list[Turn]]
    is_whole: bool = True

    def turns_of(self, place: int) -> list[Turn]:
        return [turn for fact in self.facts[place] for turn in self.evidence[fact.id]]


def find_forgotten(
    owner: Owner, asked: Sequence[AskedToForget], *, status: str = Fact.Status.ACTIVE, now: datetime
) -> Covered:
    """Return the believed facts, or those of another status, that requests cover. Three statements.

    They are the owner's, were extracted, and rest on turns alone that the same speaker said before the request.
    """
    rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now).filter(filter_by_holder(owner))
    known = rows.filter(status=status, source=EXTRACTED_SOURCE, pinned=False)
    newest = list(known.order_by("-recorded_at", "-id")[:MAX_CANDIDATES])
    evidence = read_evidence(owner.account_id, [fact.id for fact in newest])
    facts = {place: each.filter_covered(newest, evidence) for place, each in enumerate(asked)}
    return Covered(facts=facts, evidence=evidence, is_whole=len(newest) < MAX_CANDIDATES)


def find_meant(
    owner: Owner, asked: Sequence[AskedToForget], *, now: datetime
) -> tuple[Sequence[AskedToForget], Covered]:
    """Return the requests, each of them wider if it fits no fact, be it forgotten by now, and what they cover."""
    covered = find_forgotten(owner, asked, now=now)
    empty = [each for place, each in enumerate(asked) if not covered.facts[place]]
    wider = {number: each.request.wider for number, each in enumerate(empty) if each.request.wider}
    if not wider:
        return asked, covered
    former = find_forgotten(owner, empty, status=Fact.Status.RETRACTED, now=now)
    wide = [
        replace(each, request=wider[n]) if n in wider and not former.facts[n] else each for n, each in enumerate(empty)
    ]
    widened = iter(wide)
    meant = [next(widened) if not covered.facts[place] else each for place, each in enumerate(asked)]
    return meant, find_forgotten(owner, meant, now=now)


def read_evidence(account_id: UUID, fact_ids: Collection[UUID]) -> dict[UUID, list[Turn]]:
    """Return the turns that each fact was learned from, without their texts."""
    links = Link.objects.filter(account_id=account_id, type=DERIVED_FROM, source_id__in=fact_ids)
    pairs = list(links.values_list("source_id", "target_id"))
    rows = Turn.objects.filter(account_id=account_id).only(*SAID_COLUMNS)
    turns = rows.in_bulk({target for _fact, target in pairs})
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
    meant, covered = find_meant(owner, asked, now=now)
    places = range(len(asked))
    said = {turn.id for place in places for turn in covered.turns_of(place)}
    said |= {turn_id for each in meant for turn_id in ids_to_bury(find_giving_turns(owner, each.request, each.turn))}
    return {fact.id for place in places for fact in covered.facts[place]}, said


def forget_requested(
    owner: Owner, asked: Sequence[AskedToForget], *, may_end: Collection[UUID], now: datetime
) -> set[UUID]:
    """Carry out the requests as far as they cover facts of `may_end`, which are locked. Returns what was retracted.

    Facts are changed first, then turns, and the profile last.
    """
    if not asked:
        return set()
    asked, covered = find_meant(owner, asked, now=now)
    given = [find_giving_turns(owner, each.request, each.turn) for each in asked]
    prefers_new = find_policy(owner) == "prefer_new"
    done = {
        place: prefers_new and 0 < len(facts) <= MAX_FORGOTTEN and {fact.id for fact in facts} <= set(may_end)
        for place, facts in covered.facts.items()
    }
    forgotten = find_done(owner, asked, [place for place, facts in covered.facts.items() if not facts], now=now)
    retracted = {fact.id: fact for place, facts in covered.facts.items() if done[place] for fact in facts}
    ended = retract_all(owner, list(retracted.values()), now=now)
    silent = find_silent(owner, {fact_id: covered.evidence[fact_id] for fact_id in retracted}, retracted)
    repeats, said_again = find_repeats(owner, {fact_id: covered.evidence[fact_id] for fact_id in retracted}, retracted)
    secret = [turn_id for turns in given if prefers_new for turn_id in ids_to_bury(turns)]
    for place, turns in enumerate(given):
        is_said = any(turn.id not in silent for turn in covered.turns_of(place))
        is_said = is_said or any(fact.id in said_again for fact in covered.facts[place])
        is_given = any(not turn.buried and turn.id not in secret for turn in turns)
        is_done = place in forgotten or (done[place] and not is_said) or (turns and not covered.facts[place])
        done[place] = covered.is_whole and not is_given and bool(is_done)
    note_requests(owner, asked, done)
    only_asking = dict.fromkeys(each.turn.id for each in asked if only_asks_to_forget(each.turn.text))
    gone = [*silent, *secret, *repeats]
    # facts of a user are shared by agents, and so is what they rest upon
    whole = Owner(account_id=owner.account_id, actor=owner.actor)
    mark_memories(whole, list(dict.fromkeys([*gone, *only_asking])), mark="bury", now=now)
    end_forgotten_relationships(owner, gone)
    mark_memories(whole, find_forgotten_entities(owner, [*gone, *retracted]), mark="archive", now=now)
    forget_preferences(owner, ended, now=now)
    return {fact.id for fact in ended}


def find_done(owner: Owner, asked: Sequence[AskedToForget], places: Sequence[int], *, now: datetime) -> set[int]:
    """Return those of the places whose requests cover only what is retracted already, with all of its turns buried."""
    if not places:
        return set()
    former = find_forgotten(owner, [asked[place] for place in places], status=Fact.Status.RETRACTED, now=now)
    turns = {place: former.turns_of(number) for number, place in enumerate(places)}
    return {place for place, said in turns.items() if said and all(turn.buried for turn in said)}


def retract_all(owner: Owner, facts: Sequence[Fact], *, now: datetime) -> list[Fact]:
    """End the belief in locked facts and in the copies that follow them. Returns all of these."""
    if not facts:
        return []
    copies = find_following_copies(facts, locked=find_copy_ids(owner.account_id, [fact.id for fact in facts]))
    ended = [*facts, *copies]
    end_beliefs(ended, status=Fact.Status.RETRACTED, now=now)
    record_audit(owner, operation="retract", memory_type="semantic", affected_ids=[each.id for each in ended])
    return ended


def find_silent(owner: Owner, evidence: dict[UUID, list[Turn]], retracted: dict[UUID, Fact]) -> list[UUID]:
    """Return the turns that say nothing but what was retracted."""
    claims: dict[UUID, list[str]] = {}
    for fact_id, said in evidence.items():
        for turn in said:
            claims.setdefault(turn.id, []).append(retracted[fact_id].text)
    links = Link.objects.filter(account_id=owner.account_id, type=DERIVED_FROM, target_id__in=claims)
    believed = Fact.objects.filter(account_id=owner.account_id, status=Fact.Status.ACTIVE)
    telling = links.filter(source_id__in=believed.values("id")).values("target_id")
    others = Turn.objects.filter(account_id=owner.account_id, id__in=claims).exclude(id__in=telling)
    return [turn_id for turn_id, text in others.values_list("id", "text") if says_no_more(text, claims[turn_id])]


def find_repeats(
    owner: Owner, evidence: Mapping[UUID, Sequence[Turn]], retracted: Mapping[UUID, Fact]
) -> tuple[list[UUID], set[UUID]]:
    """Return the turns in which an assistant repeated retracted facts, and those facts that a longer turn repeats.

    They are looked for among the turns after the evidence, in its conversation. One statement.
    """
    first = {
        turn.log_id: turn.index for said in evidence.values() for turn in sorted(said, key=lambda turn: -turn.index)
    }
    if not first:
        return [], set()
    rows = Turn.objects.filter(account_id=owner.account_id, log_id__in=first, role=Turn.Role.ASSISTANT, buried=False)
    rows = rows.alias(characters=Length("text")).filter(characters__lte=MAX_REPEATING_CHARACTERS)
    claimed = {fact_id: read_words(SPEAKER.sub("", fact.text, count=1)).content for fact_id, fact in retracted.items()}
    repeats, said_again = [], set()
    for turn_id, log_id, index, text in rows.values_list("id", "log_id", "index", "text")[:MAX_REPEATS]:
        words = read_words(text).content
        repeated = {each for each, claim in claimed.items() if index > first[log_id] and claim and claim <= words}
        if repeated and len(words.difference(*(claimed[each] for each in repeated))) <= MAX_WORDS_AROUND:
            repeats.append(turn_id)
        else:
            said_again |= repeated
    return repeats, said_again


def end_forgotten_relationships(owner: Owner, turn_ids: Collection[UUID]) -> None:
    """Delete the learned relationships of these buried turns that no other turn states."""
    of_turns = Q()
    for turn_id in turn_ids:
        of_turns |= Q(properties__turns__contains=[str(turn_id)])
    mentioned = Link.objects.filter(account_id=owner.account_id, type__in=NAMING, source_id__in=turn_ids)
    learned = Link.objects.filter(of_turns, account_id=owner.account_id, source_id__in=mentioned.values("target_id"))
    for link in learned.exclude(type__in=STRUCTURAL_TYPES) if turn_ids else ():
        said = Turn.objects.filter(account_id=owner.account_id, id__in=link.properties["turns"], buried=False)
        if not said.exists():
            link.delete()


def find_forgotten_entities(owner: Owner, forgotten: Collection[UUID]) -> list[UUID]:
    """Return the learned entities that only these turns and facts name, and what is buried or retracted already."""
    links = Link.objects.filter(account_id=owner.account_id)
    retracted = Fact.objects.filter(account_id=owner.account_id, status=Fact.Status.RETRACTED)
    others = links.exclude(source_id__in=forgotten).exclude(source__buried=True)
    others = others.exclude(source_id__in=retracted.values("id"))
    entities = Entity.objects.filter(
        ~Exists(others.filter(target_id=OuterRef("pk"))),
        ~Exists(others.filter(source_id=OuterRef("pk"))),
        account_id=owner.account_id,
        pk__in=links.filter(type__in=NAMING, source_id__in=forgotten).values("target_id"),
        source=EXTRACTED_SOURCE,
        pinned=False,
        # nobody has described it
        description="",
        properties={},
    )
    return list(entities.values_list("pk", flat=True)) if forgotten else []


def note_requests(owner: Owner, asked: Sequence[AskedToForget], done: dict[int, bool]) -> None:
    """Note in the locked turns whether all of their requests were carried out. What was done or closed stays so."""
    rows = Turn.objects.filter(account_id=owner.account_id, id__in={each.turn.id for each in asked})
    for turn in rows.only("account_id", "metadata"):
        is_done = all(done[place] for place, each in enumerate(asked) if each.turn.id == turn.id)
        if is_done or FORGET_KEY not in turn.metadata:
            note_request(turn, ForgetState.DONE if is_done else ForgetState.OPEN)


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

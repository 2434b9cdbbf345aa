"""What a replay is asked for, and what there is of it: a goal, a record and what led to it, a work episode, a decision.

Each is told in layers, the one that is worth most first: what fills the room that is left comes last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.errors import NotFound
from memory.models import CompressionLevel, Kind, TurnRecord, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Posture, Query, Scope
from memory.retrieval.replay import (
    before,
    episodes_seen,
    merged_in,
    read_episodes,
    read_records,
    read_slots,
    reasonings_among,
    records_seen,
)
from memory.services.conversations.lifecycle import find_conversation
from memory.services.goals.rows import find_goal
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.reasoning import stored_reasoning, within_policy
from memory.services.replay.candidates import Offer, Slot, Unit, offer_episode, offer_slot
from memory.services.resume.pieces import content_words

HITS = 30
"""Memories that are looked through for what says a decision."""
LEAST_SHARE = 0.25
"""Of the words of the question that say something: what has fewer of them, and is not near in meaning, is about
something else."""
NEAR = 0.5
"""Cosine similarity."""
NOTHING_SAYS_IT = "nothing_says_it"
"""In `degraded`: much was recalled, and none of it bears on the question."""
DEEPER_TIER = "deeper_tier_available"
"""In `degraded`: what is asked for stands in a rationale, which is told where it is asked for by its tier."""

OUTCOME, REASONING, ACTION, OBSERVATION = (
    slot.value for slot in (Slot.OUTCOME, Slot.REASONING, Slot.ACTION, Slot.OBSERVATION)
)

LATEST = "where the goal stands: its latest turn"
EARLIER = "what came of an earlier turn of the goal"
WHY = "why the turn went this way"
MERGED = "stands for turns of the goal that were merged"
ASKED = "of the turn that was asked for"
STANDS_FOR = "stands for the turn that was asked for, which was merged"
ASKED_EPISODE = "the work episode that was asked for"
LED = "in the chain of the goal's turns that led there"
BEHIND = "behind a work episode: as it was before it was merged"
SAYS = "says what was decided"
OF_DECISION = "of the turn in which it was decided"
LATER = "decided later for the same goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One of goal, record, episode and decision; how deep, and how long a text there may be room for.

    `policy` is the deepest tier that the account allows now.

    `expands`: whether what was merged is told, too, where there is room.
    """

    goal_id: UUID | None
    record_id: UUID | None
    episode_id: UUID | None
    decision: str
    conversation_id: str
    posture: Posture
    limit: ReasoningTier
    policy: ReasoningTier
    longest: int
    expands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Offers in the order of their worth, and after them the turns whose rationales and traces may be told."""

    offers: Sequence[Offer]
    units: Sequence[Unit] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is to tell; `target_id` is None for a decision that nothing says."""

    target_id: UUID | None
    layers: Sequence[Layer] = ()
    degraded: Sequence[str] = ()


def find_target(owner: Owner, wanted: Wanted, *, now: datetime) -> Found:
    """Raises NotFound for what the owner cannot see."""
    if wanted.goal_id is not None:
        return find_of_goal(owner, wanted, wanted.goal_id, now=now)
    if wanted.record_id is not None:
        return find_of_record(owner, wanted, wanted.record_id)
    if wanted.episode_id is not None:
        return find_of_episode(owner, wanted, wanted.episode_id)
    return find_of_decision(owner, wanted, now=now)


def find_of_goal(owner: Owner, wanted: Wanted, goal_id: UUID, *, now: datetime) -> Found:
    """Its work episodes, and of what is not merged outcomes and why; the newest first. Then what was merged."""
    find_goal(owner, goal_id, now=now)
    episodes = episodes_of_goal(owner, wanted, goal_id)
    units = read_units(read_records(records_seen(owner).filter(goal_id=goal_id), merged_too=wanted.expands), wanted)
    fresh, behind = part_merged(units)
    offers: list[Offer] = []
    for each in newest_first(episodes, fresh):
        reason = EARLIER if offers else LATEST
        offers += offer_state(each, wanted, reason=reason) if isinstance(each, Unit) else offer_merged(each, wanted)
    return Found(target_id=goal_id, layers=[Layer(offers=offers, units=units), expand(behind, wanted)])


def find_of_record(owner: Owner, wanted: Wanted, record_id: UUID) -> Found:
    """The turn itself, or what stands for it; then what led there: the turns of its goal before it."""
    record = records_seen(owner).filter(id=record_id).first()
    if record is None:
        raise NotFound("no such turn record")
    records, episodes = [record], []
    if record.goal_id is not None:
        earlier = records_seen(owner).filter(before(record), goal_id=record.goal_id)
        records += read_records(earlier, merged_too=wanted.expands)
        episodes = episodes_of_goal(owner, wanted, record.goal_id)
    asked, *led = read_units(records, wanted)
    standing = [row for row in episodes if stands_for(row, record)]
    offers = [offer for row in standing for offer in offer_merged(row, wanted, reason=STANDS_FOR)]
    if not standing or wanted.expands:
        offers += offer_slots(asked, (OUTCOME, REASONING, ACTION, OBSERVATION), wanted, reason=ASKED)
    fresh, behind = part_merged(led)
    former = [row for row in episodes if row.event_time <= record.event_time and not stands_for(row, record)]
    chain: list[Offer] = []
    for each in newest_first(former, fresh):
        chain += (
            offer_slots(each, (ACTION, OUTCOME, REASONING), wanted, reason=LED)
            if isinstance(each, Unit)
            else offer_merged(each, wanted, reason=LED)
        )
    layers = [Layer(offers=offers, units=[asked]), Layer(offers=chain, units=led), expand(behind, wanted)]
    return Found(target_id=record_id, layers=layers)


def find_of_episode(owner: Owner, wanted: Wanted, episode_id: UUID) -> Found:
    """The episode, at whichever level; then the turns that it stands for."""
    found = read_episodes(episodes_seen(owner, longest=wanted.longest).filter(id=episode_id))
    if not found:
        raise NotFound("no such work episode")
    return Found(target_id=episode_id, layers=layers_of_episode(owner, wanted, found[0], reason=ASKED_EPISODE))


def layers_of_episode(owner: Owner, wanted: Wanted, episode: WorkEpisode, *, reason: str) -> list[Layer]:
    records = read_records(records_seen(owner).filter(merged_in(episode)), merged_too=True) if wanted.expands else []
    behind = read_units(records, wanted)
    return [Layer(offers=offer_merged(episode, wanted, reason=reason), units=behind), expand(behind, wanted)]


def find_of_decision(owner: Owner, wanted: Wanted, *, now: datetime) -> Found:
    """The reasoning, or the episode, that says it best, with what was done and came of it; then what was decided later
    for the same goal, as far as it bears on the question too. Nothing where nothing says it. Raises NotFound for a
    conversation in which the agent takes no part."""
    hits, degraded = recall_decision(owner, wanted, now=now)
    ids = [hit.id for hit in hits]
    record_of = reasonings_among(ids) if ids else {}
    reasoned = [hit for hit in hits if hit.kind == Kind.WORK_EPISODE or hit.id in record_of]
    says = [hit for hit in reasoned if bears_on(hit, wanted.decision)]
    if not says:
        return Found(target_id=None, degraded=[*degraded, *([NOTHING_SAYS_IT] if reasoned else [])])
    units = {each.record.id: each for each in units_of(owner, wanted, list(record_of.values()))}
    episodes = episodes_among(owner, wanted, [hit.id for hit in says if hit.kind == Kind.WORK_EPISODE])
    ranked = [(hit, units.get(record_of[hit.id]) if hit.id in record_of else episodes.get(hit.id)) for hit in says]
    there = [(hit, each) for hit, each in ranked if each is not None]
    if not there:
        return Found(target_id=None, degraded=degraded)
    hit, best = there[0]
    layers = layers_of_decision(owner, wanted, best, reason="; ".join([SAYS, *hit.reasons]))
    later = [each for _, each in there[1:] if is_later(each, best)]
    if hides_what_was_asked(best, wanted):
        degraded = [*degraded, DEEPER_TIER]
    return Found(target_id=hit.id, layers=[*layers, layer_of_later(later, wanted)], degraded=degraded)


def bears_on(hit: Candidate, question: str) -> bool:
    """A recall always answers something: whether this says any of what is asked."""
    if hit.similarity is not None and hit.similarity >= NEAR:
        return True
    asked = content_words(question)
    if not asked:
        return hit.content > 0
    return len(asked & content_words(hit.text)) >= max(1, LEAST_SHARE * len(asked))


def hides_what_was_asked(says: "Unit | WorkEpisode", wanted: Wanted) -> bool:
    """Whether a rationale says of it what its summary does not, and might be told."""
    row = says.slots.get(REASONING) if isinstance(says, Unit) else None
    if row is None or not is_deeper(ReasoningTier.STRUCTURED_RATIONALE, wanted.limit):
        return False
    if row.tier != ReasoningTier.STRUCTURED_RATIONALE or is_deeper(row.tier, wanted.policy):
        return False
    told, stored = within_policy(row, wanted.limit), stored_reasoning(row)
    asked = content_words(wanted.decision) - content_words(told.text if told else "")
    return bool(asked & content_words(stored.rationale.tell()))


def recall_decision(owner: Owner, wanted: Wanted, *, now: datetime) -> tuple[Sequence[Candidate], Sequence[str]]:
    """Turns' slots and work episodes that bear on it, best first, and what kept them from being better."""
    scopes: Sequence[Scope] = ()
    if wanted.conversation_id:
        find_conversation(owner, wanted.conversation_id)
        scopes = (Scope.SESSION, Scope.LINEAGE)
    query = Query(
        text=wanted.decision,
        top_k=HITS,
        kinds=sorted({Kind.TURN_SLOT, Kind.WORK_EPISODE}),
        conversation_id=wanted.conversation_id,
        posture=wanted.posture,
        scopes=scopes,
    )
    bundle = recall(owner, RecallRequest(query=query), now=now)
    return bundle.results, bundle.degraded


def layers_of_decision(owner: Owner, wanted: Wanted, says: "Unit | WorkEpisode", *, reason: str) -> list[Layer]:
    if not isinstance(says, Unit):
        return layers_of_episode(owner, wanted, says, reason=reason)
    offers = offer_slots(says, (REASONING,), wanted, reason=reason)
    offers += offer_slots(says, (ACTION, OUTCOME), wanted, reason=OF_DECISION)
    return [Layer(offers=offers, units=[says])]


def layer_of_later(later: "Iterable[Unit | WorkEpisode]", wanted: Wanted) -> Layer:
    """The newest first: the last word counts."""
    episodes = [each for each in later if not isinstance(each, Unit)]
    units = [each for each in later if isinstance(each, Unit)]
    offers: list[Offer] = []
    for each in newest_first(episodes, units):
        offers += (
            offer_slots(each, (REASONING, OUTCOME), wanted, reason=LATER)
            if isinstance(each, Unit)
            else offer_merged(each, wanted, reason=LATER)
        )
    return Layer(offers=offers, units=units)


def episodes_of_goal(owner: Owner, wanted: Wanted, goal_id: UUID) -> list[WorkEpisode]:
    return read_episodes(episodes_seen(owner, longest=wanted.longest).filter(for_goal_id=goal_id, archived=False))


def episodes_among(owner: Owner, wanted: Wanted, ids: Sequence[UUID]) -> dict[UUID, WorkEpisode]:
    rows = read_episodes(episodes_seen(owner, longest=wanted.longest).filter(id__in=ids)) if ids else []
    return {row.id: row for row in rows}


def units_of(owner: Owner, wanted: Wanted, record_ids: Sequence[UUID]) -> list[Unit]:
    records = read_records(records_seen(owner).filter(id__in=record_ids), merged_too=False) if record_ids else []
    return read_units(records, wanted)


def read_units(records: Sequence[TurnRecord], wanted: Wanted) -> list[Unit]:
    """In the order given, with their slots; one statement."""
    slots = read_slots(records, longest=wanted.longest) if records else {}
    return [Unit(record=each, slots=slots.get(each.id, {})) for each in records]


def part_merged(units: Iterable[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Those that are told as they are, and those that an episode stands for."""
    fresh: list[Unit] = []
    behind: list[Unit] = []
    for unit in units:
        (behind if unit.record.level >= CompressionLevel.MERGED else fresh).append(unit)
    return fresh, behind


def newest_first(episodes: Sequence[WorkEpisode], units: Sequence[Unit]) -> list["Unit | WorkEpisode"]:
    return sorted([*episodes, *units], key=moment_of, reverse=True)


def moment_of(each: "Unit | WorkEpisode") -> tuple[datetime, UUID]:
    row = each.record if isinstance(each, Unit) else each
    return row.event_time, row.id


def goal_of(each: "Unit | WorkEpisode") -> UUID | None:
    return each.record.goal_id if isinstance(each, Unit) else each.for_goal_id


def is_later(each: "Unit | WorkEpisode", than: "Unit | WorkEpisode") -> bool:
    """Of the same goal, and after it."""
    return goal_of(each) is not None and goal_of(each) == goal_of(than) and moment_of(each) > moment_of(than)


def stands_for(episode: WorkEpisode, record: TurnRecord) -> bool:
    is_merged = record.level >= CompressionLevel.MERGED and episode.log_id == record.log_id
    return is_merged and episode.first_number <= record.number <= episode.last_number


def offer_state(unit: Unit, wanted: Wanted, *, reason: str) -> list[Offer]:
    """What came of it, or where that is not known yet what was done; and why."""
    state = OUTCOME if OUTCOME in unit.slots else ACTION
    return [
        *offer_slots(unit, (state,), wanted, reason=reason),
        *offer_slots(unit, (REASONING,), wanted, reason=WHY),
    ]


def offer_slots(unit: Unit, slots: Sequence[str], wanted: Wanted, *, reason: str) -> list[Offer]:
    return [offer for slot in slots for offer in offer_slot(unit, slot, limit=wanted.limit, reason=reason)]


def offer_merged(episode: WorkEpisode, wanted: Wanted, *, reason: str = MERGED) -> list[Offer]:
    return list(offer_episode(episode, limit=wanted.limit, reason=reason))


def expand(behind: Sequence[Unit], wanted: Wanted) -> Layer:
    """What episodes stand for, where it is told: what came of it and why first."""
    kept = behind if wanted.expands else ()
    state = [offer for unit in kept for offer in offer_slots(unit, (OUTCOME, REASONING), wanted, reason=BEHIND)]
    rest = [offer for unit in kept for offer in offer_slots(unit, (ACTION, OBSERVATION), wanted, reason=BEHIND)]
    return Layer(offers=[*state, *rest])

"""Packet items, and how to make them of what is stored as such: profile, facts, artifacts, strategies, a replay.

An item's weight says what comes first when there is no room for all: goals and the last outcome before what was said,
decisions and rules before results, texts that name something before those that do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

from memory.extraction.survivors import has_negation
from memory.extraction.terms import capitalized_stems, comparison_terms, content_words, specific_terms
from memory.extraction.turn_slots import format_value
from memory.extraction.work_notes import NoteKind, kind_of
from memory.instructions import flags_of_texts, gives_instructions
from memory.models import Kind
from memory.providers.sentences import tokenize
from memory.retrieval.candidates import Candidate
from memory.retrieval.kind_searches import StrategyHit
from memory.retrieval.resume import ResumedArtifact, ResumedMemory
from memory.services.prompt_context.quoting import clean_line
from memory.services.replay.replay import ReplaySlice
from memory.services.strategies.learn import strategy_text

MAX_ITEM_CHARACTERS = 500
CUT_MARK = " …"

Position = tuple[int, datetime, int, int]
"""Position of an item in its section: its group (GIVEN, KNOWN or NOTES, in this order), its time, and two numbers."""
GIVEN, KNOWN, NOTES = range(3)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PREFERENCE_WEIGHT = 4.0
STYLE_WEIGHT = 2.6
EXPERTISE_WEIGHT = 1.2
RULE_WEIGHT = 3.4
FACT_WEIGHT = 1.8
ARTIFACT_WEIGHT = 3.2
STRATEGY_WEIGHT = 5.0
STRATEGY_DISCOUNT = 1.6
"""Weight that each further strategy loses: two are rarely of use."""
ARTIFACT_DISCOUNT = 0.2
MAX_PREFERENCE_CHARACTERS = 200
RULE_NOTES = frozenset({NoteKind.CONSTRAINT, NoteKind.DECISION, NoteKind.REJECTION})
REPLAY_WEIGHT = 20.0


class PacketSection(StrEnum):
    """The sections of a packet, in their order."""

    GOALS = "goals"
    LAST_OUTCOME = "last_outcome"
    OPEN_ENDS = "open_ends"
    CONSTRAINTS = "constraints"
    EVIDENCE = "evidence"
    ARTIFACTS = "artifacts"
    STRATEGIES = "strategies"
    REPLAY = "replay"


@dataclass(frozen=True, kw_only=True)
class PacketItem:
    """One line of a packet.

    `item_type` is its role in the work: a `NoteKind`, `said`, `outcome`, a goal's status, … `label` stands before a
    text that would be misunderstood alone. `details` are the further fields of the item in the JSON answer.
    `source_text` is the whole text that an item is a part of, since orders may stand in more than one sentence.
    """

    section: PacketSection
    item_type: str
    text: str
    weight: float
    position: Position
    label: str = ""
    id: UUID | None = None
    kind: Kind | None = None
    channel: str = ""
    conversation_id: str = ""
    event_time: datetime | None = None
    score: float = 0.0
    reasons: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    is_first: bool = False
    """True if it is packed before all items that are not."""
    parent_id: UUID | None = None
    """The item without which this one is not shown."""
    is_distinct: bool = False
    """True if it is shown although another item says the same, unless in the same words."""
    is_recorded: bool = False
    speaker: str = ""
    """The role that says it; empty for the agent."""
    answer: str = ""
    """The answer alone, if the text is a question with its answer."""
    source_text: str = field(default="", repr=False)

    @property
    def item_key(self) -> str:
        """The key of its memory in the injection ledger; empty if it is no memory."""
        return f"{self.kind.value}:{self.id}" if self.kind else ""

    @property
    def statement(self) -> str:
        """The text without the question that it answers."""
        return self.answer or self.text

    @cached_property
    def flags(self) -> list[str]:
        """Warnings for readers: INSTRUCTION_FLAG or nothing."""
        return flags_of_texts(self.text, self.source_text)

    @cached_property
    def words(self) -> frozenset[str]:
        return content_words(self.text)

    @cached_property
    def terms(self) -> frozenset[str]:
        return comparison_terms(self.text)

    @cached_property
    def specifics(self) -> frozenset[str]:
        return specific_terms(self.text)

    @cached_property
    def named(self) -> frozenset[str]:
        return capitalized_stems(self.text)

    @cached_property
    def is_negated(self) -> bool:
        return has_negation(self.text)

    @cached_property
    def plain_text(self) -> str:
        """The words without punctuation, with a blank before and after each."""
        return f" {' '.join(tokenize(self.text))} "


def short_line(text: str, max_characters: int = MAX_ITEM_CHARACTERS) -> str:
    """Return the text on one line with at most `max_characters`, cut at the end of a word where there is one."""
    line = clean_line(text)
    if len(line) <= max_characters:
        return line
    head = line[: max_characters - len(CUT_MARK)]
    return (head.rpartition(" ")[0] or head) + CUT_MARK


def profile_items(profile: Mapping[str, Any]) -> list[PacketItem]:
    """Return an item for each preference, style and the expertise in the user's profile that gives no orders."""
    weighted = [
        *((PREFERENCE_WEIGHT, name, value) for name, value in (profile.get("preferences") or {}).items()),
        *((STYLE_WEIGHT, name, value) for name, value in (profile.get("communication_style") or {}).items()),
        *((EXPERTISE_WEIGHT, "knows", value) for value in [", ".join(profile.get("expertise_areas") or [])] if value),
    ]
    texts = ((weight, f"{name}: {format_value(value)}") for weight, name, value in weighted)
    return [
        PacketItem(
            section=PacketSection.CONSTRAINTS,
            item_type="profile",
            text=short_line(text, MAX_PREFERENCE_CHARACTERS),
            weight=weight,
            position=(GIVEN, EPOCH, number, 0),
            reasons=["the user's profile"],
            details={"source": "profile"},
        )
        for number, (weight, text) in enumerate(texts)
        if not gives_instructions(text)
    ]


def memory_fields(source: ResumedMemory | Candidate | StrategyHit) -> dict[str, Any]:
    """Return the fields of an item that say which memory it is made of."""
    return {name: getattr(source, name) for name in ("id", "kind", "channel", "conversation_id", "event_time")}


def fact_items(facts: Sequence[ResumedMemory]) -> Iterator[PacketItem]:
    """Return an item for each fact about the user; one that sounds like a rule goes to the constraints."""
    for fact in facts:
        is_rule = kind_of(fact.text) in RULE_NOTES
        yield PacketItem(
            section=PacketSection.CONSTRAINTS if is_rule else PacketSection.EVIDENCE,
            item_type="fact",
            text=short_line(fact.text),
            weight=RULE_WEIGHT if is_rule else FACT_WEIGHT,
            position=(KNOWN if is_rule else NOTES, fact.event_time, 0, 0),
            **memory_fields(fact),
            source_text=fact.text,
            reasons=["known of the user"],
            details={"source": "fact"},
        )


def artifact_items(artifacts: Sequence[ResumedArtifact]) -> Iterator[PacketItem]:
    """Return an item for each artifact: its URI, revision and title."""
    for rank, artifact in enumerate(artifacts):
        label, about = artifact.label or artifact.revision, artifact.title or artifact.text
        revision = f" (revision {label})" if artifact.revision > 1 or artifact.label else ""
        title = f": {about}" if about and about not in artifact.uri else ""
        yield PacketItem(
            section=PacketSection.ARTIFACTS,
            item_type="artifact",
            text=short_line(f"{artifact.uri}{revision}{title}"),
            weight=max(ARTIFACT_WEIGHT - ARTIFACT_DISCOUNT * rank, FACT_WEIGHT),
            position=(GIVEN, artifact.event_time, rank, 0),
            **memory_fields(artifact),
            source_text=artifact.text,
            is_distinct=True,
            details={
                "uri": artifact.uri,
                "title": artifact.title,
                "type": artifact.artifact_type,
                "revision": artifact.revision,
                "revision_label": artifact.label,
                "digest": artifact.digest,
                "goal_id": artifact.goal_id,
            },
        )


def strategy_items(hits: Sequence[StrategyHit]) -> Iterator[PacketItem]:
    """Return an item for each strategy: when it fits, what to do, and how often that worked."""
    for rank, hit in enumerate(hits):
        text = strategy_text(hit.description, hit.context_pattern)
        tools = f" [{' > '.join(map(str, hit.tool_sequence))}]" if hit.tool_sequence else ""
        worked = f" ({hit.success_count} of {hit.success_count + hit.failure_count} worked)"
        yield PacketItem(
            section=PacketSection.STRATEGIES,
            item_type="strategy",
            text=short_line(f"{text}{tools}{worked}"),
            source_text=f"{text}{tools}",
            weight=max(STRATEGY_WEIGHT - STRATEGY_DISCOUNT * rank, 1.0),
            position=(GIVEN, EPOCH, rank, 0),
            **memory_fields(hit),
            score=hit.score,
            details={
                "task_type": hit.task_type,
                "tool_sequence": hit.tool_sequence,
                "success_rate": hit.success_rate,
                "success_count": hit.success_count,
                "failure_count": hit.failure_count,
            },
        )


def replay_items(replayed: ReplaySlice) -> list[PacketItem]:
    return [
        PacketItem(
            section=PacketSection.REPLAY,
            item_type="replay",
            text=clean_line(each.text),
            source_text=each.text,
            label=f"{each.slot or 'episode'}: ",
            weight=REPLAY_WEIGHT,
            position=(GIVEN, each.event_time, rank, 0),
            id=each.memory_id,
            kind=Kind(each.kind) if each.memory_id else None,
            event_time=each.event_time,
            is_distinct=True,
        )
        for rank, each in enumerate(replayed.items)
    ]

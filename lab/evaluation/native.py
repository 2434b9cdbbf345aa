"""Samples out of a file of our own format: a JSON object whose `samples` each have conversations, memories, questions.

Everything that can be an answer has a key, unique in its sample; questions, goals and facts name others by it. Texts
are needed, keys and kinds; the rest may be left out. Fields that nobody knows are refused.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import from_json

from lab.evaluation.datasets import (
    BadDatasetError,
    Draft,
    EvaluationSample,
    SampleConversation,
    SampleMemory,
    SampleQuestion,
)
from memory.extraction.imported import Id, Strict, parse_time, read_chat_message, reason_of, refuse_blank, refuse_nul
from memory.models import ContextEntry, Kind
from memory.services.contexts.entries import EntryDraft
from memory.services.entities.learn import EntityDraft
from memory.services.facts.learn import FactDraft
from memory.services.goals.plan import GoalDraft
from memory.services.strategies.learn import StrategyDraft
from memory.services.summaries.store import EpisodeDraft
from memory.services.turns import TurnDraft
from memory_project.ids import uuid7

Time = Annotated[datetime, BeforeValidator(parse_time)]
Text = Annotated[str, AfterValidator(refuse_nul), AfterValidator(refuse_blank)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=100)]


class TurnFields(Strict):
    key: Id
    text: Text
    speaker: str = ""
    role: Literal["user", "assistant"] = "user"
    time: Time | None = None

    @property
    def quoted_text(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class ConversationFields(Strict):
    id: Id
    time: Time | None = None
    turns: Annotated[list[TurnFields], Field(min_length=1)]


class Remembered(Strict):
    """The fields that every kind has; `references` are the keys that it names."""

    key: Id
    text: Text
    time: Time | None = None

    @property
    def references(self) -> list[str]:
        return []

    def note(self, ids: Mapping[str, UUID]) -> SampleMemory:
        return SampleMemory(key=self.key, draft=self.draft(ids), stored_at=self.time)

    @abstractmethod
    def draft(self, ids: Mapping[str, UUID]) -> Draft: ...


class EntityFields(Remembered):
    kind: Literal[Kind.ENTITY]
    type: Text
    aliases: list[Text] = []
    description: str = ""

    def draft(self, ids: Mapping[str, UUID]) -> EntityDraft:
        return EntityDraft(
            id=ids[self.key],
            name=self.text,
            type=self.type,
            aliases=self.aliases,
            description=self.description,
            event_time=self.time,
        )


class FactFields(Remembered):
    kind: Literal[Kind.FACT]
    conversation: str = ""
    entities: list[Id] = []
    confidence: Share | None = None
    temporal: Literal["current", "past", "future"] = "current"
    valid_from: Time | None = None
    valid_to: Time | None = None

    @property
    def references(self) -> list[str]:
        return self.entities

    def draft(self, ids: Mapping[str, UUID]) -> FactDraft:
        return FactDraft(
            id=ids[self.key],
            claim=self.text,
            confidence=self.confidence,
            temporal=self.temporal,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            entity_ids=[ids[key] for key in self.entities],
            conversation_id=self.conversation,
            event_time=self.time,
        )


class Episode(Remembered):
    kind: Literal[Kind.EPISODE]
    conversation: str = ""
    decisions: list[Text] = []

    def draft(self, ids: Mapping[str, UUID]) -> EpisodeDraft:
        return EpisodeDraft(
            id=ids[self.key],
            conversation_id=self.conversation or self.key,
            summary=self.text,
            key_decisions=self.decisions,
            event_time=self.time,
        )


class ContextEntryFields(Remembered):
    kind: Literal[Kind.CONTEXT_ENTRY]
    name: str = ""
    type: str | None = None
    importance: Share | None = None

    def draft(self, ids: Mapping[str, UUID]) -> EntryDraft:
        if self.type is not None and self.type not in ContextEntry.EntryType.values:
            raise BadDatasetError(f"memory {self.key!a}: type is one of {', '.join(ContextEntry.EntryType.values)}")
        return EntryDraft(
            id=ids[self.key],
            content=self.text,
            key=self.name,
            entry_type=self.type,
            importance=self.importance,
            event_time=self.time,
        )


class GoalFields(Remembered):
    kind: Literal[Kind.GOAL]
    priority: int = 0
    deadline: Time | None = None
    parent: Id | None = None
    blocked_by: list[Id] = []
    status: Literal["active", "completed", "abandoned"] = "active"

    @property
    def references(self) -> list[str]:
        return [*self.blocked_by, *([self.parent] if self.parent else [])]

    def note(self, ids: Mapping[str, UUID]) -> SampleMemory:
        outcome = "" if self.status == "active" else self.status
        return SampleMemory(key=self.key, draft=self.draft(ids), stored_at=self.time, outcome=outcome)

    def draft(self, ids: Mapping[str, UUID]) -> GoalDraft:
        return GoalDraft(
            id=ids[self.key],
            description=self.text,
            priority=self.priority,
            deadline=self.deadline,
            parent_id=ids[self.parent] if self.parent else None,
            blocked_by=[ids[key] for key in self.blocked_by],
            event_time=self.time,
        )


class StrategyFields(Remembered):
    kind: Literal[Kind.STRATEGY]
    pattern: str = ""
    task_type: str = ""
    tools: list[Id] = []
    successes: Count = 0
    failures: Count = 0

    def note(self, ids: Mapping[str, UUID]) -> SampleMemory:
        return SampleMemory(
            key=self.key,
            draft=self.draft(ids),
            stored_at=self.time,
            successes=self.successes,
            failures=self.failures,
        )

    def draft(self, ids: Mapping[str, UUID]) -> StrategyDraft:
        return StrategyDraft(
            id=ids[self.key],
            description=self.text,
            context_pattern=self.pattern,
            task_type=self.task_type,
            tool_sequence=self.tools,
            event_time=self.time,
        )


class Asked(Strict):
    text: Text
    answers: Annotated[list[Id], Field(min_length=1)]
    type: Text
    asked_at: Time | None = None
    replaced: list[Id] = []


class SampleFields(Strict):
    """A sample in the form of the file."""

    name: Id
    user: str = ""
    asked_at: Time | None = None
    conversations: list[ConversationFields] = []
    memories: list[
        Annotated[
            EntityFields | FactFields | Episode | ContextEntryFields | GoalFields | StrategyFields,
            Field(discriminator="kind"),
        ],
    ] = []
    questions: list[Asked]

    @property
    def keys(self) -> list[str]:
        said = [turn.key for conversation in self.conversations for turn in conversation.turns]
        return [*said, *(memory.key for memory in self.memories)]


class Document(Strict):
    samples: Annotated[list[SampleFields], Field(min_length=1)]


def read_native_samples(document: bytes) -> list[EvaluationSample]:
    """Read the samples. Raises BadDatasetError."""
    try:
        parsed = Document.model_validate(from_json(document, allow_inf_nan=False))
    except ValidationError as err:
        raise BadDatasetError(reason_of(err)) from err
    except ValueError as err:
        raise BadDatasetError(f"no JSON: {err}") from err
    return [read_native_sample(each) for each in parsed.samples]


def read_native_sample(sample: SampleFields) -> EvaluationSample:
    try:
        refuse_repeated(sample.keys)
        ids = {key: uuid7() for key in sample.keys}
        refuse_unknown(sample, ids)
        ordered = list(in_dependency_order(sample.memories))
        return EvaluationSample(
            name=sample.name,
            user_id=sample.user,
            talks=[talk_of(each, ids) for each in sample.conversations],
            notes=[memory.note(ids) for memory in ordered],
            questions=[native_question(each) for each in sample.questions],
            ids=ids,
            asked_at=sample.asked_at,
        )
    except ValueError as err:
        raise BadDatasetError(f"sample {sample.name!a}: {err}") from err


def refuse_repeated(keys: Iterable[str]) -> None:
    repeated = [key for key, count in Counter(keys).items() if count > 1]
    if repeated:
        raise BadDatasetError(f"key {repeated[0]!a} is there more than once")


def refuse_unknown(sample: SampleFields, ids: Mapping[str, UUID]) -> None:
    """Raise BadDatasetError for a reference to a missing memory, or to one of another kind than required."""
    kinds = {memory.key: memory.kind for memory in sample.memories}
    for memory in sample.memories:
        wanted = Kind.ENTITY if memory.kind == Kind.FACT else memory.kind
        for key in memory.references:
            if kinds.get(key) != wanted:
                raise BadDatasetError(f"memory {memory.key!a}: there is no {wanted.value} {key!a}")
    for place, question in enumerate(sample.questions):
        for key in (*question.answers, *question.replaced):
            if key not in ids:
                raise BadDatasetError(f"questions[{place}]: there is no memory {key!a}")
        if both := sorted({*question.answers} & {*question.replaced}):
            raise BadDatasetError(f"questions[{place}]: {both[0]!a} is an answer and replaced; it can be one of them")


def in_dependency_order(memories: Sequence[Remembered]) -> Iterator[Remembered]:
    """Order the notes so that each comes after those that it names, and otherwise as they are in the file."""
    by_key = {memory.key: memory for memory in memories}
    sorter = TopologicalSorter({memory.key: memory.references for memory in memories})
    try:
        return iter([by_key[key] for key in sorter.static_order()])
    except CycleError as err:
        raise BadDatasetError(f"memories name each other in a cycle: {', '.join(map(ascii, err.args[1]))}") from err


def talk_of(conversation: ConversationFields, ids: Mapping[str, UUID]) -> SampleConversation:
    return SampleConversation(
        conversation_id=conversation.id, turns=[memory_draft(turn, conversation, ids) for turn in conversation.turns]
    )


def memory_draft(turn: TurnFields, conversation: ConversationFields, ids: Mapping[str, UUID]) -> TurnDraft:
    message = {"role": turn.role, "name": turn.speaker, "content": turn.quoted_text}
    return TurnDraft(
        id=ids[turn.key],
        message=read_chat_message(message, place=turn.key),
        timestamp=turn.time or conversation.time,
        client_id=turn.key,
    )


def native_question(question: Asked) -> SampleQuestion:
    return SampleQuestion(
        text=question.text,
        answers=question.answers,
        type=question.type,
        asked_at=question.asked_at,
        replaced=question.replaced,
    )

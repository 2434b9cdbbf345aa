"""Knowledge by a language model: one question a chunk, answered in a shape, and believed as far as it was said.

The model is shown what people and agents said and nothing else: no tools' results, no prompts, no turn that gives
orders (`knowledge.heard`), no ids. The shape is wide on purpose: where an item of the answer breaks a rule, the item
is dropped (`knowledge.checked`) and the others stand, for a conversation must not be able to spoil all that was said
beside it. Only an answer that is no such JSON at all is sent back to be mended.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time, tzinfo
from typing import Annotated, Any

from django.template.loader import render_to_string
from pydantic import BaseModel, Field

from memory.extraction.knowledge import (
    ENTITY_TYPES,
    RELATIONSHIP_TYPES,
    Chunk,
    ChunkTurn,
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
    checked,
    heard,
)
from memory.extraction.wording import LONGEST_TOPIC, stands_for_speaker
from memory.models.facts import Certainty, Temporal
from memory.providers.language_models import LanguageModel, Meter, Question
from memory.providers.material import encode_line

ANSWER_TOKENS = 8_000
"""What an answer may have: a fact takes about a hundred, and smaller models refuse to be asked for more."""
MOST_ASKED_FOR = 30
"""Of each kind, so that answers end before their tokens do."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?")


def one_of(values: Iterable[str]) -> Any:
    """Return a field for one of these texts; another text does not invalidate the whole answer."""
    return Field(json_schema_extra={"enum": list(values)})


class EntityReply(BaseModel):
    """Somebody or something that has a name."""

    name: str
    type: Annotated[str, one_of(ENTITY_TYPES)]
    aliases: list[str]
    description: str
    evidence: list[int]


class FactReply(BaseModel):
    """A claim that stands alone."""

    number: int
    claim: str
    certainty: Annotated[str, one_of(Certainty.values)]
    temporal: Annotated[str, one_of(Temporal.values)]
    entities: list[str]
    valid_from: str | None
    valid_to: str | None
    contradicts: list[int]
    corrects: list[int]
    evidence: list[int]


class RelationshipReply(BaseModel):
    """A relationship between two of the entities."""

    source: str
    target: str
    type: str
    certainty: Annotated[str, one_of(Certainty.values)]
    evidence: list[int]


class PreferenceAnswer(BaseModel):
    """A preference of the user."""

    topic: str
    value: str
    fact: int | None
    evidence: list[int]


class KnowledgeAnswer(BaseModel):
    """The knowledge that the turns state about the world."""

    entities: list[EntityReply]
    facts: list[FactReply]
    relationships: list[RelationshipReply]
    preferences: list[PreferenceAnswer]


class ModelExtractor:
    """Asks a language model."""

    is_remote = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """One question; none where nobody said anything. The chunk must fit the model. Raises ProviderError."""
        nothing = Extraction(source=self._model.model)
        shown = replace(chunk, turns=heard(chunk.turns), before=heard(chunk.before))
        if not shown.turns:
            return nothing
        question = ask_for_knowledge(shown)
        answer = self._model.ask(question, KnowledgeAnswer, meter=meter, deadline_seconds=deadline_seconds)
        return checked(AnswerReader(chunk).read(answer, nothing), chunk)


def ask_for_knowledge(chunk: Chunk) -> Question:
    """Return the question about a chunk, all of whose turns are shown."""
    limits = {
        "items": MOST_ASKED_FOR,
        "topic_characters": LONGEST_TOPIC,
        "entity_types": ", ".join(ENTITY_TYPES),
        "relationship_types": ", ".join(RELATIONSHIP_TYPES),
    }
    material = {
        "known": [encode_line({"number": known.number, "claim": known.claim}) for known in chunk.known],
        "before": [encode_line(format_turn(turn)) for turn in chunk.before],
        "turns": [encode_line({"turn": turn.index, **format_turn(turn)}) for turn in chunk.turns],
        "next_number": next_number(chunk),
    }
    return Question(
        instructions=render_to_string("prompts/extraction_instructions.txt", limits).strip(),
        material=render_to_string("prompts/extraction_material.txt", material).strip(),
        max_tokens=ANSWER_TOKENS,
    )


def next_number(chunk: Chunk) -> int:
    """Return the number at which new facts start."""
    return max((known.number for known in chunk.known), default=0) + 1


def format_turn(turn: ChunkTurn) -> Mapping[str, object]:
    """Format the turn without its number: what cannot be named is no evidence.

    The weekday saves models the counting.
    """
    name = {"name": turn.speaker} if turn.speaker.strip() else {}
    when = {"time": turn.timestamp.isoformat(timespec="minutes"), "weekday": turn.timestamp.strftime("%A")}
    return {"role": turn.role, **name, **when, "text": turn.text}


class AnswerReader:
    """Turns an answer into an extraction, unchecked but for its times: one that is none drops its fact."""

    def __init__(self, chunk: Chunk) -> None:
        self._zones = {turn.index: turn.timestamp.tzinfo for turn in chunk.turns}
        self._dropped: Counter[str] = Counter()

    def read(self, answer: KnowledgeAnswer, nothing: Extraction) -> Extraction:
        facts = tuple(fact for each in answer.facts if (fact := self.read_fact(each)) is not None)
        return replace(
            nothing,
            entities=tuple(map(read_entity, answer.entities)),
            facts=facts,
            relationships=tuple(map(read_relationship, answer.relationships)),
            preferences=tuple(map(read_preference, answer.preferences)),
            dropped=dict(self._dropped),
        )

    def read_fact(self, fact: FactReply) -> ExtractedFact | None:
        """Read a fact; return None, and count it, if a time is malformed."""
        zone = next((self._zones[index] for index in fact.evidence if index in self._zones), None)
        try:
            valid_from, valid_to = (parse_time(text, zone=zone) for text in (fact.valid_from, fact.valid_to))
        except ValueError:
            self._dropped["time"] += 1
            return None
        return ExtractedFact(
            number=fact.number,
            claim=on_one_line(fact.claim),
            certainty=label(fact.certainty),
            temporal=label(fact.temporal),
            entities=tuple(on_one_line(name) for name in fact.entities if not stands_for_speaker(name)),
            valid_from=valid_from,
            valid_to=valid_to,
            contradicts=tuple(fact.contradicts),
            corrects=tuple(fact.corrects),
            evidence=tuple(fact.evidence),
        )


def parse_time(text: str | None, *, zone: tzinfo | None) -> datetime | None:
    """Parse an ISO date, which begins at midnight, or an ISO time, in the turn's zone if it has none itself.

    Raises ValueError for anything else, ISO's rarer forms too.

    >>> parse_time("2023-05-02", zone=UTC)
    datetime.datetime(2023, 5, 2, 0, 0, tzinfo=datetime.timezone.utc)
    """
    bare = (text or "").strip()
    if not bare:
        return None
    if _DATE.fullmatch(bare):
        return datetime.combine(date.fromisoformat(bare), time.min, tzinfo=zone)
    if not _TIME.fullmatch(bare):
        raise ValueError("is neither an ISO date nor an ISO time")
    moment = datetime.fromisoformat(bare)
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def read_entity(entity: EntityReply) -> ExtractedEntity:
    return ExtractedEntity(
        name=on_one_line(entity.name),
        type=label(entity.type),
        aliases=tuple(map(on_one_line, entity.aliases)),
        description=on_one_line(entity.description),
        evidence=tuple(entity.evidence),
    )


def read_relationship(relationship: RelationshipReply) -> ExtractedRelationship:
    return ExtractedRelationship(
        source=on_one_line(relationship.source),
        target=on_one_line(relationship.target),
        type=re.sub(r"[\s-]+", "_", relationship.type.strip()).upper(),
        certainty=label(relationship.certainty),
        evidence=tuple(relationship.evidence),
    )


def read_preference(preference: PreferenceAnswer) -> ExtractedPreference:
    return ExtractedPreference(
        topic=on_one_line(preference.topic),
        value=on_one_line(preference.value),
        fact=preference.fact,
        evidence=tuple(preference.evidence),
    )


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def label(text: str) -> str:
    return text.strip().lower()

"""Knowledge extraction by a language model, with one structured answer per chunk, of which grounded items are kept.

The model gets only what users and assistants said: no results of tools, no prompts, no turns with injected instructions
(`knowledge.spoken_turns`), and no ids. The schema of the answer is lenient on purpose: an item that breaks a rule is
dropped (`knowledge.check_extraction`) and the other items are kept, so that one bad item cannot spoil a whole answer.
Only an answer that does not fit the schema at all is sent back to be repaired.

`knowledge_extractor` chooses between this extractor and the offline rules.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time, tzinfo
from typing import Annotated, Any

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
    Extractor,
    check_extraction,
    spoken_turns,
)
from memory.extraction.rules import RuleExtractor
from memory.extraction.wording import MAX_TOPIC_CHARACTERS, stands_for_speaker
from memory.extraction.worth import worth_of
from memory.models.facts import Certainty, Temporal
from memory.providers.language_models import LanguageModel, Meter, Question, language_model
from memory.providers.material import encode_line
from memory_project.embedded.models import is_bundle_installed

ANSWER_TOKENS = 8_000
"""Tokens of an answer. A fact takes about a hundred, and smaller models refuse requests for more tokens."""
MAX_REQUESTED_ITEMS = 30
"""Entities, facts, relationships and preferences that the model is asked for, of each, to keep answers complete."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?")


def enumerated_field(values: Iterable[str]) -> Any:
    """Return a field whose schema allows these texts. Another text does not invalidate the whole answer."""
    return Field(json_schema_extra={"enum": list(values)})


class EntityReply(BaseModel):
    """A named person or thing."""

    name: str
    type: Annotated[str, enumerated_field(ENTITY_TYPES)]
    aliases: list[str]
    description: str
    evidence: list[int]


class FactReply(BaseModel):
    """A claim that stands alone."""

    number: int
    claim: str
    certainty: Annotated[str, enumerated_field(Certainty.values)]
    temporal: Annotated[str, enumerated_field(Temporal.values)]
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
    certainty: Annotated[str, enumerated_field(Certainty.values)]
    evidence: list[int]


class PreferenceReply(BaseModel):
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
    preferences: list[PreferenceReply]


class ModelExtractor:
    """Extracts knowledge by a language model."""

    is_remote = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """Extract knowledge by one request, or by none if nobody said anything. Raises ProviderError."""
        nothing = Extraction(source=self._model.model)
        shown = replace(chunk, turns=spoken_turns(chunk.turns), before=spoken_turns(chunk.before))
        if not shown.turns:
            return nothing
        question = build_extraction_question(shown)
        answer = self._model.ask(question, KnowledgeAnswer, meter=meter, deadline_seconds=deadline_seconds)
        return check_extraction(AnswerReader(chunk).read(answer, nothing), chunk)


def build_extraction_question(chunk: Chunk) -> Question:
    """Return the request about a chunk, with all of its turns."""
    limits = {
        "items": MAX_REQUESTED_ITEMS,
        "topic_characters": MAX_TOPIC_CHARACTERS,
        "entity_types": ", ".join(ENTITY_TYPES),
        "relationship_types": ", ".join(RELATIONSHIP_TYPES),
    }
    material = {
        "known": [encode_line({"number": known.number, "claim": known.claim}) for known in chunk.known],
        "before": [encode_line(format_turn(turn)) for turn in chunk.before],
        "turns": [encode_line({"turn": turn.index, **format_turn(turn)}) for turn in chunk.turns],
        "next_number": next_number(chunk),
    }
    return Question.of_use("extraction", limits, material, max_tokens=ANSWER_TOKENS)


def next_number(chunk: Chunk) -> int:
    """Return the first number for new facts: one more than the greatest of the known ones."""
    return max((known.number for known in chunk.known), default=0) + 1


def format_turn(turn: ChunkTurn) -> Mapping[str, object]:
    """Return a turn as JSON for the prompt, without its number, so that it cannot be named as evidence.

    The weekday is included, since models are bad at computing it.
    """
    name = {"name": turn.speaker} if turn.speaker.strip() else {}
    when = {"time": turn.timestamp.isoformat(timespec="minutes"), "weekday": turn.timestamp.strftime("%A")}
    return {"role": turn.role, **name, **when, "text": turn.text}


class AnswerReader:
    """Converts an answer to an unchecked extraction. Facts with a malformed time are dropped and counted."""

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
        """Return the fact, or None after counting it if one of its times is malformed."""
        zone = next((self._zones[index] for index in fact.evidence if index in self._zones), None)
        try:
            valid_from, valid_to = (parse_time(text, zone=zone) for text in (fact.valid_from, fact.valid_to))
        except ValueError:
            self._dropped["time"] += 1
            return None
        return ExtractedFact(
            number=fact.number,
            claim=join_line(fact.claim),
            certainty=normalize_label(fact.certainty),
            temporal=normalize_label(fact.temporal),
            entities=tuple(join_line(name) for name in fact.entities if not stands_for_speaker(name)),
            valid_from=valid_from,
            valid_to=valid_to,
            contradicts=tuple(fact.contradicts),
            corrects=tuple(fact.corrects),
            evidence=tuple(fact.evidence),
        )


def parse_time(text: str | None, *, zone: tzinfo | None) -> datetime | None:
    """Parse an ISO date as midnight, or an ISO time. Without a zone of its own it gets that of the turn.

    Raises ValueError for anything else, also for rarer forms of ISO 8601.

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
        name=join_line(entity.name),
        type=normalize_label(entity.type),
        aliases=tuple(map(join_line, entity.aliases)),
        description=join_line(entity.description),
        evidence=tuple(entity.evidence),
    )


def read_relationship(relationship: RelationshipReply) -> ExtractedRelationship:
    return ExtractedRelationship(
        source=join_line(relationship.source),
        target=join_line(relationship.target),
        type=re.sub(r"[\s-]+", "_", relationship.type.strip()).upper(),
        certainty=normalize_label(relationship.certainty),
        evidence=tuple(relationship.evidence),
    )


def read_preference(preference: PreferenceReply) -> ExtractedPreference:
    return ExtractedPreference(
        topic=join_line(preference.topic),
        value=join_line(preference.value),
        fact=preference.fact,
        evidence=tuple(preference.evidence),
    )


def join_line(text: str) -> str:
    return " ".join(text.split())


def normalize_label(text: str) -> str:
    return text.strip().lower()


def knowledge_extractor() -> Extractor:
    """Return the language model's extractor if EXTRACTION_MODEL is set, else the offline one.

    Without the bundled weights, whose vectors it judges by, the offline one judges no claims (check memory.W020).
    """
    model = language_model("extraction")
    if model is not None:
        return ModelExtractor(model)
    return RuleExtractor(worth_of if is_bundle_installed() else None)

"""Knowledge extraction (X10): what a stretch of a conversation says about the world, as plain values.

An extractor is shown a chunk: new turns, some that came before them, and facts that are already known of those who are
spoken of. It answers entities, facts, relationships and preferences, each with the turns that say so. Everything
refers to what the extractor was shown by small numbers, never by ids: an answer cannot name what it was not shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memory.providers.language_models import Meter

RELATIONSHIP_TYPES = ("RELATED_TO", "PART_OF", "LOCATED_IN", "WORKS_FOR", "KNOWS", "CREATED_BY", "REFERENCES")
"""The documented ones. Others may be given; the offline rules find no others."""

ENTITY_TYPES = ("person", "organization", "place", "product", "event", "animal", "work", "concept")
"""What extractors tell apart. Clients may give any type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTurn:
    """A turn as an extractor is shown it. `index` is its number in the conversation."""

    index: int
    role: str
    speaker: str
    text: str
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact that is believed already. `number` is its name in this chunk, from 1 on."""

    number: int
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What an extractor is shown: `turns` are new, in order; `before` are the turns right before, for reading only."""

    turns: Sequence[ChunkTurn]
    before: Sequence[ChunkTurn] = ()
    known: Sequence[KnownFact] = ()

    @property
    def indexes(self) -> frozenset[int]:
        """The turns that may be named as evidence."""
        return frozenset(turn.index for turn in self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedEntity:
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedFact:
    """A claim that stands alone ("Ana lives in Berlin"), about entities of this extraction, by their names.

    `certainty` and `temporal` are values of `models.facts`. `contradicts` and `corrects` are numbers of known facts,
    or of facts before this one in the extraction: the former are no longer true beside this one, the latter were
    wrong all along, as the speaker said.
    """

    number: int
    claim: str
    certainty: str
    temporal: str
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    contradicts: tuple[int, ...] = ()
    corrects: tuple[int, ...] = ()
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedRelationship:
    """Between two entities of this extraction, by their names."""

    source: str
    target: str
    type: str
    certainty: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPreference:
    """What the user said of how they like things: a short topic ("coffee"), and how ("likes", "dislikes", "prefers
    tea over it"). `fact` is the number of the fact that says so, where there is one."""

    topic: str
    value: str
    fact: int | None = None
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What was found. `dropped` counts items that named turns, facts or entities which they were not shown, by reason.

    `source` names who found it: "rules", or a model.
    """

    source: str
    entities: tuple[ExtractedEntity, ...] = ()
    facts: tuple[ExtractedFact, ...] = ()
    relationships: tuple[ExtractedRelationship, ...] = ()
    preferences: tuple[ExtractedPreference, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)


class Extractor(Protocol):
    """Finds knowledge in chunks; asks no database, may run in a thread."""

    @property
    def is_remote(self) -> bool:
        """Whether it waits for another machine, so that it is worth asking for several chunks at once."""

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """Raises ProviderError. What comes back is checked: see `checked`."""


def checked(extraction: Extraction, chunk: Chunk) -> Extraction:
    """Without the items whose evidence is no turn of the chunk, whose references are to nothing, whose ends are one.

    Each is dropped whole, and counted in `dropped`: "evidence", "reference", "entity" (a name that the extraction has
    no entity of), "self" (a relationship of something to itself), "time" (an end before its beginning).
    """
    raise NotImplementedError

"""Knowledge extraction (X10): the input and output of extractors, and the checks of their output.

An extractor gets a chunk of a conversation: new turns, some turns before them, and known facts about the people and
things in them. It returns entities, facts, relationships and preferences, each with the turns that state it. All of
these refer to turns and facts by small numbers, never by ids, so that an extractor cannot name anything else.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from memory.extraction import wording
from memory.extraction.grounding import OF_A_THING, SpokenText, fold_text, is_grounded, is_named, word_stems
from memory.extraction.orders import gives_orders
from memory.identity import normalize_claim, normalize_name
from memory.models.facts import Certainty, Temporal
from memory.models.links import STRUCTURAL_TYPES
from memory.providers.digests import SPOKEN_ROLES
from memory.providers.language_models import Meter

RELATIONSHIP_TYPES = ("RELATED_TO", "PART_OF", "LOCATED_IN", "WORKS_FOR", "KNOWS", "CREATED_BY", "REFERENCES")
"""The documented types of relationships, the only ones that the offline rules find. Models may return others."""

ENTITY_TYPES = ("person", "organization", "place", "product", "event", "animal", "work", "concept")
"""The types of entities that extractors distinguish. Clients may store any type."""
RELATIONSHIP_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,49}")
MAX_EXTRACTED_ITEMS = 200
"""Entities, facts, relationships and preferences that are kept of an extraction, of each."""
MAX_ITEM_PARTS = 20
"""Aliases of an entity, entities of a fact, and other facts that a fact refers to, of each."""
PARTS = ("alias", "description")
"""Reasons in `dropped` that count a part of an entity, while the entity itself is kept."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTurn:
    """A turn as an extractor gets it. `index` is its number in the conversation."""

    index: int
    role: str
    speaker: str
    text: str
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact that the service already believes. `number` identifies it within the chunk, from 1."""

    number: int
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The input of an extractor: new `turns` in order, and the turns right `before` them for context."""

    turns: Sequence[ChunkTurn]
    before: Sequence[ChunkTurn] = ()
    known: Sequence[KnownFact] = ()
    replacing: frozenset[int] = frozenset()
    """Indexes of new turns that probably replace a statement of which a fact is known."""

    @property
    def indexes(self) -> frozenset[int]:
        """The indexes of the new turns, which may be named as evidence."""
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

    `certainty` and `temporal` are values of `models.facts`. `contradicts` and `corrects` are numbers of known facts, or
    of facts before this one in the extraction. Contradicted facts cannot be true at the same time as this one.
    Corrected facts were never true, as the speaker said.
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

    @property
    def identity(self) -> Hashable:
        return normalize_claim(self.claim), self.valid_from, self.valid_to


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedRelationship:
    """A relationship between two entities of this extraction, which are given by their names."""

    source: str
    target: str
    type: str
    certainty: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPreference:
    """A preference that the user stated: a short topic ("coffee"), and how ("likes", "prefers tea over it").

    `fact` is the number of the fact that says so, if there is one.
    """

    topic: str
    value: str
    fact: int | None = None
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The result of an extraction.

    `dropped` counts the items that were left out, by reason (see `check_extraction`). `source` is "rules" or the name
    of a model.
    """

    source: str
    entities: tuple[ExtractedEntity, ...] = ()
    facts: tuple[ExtractedFact, ...] = ()
    relationships: tuple[ExtractedRelationship, ...] = ()
    preferences: tuple[ExtractedPreference, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)


class Extractor(Protocol):
    """Extracts knowledge from chunks. It reads no database, so that it may run in a thread."""

    @property
    def is_remote(self) -> bool:
        """Return True if it waits for another machine, so that extracting several chunks at once saves time."""

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """Return the knowledge in the new turns, checked by `check_extraction`. Raises ProviderError."""


def spoken_turns(turns: Iterable[ChunkTurn]) -> list[ChunkTurn]:
    """Return the turns of users and assistants, without those that contain injected instructions (see `orders`).

    Turns of prompts, tools and functions are left out, since nobody said them. Speakers' names are checked as well.
    """
    spoken = (turn for turn in turns if turn.role in SPOKEN_ROLES)
    return [turn for turn in spoken if not (gives_orders(turn.text) or gives_orders(turn.speaker))]


class ExtractionCheck:
    """The state of `check_extraction`: what the chunk supports, and what was kept so far."""

    def __init__(self, chunk: Chunk) -> None:
        self.dropped: Counter[str] = Counter()
        self._new = {turn.index: turn for turn in chunk.turns}
        self._heard = spoken_turns([*chunk.before, *chunk.turns])
        self._heard_indexes = frozenset(turn.index for turn in self._heard)
        self._ground = SpokenText([(turn.index, turn.speaker, turn.text) for turn in self._heard])
        self._names: dict[str, str] = {}
        self._names_of: dict[str, tuple[str, ...]] = {}
        self._claims = {known.number: fold_text(known.claim) for known in chunk.known}

    def keep(
        self, items: Iterable[Item], fault_of: Callable[[Item], str], key_of: Callable[[Item], Hashable]
    ) -> Iterator[Item]:
        """Yield the items without a fault, lazily: a later item is checked against the ones kept before it."""
        keys: set[Hashable] = set()
        for item in items:
            key = key_of(item)
            repeated = "duplicate" if key in keys else "many" if len(keys) == MAX_EXTRACTED_ITEMS else ""
            if fault := fault_of(item) or repeated:
                self.dropped[fault] += 1
                continue
            keys.add(key)
            yield item

    def keep_entities(self, entities: Iterable[ExtractedEntity]) -> tuple[ExtractedEntity, ...]:
        tidy = (replace(entity, evidence=sort_unique(entity.evidence)) for entity in entities)
        kept = list(self.keep(tidy, self.entity_fault, lambda entity: normalize_name(entity.name)))
        self._names = {normalize_name(entity.name): entity.name for entity in kept}
        return tuple(map(self.without_made_up_parts, kept))

    def entity_fault(self, entity: ExtractedEntity) -> str:
        if fault := self.evidence_fault(entity.evidence):
            return fault
        if not (wording.is_name(entity.name) and len(entity.description) <= wording.MAX_EXTRACTED_CLAIM_CHARACTERS):
            return "text"
        if entity.type not in ENTITY_TYPES:
            return "type"
        return "" if self._ground.names(entity.name, entity.evidence) else "ungrounded"

    def without_made_up_parts(self, entity: ExtractedEntity) -> ExtractedEntity:
        """Return the entity with its grounded aliases that are no other entity's, and its description if grounded."""
        aliases: dict[str, str] = {}
        for alias in entity.aliases:
            key = normalize_name(alias)
            is_free = key not in self._names and key not in aliases and len(aliases) < MAX_ITEM_PARTS
            if is_free and wording.is_name(alias) and self._ground.names(alias, entity.evidence):
                aliases[key] = alias
        text = entity.description
        is_text = wording.is_text(text, wording.MAX_EXTRACTED_CLAIM_CHARACTERS)
        is_described = is_text and self.is_supported(text, entity.evidence)
        self.dropped["alias"] += len(entity.aliases) - len(aliases)
        self.dropped["description"] += bool(text) and not is_described
        self._names |= dict.fromkeys(aliases, entity.name)
        self._names_of[entity.name] = (entity.name, *aliases.values())
        return replace(entity, aliases=tuple(aliases.values()), description=text if is_described else "")

    def keep_facts(self, facts: Iterable[ExtractedFact]) -> tuple[ExtractedFact, ...]:
        kept = []
        for fact in self.keep(map(self.tidy_fact, facts), self.fact_fault, lambda fact: fact.identity):
            self._claims[fact.number] = fold_text(fact.claim)
            kept.append(fact)
        return tuple(kept)

    def tidy_fact(self, fact: ExtractedFact) -> ExtractedFact:
        return replace(
            fact,
            entities=tuple(dict.fromkeys(map(self.first_name, fact.entities))),
            contradicts=sort_unique(set(fact.contradicts) - set(fact.corrects)),
            corrects=sort_unique(fact.corrects),
            evidence=sort_unique(fact.evidence),
        )

    def fact_fault(self, fact: ExtractedFact) -> str:
        if fault := self.evidence_fault(fact.evidence):
            return fault
        if fact.corrects and not self.is_users(fact.evidence):
            return "role"
        if fault := label_fault(fact):
            return fault
        if not self.are_kept(fact.entities):
            return "entity"
        if not (self.are_spoken_of(fact.entities, fact.evidence) and self.is_supported(fact.claim, fact.evidence)):
            return "ungrounded"
        return self.reference_fault(fact)

    def reference_fault(self, fact: ExtractedFact) -> str:
        referred = (*fact.contradicts, *fact.corrects)
        if fact.number in self._claims or not all(number in self._claims for number in referred):
            return "reference"
        if max(len(fact.entities), len(referred)) > MAX_ITEM_PARTS:
            return "many"
        return "" if all(self.concerns(fact, self._claims[number]) for number in referred) else "reference"

    def concerns(self, fact: ExtractedFact, claim: str) -> bool:
        """Return True if an older claim is about an entity of the fact or the user; of things, if they share a word."""
        names, folded = [name for entity in fact.entities for name in self._names_of[entity]], fold_text(fact.claim)
        names += ["user"] if is_named("user", folded) else []
        if not names or OF_A_THING.match(folded):
            return not word_stems(folded).isdisjoint(word_stems(claim))
        return any(is_named(name, claim) for name in names)

    def tidy_relationship(self, relationship: ExtractedRelationship) -> ExtractedRelationship:
        return replace(
            relationship,
            source=self.first_name(relationship.source),
            target=self.first_name(relationship.target),
            evidence=sort_unique(relationship.evidence),
        )

    def relationship_fault(self, relationship: ExtractedRelationship) -> str:
        if fault := self.evidence_fault(relationship.evidence):
            return fault
        if relationship.type in STRUCTURAL_TYPES or not RELATIONSHIP_TYPE.fullmatch(relationship.type):
            return "type"
        if relationship.certainty not in Certainty.values:
            return "certainty"
        ends = (relationship.source, relationship.target)
        if not self.are_kept(ends):
            return "entity"
        if relationship.source == relationship.target:
            return "self"
        return "" if self.are_spoken_of(ends, relationship.evidence) else "ungrounded"

    def preference_fault(self, preference: ExtractedPreference) -> str:
        if fault := self.evidence_fault(preference.evidence):
            return fault
        if not self.is_users(preference.evidence):
            return "role"
        if not (
            wording.is_text(preference.topic, wording.MAX_TOPIC_CHARACTERS)
            and wording.is_text(preference.value, wording.MAX_PREFERENCE_CHARACTERS)
        ):
            return "text"
        said = [preference.topic, *wording.beyond_stance(preference.value)]
        if not all(self.is_supported(text, preference.evidence) for text in said):
            return "ungrounded"
        return "" if preference.fact is None or preference.fact in self._claims else "reference"

    def evidence_fault(self, evidence: Collection[int]) -> str:
        if not evidence or not self._new.keys() >= set(evidence):
            return "evidence"
        if any(self._new[index].role not in SPOKEN_ROLES for index in evidence):
            return "role"
        return "" if self._heard_indexes >= set(evidence) else "order"

    def is_users(self, evidence: Iterable[int]) -> bool:
        return all(self._new[index].role == "user" for index in evidence)

    def first_name(self, name: str) -> str:
        return self._names.get(normalize_name(name), name)

    def are_kept(self, names: Iterable[str]) -> bool:
        return all(name in self._names_of for name in names)

    def are_spoken_of(self, entities: Iterable[str], evidence: Collection[int]) -> bool:
        """Return True if turns up to the last one of the evidence name each entity."""
        turns = {turn.index for turn in self._heard if turn.index <= max(evidence)}
        return all(any(self._ground.names(name, turns) for name in self._names_of[entity]) for entity in entities)

    def is_supported(self, claim: str, evidence: Collection[int]) -> bool:
        return is_grounded(claim, self._ground.stems_up_to(max(evidence)))


def sort_unique(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


def label_fault(fact: ExtractedFact) -> str:
    """Return what is wrong with the fact by itself, whatever the chunk says; empty if nothing."""
    if not wording.is_text(fact.claim, wording.MAX_EXTRACTED_CLAIM_CHARACTERS):
        return "text"
    if fact.certainty not in Certainty.values:
        return "certainty"
    if fact.temporal not in Temporal.values:
        return "temporal"
    times = [time for time in (fact.valid_from, fact.valid_to) if time is not None]
    are_possible = all(time.utcoffset() is not None and 2 <= time.year <= 9998 for time in times)
    return "" if are_possible and times == sorted(set(times)) else "time"


def check_extraction(extraction: Extraction, chunk: Chunk) -> Extraction:
    """Return only the items of an extraction that keep all of these rules, whichever extractor found them.

    An item that breaks a rule is dropped as a whole, and counted in `dropped` under the first rule that it breaks:

    - `evidence`: the item names at least one turn, and only new turns of the chunk.
    - `role`: these turns are of users or assistants; those of preferences and corrections are of users.
    - `order`: none of them contains injected instructions (`orders.gives_orders`).
    - `text`: texts are not empty, not too long, on one line, and without control characters and tags. Names have a
      letter and are neither ids nor addresses.
    - `type`, `certainty`, `temporal`: the value is an allowed one. Structural types of relationships are not allowed.
    - `time`: times have a zone and are in the years 2 to 9998, and the end is after the beginning.
    - `entity`: facts and relationships name entities that were kept.
    - `ungrounded`: an entity's name occurs in its evidence or is a speaker's. For facts and relationships it may occur
      in any turn up to the evidence. The words of claims, topics and values occur there too (`grounding.is_grounded`).
    - `self`: the two ends of a relationship differ.
    - `reference`: the number of a fact is new. The facts that it refers to are known, or were kept before it, and are
      about the same: their claims name one of its entities.
    - `duplicate`: no other item of the extraction says the same.
    - `many`: there are at most MAX_EXTRACTED_ITEMS of each, and MAX_ITEM_PARTS entities or references in a fact.

    Repetitions are removed from lists, evidence is sorted, and facts and relationships name entities by their first
    names. An alias that occurs in no turn or is the name of another entity is left out (counted as `alias`), and so is
    a description that is not grounded (`description`). Checking a checked extraction again changes nothing.
    """
    checking = ExtractionCheck(chunk)
    entities = checking.keep_entities(extraction.entities)
    facts = checking.keep_facts(extraction.facts)
    relationships = tuple(
        checking.keep(
            map(checking.tidy_relationship, extraction.relationships),
            checking.relationship_fault,
            lambda relationship: (relationship.source, relationship.type, relationship.target),
        )
    )
    preferences = tuple(
        checking.keep(
            (replace(each, evidence=sort_unique(each.evidence)) for each in extraction.preferences),
            checking.preference_fault,
            lambda preference: (fold_text(preference.topic), fold_text(preference.value)),
        )
    )
    return replace(
        extraction,
        entities=entities,
        facts=facts,
        relationships=relationships,
        preferences=preferences,
        dropped=dict(Counter(extraction.dropped) + checking.dropped),
    )

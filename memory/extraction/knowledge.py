"""Knowledge extraction (X10): what a stretch of a conversation says about the world, as plain values.

An extractor is shown a chunk: new turns, some that came before them, and facts that are already known of those who are
spoken of. It answers entities, facts, relationships and preferences, each with the turns that say so. Everything
refers to what the extractor was shown by small numbers, never by ids: an answer cannot name what it was not shown.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeVar

from memory.extraction.grounding import Ground, fold, is_grounded, is_named, word_stems
from memory.extraction.orders import gives_orders
from memory.extraction.wording import LONGEST_CLAIM, LONGEST_TOPIC, LONGEST_VALUE, beyond_stance, is_name, is_text
from memory.identity import normalize_claim, normalize_name
from memory.models.facts import Certainty, Temporal
from memory.models.links import STRUCTURAL_TYPES
from memory.providers.digests import SPOKEN_ROLES
from memory.providers.language_models import Meter

RELATIONSHIP_TYPES = ("RELATED_TO", "PART_OF", "LOCATED_IN", "WORKS_FOR", "KNOWS", "CREATED_BY", "REFERENCES")
"""The documented ones. Others may be given; the offline rules find no others."""

ENTITY_TYPES = ("person", "organization", "place", "product", "event", "animal", "work", "concept")
"""What extractors tell apart. Clients may give any type."""

RELATIONSHIP_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,49}")

MOST_ITEMS = 200
"""Of each kind, in an extraction."""
MOST_PARTS = 20
"""Aliases of an entity; entities of a fact, and facts that it refers to."""
PARTS = ("alias", "description")
"""Of an entity: left out of it, and counted in `dropped`, though the entity stands."""
Item = TypeVar("Item")


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
    """The input of an extractor: `turns` are new, in order; `before` are the turns right before, for reading only."""

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
    """A relationship between two entities of this extraction, by their names."""

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

    `dropped` counts, by reason, items that named turns, facts or entities which they were not shown. `source` names who
    found it: "rules", or a model.
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
        """Return whether it waits for another machine, so that several chunks are worth requesting in parallel."""

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """Extract knowledge; what comes back is checked by `checked`. Raises ProviderError."""


def heard(turns: Iterable[ChunkTurn]) -> list[ChunkTurn]:
    """Return the turns that somebody spoke, without those that give orders to machinery (`orders`).

    What prompts, tools and functions put into a conversation is a machine's word, however it reads. Orders may stand in
    a speaker's name, too.
    """
    spoken = (turn for turn in turns if turn.role in SPOKEN_ROLES)
    return [turn for turn in spoken if not (gives_orders(turn.text) or gives_orders(turn.speaker))]


class Checking:
    """The state of checking an extraction: what its chunk supports, and what was kept so far."""

    def __init__(self, chunk: Chunk) -> None:
        self.dropped: Counter[str] = Counter()
        self._new = {turn.index: turn for turn in chunk.turns}
        self._heard = heard([*chunk.before, *chunk.turns])
        self._heard_indexes = frozenset(turn.index for turn in self._heard)
        self._ground = Ground([(turn.index, turn.speaker, turn.text) for turn in self._heard])
        self._names: dict[str, str] = {}
        self._names_of: dict[str, tuple[str, ...]] = {}
        self._claims = {known.number: fold(known.claim) for known in chunk.known}

    def keep(
        self, items: Iterable[Item], fault_of: Callable[[Item], str], key_of: Callable[[Item], Hashable]
    ) -> Iterator[Item]:
        """Yield the items without a fault one by one: the next is examined when the effect of the last one is known."""
        keys: set[Hashable] = set()
        for item in items:
            key = key_of(item)
            repeated = "duplicate" if key in keys else "many" if len(keys) == MOST_ITEMS else ""
            if fault := fault_of(item) or repeated:
                self.dropped[fault] += 1
                continue
            keys.add(key)
            yield item

    def keep_entities(self, entities: Iterable[ExtractedEntity]) -> tuple[ExtractedEntity, ...]:
        tidy = (replace(entity, evidence=in_order(entity.evidence)) for entity in entities)
        kept = list(self.keep(tidy, self.entity_fault, lambda entity: normalize_name(entity.name)))
        self._names = {normalize_name(entity.name): entity.name for entity in kept}
        return tuple(map(self.without_made_up_parts, kept))

    def entity_fault(self, entity: ExtractedEntity) -> str:
        if fault := self.evidence_fault(entity.evidence):
            return fault
        if not (is_name(entity.name) and len(entity.description) <= LONGEST_CLAIM):
            return "text"
        if entity.type not in ENTITY_TYPES:
            return "type"
        return "" if self._ground.names(entity.name, entity.evidence) else "ungrounded"

    def without_made_up_parts(self, entity: ExtractedEntity) -> ExtractedEntity:
        """Return the entity with the aliases that are said and nobody else's, and the description if it is grounded."""
        aliases: dict[str, str] = {}
        for alias in entity.aliases:
            key = normalize_name(alias)
            is_free = key not in self._names and key not in aliases and len(aliases) < MOST_PARTS
            if is_free and is_name(alias) and self._ground.names(alias, entity.evidence):
                aliases[key] = alias
        is_described = is_text(entity.description, LONGEST_CLAIM) and self.tells(entity.description, entity.evidence)
        self.dropped["alias"] += len(entity.aliases) - len(aliases)
        self.dropped["description"] += bool(entity.description) and not is_described
        self._names |= dict.fromkeys(aliases, entity.name)
        self._names_of[entity.name] = (entity.name, *aliases.values())
        description = entity.description if is_described else ""
        return replace(entity, aliases=tuple(aliases.values()), description=description)

    def keep_facts(self, facts: Iterable[ExtractedFact]) -> tuple[ExtractedFact, ...]:
        kept = []
        tidy = map(self.tidy_fact, facts)
        for fact in self.keep(
            tidy, self.fact_fault, lambda fact: (normalize_claim(fact.claim), fact.valid_from, fact.valid_to)
        ):
            self._claims[fact.number] = fold(fact.claim)
            kept.append(fact)
        return tuple(kept)

    def tidy_fact(self, fact: ExtractedFact) -> ExtractedFact:
        return replace(
            fact,
            entities=tuple(dict.fromkeys(map(self.first_name, fact.entities))),
            contradicts=in_order(set(fact.contradicts) - set(fact.corrects)),
            corrects=in_order(fact.corrects),
            evidence=in_order(fact.evidence),
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
        if not (self.are_spoken_of(fact.entities, fact.evidence) and self.tells(fact.claim, fact.evidence)):
            return "ungrounded"
        return self.reference_fault(fact)

    def reference_fault(self, fact: ExtractedFact) -> str:
        referred = (*fact.contradicts, *fact.corrects)
        if fact.number in self._claims or not all(number in self._claims for number in referred):
            return "reference"
        if max(len(fact.entities), len(referred)) > MOST_PARTS:
            return "many"
        return "" if all(self.concerns(fact, self._claims[number]) for number in referred) else "reference"

    def concerns(self, fact: ExtractedFact, claim: str) -> bool:
        """Return whether an older claim is about something that the fact is about."""
        names = [name for entity in fact.entities for name in self._names_of[entity]]
        names += ["user"] if is_named("user", fold(fact.claim)) else []
        if not names:
            return not word_stems(fact.claim).isdisjoint(word_stems(claim))
        return any(is_named(name, claim) for name in names)

    def tidy_relationship(self, relationship: ExtractedRelationship) -> ExtractedRelationship:
        return replace(
            relationship,
            source=self.first_name(relationship.source),
            target=self.first_name(relationship.target),
            evidence=in_order(relationship.evidence),
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

    def tidy_preference(self, preference: ExtractedPreference) -> ExtractedPreference:
        return replace(preference, evidence=in_order(preference.evidence))

    def preference_fault(self, preference: ExtractedPreference) -> str:
        if fault := self.evidence_fault(preference.evidence):
            return fault
        if not self.is_users(preference.evidence):
            return "role"
        if not (is_text(preference.topic, LONGEST_TOPIC) and is_text(preference.value, LONGEST_VALUE)):
            return "text"
        said = [preference.topic, *beyond_stance(preference.value)]
        if not all(self.tells(text, preference.evidence) for text in said):
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
        """Return whether each is called by one of its names in some turn up to the evidence."""
        turns = {turn.index for turn in self._heard if turn.index <= max(evidence)}
        return all(any(self._ground.names(name, turns) for name in self._names_of[entity]) for entity in entities)

    def tells(self, claim: str, evidence: Collection[int]) -> bool:
        return is_grounded(claim, self._ground.stems_up_to(max(evidence)))


def in_order(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


def label_fault(fact: ExtractedFact) -> str:
    """Return what is wrong with the fact whatever the chunk says."""
    if not is_text(fact.claim, LONGEST_CLAIM):
        return "text"
    if fact.certainty not in Certainty.values:
        return "certainty"
    if fact.temporal not in Temporal.values:
        return "temporal"
    times = [time for time in (fact.valid_from, fact.valid_to) if time is not None]
    if not all(time.utcoffset() is not None and 2 <= time.year <= 9998 for time in times):
        return "time"
    return "" if times == sorted(set(times)) else "time"


def checked(extraction: Extraction, chunk: Chunk) -> Extraction:
    """Return the reliable part of an extraction: only items that keep all of these rules, whoever found them.

    An item that breaks one is dropped whole, and counted in `dropped` under the first rule that it breaks:

    - `evidence`: it names turns, all of them new ones of the chunk.
    - `role`: they were spoken by people or agents. Preferences and corrections are the user's to tell.
    - `order`: none of them gives orders to machinery (`orders.gives_orders`).
    - `text`: texts say something, in the length that is kept, on one line, without control characters and tags; names
      have a letter, and are neither an id nor an address.
    - `type`, `certainty`, `temporal`: one of those that there are; no structural relationship.
    - `time`: times have a zone and are of the years 2 to 9998, an end lies after its beginning.
    - `entity`: facts and relationships name entities that are left in the extraction.
    - `ungrounded`: entities are named in their evidence, or speak; those of facts and relationships in some turn up to
      the evidence; claims, topics and values are told there, by their words (`grounding.is_grounded`).
    - `self`: a relationship has two ends.
    - `reference`: numbers of facts are new ones; what is referred to is known, or is left before in the extraction. A
      fact refers to what concerns the same: one of its entities is named there.
    - `duplicate`: another item of the extraction says the same.
    - `many`: there are at most MOST_ITEMS of a kind, MOST_PARTS entities or references in a fact.

    Lists come without repetitions and evidence in order, names of facts and relationships become the entities' first
    names. An alias that is not said, or is another's name, is left out (counted as `alias`), as is a description that
    is not told (`description`). What has been checked comes back as it is.
    """
    checking = Checking(chunk)
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
            map(checking.tidy_preference, extraction.preferences),
            checking.preference_fault,
            lambda preference: (fold(preference.topic), fold(preference.value)),
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

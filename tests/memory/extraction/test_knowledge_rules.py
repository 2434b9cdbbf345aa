"""Properties of extracted knowledge: whatever is extracted, only what keeps the rules is left."""

import re
from dataclasses import replace
from datetime import UTC
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.knowledge import (
    ENTITY_TYPES,
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
    check_extraction,
)
from memory.identity import normalize_name
from memory.models.facts import Certainty, Temporal
from memory.models.links import STRUCTURAL_TYPES
from memory.scoring import CONFIDENCE_BY_CERTAINTY
from tests.memory.extraction.knowledge import (
    CAST,
    CHUNK,
    KNOWN,
    TEXTS,
    coffee,
    fact,
    works_for,
)

WORDS = ("Ana", "Ben", "Benny", "Grundfos", "Berlin", "Hamburg", "coffee", "Carl", "Rome", "lives", "works", "for")


INDEXES = st.lists(st.integers(2, 10), max_size=3).map(tuple)


NUMBERS = st.lists(st.integers(0, 8), max_size=2).map(tuple)


NAMES = st.sampled_from((*WORDS[:9], "ana", "“Ben’s”", "", "he", "A" * 501)) | st.text(max_size=3)


CLAIMS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.text(max_size=5)


TIMES = st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC))


CERTAINTIES = st.sampled_from((*Certainty.values, "sure"))


ENTITIES = st.builds(
    ExtractedEntity,
    name=NAMES,
    type=st.sampled_from((*ENTITY_TYPES, "human")),
    aliases=st.lists(NAMES, max_size=3).map(tuple),
    description=CLAIMS,
    evidence=INDEXES,
)


FACTS = st.builds(
    ExtractedFact,
    number=st.integers(0, 8),
    claim=CLAIMS,
    certainty=CERTAINTIES,
    temporal=st.sampled_from((*Temporal.values, "ever")),
    entities=st.lists(NAMES, max_size=2).map(tuple),
    valid_from=TIMES,
    valid_to=TIMES,
    contradicts=NUMBERS,
    corrects=NUMBERS,
    evidence=INDEXES,
)


RELATIONSHIPS = st.builds(
    ExtractedRelationship,
    source=NAMES,
    target=NAMES,
    type=st.sampled_from(("KNOWS", "ABOUT", "knows", "OWNS_2")) | st.text(max_size=3),
    certainty=CERTAINTIES,
    evidence=INDEXES,
)


PREFERENCES = st.builds(
    ExtractedPreference, topic=CLAIMS, value=CLAIMS, fact=st.none() | st.integers(0, 8), evidence=INDEXES
)


EXTRACTIONS = st.builds(
    Extraction,
    source=st.just("model"),
    entities=st.lists(ENTITIES, max_size=8).map(tuple),
    facts=st.lists(FACTS, max_size=8).map(tuple),
    relationships=st.lists(RELATIONSHIPS, max_size=6).map(tuple),
    preferences=st.lists(PREFERENCES, max_size=4).map(tuple),
    dropped=st.dictionaries(st.sampled_from(("time", "self")), st.integers(1, 3), max_size=1),
)


# what is likely to be kept among it, so that the property is about more than empty extractions
GOOD = Extraction(
    source="model",
    entities=CAST,
    facts=(fact(), fact("Ben works for Grundfos", number=4, entities=("Ben",), contradicts=(3,))),
    relationships=(works_for(),),
    preferences=(coffee(fact=3),),
)


def joined(extraction: Extraction, good: Extraction) -> Extraction:
    kinds = ("entities", "facts", "relationships", "preferences")
    return replace(extraction, **{kind: getattr(good, kind) + getattr(extraction, kind) for kind in kinds})


def items_of(extraction: Extraction) -> list[Any]:
    return [*extraction.entities, *extraction.facts, *extraction.relationships, *extraction.preferences]


def words_of(index: int) -> str:
    return f"{TEXTS[index][1]} {TEXTS[index][2]}".casefold()


@given(EXTRACTIONS, st.sampled_from((GOOD, Extraction(source="model"))))
def test_checking_any_extraction_keeps_only_valid_items_and_counts_the_rest(
    extraction: Extraction, good: Extraction
) -> None:
    whole = joined(extraction, good)

    result = check_extraction(whole, CHUNK)

    keeps_the_rules(result)
    assert check_extraction(result, CHUNK) == result
    lost = len(items_of(whole)) - len(items_of(result))
    parts = {"alias", "description"}
    counted = sum(count for reason, count in result.dropped.items() if reason not in parts)
    assert counted == lost + sum(whole.dropped.values())


def keeps_the_rules(extraction: Extraction) -> None:
    for item in items_of(extraction):
        assert item.evidence == tuple(sorted(set(item.evidence)))
        assert item.evidence
        assert set(item.evidence) <= {5, 6, 9}
    names = entities_keep_the_rules(extraction)
    facts_keep_the_rules(extraction, names)
    for relationship in extraction.relationships:
        assert re.fullmatch("[A-Z][A-Z0-9_]{0,49}", relationship.type)
        assert relationship.type not in STRUCTURAL_TYPES
        assert relationship.certainty in CONFIDENCE_BY_CERTAINTY
        assert relationship.source != relationship.target
        assert {relationship.source, relationship.target} <= names
    for preference in extraction.preferences:
        assert {TEXTS[index][0] for index in preference.evidence} == {"user"}
        assert preference.topic.strip()
        assert preference.value.strip()


def entities_keep_the_rules(extraction: Extraction) -> set[str]:
    """Their first names."""
    taken = [normalize_name(name) for each in extraction.entities for name in (each.name, *each.aliases)]
    assert len(taken) == len(set(taken))
    for each in extraction.entities:
        assert each.type in ENTITY_TYPES
        heard = "ana " + " ".join(map(words_of, each.evidence))
        assert all(normalize_name(name) in heard for name in (each.name, *each.aliases))
    return {each.name for each in extraction.entities}


def facts_keep_the_rules(extraction: Extraction, names: set[str]) -> None:
    numbers = {known.number for known in KNOWN}
    for each in extraction.facts:
        assert each.certainty in CONFIDENCE_BY_CERTAINTY
        assert each.temporal in Temporal.values
        assert set(each.entities) <= names
        assert {*each.contradicts, *each.corrects} <= numbers
        assert not set(each.contradicts) & set(each.corrects)
        assert each.number not in numbers
        assert each.claim.strip()
        assert not (each.valid_from and each.valid_to) or each.valid_from < each.valid_to
        numbers.add(each.number)

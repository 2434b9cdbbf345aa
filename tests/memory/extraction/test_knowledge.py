"""The parts of an extraction that are believed, and the reasons for dropping others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.extraction.knowledge import (
    MAX_EXTRACTED_ITEMS,
    MAX_ITEM_PARTS,
    Chunk,
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
    check_extraction,
)
from memory.models.links import STRUCTURAL_TYPES
from tests.memory.extraction.knowledge import CAST, CHUNK, NOON, coffee, entity, fact, works_for


def check(chunk: Chunk = CHUNK, **kinds: Any) -> Extraction:
    return check_extraction(Extraction(**{"source": "rules", "entities": CAST, **kinds}), chunk)


def test_knowledge_grounded_in_the_turns_is_kept() -> None:
    extraction = Extraction(
        source="rules",
        entities=CAST,
        facts=(fact(entities=("Ana", "Berlin"), contradicts=(1,)), fact("Ben has a sister", number=4, corrects=(3,))),
        relationships=(works_for(),),
        preferences=(coffee(fact=3),),
    )
    kept = replace(extraction, facts=(extraction.facts[0],))

    result = check_extraction(extraction, CHUNK)

    assert result == replace(kept, dropped={"ungrounded": 1})
    assert check_extraction(result, CHUNK) == result


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entity("Ana", evidence=()), "evidence"),
        (entity("Ana", 3), "evidence"),
        (entity("Ana", 5, 99), "evidence"),
        (entity("Carl", 7), "role"),
        (entity("Ana", 5, 7), "role"),
        (entity("Carl", 8), "order"),
        (entity(""), "text"),
        (entity(" "), "text"),
        (entity("Ana\x00"), "text"),
        (entity("Ana\nBen"), "text"),
        (entity("<b>Ana"), "text"),
        (entity("A" * 501), "text"),
        (entity("42"), "text"),
        (entity("he"), "text"),
        (entity("0190a5b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b"), "text"),
        (entity("Ana", description="x" * 2_001), "text"),
        (entity("Ana", type="human"), "type"),
        (entity("Ana", type=""), "type"),
        (entity("Carl"), "ungrounded"),
        (entity("Dora"), "ungrounded"),
        (entity("Hamburg"), "ungrounded"),
        (entity("Be"), "ungrounded"),
    ],
)
def test_an_entity_that_was_not_named_is_dropped(wrong: ExtractedEntity, reason: str) -> None:
    result = check(entities=[wrong])

    assert (result.entities, result.dropped) == ((), {reason: 1})


def test_a_second_entity_with_the_same_name_is_dropped() -> None:
    result = check(entities=[entity("Ben"), entity("ben’s", type="animal")])

    assert [(each.name, each.type) for each in result.entities] == [("Ben", "person")]
    assert result.dropped == {"duplicate": 1}


def test_aliases_are_kept_if_mentioned_and_not_used_by_another_entity() -> None:
    ben = entity("Ben", aliases=("Benny", "BENNY", "ben", "Benjamin", "Grundfos", "he"), description="Lives in Berlin")

    result = check(entities=[ben, entity("Grundfos", type="organization", description="Hated by Mallory's people")])

    assert [(each.aliases, each.description) for each in result.entities] == [(("Benny",), "Lives in Berlin"), ((), "")]
    assert result.dropped == {"alias": 5, "description": 1}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (fact(evidence=()), "evidence"),
        (fact(evidence=(5, 4)), "evidence"),
        (fact(evidence=(7,)), "role"),
        (fact(evidence=(6,), corrects=(1,)), "role"),
        (fact(evidence=(8,)), "order"),
        (fact(""), "text"),
        (fact("Ana lives\x00"), "text"),
        (fact("Ana lives in Berlin <script>"), "text"),
        (fact("Ana lives " * 201), "text"),
        (fact(certainty="sure"), "certainty"),
        (fact(certainty=""), "certainty"),
        (fact(temporal="forever"), "temporal"),
        (fact(valid_from=NOON, valid_to=NOON), "time"),
        (fact(valid_from=NOON, valid_to=NOON - timedelta(days=1)), "time"),
        (fact(valid_from=datetime(2024, 3, 4)), "time"),  # noqa: DTZ001
        (fact(valid_to=datetime(1, 1, 1, tzinfo=UTC)), "time"),
        (fact(valid_from=datetime(9999, 1, 1, tzinfo=UTC)), "time"),
        (fact(entities=("Carl",)), "entity"),
        (fact(entities=("Ana", "Benny")), "entity"),
        (fact("Mallory owns everything, says the operator"), "ungrounded"),
        (fact("PWNED", entities=()), "ungrounded"),
        (fact("The user is an administrator", entities=()), "ungrounded"),
        (fact("Ana meant Hamburg"), "ungrounded"),
        (fact(number=1), "reference"),
        (fact(contradicts=(99,)), "reference"),
        (fact(contradicts=(3,)), "reference"),
        (fact(corrects=(-1, 10**30)), "reference"),
        (fact("Grundfos makes pumps", entities=("Grundfos",), evidence=(6,), contradicts=(1,)), "reference"),
        (fact(corrects=(2,)), "reference"),
        (fact(contradicts=tuple(range(1, MAX_ITEM_PARTS + 2))), "reference"),
    ],
)
def test_a_fact_that_was_not_said_is_dropped(wrong: ExtractedFact, reason: str) -> None:
    result = check(facts=[wrong])

    assert (result.facts, result.dropped) == ((), {reason: 1})


def test_facts_refer_to_kept_facts_before_them() -> None:
    facts = [
        fact(number=3),
        fact("Ana lives with Ben", number=3),
        fact("Ana lives in Rome, Paris, Lima, Cairo and Kyoto", number=4),
        fact("Ana lives in Hamburg", number=5, evidence=(9,), corrects=(4,)),
        fact("Ana meant Hamburg", number=6, evidence=(9,), corrects=(3,), contradicts=(1, 3)),
    ]

    result = check(facts=facts)

    assert [(each.number, each.corrects, each.contradicts) for each in result.facts] == [(3, (), ()), (6, (3,), (1,))]
    assert result.dropped == {"reference": 2, "ungrounded": 1}


def test_aliases_become_canonical_names_and_lists_are_deduplicated() -> None:
    cast = [entity("Ben", aliases=("Benny",)), entity("Grundfos", type="organization")]
    again = fact("Ben works for Grundfos", entities=("Benny", "BEN", "Grundfos"), evidence=(6, 5, 5))

    result = check(entities=cast, facts=[again], relationships=[works_for("benny", "grundfos")])

    assert (result.facts[0].entities, result.facts[0].evidence) == (("Ben", "Grundfos"), (5, 6))
    assert (result.relationships[0].source, result.relationships[0].target) == ("Ben", "Grundfos")


def test_a_fact_may_name_a_person_mentioned_in_an_earlier_turn() -> None:
    okafor = fact("The user meant Hamburg", entities=(), evidence=(9,))
    ben = fact("Ben makes pumps in Berlin", number=4, entities=("Ben",), evidence=(6,))

    assert check(facts=[okafor, ben]).dropped == {}


def test_a_repeated_claim_with_the_same_validity_is_one_fact() -> None:
    facts = [fact(), fact("ana lives in berlin!", number=4), fact(number=5, valid_from=NOON)]

    result = check(facts=facts)

    assert ([each.number for each in result.facts], result.dropped) == ([3, 5], {"duplicate": 1})


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (works_for(evidence=()), "evidence"),
        (works_for(evidence=(7,)), "role"),
        (works_for(evidence=(8,)), "order"),
        (works_for(type="works_for"), "type"),
        (works_for(type=""), "type"),
        (works_for(type="1ST"), "type"),
        (works_for(type="A" * 51), "type"),
        (works_for(type="KNOWS\n"), "type"),
        *((works_for(type=kind), "type") for kind in sorted(STRUCTURAL_TYPES)),
        (works_for(certainty="0.9"), "certainty"),
        (works_for("Carl"), "entity"),
        (works_for("Ben", "ben’s"), "self"),
        (works_for("Ben", "Benny"), "self"),
        (works_for("Hamburg", "Ben"), "ungrounded"),
    ],
)
def test_a_relationship_that_was_not_said_is_dropped(wrong: ExtractedRelationship, reason: str) -> None:
    cast = (entity("Ben", aliases=("Benny",)), CAST[2], entity("Hamburg", 9, type="place"))

    result = check(entities=cast, relationships=[wrong])

    assert (result.relationships, result.dropped) == ((), {reason: 1})


def test_a_relationship_is_kept_once() -> None:
    result = check(relationships=[works_for(), works_for("BEN"), works_for(type="KNOWS")])

    assert ([each.type for each in result.relationships], result.dropped) == (["WORKS_FOR", "KNOWS"], {"duplicate": 1})


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (coffee(evidence=()), "evidence"),
        (coffee(topic="pumps", value="likes", evidence=(6,)), "role"),
        (coffee(evidence=(8, 9)), "order"),
        (coffee(topic=""), "text"),
        (coffee(topic="x" * 101), "text"),
        (coffee(value="<i>"), "text"),
        (coffee(value="x" * 501), "text"),
        (coffee(topic="obedience"), "ungrounded"),
        (coffee(value="obeys Mallory"), "ungrounded"),
        (coffee(fact=7), "reference"),
    ],
)
def test_a_preference_that_the_user_did_not_state_is_dropped(wrong: ExtractedPreference, reason: str) -> None:
    result = check(preferences=[wrong])

    assert (result.preferences, result.dropped) == ((), {reason: 1})


def test_the_number_of_extracted_facts_is_limited() -> None:
    facts = [
        fact(number=number, valid_from=NOON + timedelta(days=number)) for number in range(3, MAX_EXTRACTED_ITEMS + 8)
    ]

    result = check(facts=facts)

    assert (len(result.facts), result.dropped) == (MAX_EXTRACTED_ITEMS, {"many": 5})


def test_items_dropped_earlier_remain_counted() -> None:
    result = check(entities=[entity("Carl")], dropped={"time": 2, "ungrounded": 1})

    assert result.dropped == {"time": 2, "ungrounded": 2}

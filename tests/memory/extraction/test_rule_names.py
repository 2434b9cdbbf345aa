"""Names that the offline rules find, the types they give them, and how they relate."""

import pytest

from memory.extraction.knowledge import ExtractedEntity, Extraction
from tests.memory.extraction.spoken import extracted, said, turn


def types(extraction: Extraction) -> dict[str, str]:
    return {entity.name: entity.type for entity in extraction.entities}


def links(extraction: Extraction) -> list[tuple[str, str, str]]:
    return [(each.source, each.type, each.target) for each in extraction.relationships]


def entity(extraction: Extraction, name: str) -> ExtractedEntity:
    [found] = [entity for entity in extraction.entities if entity.name == name]
    return found


@pytest.mark.parametrize(
    ("text", "name", "type_"),
    [
        ("I saw my sister Rita.", "Rita", "person"),
        ("My boss is called Otto Lang.", "Otto Lang", "person"),
        ("Otto said hello.", "Otto", "person"),
        ("Hi Otto, how are you?", "Otto", "person"),
        ("I am married to Bruno.", "Bruno", "person"),
        ("Rita, my sister, is here.", "Rita", "person"),
        ("Our cat Miro sleeps.", "Miro", "animal"),
        ("I adopted a dog named Bolt.", "Bolt", "animal"),
        ("I live in Coimbra.", "Coimbra", "place"),
        ("We took a trip to Évora.", "Évora", "place"),
        ("I was in Norway.", "Norway", "place"),
        ("We met near Rio de Janeiro.", "Rio de Janeiro", "place"),
        ("I work for Globex.", "Globex", "organization"),
        ("I am a nurse at St. Mary Hospital.", "St. Mary Hospital", "organization"),
        ("He knows the University of Porto.", "University of Porto", "organization"),
        ("Initech Ltd sent a letter.", "Initech Ltd", "organization"),
        ("I wrote a song called Blue Hours.", "Blue Hours", "work"),
    ],
)
def test_the_type_of_a_name_comes_from_its_context(text: str, name: str, type_: str) -> None:
    assert types(said(text)).get(name) == type_


@pytest.mark.parametrize(
    "text",
    [
        "Great news about Blorp!",
        "I saw Blorp yesterday.",
        "I live in May.",
        "I was in English class.",
        "My sister Monday was late.",
        "My brother is Canadian.",
        "My doctor is Great.",
        "I moved to Otto's flat.",
        "Thankfully, my family is fine.",
        "MY SISTER IS HERE AND I AM GLAD.",
        '"I live in Coimbra."',
        "`Otto said hello`",
    ],
)
def test_a_name_without_context_clues_is_not_an_entity(text: str) -> None:
    assert types(said(text)) == {}


def test_a_name_with_conflicting_contexts_is_not_an_entity() -> None:
    extraction = said("I work for Florence.", "My aunt Florence sings.")

    assert "Florence" not in types(extraction)
    assert extraction.relationships == ()
    assert extraction.facts[0].entities == ()


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("I work for Globex.", ("Lena", "WORKS_FOR", "Globex")),
        ("I'm an engineer at Globex.", ("Lena", "WORKS_FOR", "Globex")),
        ("I live in Coimbra.", ("Lena", "LOCATED_IN", "Coimbra")),
        ("I just moved to Coimbra.", ("Lena", "LOCATED_IN", "Coimbra")),
        ("My sister Rita is nice.", ("Lena", "KNOWS", "Rita")),
        ("I'm married to Bruno.", ("Lena", "KNOWS", "Bruno")),
        ("My cat Miro sleeps.", ("Lena", "RELATED_TO", "Miro")),
        ("I founded Hooli in 2010.", ("Hooli", "CREATED_BY", "Lena")),
        ("I wrote a book called Blue Hours.", ("Blue Hours", "CREATED_BY", "Lena")),
        ("Otto said hi. Otto works for Globex.", ("Otto", "WORKS_FOR", "Globex")),
        ("Evora is a town in Portugal.", ("Evora", "LOCATED_IN", "Portugal")),
        ("I live in Alfama. Alfama is part of Lisbon.", ("Alfama", "PART_OF", "Lisbon")),
    ],
)
def test_claims_between_two_names_are_relationships(text: str, link: tuple[str, str, str]) -> None:
    assert link in links(said(text, speaker="Lena"))


@pytest.mark.parametrize(
    "text",
    ["I used to live in Coimbra.", "I will move to Coimbra.", "Maybe I live in Coimbra.", "I worked for Globex."],
)
def test_a_past_future_or_uncertain_claim_is_not_a_relationship(text: str) -> None:
    assert links(said(text, speaker="Lena")) == []


def test_a_user_without_a_name_is_not_an_entity() -> None:
    extraction = said("I live in Coimbra.")

    assert types(extraction) == {"Coimbra": "place"}
    assert links(extraction) == []


def test_a_short_name_becomes_an_alias_of_the_speaker_addressed_by_it() -> None:
    turns = [turn("Hi Lena, I own a boat.", speaker="Gregory"), turn("Hi Greg, I own a car.", speaker="Lena", index=1)]

    gregory = entity(extracted(turns), "Gregory")

    assert (gregory.type, gregory.aliases, gregory.evidence) == ("person", ("Greg",), (0, 1))


def test_the_evidence_of_an_entity_is_every_new_turn_that_names_it() -> None:
    before = [turn("My sister Rita lives in Coimbra.", index=4)]
    turns = [turn("It rains.", index=5), turn("Rita called.", index=6), turn("Rita is well.", index=7)]

    extraction = extracted(turns, before=before)

    assert types(extraction) == {"Rita": "person"}
    assert entity(extraction, "Rita").evidence == (6, 7)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("My sister Rita called. She lives in Coimbra.", "Rita lives in Coimbra"),
        ("My brother is a doctor and he owns a boat.", "The user's brother owns a boat"),
        ("Rita's brother is Otto. Rita said hi. Otto said hi.", "Rita's brother is Otto"),
        ("We got a puppy. Her name is Miro.", "The user's puppy is Miro"),
        ("Dad was born in Coimbra.", "The user's dad was born in Coimbra"),
        ("My parents live in Coimbra.", "The user's parents live in Coimbra"),
        ("Otto said hi. Otto is allergic to nuts.", "Otto is allergic to nuts"),
    ],
)
def test_claims_about_people_other_than_the_speaker_are_extracted(text: str, claim: str) -> None:
    facts = {fact.claim: fact.certainty for fact in said(text).facts}

    assert claim in facts
    assert facts[claim] in ("implied", "explicit")


@pytest.mark.parametrize(
    "text",
    [
        "My sister Rita met my aunt Olga. She lives in Coimbra.",
        "My sister Rita called. He lives in Coimbra.",
        "It rains. She lives in Coimbra.",
        "My sister Rita called. It rains. It pours. She lives in Coimbra.",
        "Blorp runs fine. Blorp owns a boat.",
    ],
)
def test_an_ambiguous_pronoun_yields_no_claim(text: str) -> None:
    assert not [fact for fact in said(text).facts if "Coimbra" in fact.claim or "boat" in fact.claim]


@pytest.mark.slow
def test_at_most_two_hundred_entities_are_extracted() -> None:
    text = " ".join(
        f"My friend {first}{second}o sings." for first in "ABCDEFGHIJKLMNOPQRST" for second in "abcdefghijklmno"
    )

    assert len(said(text).entities) <= 200


@pytest.mark.parametrize("who", ["dog", "son"])
def test_somebody_who_turns_an_age_is_an_animal_if_it_was_named_as_one(who: str) -> None:
    facts = said(f"My {who} Biscuit is two years old.", "Biscuit turned three yesterday.")

    [old] = [fact.number for fact in facts.facts if fact.claim == "Biscuit is 2 years old"]
    assert [fact.contradicts for fact in facts.facts if fact.claim == "Biscuit is 3 years old"] == [(old,)]
    assert [each.type for each in facts.entities] == ["animal" if who == "dog" else "person"]

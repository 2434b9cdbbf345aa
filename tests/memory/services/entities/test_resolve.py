"""Names that are nearly the same: which count as misspellings, by their letters and their meaning."""

from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Entity
from memory.owner import Owner
from memory.providers.embeddings.local import LocalEmbeddings
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.change import remove_entity
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.entities.merge import merge_entities
from memory.services.entities.resolve import (
    FUZZY_NAME_SCORE,
    FUZZY_SIMILARITY,
    differs_by_one_letter,
    find_misspelt_entities,
    is_misspelling,
    name_similarity,
    split_name,
)
from memory.services.entities.store import entity_text
from memory.services.memories.correct import mark_memories
from memory_project.embedded.models import BUNDLED_MODEL, find_bundled_folder
from tests.memory.entities import entities_of, entity_of, meet
from tests.memory.episodes import NOTHING, NOW

ONE = [
    # by real similarity: 0.86, 0.95, 0.94, 0.95, 0.93, 0.99, 0.88, 1.00, 1.00, 0.97
    ("Jon Smith", "John Smith", "person"),
    ("Philip Miller", "Phillip Miller", "person"),
    ("Theresa Garcia", "Teresa Garcia", "person"),
    ("Mathew Rossi", "Matthew Rossi", "person"),
    ("Kathrin Rossi", "Katrin Rossi", "person"),
    ("Acme Inc", "Acme, Inc", "organization"),
    ("Postgre SQL", "PostgreSQL", "product"),
    ("José García", "Jose Garcia", "person"),
    ("J. R. R. Tolkien", "J.R.R. Tolkien", "person"),
    ("Hewlett-Packard", "Hewlett Packard", "organization"),
]

TWO = [
    # another word
    ("Java", "JavaScript", "product"),
    ("John Smith", "Jane Smith", "person"),
    ("Washington", "Washington DC", "place"),
    ("New York", "York", "place"),
    ("University of Washington", "Washington University", "organization"),
    ("Team Alpha One", "Team Alpha Two", "organization"),
    # another beginning, another ending
    ("Anna", "Hanna", "person"),
    ("East London", "West London", "place"),
    ("Michael", "Michaela", "person"),
    ("Gabriel", "Gabriela", "person"),
    ("Andrea Rossi", "Andreas Rossi", "person"),
    ("Julian Moore", "Julianne Moore", "person"),
    ("Adrian Rossi", "Adriane Rossi", "person"),
    ("Niger", "Nigeria", "place"),
    ("Saint Mary Church", "Saint Marys Church", "place"),
    # another letter
    ("Alina Garcia", "Alisa Garcia", "person"),
    ("Marion Rossi", "Marian Rossi", "person"),
    ("Class A Share", "Class B Share", "concept"),
    ("Ana Lima", "Ana Lina", "person"),
    # another figure or sign
    ("GPT-3", "GPT-4", "product"),
    ("iPhone 14", "iPhone 15", "product"),
    ("Room 101", "Room 102", "place"),
    ("Release 2.5", "Release 25", "product"),
    ("Windows 1", "Windows 11", "product"),
    ("C++", "C#", "product"),
    # a letter less, and another meaning
    ("Jon Smith", "Joan Smith", "person"),
    ("Baker Street", "Barker Street", "place"),
    ("Acme Health Group", "Acme Heath Group", "organization"),
    ("North Ridge School", "North Bridge School", "place"),
    ("Kevin Smith", "Kelvin Smith", "person"),
]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> LocalEmbeddings:
    return LocalEmbeddings(find_bundled_folder(), model=BUNDLED_MODEL, kept_in=[tmp_path_factory.mktemp("graphs")])


def met_as(owner: Owner, minilm: LocalEmbeddings, name: str, type_: str, description: str = "") -> Entity:
    """Upsert an entity with the vector that the shipped model makes of it."""
    text = entity_text(name, [], description)
    [vector] = minilm.embed([text], deadline_seconds=None)
    embedded = EmbeddedTexts(model=minilm.model, width=minilm.width, vectors={text: vector})
    draft = EntityDraft(name=name, type=type_, description=description)
    return upsert_entity(owner, draft, embedded=embedded, now=NOW).entity


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "other", "type_"), ONE)
def test_a_misspelling_resolves_to_the_entity(
    owner: Owner, minilm: LocalEmbeddings, name: str, other: str, type_: str
) -> None:
    first = met_as(owner, minilm, name, type_)

    assert met_as(owner, minilm, other, type_) == first
    assert Entity.objects.get().names == [name, other]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(("name", "other", "type_"), TWO)
def test_different_names_do_not_resolve_to_one_entity(
    owner: Owner, minilm: LocalEmbeddings, name: str, other: str, type_: str
) -> None:
    for first, second in ((name, other), (other, name)):
        assert met_as(owner, minilm, first, type_) != met_as(owner, minilm, second, type_)


@pytest.mark.django_db
def test_descriptions_keep_similar_names_apart(owner: Owner, minilm: LocalEmbeddings) -> None:
    plumber = met_as(owner, minilm, "Jon Smith", "person", "A plumber from Leeds.")

    assert met_as(owner, minilm, "John Smith", "person", "The chief executive of Acme.") != plumber


@pytest.mark.parametrize(
    ("name", "other", "score", "misspelt"),
    [
        # 2 · 9 of 9 + 10 letters; 2 · 4 of 4 + 5; 2 · 9 of 10 + 10; 2 · 6 of 6 + 7
        ("Jon Smith", "John Smith", 1_800 / 19, True),
        ("Anna", "Hanna", 800 / 9, False),
        ("John Smith", "Joan Smith", 90.0, False),
        ("Daniel", "Daniela", 1_200 / 13, False),
        ("Red Hat", "redhat", 1_200 / 13, True),
        ("GPT-3.5", "GPT 3 5", 100.0, True),
        ("GPT-3.5", "GPT-35", 1_200 / 13, False),
        ("Bon", "Boon", 600 / 7, True),
        ("Al", "Ail", 80.0, False),
        ("か", "が", 200 / 3, False),
        ("राम", "रामा", 600 / 7, False),
        ("محمد علي", "محمود علي", 1_600 / 17, False),
        ("???", "!!!", 100.0, False),
    ],
)
def test_name_similarity_and_misspellings_are_symmetric_and_as_expected(
    name: str, other: str, score: float, misspelt: bool
) -> None:
    for pair in ((name, other), (other, name)):
        assert name_similarity(*pair) == pytest.approx(score)
        assert differs_by_one_letter(*pair) is misspelt
        assert is_misspelling(*pair) is (misspelt and score >= FUZZY_NAME_SCORE)


@pytest.mark.parametrize(
    ("name", "words"),
    [("José J. García-Ruiz", "jose j garcia ruiz"), ("AT&T", "at&t"), ("C++", "c++"), ("Ｆｕｌｌ", "full")],
)
def test_a_name_is_split_into_normalized_words(name: str, words: str) -> None:
    assert " ".join(split_name(name)) == words


# cos 0.5 is 0.878, cos 0.6 is 0.825
@pytest.mark.django_db
@pytest.mark.parametrize(("angle", "is_same"), [(0.5, True), (0.6, False), (None, False)])
def test_meaning_must_agree_as_well(owner: Owner, angle: float | None, is_same: bool) -> None:
    assert FUZZY_SIMILARITY == 0.85
    first = entity_of(owner, "Jon Smith", angle=0.0)

    assert (entity_of(owner, "John Smith", angle=angle) == first) is is_same


@pytest.mark.django_db
def test_a_name_without_a_vector_resolves_to_nothing(owner: Owner) -> None:
    meet(owner, "Jon Smith")

    assert meet(owner, "John Smith", angle=0.0).is_new


@pytest.mark.django_db
def test_aliases_are_compared_and_the_nearest_in_meaning_wins(owner: Owner) -> None:
    meet(owner, "Boss", aliases=["Jon Smith"], angle=0.4)
    near = entity_of(owner, "Chief", aliases=["Johhn Smith"], angle=0.1)

    assert entity_of(owner, "John Smith", angle=0.0) == near


@pytest.mark.django_db
def test_entities_of_another_type_holder_or_channel_are_no_candidates(owner: Owner) -> None:
    meet(owner, "Jon Smith", type="place", angle=0.0)
    for other in (
        replace(owner, agent_id="other"),
        replace(owner, user_id="ana"),
        replace(owner, channel="project"),
    ):
        meet(other, "Jon Smith", angle=0.0)
    archived, merged, deleted = entities_of(owner, "Joon Smith", "Jonn Smith", "Jhon Smith", angle=0.0)
    mark_memories(owner, [archived.id], mark="archive", now=NOW)
    merge_entities(owner, entity_of(owner, "Somebody", angle=3.0).id, merged.id, now=NOW)
    remove_entity(owner, deleted.id, now=NOW)

    assert meet(owner, "John Smith", angle=0.0).is_new


@pytest.mark.django_db
def test_a_quarantined_entity_is_no_candidate(owner: Owner) -> None:
    quarantined = entity_of(owner, "Jon Smith", angle=0.0)
    mark_memories(owner, [quarantined.id], mark="quarantine", now=NOW)

    assert meet(owner, "John Smith", angle=0.0).is_new


@pytest.mark.django_db
def test_looking_for_no_names_takes_no_statement(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert find_misspelt_entities(owner, [], model=NOTHING.model) == []

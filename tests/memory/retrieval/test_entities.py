"""Search in entities: by meaning and by words, with tenant isolation."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account
from memory.owner import Owner
from memory.retrieval.search import search_entities
from memory.services.entities.merge import merge_entities
from memory.services.memories.correct import mark_memories
from tests.memory.entities import entity_of, meet
from tests.memory.episodes import NOW, query

pytestmark = pytest.mark.django_db


def found(owner: Owner, text: str = "anything", *, angle: float | None = 0.0, top_k: int = 10) -> list[str]:
    return [hit.name for hit in search_entities(owner, query(text, angle=angle, top_k=top_k), now=NOW).hits]


def test_the_nearest_come_first(owner: Owner) -> None:
    meet(owner, "far", angle=1.0)
    meet(owner, "near", angle=0.1)

    assert found(owner) == ["near", "far"]
    assert found(owner, top_k=1) == ["near"]


def test_a_hit_has_all_fields_of_its_entity(owner: Owner) -> None:
    said: dict[str, Any] = {"aliases": ["Anita"], "description": "A baker.", "properties": {"a": 1}, "salience": 0.7}
    entity = entity_of(owner, angle=0.0, **said)

    [hit] = search_entities(owner, query(), now=NOW).hits

    assert (hit.id, hit.item_key, hit.name, hit.type) == (entity.id, f"entity:{entity.id}", "Ana Lima", "person")
    assert {name: getattr(hit, name) for name in said} == said
    assert (hit.text, hit.event_time) == ("Ana Lima (Anita). A baker.", NOW)
    assert hit.similarity == pytest.approx(1, abs=1e-3)


def test_an_entity_without_a_vector_is_found_by_any_of_its_words(owner: Owner) -> None:
    meet(owner, aliases=["Anita"], description="A baker.")
    meet(owner, "Bo")

    assert [found(owner, text) for text in ("Lima", "anita", "bakers")] == [["Ana Lima"]] * 3
    assert search_entities(owner, query("Lima"), now=NOW).degraded == ["embedding_pending"]


def test_a_search_may_be_limited_to_types(owner: Owner) -> None:
    meet(owner, "Paris", type="place", angle=0.1)
    meet(owner, "Paris", type="person", angle=0.2)

    hits = search_entities(owner, replace(query(), types=("place",)), now=NOW).hits

    assert [hit.type for hit in hits] == ["place"]


def test_entities_of_others_are_not_found(owner: Owner, stranger: Account) -> None:
    user = replace(owner, user_id="ana")
    meet(owner, "nobody's", angle=0.1)
    meet(replace(owner, agent_id=""), "the account's", angle=0.15)
    meet(user, "ana's", angle=0.2)
    meet(replace(owner, channel="project"), "of a project", angle=0.3)

    assert found(replace(user, agent_id="other")) == ["the account's", "ana's"]
    assert found(replace(owner, user_id="bo")) == ["nobody's", "the account's"]
    assert found(replace(owner, agent_id="other")) == ["the account's"]
    assert found(Owner(account_id=stranger.id)) == []
    assert found(replace(owner, channel="project")) == ["nobody's", "the account's", "ana's", "of a project"]


def test_archived_quarantined_and_merged_entities_are_not_found(owner: Owner) -> None:
    survivor, merged = entity_of(owner, "survivor", angle=0.1), entity_of(owner, "merged", angle=0.2)
    archived, quarantined = entity_of(owner, "archived", angle=0.3), entity_of(owner, "quarantined", angle=0.4)
    mark_memories(owner, [archived.id], mark="archive", now=NOW)
    mark_memories(owner, [quarantined.id], mark="quarantine", now=NOW)
    merge_entities(owner, survivor.id, merged.id, now=NOW)

    # its new names wait for a vector
    assert found(owner, "merged") == ["survivor"]


def test_a_search_is_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    meet(owner, angle=0.1)

    with django_assert_num_queries(1):
        search_entities(owner, query(), now=NOW)

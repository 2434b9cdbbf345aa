"""Upserting entities: a name stands for one entity, whose details grow with each draft."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from memory.errors import Conflict, TooLarge, Unprocessable
from memory.models import Account, AuditEntry, Entity, EntityName, Memory, Vector
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.learn import (
    MAX_ALIASES,
    ResolvedEntity,
    entity_texts_to_embed,
    upsert_entities,
    upsert_entities_leniently,
    upsert_entity,
)
from memory.services.entities.store import entity_text, lock_entities
from memory.services.memories.correct import mark_memories
from tests.memory.entities import entity_draft, entity_of, meet
from tests.memory.episodes import MODEL, NOTHING, NOW, WIDTH, direction
from tests.memory.services.entities.known import known, stored

pytestmark = pytest.mark.django_db


def test_a_new_name_creates_an_entity_with_all_given_values(owner: Owner) -> None:
    met = NOW - timedelta(days=2)
    values = {"aliases": ["Anita"], "description": "A baker.", "properties": {"age": 4}, "salience": 0.7}

    resolved = meet(owner, " Ana Lima", type="Person ", event_time=met, source="extraction", **values)

    row = stored(resolved.entity)
    assert resolved == ResolvedEntity(entity=row, is_new=True)
    assert {name: getattr(row, name) for name in values} == values
    assert (row.name, row.type, row.text) == ("Ana Lima", "person", "Ana Lima (Anita). A baker.")
    assert (row.event_time, row.source, row.agent_id, row.channel) == (met, "extraction", "assistant", "_global")


@pytest.mark.parametrize("again", ["Ana Lima", "ANA  LIMA", "“ana lima”", "Ana Lima's", "Anita", "ANITA"])
def test_a_known_name_or_alias_however_it_is_written_is_the_same_entity(owner: Owner, again: str) -> None:
    first = entity_of(owner, "Ana Lima", aliases=["Anita"])

    resolved = meet(owner, again)

    assert (resolved.entity, resolved.is_new) == (first, False)
    assert stored(first).names == ["Ana Lima", "Anita"]


@pytest.mark.parametrize(("values", "text"), [(("Ana", [], ""), "Ana"), (("Ana", ["A", "B"], " "), "Ana (A, B)")])
def test_the_text_joins_name_aliases_and_description(values: tuple[str, list[str], str], text: str) -> None:
    assert entity_text(*values) == text


def test_upserting_again_adds_and_removes_nothing(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita"], description="A baker.", properties={"a": 1, "b": 1}, salience=0.7)
    earlier = NOW - timedelta(days=1)

    meet(owner, aliases=["Nita"], description="A cook.", properties={"b": 2}, salience=0.2, event_time=earlier)

    row = stored(first)
    assert (row.aliases, row.description, row.properties) == (["Anita", "Nita"], "A baker.", {"a": 1, "b": 2})
    assert (row.salience, row.event_time, row.version, row.updated_at) == (0.7, earlier, 2, NOW)


def test_a_draft_with_nothing_new_changes_nothing(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita"], description="A baker.", properties={"a": 1}, salience=0.7)

    meet(owner, aliases=["ANITA"], properties={"a": 1}, salience=0.7)

    assert (stored(first).version, stored(first).aliases) == (1, ["Anita"])
    assert not AuditEntry.objects.filter(operation="update").exists()


def test_properties_of_several_writes_have_a_maximum_size(owner: Owner) -> None:
    first = entity_of(owner, properties={"a": "x" * 40_000})

    with pytest.raises(TooLarge):
        meet(owner, properties={"b": "x" * 40_000})

    assert set(stored(first).properties) == {"a"}


def test_one_and_true_are_different_property_values(owner: Owner) -> None:
    first = entity_of(owner, properties={"a": 1})

    meet(owner, properties={"a": True})

    assert stored(first).properties["a"] is True


def test_a_changed_text_is_embedded_again(owner: Owner) -> None:
    first = entity_of(owner, angle=0.1)
    draft = entity_draft(aliases=["Anita"])
    embedded = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={"Ana Lima (Anita)": direction(0.5)})

    upsert_entity(owner, draft, embedded=embedded, now=NOW)

    row = stored(first)
    assert (row.text, row.embed_after) == ("Ana Lima (Anita)", None)
    assert Vector.objects.get(memory_id=row.id).vector[0] == pytest.approx(0.8776, abs=1e-3)


def test_a_changed_text_without_a_vector_waits_for_one(owner: Owner) -> None:
    first = entity_of(owner, angle=0.1)

    meet(owner, aliases=["Anita"])

    assert stored(first).embed_after == NOW
    assert not Vector.objects.exists()


def test_the_texts_to_embed_are_those_to_be_stored(owner: Owner) -> None:
    meet(owner, aliases=["Anita"], description="A baker.")
    drafts = [entity_draft(aliases=["Nita"], description="A cook."), entity_draft("Bo")]

    texts = entity_texts_to_embed(owner, drafts)
    upsert_entities(owner, drafts, embedded=NOTHING, now=NOW)

    assert set(Entity.objects.values_list("text", flat=True)) <= set(texts)
    assert "Ana Lima (Anita, Nita). A baker." in texts


@pytest.mark.parametrize("type_", ["place", "organization"])
def test_an_equal_name_of_another_type_is_another_entity(owner: Owner, type_: str) -> None:
    meet(owner, "Paris", type="person", angle=0.0)

    assert meet(owner, "Paris", type=type_, angle=0.0).is_new


def test_holders_do_not_share_entities(owner: Owner, stranger: Account) -> None:
    holders = [
        owner,
        replace(owner, agent_id="other"),
        replace(owner, agent_id=""),
        replace(owner, user_id="ana"),
        replace(owner, user_id="bo"),
        Owner(account_id=stranger.id, agent_id="assistant"),
    ]

    assert all(meet(holder, angle=0.0).is_new for holder in holders)
    assert not any(meet(holder).is_new for holder in holders)


def test_agents_of_a_user_share_its_entities(owner: Owner) -> None:
    first = entity_of(replace(owner, user_id="ana"))

    assert entity_of(replace(owner, agent_id="other", user_id="ana")) == first


def test_a_name_is_looked_up_in_the_active_channel_then_in_global(owner: Owner) -> None:
    there = entity_of(owner)
    project = replace(owner, channel="project")
    assert entity_of(project) == there

    own = entity_of(project, "Bo")

    assert own.channel == "project"
    assert meet(owner, "Bo").is_new
    assert (entity_of(project, "Bo"), known(project)) == (own, ["Ana Lima", "Bo", "Bo"])
    assert known(owner) == ["Ana Lima", "Bo"]


def test_an_alias_of_another_entity_is_refused_and_nothing_stored(owner: Owner) -> None:
    meet(owner, "Bo")

    with pytest.raises(Conflict, match="another entity of this type"):
        meet(owner, "Ana", aliases=["BO"])

    assert known(owner) == ["Bo"]


def test_extraction_leaves_out_an_alias_of_another_entity(owner: Owner) -> None:
    bo = entity_of(owner, "Bo")
    drafts = [entity_draft("Ana", aliases=["Bo", "Anita"]), entity_draft("bo")]

    ana, again = upsert_entities_leniently(owner, drafts, embedded=NOTHING, now=NOW)

    assert ana is not None
    assert again is not None
    assert (ana.is_new, ana.refused_aliases, ana.entity.aliases) == (True, ("Bo",), ["Anita"])
    assert again.entity == bo
    assert ana.alias_owners == {"Bo": bo.id}


def test_of_two_owners_of_an_alias_the_active_channels_is_reported(owner: Owner) -> None:
    project = replace(owner, channel="project")
    there = entity_of(project, "Bo")
    entity_of(owner, "Bo")

    [ana] = upsert_entities_leniently(project, [entity_draft("Ana", aliases=["bo"])], embedded=NOTHING, now=NOW)

    assert ana is not None
    assert ana.alias_owners == {"bo": there.id}


def test_an_alias_of_another_type_is_free(owner: Owner) -> None:
    meet(owner, "Bo", type="animal")

    assert entity_of(owner, "Ana", aliases=["Bo"]).aliases == ["Bo"]


def test_drafts_of_one_call_with_equal_names_are_one_entity(owner: Owner) -> None:
    drafts = [
        entity_draft("Ana", aliases=["Anita"]),
        entity_draft("ANITA", aliases=["Nita"], description="A baker."),
        entity_draft("Nita", properties={"a": 1}),
    ]

    found = upsert_entities(owner, drafts, embedded=NOTHING, now=NOW)

    row = Entity.objects.get()
    assert [(each.entity, each.is_new) for each in found] == [(row, True), (row, False), (row, False)]
    assert (row.names, row.text, row.properties) == (["Ana", "Anita", "Nita"], "Ana (Anita, Nita). A baker.", {"a": 1})
    assert EntityName.objects.count() == 3


def test_upserting_restores_an_archived_entity(owner: Owner) -> None:
    first = entity_of(owner)
    mark_memories(owner, [first.id], mark="archive", now=NOW)
    assert known(owner) == []

    assert not meet(owner).is_new

    assert known(owner) == ["Ana Lima"]


def test_upserting_restores_an_expired_entity(owner: Owner) -> None:
    first = entity_of(owner)
    Memory.objects.filter(id=first.id).update(expires_at=NOW)

    assert (entity_of(owner), known(owner), stored(first).expires_at) == (first, ["Ana Lima"], None)


def test_a_quarantined_entity_is_neither_changed_nor_created_again(owner: Owner) -> None:
    first = entity_of(owner)
    mark_memories(owner, [first.id], mark="quarantine", now=NOW)

    with pytest.raises(Conflict, match="quarantined"):
        meet(owner, description="Trust her.")
    assert upsert_entities_leniently(owner, [entity_draft()], embedded=NOTHING, now=NOW) == [None]

    assert (stored(first).description, Entity.objects.count(), known(owner)) == ("", 1, [])


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": " \n"},
        {"name": "x" * 501},
        {"type": ""},
        {"type": "x" * 51},
        {"aliases": ["x" * 10_000]},
        {"aliases": [""]},
        {"aliases": [str(number) for number in range(MAX_ALIASES + 1)]},
        {"salience": 1.1},
        {"salience": -0.1},
        {"salience": float("nan")},
    ],
    ids=lambda fields: str(fields)[:30],
)
def test_values_out_of_bounds_are_refused(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        meet(owner, **{"name": "Ana", **fields})


def test_names_of_the_maximum_length_fit_after_normalization(owner: Owner) -> None:
    first = entity_of(owner, "\ufdfa" * 500, type="ß" * 25)

    assert entity_of(owner, "\ufdfa" * 500, type="SS" * 25) == first


def test_an_entity_has_at_most_the_maximum_of_aliases(owner: Owner) -> None:
    first = entity_of(owner, aliases=[str(number) for number in range(MAX_ALIASES)])

    with pytest.raises(Conflict):
        meet(owner, aliases=["one more"])
    [lenient] = upsert_entities_leniently(owner, [entity_draft(aliases=["one more"])], embedded=NOTHING, now=NOW)

    assert lenient is not None
    assert (lenient.refused_aliases, len(stored(first).aliases)) == (("one more",), MAX_ALIASES)
    assert lenient.alias_owners == {}


def test_entities_of_others_are_not_locked(owner: Owner) -> None:
    mine, theirs = entity_of(owner), entity_of(replace(owner, user_id="ana"))
    gone = entity_of(owner, "Gone")
    mark_memories(owner, [gone.id], mark="quarantine", now=NOW)
    ids = [theirs.id, mine.id, gone.id]

    with transaction.atomic():
        assert lock_entities(owner, ids) == [mine]
        assert lock_entities(replace(owner, agent_id=""), ids) == [mine, theirs]
        assert lock_entities(owner, []) == []

"""Merging and splitting in any order: at every step each name and link is with the entity that it was given for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Unprocessable
from memory.identity import normalize_name
from memory.models import Entity, EntityName, Link
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.entities.merge import merge_entities, split_entity
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW
from tests.properties import examples

pytestmark = pytest.mark.django_db

# equal names and aliases in two channels; the channel from which no other one is searched comes first
MADE = (
    ("rust", "Bea", "Bee"),
    ("rust", "Ben", "Beatrice"),
    (GLOBAL_CHANNEL, "Bea", "Beatrice"),
    (GLOBAL_CHANNEL, "Ana"),
    (GLOBAL_CHANNEL, "Bee"),
)

Triple = tuple[UUID, str, UUID]

places = st.integers(0, len(MADE) - 1)
links = st.sets(
    st.tuples(places, st.sampled_from(["KNOWS", "LIKES"]), places).filter(lambda ends: ends[0] != ends[2]), max_size=12
)
merges = st.tuples(st.just("merge"), places, places)
splits = st.tuples(st.just("split"), places, st.sets(places, max_size=2))
histories = st.lists(merges | splits, max_size=10)


@dataclass(kw_only=True)
class Model:
    """The entities, and the whole of each part: all expectations follow from them."""

    links: dict[UUID, Triple]
    names: dict[UUID, tuple[UUID, str]]
    whole: dict[UUID, UUID]

    def parts(self, whole: UUID) -> set[UUID]:
        return {entity_id for entity_id, its in self.whole.items() if its == whole}

    def visible(self) -> set[Triple]:
        """Links between wholes."""
        moved = {(self.whole[source], type_, self.whole[target]) for source, type_, target in self.links.values()}
        return {link for link in moved if link[0] != link[2]}

    def held(self) -> set[tuple[UUID, UUID]]:
        return {(name_id, self.whole[first]) for name_id, (first, _) in self.names.items()}


def make(owner: Owner, ends: Iterable[tuple[int, str, int]]) -> tuple[Model, list[Entity]]:
    made = [entity_of(replace(owner, channel=there), name, aliases=more) for there, name, *more in MADE]
    rows = [
        Link(account_id=owner.account_id, source_id=made[one].id, type=type_, target_id=made[other].id, weight=number)
        for number, (one, type_, other) in enumerate(sorted(ends))
    ]
    Link.objects.bulk_create(rows)
    model = Model(
        links={row.id: (row.source_id, row.type, row.target_id) for row in rows},
        names={row.id: (row.entity_id, row.name) for row in EntityName.objects.all()},
        whole={entity.id: entity.id for entity in made},
    )
    return model, made


def everything() -> Any:
    entities = Entity.objects.order_by("id")
    return (
        [(row.id, row.names, row.archived, row.merged_into_id, row.text, row.metadata) for row in entities],
        list(Link.objects.order_by("id").values("id", "source", "type", "target", "weight", "properties")),
        list(EntityName.objects.order_by("id").values("id", "entity", "identity")),
    )


def merge(owner: Owner, model: Model, survivor: UUID, loser: UUID) -> None:
    survivor, loser = model.whole[survivor], model.whole[loser]
    try:
        merge_entities(owner, survivor, loser, now=NOW)
    except Unprocessable:
        # itself, or out of `_global` into a channel
        return
    for part in model.parts(loser):
        model.whole[part] = survivor


def split(owner: Owner, model: Model, made: Sequence[Entity], leaver: UUID, others: Iterable[UUID]) -> None:
    """Split one part from its whole by its names, together with some others."""
    whole = model.whole[leaver]
    going = [leaver, *(other for other in others if model.whole[other] == whole and other != leaver)]
    by_id = {entity.id: entity for entity in made}
    names = [name for entity_id in going for name in by_id[entity_id].names]
    called = [entity_id for entity_id in model.parts(whole) - {whole} if by_id[entity_id].name in names]
    # names of several might be those of others as well
    if whole in going or (len(going) > 1 and (len(called) > len(going) or len(set(names)) < len(names))):
        return
    back = split_entity(owner, whole, names=names, now=NOW)
    gone = {entity_id for entity_id in model.whole if Entity.objects.filter(id=entity_id, merged_into=back.id).exists()}
    assert {by_id[entity_id].name for entity_id in {back.id, *gone}} == {by_id[entity_id].name for entity_id in going}
    for entity_id in {back.id, *gone}:
        model.whole[entity_id] = back.id


def check(model: Model) -> None:
    alive = Link.objects.filter(source__archived=False, target__archived=False)
    assert sorted(alive.values_list("source_id", "type", "target_id")) == sorted(model.visible())
    assert set(EntityName.objects.values_list("id", "entity_id")) == model.held()
    rows = Entity.objects.filter(archived=False)
    for entity in rows:
        held = EntityName.objects.filter(entity=entity).values_list("name", flat=True)
        assert {normalize_name(name) for name in entity.names} == set(held)
        assert len(entity.names) == len(set(held))


def walk(owner: Owner, ends: Iterable[tuple[int, str, int]], history: Sequence[Any], last: Sequence[int]) -> None:
    model, made = make(owner, ends)
    start = everything()
    for step, one, other in history:
        if step == "merge":
            merge(owner, model, made[one].id, made[other].id)
        else:
            split(owner, model, made, made[one].id, [made[place].id for place in sorted(other)])
        check(model)
    for place in [*last, *last]:
        split(owner, model, made, made[place].id, [])
        check(model)
    assert everything() == start


@given(ends=links, history=histories, last=st.permutations(range(len(MADE))))
@examples(25)
def test_merges_can_be_split_in_any_order(
    owner: Owner, ends: set[tuple[int, str, int]], history: list[Any], last: list[int]
) -> None:
    with transaction.atomic():
        walk(owner, ends, history, last)
        transaction.set_rollback(True)

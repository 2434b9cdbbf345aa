"""Entities in the admin: corrected in step with their names, merged, split, and shown with their neighbours."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from memory.models import Account, AuditEntry, Entity, EntityName, Link
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.entities.relate import RelationshipDraft, create_relationship
from memory.services.memories.links import MENTIONS, NewLink, insert_links
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.entities import entity_of, meet
from tests.memory.episodes import NOW
from tests.memory.facts import CLAIM, know
from tests.memory.turns import say, turn


def relate(owner: Owner, source: Entity, type: str, target: Entity) -> Link:  # noqa: A002
    draft = RelationshipDraft(source_id=source.pk, target_id=target.pk, type=type)
    return create_relationship(owner, draft, now=NOW).link


@pytest.fixture
def ana(owner: Owner) -> Entity:
    """Ana, also Anita, works for the bakery; a fact and a turn speak of her."""
    ana = entity_of(owner, "Ana Lima", aliases=["Anita"], description="A baker.")
    relate(owner, ana, "WORKS_FOR", entity_of(owner, "Bakery", type="organization"))
    know(owner, entity_ids=[ana.pk])
    said = say(owner, turn("Ana bakes well.")).turns[0]
    insert_links(owner.account_id, [NewLink(source_id=said.pk, type=MENTIONS, target_id=ana.pk)])
    return ana


def stored(entity: Entity) -> Any:
    return Entity.objects.get(pk=entity.pk)


def save(client: Client, entity: Entity, **edits: Any) -> Any:
    url = page_url("entity", entity.pk)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def merge(client: Client, survivor: Entity, *others: Entity, **more: Any) -> Any:
    data = {"post": "yes", "survivor": str(survivor.pk), **more}
    return choose(client, list_url("entity"), "merge", survivor.pk, *(other.pk for other in others), **data)


def split(client: Client, entity: Entity, *names: int, links: Any = (), **edits: Any) -> Any:
    data = {"names": names, "links": links, "seen_version": stored(entity).version, **edits}
    return client.post(page_url("entity", entity.pk, "split"), data, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_a_page_shows_all_that_is_known_of_it(staff: Client, ana: Entity) -> None:
    page = shown(staff.get(page_url("entity", ana.pk)))

    assert all(phrase in page for phrase in ("Bakery", "WORKS_FOR", CLAIM, "Ana bakes well.", "Anita", "A baker."))


def test_a_page_has_a_picture_of_the_neighbourhood(staff: Client, ana: Entity) -> None:
    page = shown(staff.get(page_url("entity", ana.pk)))

    picture = page.partition('class="neighbourhood"')[2].partition("</svg>")[0]
    assert all(phrase in picture for phrase in ("Ana Lima", "Bakery", "WORKS_FOR", "Ana lives in Berl", "ABOUT"))
    assert "Links around Ana Lima" in picture


def test_a_renamed_entity_is_found_by_its_new_name_and_embedded_again(staff: Client, owner: Owner, ana: Entity) -> None:
    save(staff, ana, name="Ana Maria Lima", description="A pastry chef.")

    row = stored(ana)
    assert (row.name, row.text) == ("Ana Maria Lima", "Ana Maria Lima (Ana Lima, Anita). A pastry chef.")
    assert row.embed_after is not None
    assert meet(owner, "Ana Maria Lima").entity.pk == ana.pk
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "update")


def test_changing_the_type_moves_all_names_to_the_new_type(staff: Client, owner: Owner, ana: Entity) -> None:
    save(staff, ana, type="Artist")

    assert stored(ana).type == "artist"
    assert meet(owner, "Anita", type="artist").entity.pk == ana.pk
    assert meet(owner, "Ana Lima", type="person").is_new


def test_a_name_or_type_that_another_has_is_refused(staff: Client, owner: Owner, ana: Entity) -> None:
    entity_of(owner, "Ben")
    entity_of(owner, "Anita", type="cat")

    renamed, retyped = save(staff, ana, name="Ben"), save(staff, ana, type="cat")

    assert all("has one of these names" in shown(response) for response in (renamed, retyped))
    assert (stored(ana).name, stored(ana).type) == ("Ana Lima", "person")


@pytest.mark.parametrize(
    "edits", [{"name": " "}, {"aliases": "[1]"}, {"type": " "}, {"salience": "2"}, {"name": "x" * 501}]
)
def test_an_invalid_edit_of_an_entity_is_refused(staff: Client, ana: Entity, edits: dict[str, str]) -> None:
    response = save(staff, ana, **edits)

    assert response.status_code == 200
    assert (stored(ana).name, stored(ana).aliases, stored(ana).version) == ("Ana Lima", ["Anita"], 1)


def test_an_entity_that_changed_meanwhile_is_not_overwritten(staff: Client, owner: Owner, ana: Entity) -> None:
    values = form_values(staff.get(page_url("entity", ana.pk)))
    meet(owner, "Ana Lima", aliases=["Anni"])

    response = staff.post(page_url("entity", ana.pk), values | {"name": "Ann"})

    assert "Not saved" in shown(response)
    assert stored(ana).name == "Ana Lima"


def test_trust_and_salience_of_an_entity_are_corrected(staff: Client, ana: Entity) -> None:
    save(staff, ana, trust="0.5", salience="0.9")

    assert (stored(ana).trust, stored(ana).salience) == (0.5, 0.9)


def test_a_merge_needs_a_reason_and_keeps_it(staff: Client, owner: Owner, ana: Entity) -> None:
    other = entity_of(owner, "Ana L.")

    refused = shown(merge(staff, other, ana, reason=" "))
    unmerged = stored(ana).merged_into_id
    merge(staff, other, ana, reason="One person.")

    assert "This field is required." in refused
    assert f'value="{other.pk}" id="survivor-2" checked' in refused
    assert (unmerged, stored(ana).merged_into_id) == (None, other.pk)
    entry = AuditEntry.objects.get(operation="bulk_change")
    assert (entry.actor, entry.config_snapshot["reason"]) == ("staff:chief", "One person.")
    assert "Reason: One person." in LogEntry.objects.get(object_id=str(ana.pk)).change_message


def test_merging_asks_which_entity_stays_and_lists_the_links_that_move(
    staff: Client, owner: Owner, ana: Entity
) -> None:
    other = entity_of(owner, "Ana L.")

    response = choose(staff, list_url("entity"), "merge", ana.pk, other.pk)

    page = shown(response)
    assert "Which entity stays?" in page
    assert "1 WORKS_FOR" in page
    assert not any(stored(entity).archived for entity in (ana, other))


def test_entities_are_merged_into_the_one_chosen(staff: Client, owner: Owner, ana: Entity) -> None:
    others = [entity_of(owner, name) for name in ("Ana L.", "A. Lima")]
    relate(owner, others[0], "KNOWS", entity_of(owner, "Ben"))

    response = merge(staff, ana, *others)

    assert stored(ana).aliases == ["Anita", "Ana L.", "A. Lima"]
    assert [stored(other).merged_into_id for other in others] == [ana.pk, ana.pk]
    assert Link.objects.get(type="KNOWS").source_id == ana.pk
    assert AuditEntry.objects.filter(operation="merge", actor="staff:chief").count() == 2
    assert "Entities that were merged into this one" in shown(response)


def test_an_impossible_merge_is_refused_with_the_reason(
    staff: Client, owner: Owner, ana: Entity, stranger: Account
) -> None:
    bakery = Entity.objects.get(name="Bakery")
    elsewhere = entity_of(Owner(account_id=stranger.id), "Ana Lima")
    others_ana = entity_of(Owner(account_id=owner.account_id, user_id="ben"), "Ana Lima")

    messages = [shown(merge(staff, ana, other)) for other in (bakery, elsewhere, others_ana)]

    assert "different types" in messages[0]
    assert "different accounts" in messages[1]
    assert "different users" in messages[2]
    assert "Choose 2 to 20 entities" in shown(choose(staff, list_url("entity"), "merge", ana.pk))
    assert not stored(ana).archived


def test_a_merge_that_is_refused_halfway_changes_nothing(staff: Client, owner: Owner, ana: Entity) -> None:
    first = entity_of(owner, "Ana L.")
    second = entity_of(Owner(account_id=owner.account_id, agent_id="assistant", channel="garden"), "A. Lima")

    response = merge(staff, second, first, ana)

    assert "Nothing was merged" in shown(response)
    assert not any(stored(entity).archived for entity in (ana, first, second))


def test_a_split_restores_the_merged_entity(staff: Client, owner: Owner, ana: Entity) -> None:
    other = entity_of(owner, "Ana L.")
    knows = relate(owner, other, "KNOWS", entity_of(owner, "Ben"))
    merge(staff, ana, other)

    split(staff, ana, 2)

    assert (stored(other).archived, stored(other).merged_into_id, stored(other).name) == (False, None, "Ana L.")
    assert Link.objects.get(pk=knows.pk).source_id == other.pk
    assert stored(ana).aliases == ["Anita"]


def test_a_split_makes_another_with_the_names_and_links_chosen(staff: Client, ana: Entity) -> None:
    link = Link.objects.get(type="WORKS_FOR")

    response = split(staff, ana, 1, links=[str(link.pk)])

    anita = Entity.objects.get(name="Anita")
    assert Link.objects.get(pk=link.pk).source_id == anita.pk
    assert EntityName.objects.get(name="anita").entity_id == anita.pk
    assert "Anita is an entity of its own now" in shown(response)
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "split")


def test_a_split_by_all_names_or_none_or_unseen_ones_is_refused(staff: Client, ana: Entity) -> None:
    for response in (
        split(staff, ana, 0, 1),
        split(staff, ana),
        split(staff, ana, 7),
        split(staff, ana, 1, seen_version=0),
    ):
        assert response.status_code == 200

    assert stored(ana).names == ["Ana Lima", "Anita"]


def test_a_merged_entity_is_read_only_and_cannot_be_unarchived(staff: Client, owner: Owner, ana: Entity) -> None:
    other = entity_of(owner, "Ana L.")
    merge(staff, ana, other)

    choose(staff, list_url("entity"), "unarchive", other.pk)

    assert stored(other).archived
    page = shown(staff.get(page_url("entity", other.pk)))
    assert "This entity was merged into" in page
    assert 'name="name"' not in page


def test_an_archived_entity_can_be_unarchived(staff: Client, ana: Entity) -> None:
    choose(staff, list_url("entity"), "archive", ana.pk)
    choose(staff, list_url("entity"), "unarchive", ana.pk)

    assert not stored(ana).archived


def test_an_entity_is_deleted_and_its_names_are_free(staff: Client, owner: Owner, ana: Entity) -> None:
    staff.post(page_url("entity", ana.pk, "delete"), {"post": "yes"})

    assert not Entity.objects.filter(pk=ana.pk).exists()
    assert meet(owner, "Anita").is_new


@pytest.mark.slow
def test_entities_are_found_by_meaning(staff: Client, account: Account, owner: Owner) -> None:
    drafts = [EntityDraft(name=name, type="place", description=f"A {name}.") for name in ("garden pump", "bakery")]
    for draft in drafts:
        upsert_entity(owner, draft, embedded=embed_texts([draft.text]), now=NOW)

    response = staff.get(list_url("entity", account=account.id, meaning="garden pump"))

    assert response.context["cl"].result_list[0].name == "garden pump"


def test_the_list_is_filtered_by_type(staff: Client, ana: Entity) -> None:
    response = staff.get(list_url("entity", type="organization"))

    assert [row.name for row in response.context["cl"].result_list] == ["Bakery"]


@pytest.mark.slow
def test_pages_cost_as_many_queries_for_many_neighbours_as_for_few(staff: Client, owner: Owner, ana: Entity) -> None:
    urls = [page_url("entity", ana.pk), page_url("entity", ana.pk, "split")]
    few = [queries_of(staff, url) for url in urls]

    for number in range(60):
        relate(owner, ana, "KNOWS", entity_of(owner, f"person {number}"))
        know(owner, f"Ana met {number}.", entity_ids=[ana.pk], now=NOW + timedelta(seconds=number))

    assert [queries_of(staff, url) for url in urls] == few
    assert max(few) <= 16
    picture = shown(staff.get(urls[0]))
    assert picture.count('class="node ') == 40
    assert "are drawn." in picture


def test_whatever_an_entity_is_called_is_shown_as_text(staff: Client, owner: Owner) -> None:
    entity = entity_of(owner, HOSTILE[:90], aliases=[f"or {HOSTILE[:80]}"], description=HOSTILE, type=HOSTILE[:40])
    other = entity_of(owner, f"no {HOSTILE[:80]}", type=HOSTILE[:40])
    relate(owner, entity, "KNOWS", other)

    pages = [
        staff.get(url)
        for url in (list_url("entity"), page_url("entity", entity.pk), page_url("entity", entity.pk, "split"))
    ]
    for response in (*pages, choose(staff, list_url("entity"), "merge", entity.pk, other.pk)):
        page = shown(response)
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_invisible_characters_of_names_appear_on_no_admin_page(staff: Client, owner: Owner) -> None:
    entity = entity_of(owner, HOSTILE[:90], type=HOSTILE[:40])
    save(staff, entity, salience="0.9")

    urls = [list_url("entity"), *(page_url("entity", entity.pk, page) for page in ("delete", "history"))]
    for url in (*urls, reverse("admin:index")):
        assert "\u202e" not in shown(staff.get(url)), url


def test_the_view_permission_alone_allows_no_merge_or_split(newcomer: Client, owner: Owner, ana: Entity) -> None:
    allow("newcomer", "view_entity")
    other = entity_of(owner, "Ana L.")

    page = shown(newcomer.get(page_url("entity", ana.pk)))
    merge(newcomer, ana, other)

    assert all(phrase in page for phrase in ("You may not read facts", "You may not read turns"))
    assert not any(phrase in page for phrase in (CLAIM, "Ana bakes well."))
    assert split(newcomer, ana, 1).status_code == 403
    assert not stored(other).archived


def test_link_targets_are_shown_only_with_permission_to_view_them(newcomer: Client, ana: Entity) -> None:
    url = page_url("entity", ana.pk, "split")
    allow("newcomer", "change_entity")
    blind = shown(newcomer.get(url))
    allow("newcomer", "view_fact", "view_turn")
    seeing = shown(newcomer.get(url))

    fact_id = Link.objects.get(type="ABOUT").source_id
    assert all(phrase in blind for phrase in ("Bakery", f"ABOUT ← fact {fact_id}", "MENTIONS ← turn "))
    assert not any(phrase in blind for phrase in (CLAIM, "Ana bakes well."))
    assert all(phrase in seeing for phrase in (f"ABOUT ← fact: {CLAIM}", "Ana bakes well."))

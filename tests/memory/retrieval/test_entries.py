"""Search in contexts: by meaning and by words, in contexts that the owner may read.

Clients search by recalls (`find_entries`), staff in one kind (`search_entries`), with the same isolation.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import AccessControl, Account, Memory, PersistentContext
from memory.owner import Owner
from memory.retrieval.kind_searches import search_entries
from memory.retrieval.search import search_episodes
from memory.services.accounts.register import add_member, create_team, remove_member
from memory.services.contexts.entries import EntryDraft, remove_entry
from memory.services.contexts.manage import archive_context, revoke_context, unarchive_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.memories.store import ClientVector
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import MODEL, NOW, direction, draft, query, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


def found_by(owner: Owner, *contexts: PersistentContext, angle: float | None = 0.0, text: str = "leak") -> set[str]:
    """Return what clients find, and check that staff find the same."""
    ids = [context.id for context in contexts]
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    recalled = find_entries(owner, EntryQuestion(text=text, own=own, contexts=ids), now=NOW)
    searched = search_entries(owner, replace(query(text, angle=angle), contexts=ids), now=NOW)
    found = {hit.content for hit in recalled.hits}
    assert found == {hit.content for hit in searched.hits}
    return found


def test_the_nearest_come_first_with_their_similarity(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("far", angle=1.2), entry("near", angle=0.1), entry("between", angle=0.6))

    found = search_entries(owner, query(), now=NOW)

    assert [hit.content for hit in found.hits] == ["near", "between", "far"]
    assert [hit.similarity for hit in found.hits] == pytest.approx([np.cos(0.1), np.cos(0.6), np.cos(1.2)], abs=2e-3)
    assert found.degraded == []


def test_a_hit_has_all_fields_of_its_entry(owner: Owner, context: PersistentContext) -> None:
    kept = EntryDraft(key="k", value={"a": 1}, entry_type="decision", importance=0.7, metadata={"b": 2})
    (row,) = keep(owner, context, replace(kept, content="Repair the roof"))

    (hit,) = search_entries(owner, query("roof", angle=None), now=NOW).hits

    known = ("id", "item_key", "context_id", "agent_id", "key", "value", "entry_type", "importance", "metadata")
    assert [getattr(hit, name) for name in known] == [getattr(row, name) for name in known]
    assert (hit.content, hit.content_version, hit.similarity) == ("Repair the roof", 1, None)


def test_a_search_may_be_limited_to_contexts(owner: Owner, context: PersistentContext) -> None:
    other, third = context_of(owner, "other"), context_of(owner, "third")
    for place, text in ((context, "here"), (other, "there"), (third, "elsewhere")):
        keep(owner, place, entry(f"{text}: with a vector", angle=0.1), entry(f"{text}: a leak"))

    assert found_by(owner, context) == {"here: with a vector", "here: a leak"}
    assert found_by(owner, context, angle=None) == {"here: a leak"}
    assert len(found_by(owner, context, other)) == 4
    assert len(found_by(owner)) == 6


def test_naming_a_context_in_a_query_grants_no_access_to_it(
    owner: Owner, context: PersistentContext, stranger: Account
) -> None:
    keep(owner, context, entry("a leak", angle=0.1), entry("a pending leak"))

    for other in (replace(owner, agent_id="other"), Owner(account_id=stranger.id)):
        for angle in (0.0, None):
            assert found_by(other, context, angle=angle) == found_by(other, angle=angle) == set()
        asked = replace(query(), contexts=[context.id])
        assert search_entries(other, asked, now=NOW).degraded == []


@pytest.mark.parametrize(
    "opened",
    [
        {"scope": "account"},
        {"scope": "global"},
        {"access_control": AccessControl(read=["reader"])},
        {"access_control": AccessControl(write=["reader"])},
        {"access_control": AccessControl(public_read=True)},
    ],
    ids=str,
)
def test_entries_of_readable_contexts_are_found(owner: Owner, opened: dict[str, Any]) -> None:
    keep(owner, context_of(owner, **opened), entry("a leak", angle=0.1), entry("a pending leak"))
    keep(owner, context_of(owner, "closed"), entry("closed", angle=0.0))

    assert found_by(replace(owner, agent_id="reader")) == {"a leak", "a pending leak"}


def test_nothing_is_found_after_a_grant_is_revoked(owner: Owner) -> None:
    context, reader = (
        context_of(owner, access_control=AccessControl(write=["reader"])),
        replace(owner, agent_id="reader"),
    )
    keep(reader, context, entry("a leak", angle=0.1))
    assert found_by(reader) == {"a leak"}

    revoke_context(owner, context.id, agent_id="reader", expected=None, now=NOW)

    # not even what it wrote itself
    assert found_by(reader) == found_by(reader, context) == found_by(reader, angle=None) == set()


def test_entries_of_a_team_are_found_by_current_members_only(owner: Owner) -> None:
    team, member = create_team(owner, name="crew"), replace(owner, agent_id="member")
    for agent_id in ("assistant", "member"):
        add_member(owner, team.id, agent_id=agent_id)
    keep(owner, context_of(owner, scope="team", team_id=team.id), entry("a leak", angle=0.1))
    assert found_by(member) == {"a leak"}

    remove_member(owner, team.id, agent_id="member")

    assert found_by(member) == set()


def test_archived_contexts_are_not_searched_until_they_are_unarchived(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("a leak", angle=0.1), entry("a pending leak"))

    archive_context(owner, context.id, expected=None, now=NOW)
    for acting in (owner, replace(owner, agent_id="")):
        assert found_by(acting) == found_by(acting, context) == found_by(acting, angle=None) == set()
    unarchive_context(owner, context.id, expected=None, now=NOW)

    assert found_by(owner) == {"a leak", "a pending leak"}


@pytest.mark.parametrize("hidden", [{"quarantined": True}, {"expires_at": NOW}, {"archived": True}], ids=str)
def test_a_hidden_entry_is_not_found(owner: Owner, context: PersistentContext, hidden: dict[str, object]) -> None:
    (row,) = keep(owner, context, entry("a leak", angle=0.1))

    Memory.objects.filter(id=row.id).update(**hidden)

    assert found_by(owner) == found_by(owner, angle=None) == set()


def test_a_removed_entry_is_not_found(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("a leak", angle=0.1))

    remove_entry(owner, row.id, now=NOW)

    assert found_by(owner) == found_by(owner, angle=None) == set()


def test_entry_search_and_episode_search_return_their_own_kind_only(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("an entry", angle=0.1))
    store(owner, draft("an episode", angle=0.1))

    assert found_by(owner) == {"an entry"}
    assert [hit.summary for hit in search_episodes(owner, query(), now=NOW).hits] == ["an episode"]


def test_an_account_finds_entries_of_all_its_agents(owner: Owner, context: PersistentContext) -> None:
    other = replace(owner, agent_id="other")
    keep(owner, context, entry("one", angle=0.1))
    keep(other, context_of(other), entry("two", angle=0.2))

    assert found_by(replace(owner, agent_id="")) == {"one", "two"}


def test_large_owners_are_answered_like_small_ones(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, *(entry(f"number {number}", angle=number / 100) for number in range(30)))
    keep(owner, context_of(owner, "other"), entry("elsewhere", angle=0.0))
    asked = replace(query(top_k=7), contexts=[context.id])

    small = search_entries(owner, asked, now=NOW)
    large = search_entries(owner, replace(asked, exact_rows=5), now=NOW)

    assert large == small
    assert len(small.hits) == 7


def test_a_search_is_one_statement(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    keep(owner, context, entry("with a vector", angle=0.1), entry("pending"))
    asked = replace(query("pending"), contexts=[context.id])

    with django_assert_num_queries(1):
        search_entries(owner, asked, now=NOW)


def test_a_search_without_contexts_covers_all_readable_contexts(owner: Owner, context: PersistentContext) -> None:
    open_one = context_of(owner, "open", scope="account")
    keep(owner, context, entry("a closed leak"))
    keep(owner, open_one, entry("an open leak"))

    found = [
        {hit.content for hit in find_entries(acting, EntryQuestion(text="leak"), now=NOW).hits}
        for acting in (owner, replace(owner, agent_id="other"))
    ]

    assert found == [{"a closed leak", "an open leak"}, {"an open leak"}]

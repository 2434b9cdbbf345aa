"""Profiles: changed by name, learned with provenance, never over values set by hand, created once."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound, StaleVersion, TooLarge, Unprocessable
from memory.models import Account, AuditEntry, UserProfile
from memory.owner import Owner
from memory.services.profiles import (
    ProfileChanges,
    delete_profile,
    find_profile,
    get_profile,
    learn_preferences,
    write_profile,
)
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


def update(owner: Owner, user_id: str = "ana", **changes: Any) -> UserProfile:
    return write_profile(owner, user_id, ProfileChanges(**changes), now=NOW).profile


def provenance_at(hours: float = 0) -> dict[str, Any]:
    """Return the provenance of something that was said at that time."""
    return {"fact_id": None, "turn_ids": ["t1"], "at": (NOW + timedelta(hours=hours)).isoformat()}


def learn(owner: Owner, hours: float = 0, **preferences: Any) -> list[str]:
    return learn_preferences(owner, "ana", preferences, provenance=provenance_at(hours), now=NOW)


def test_a_profile_is_the_same_for_all_agents_of_the_account(owner: Owner, stranger: Account) -> None:
    update(owner, preferences={"tea": "green"})
    theirs = Owner(account_id=stranger.id)

    assert get_profile(replace(owner, agent_id="colleague"), "ana").preferences == {"tea": "green"}
    assert find_profile(theirs, "ana") is None
    with pytest.raises(NotFound):
        get_profile(theirs, "ana")
    with pytest.raises(NotFound):
        delete_profile(theirs, "ana", now=NOW)


def test_documents_are_changed_by_name_and_areas_whole(owner: Owner) -> None:
    update(owner, preferences={"a": 1, "b": {"c": 2}}, expertise_areas=["soil", "seeds"], metadata={"x": None, "y": 0})

    changed = update(owner, preferences={"b": {"d": 3}, "a": None}, expertise_areas=["roses"])

    assert (changed.preferences, changed.expertise_areas, changed.metadata) == ({"b": {"d": 3}}, ["roses"], {"y": 0})
    assert (changed.version, UserProfile.objects.get().preferences) == (2, {"b": {"d": 3}})


def test_the_first_write_is_reported_as_new(owner: Owner) -> None:
    changes = ProfileChanges(metadata={"a": 1})

    first, again = (write_profile(owner, "ana", changes, now=NOW) for _ in range(2))

    assert (first.is_new, again.is_new, again.profile.version) == (True, False, 1)
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize("user_id", ["", "x" * 101, "a\0b", "\ud800"])
def test_an_invalid_user_id_has_no_profile(owner: Owner, user_id: str) -> None:
    with pytest.raises(Unprocessable):
        update(owner, user_id)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"preferences": {"a": "x" * 65_536}}, TooLarge),
        ({"communication_style": {"a": "x" * 65_536}}, TooLarge),
        ({"metadata": {"a": "b\0c"}}, Unprocessable),
        ({"expertise_areas": ["x"] * 201}, Unprocessable),
        ({"expertise_areas": ["x" * 201]}, Unprocessable),
        ({"expertise_areas": ["a\0b"]}, Unprocessable),
    ],
    ids=lambda given: str(given)[:30],
)
def test_values_that_cannot_be_stored_are_refused(
    owner: Owner, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        update(owner, **changes)
    assert not UserProfile.objects.exists()

    before = update(owner, metadata={"a": 1})
    with pytest.raises(error):
        update(owner, **changes)
    assert get_profile(owner, "ana").version == before.version


def test_an_unknown_version_is_stale(owner: Owner) -> None:
    changes = ProfileChanges(metadata={"a": 1})
    with pytest.raises(StaleVersion):
        write_profile(owner, "ana", changes, expected=frozenset({"1"}), now=NOW)
    update(owner)

    with pytest.raises(StaleVersion):
        write_profile(owner, "ana", changes, expected=frozenset({"2"}), now=NOW)
    with pytest.raises(StaleVersion):
        delete_profile(owner, "ana", expected=frozenset({"2"}), now=NOW)
    assert write_profile(owner, "ana", changes, expected=frozenset({"1"}), now=NOW).profile.version == 2


def test_a_learned_preference_has_its_provenance(owner: Owner) -> None:
    assert learn(owner, tea="green", milk=None) == ["tea"]

    profile = get_profile(owner, "ana")
    assert (profile.preferences, profile.provenance) == ({"tea": "green"}, {"tea": provenance_at()})


def test_a_preference_set_by_hand_is_not_overwritten(owner: Owner) -> None:
    update(owner, preferences={"tea": "black"})

    assert learn(owner, tea="green", milk="oat") == ["milk"]

    profile = get_profile(owner, "ana")
    assert (profile.preferences, set(profile.provenance)) == ({"tea": "black", "milk": "oat"}, {"milk"})


def test_a_learned_preference_is_replaced_by_later_ones_and_by_hand(owner: Owner) -> None:
    learn(owner, tea="green")

    assert learn(owner, 1, tea="black") == ["tea"]
    assert learn(owner, 0.5, tea="white") == []
    assert get_profile(owner, "ana").provenance == {"tea": provenance_at(1)}

    by_hand = update(owner, preferences={"tea": "black"})
    assert (by_hand.provenance, learn(owner, 2, tea="white")) == ({}, [])


def test_learning_an_equal_preference_changes_nothing(owner: Owner) -> None:
    learn(owner, tea="green")
    learn(owner, tea="green")

    assert get_profile(owner, "ana").version == 1
    assert learn_preferences(owner, "bob", {}, provenance=provenance_at(), now=NOW) == []
    assert find_profile(owner, "bob") is None


def test_a_preference_without_room_is_skipped(owner: Owner) -> None:
    update(owner, preferences={"a": "x" * 65_000})

    assert learn(owner, tea="y" * 1_000, milk="oat") == ["milk"]


def test_a_removed_preference_loses_its_provenance(owner: Owner) -> None:
    learn(owner, tea="green")

    changed = update(owner, preferences={"tea": None})

    assert (changed.preferences, changed.provenance) == ({}, {})


def test_the_audit_log_names_the_user_and_no_values(owner: Owner) -> None:
    update(owner, preferences={"tea": "green"})
    learn(owner, milk="oat")
    delete_profile(owner, "ana", now=NOW)

    entries = AuditEntry.objects.order_by("id").values_list("operation", "memory_type", "user_id", "agent_id")

    assert list(entries) == [(name, "profile", "ana", "assistant") for name in ("create", "update", "delete")]
    assert not any("green" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_profiles_cost_as_many_queries_as_stated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(7):
        update(owner, metadata={"a": 1})
    with django_assert_num_queries(5):
        update(owner, metadata={"a": 2})
    with django_assert_num_queries(5):
        learn(owner, tea="green")
    with django_assert_num_queries(1):
        get_profile(owner, "ana")


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_create_one_profile(owner: Owner, start_concurrently: Start) -> None:
    with transaction.atomic():
        update(owner, preferences={"tea": "green"})
        other = start_concurrently(
            lambda: write_profile(owner, "ana", ProfileChanges(preferences={"milk": "oat"}), now=NOW)
        )

    written: Any = other.result(PATIENCE_SECONDS)
    assert (written.is_new, written.profile.version) == (False, 2)
    assert UserProfile.objects.get().preferences == {"tea": "green", "milk": "oat"}


@pytest.mark.django_db(transaction=True)
def test_a_preference_set_by_hand_meanwhile_is_not_overwritten(owner: Owner, start_concurrently: Start) -> None:
    learn(owner, tea="green")

    with transaction.atomic():
        update(owner, preferences={"tea": "black"})
        other = start_concurrently(lambda: learn(owner, 1, tea="white"))

    assert other.result(PATIENCE_SECONDS) == []
    assert get_profile(owner, "ana").preferences == {"tea": "black"}

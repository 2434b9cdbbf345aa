"""User profiles in the admin: edits by staff count as set by hand."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from memory.models import Account, AuditEntry, UserProfile
from memory.owner import Owner
from memory.services.profiles import ProfileChanges, learn_preferences, write_profile
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, form_values, list_url, page_url, queries_of, shown

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def profile(owner: Owner) -> UserProfile:
    changes = ProfileChanges(preferences={"tea": "black", "cake": "none"}, expertise_areas=["pumps"])
    write_profile(owner, "ana", changes, now=NOW)
    learn_preferences(
        owner, "ana", {"coffee": "dislikes"}, provenance={"fact_id": "f1", "at": NOW.isoformat()}, now=NOW
    )
    return UserProfile.objects.get()


def save(client: Client, profile: UserProfile, **edits: Any) -> Any:
    url = page_url("userprofile", profile.pk)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def test_preferences_are_corrected_and_audited(staff: Client, profile: UserProfile) -> None:
    save(staff, profile, preferences='{"tea": "green", "coffee": "dislikes", "milk": 1}')

    profile.refresh_from_db()
    assert profile.preferences == {"tea": "green", "coffee": "dislikes", "milk": 1}
    assert (profile.version, set(profile.provenance)) == (3, {"coffee"})
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "profile")


def test_an_edit_by_staff_clears_the_provenance_of_a_preference(staff: Client, profile: UserProfile) -> None:
    save(staff, profile, preferences='{"coffee": "likes"}')

    profile.refresh_from_db()
    assert (profile.preferences, profile.provenance) == ({"coffee": "likes"}, {})


def test_a_change_of_the_type_alone_is_saved(staff: Client, profile: UserProfile) -> None:
    for text in ('{"tea": 1}', '{"tea": true}'):
        save(staff, profile, preferences=text)

    profile.refresh_from_db()
    assert profile.preferences["tea"] is True


def test_saving_without_an_edit_changes_nothing(staff: Client, profile: UserProfile) -> None:
    save(staff, profile)

    profile.refresh_from_db()
    assert profile.version == 2


def test_a_profile_that_changed_meanwhile_is_not_overwritten(staff: Client, owner: Owner, profile: UserProfile) -> None:
    values = form_values(staff.get(page_url("userprofile", profile.pk)))
    write_profile(owner, "ana", ProfileChanges(metadata={"a": 1}), now=NOW)

    response = staff.post(page_url("userprofile", profile.pk), values | {"preferences": "{}"})

    assert "Not saved" in shown(response)
    profile.refresh_from_db()
    assert profile.preferences["tea"] == "black"


def test_a_profile_is_added(staff: Client, account: Account) -> None:
    values = {"account": account.id, "user_id": "ben", "preferences": '{"tea": "green"}', "expertise_areas": '["tea"]'}

    staff.post(add_url("userprofile"), values)

    row = UserProfile.objects.get()
    assert (row.user_id, row.preferences, row.expertise_areas) == ("ben", {"tea": "green"}, ["tea"])


@pytest.mark.parametrize("areas", ["[1]", '{"a": 1}', '[""]', json.dumps(["x" * 300])])
def test_expertise_areas_that_are_not_texts_are_refused(staff: Client, profile: UserProfile, areas: str) -> None:
    response = save(staff, profile, expertise_areas=areas)

    assert response.status_code == 200
    profile.refresh_from_db()
    assert profile.expertise_areas == ["pumps"]


def test_a_profile_shows_the_source_of_learned_preferences(staff: Client, profile: UserProfile) -> None:
    assert "fact_id" in shown(staff.get(page_url("userprofile", profile.pk)))


def test_a_profile_is_deleted_and_audited(staff: Client, profile: UserProfile) -> None:
    staff.post(page_url("userprofile", profile.pk, "delete"), {"post": "yes"})

    assert not UserProfile.objects.exists()
    assert AuditEntry.objects.order_by("-id")[0].operation == "delete"


def test_a_page_costs_few_queries(staff: Client, profile: UserProfile) -> None:
    assert queries_of(staff, page_url("userprofile", profile.pk)) <= 8


def test_whatever_a_profile_says_is_shown_as_text(staff: Client, owner: Owner) -> None:
    changes = ProfileChanges(preferences={HOSTILE: HOSTILE}, expertise_areas=[HOSTILE], metadata={"a": HOSTILE})
    row = write_profile(owner, HOSTILE[:90], changes, now=NOW).profile

    for url in (list_url("userprofile"), *(page_url("userprofile", row.pk, page) for page in ("change", "delete"))):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page
        assert "\u202e" not in page


def test_the_view_permission_alone_allows_no_changes(newcomer: Client, profile: UserProfile) -> None:
    allow("newcomer", "view_userprofile")

    assert "black" in shown(newcomer.get(page_url("userprofile", profile.pk)))
    assert newcomer.post(page_url("userprofile", profile.pk), {"preferences": "{}"}).status_code == 403

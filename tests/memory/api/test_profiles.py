"""`/profiles`: created by the first write, changed by name, shared by agents, hidden from other accounts."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, UserProfile
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from memory.services.profiles import learn_preferences
from tests.api_client import ServiceClient, segment
from tests.hostile import HOSTILE_SEGMENTS
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

PATH = "/profiles/ana"
SOURCE: dict[str, Any] = {"fact_id": None, "turn_ids": [], "at": "2026-05-04T12:00:00+00:00"}


def write(api: ServiceClient, path: str = PATH, **fields: Any) -> Any:
    headers = {name: fields.pop(name) for name in tuple(fields) if name.startswith("HTTP_")}
    return api.patch(path, fields, **headers)


def test_the_first_write_creates_a_profile_and_the_next_changes_it(api: ServiceClient) -> None:
    made = write(api, preferences={"tea": "green", "milk": None}, expertise_areas=["soil"], metadata={"a": 1})
    changed = write(api, preferences={"tea": None, "sugar": "none"}, communication_style={"tone": "plain"})

    said = {"user_id": "ana", "preferences": {"tea": "green"}, "expertise_areas": ["soil"], "metadata": {"a": 1}}
    assert (made.status_code, changed.status_code) == (201, 200)
    assert made.json() | said | {"communication_style": {}, "provenance": {}, "version": 1} == made.json()
    assert changed.json() | {"preferences": {"sugar": "none"}, "expertise_areas": ["soil"]} == changed.json()
    assert (changed.json()["communication_style"], changed.json()["version"]) == ({"tone": "plain"}, 2)
    assert api.get(PATH).json() == changed.json()


def test_an_empty_write_creates_an_empty_profile(api: ServiceClient) -> None:
    assert write(api).status_code == 201
    assert write(api).status_code == 200
    assert UserProfile.objects.get().version == 1


@pytest.mark.parametrize(
    "change",
    [
        {"preferences": []},
        {"preferences": None},
        {"preferences": {"a": "x" * 65_536}},
        {"communication_style": "plain"},
        {"metadata": 1},
        {"expertise_areas": "soil"},
        {"expertise_areas": [""]},
        {"expertise_areas": [1]},
        {"expertise_areas": ["x" * 201]},
        {"expertise_areas": ["x"] * 201},
        {"user_id": "bob"},
        {"channel": "roof"},
        {"provenance": {}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = write(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not UserProfile.objects.exists()


@pytest.mark.parametrize("user_id", HOSTILE_SEGMENTS)
def test_a_write_with_an_invalid_user_id_is_refused(api: ServiceClient, user_id: str) -> None:
    assert write(api, f"/profiles/{user_id}").status_code in (400, 404)
    assert not UserProfile.objects.exists()


def test_a_user_id_may_contain_any_character(api: ServiceClient) -> None:
    path = f"/profiles/{segment('a/b é?')}"

    assert write(api, path, preferences={"tea": "green"}).json()["user_id"] == "a/b é?"
    assert api.get(path).status_code == 200


def test_a_document_that_grows_too_large_is_refused(api: ServiceClient) -> None:
    write(api, preferences={"a": "x" * 40_000})

    answer = write(api, preferences={"b": "x" * 40_000})

    assert (answer.status_code, answer.json()["stored"], answer.json()["limit_bytes"]) == (413, False, 65_536)
    assert list(api.get(PATH).json()["preferences"]) == ["a"]


def test_a_user_id_in_the_request_must_match_the_path(api: ServiceClient) -> None:
    write(api)

    assert write(api, user_id="ana").status_code == 200
    assert api.get(f"{PATH}?user_id=ana").status_code == 200
    for answer in (api.get(f"{PATH}?user_id=bob"), api.delete(f"{PATH}?user_id=bob")):
        assert (answer.status_code, set(answer.json()["errors"])) == (400, {"user_id"})


def test_a_request_with_a_stale_version_changes_nothing(api: ServiceClient) -> None:
    first = write(api).headers["ETag"]
    second = write(api, metadata={"a": 1}, HTTP_IF_MATCH=first).headers["ETag"]

    for answer in (write(api, metadata={"a": 2}, HTTP_IF_MATCH=first), api.delete(PATH, HTTP_IF_MATCH=first)):
        assert (answer.status_code, answer.json()["code"]) == (412, "stale_version")

    assert api.get(PATH, HTTP_IF_NONE_MATCH=second).status_code == 304
    assert api.get(PATH, HTTP_IF_NONE_MATCH=first).json()["metadata"] == {"a": 1}


def test_an_etag_of_a_deleted_profile_does_not_match_a_recreated_one(api: ServiceClient) -> None:
    tag = write(api).headers["ETag"]
    assert api.delete(PATH, HTTP_IF_MATCH=tag).status_code == 204

    assert write(api, HTTP_IF_MATCH=tag).status_code == 412
    assert write(api).status_code == 201
    assert write(api, metadata={"a": 1}, HTTP_IF_MATCH=tag).status_code == 412


def test_a_deleted_profile_is_not_found(api: ServiceClient) -> None:
    write(api)

    assert api.delete(PATH).status_code == 204

    assert {api.get(PATH).status_code, api.delete(PATH).status_code} == {404}


def test_a_learned_preference_has_a_provenance_until_a_client_sets_it(api: ServiceClient, owner: Owner) -> None:
    learn_preferences(owner, "ana", {"tea": "green"}, provenance=SOURCE, now=NOW)

    assert api.get(PATH).json()["provenance"] == {"tea": SOURCE}
    assert write(api, preferences={"tea": "green"}).json()["provenance"] == {}


def test_all_agents_of_an_account_share_a_users_profile(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    write(api, agent_id="planner", preferences={"tea": "green"})

    assert bound_api.get(PATH).json()["preferences"] == {"tea": "green"}
    assert write(bound_api, preferences={"tea": "black"}).json()["version"] == 2
    assert write(bound_api, agent_id="planner").status_code == 403
    assert stranger_api.get(PATH).status_code == stranger_api.delete(PATH).status_code == 404
    assert write(stranger_api).status_code == 201
    assert api.get(PATH).json()["preferences"] == {"tea": "black"}


def test_a_read_only_key_cannot_write_a_profile(
    account: Account, api: ServiceClient, client_for: Callable[[str], ServiceClient]
) -> None:
    write(api)
    reader = client_for(issue_key(account, scopes=READ_ONLY).secret)

    assert reader.get(PATH).status_code == 200
    assert {write(reader).status_code, reader.delete(PATH).status_code} == {403}


def test_a_read_of_a_profile_uses_two_queries(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    write(api)

    with django_assert_num_queries(2):  # the key, and the profile
        api.get(PATH)

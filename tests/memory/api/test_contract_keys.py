"""API keys: which are valid, what they may do, and how little a check costs."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Account, ApiKey
from memory.services.accounts.register import READ_ONLY, READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient

HEADERS = [
    "Bearer",
    "Bearer ",
    "Basic eDp5",
    "Bearer a b",
    "Bearer \0",
    "Bearer ключ",
    "Bearer " + "x" * 5_000,
    "mem_x",
]


def test_a_request_without_an_api_key_is_refused() -> None:
    refused = ServiceClient().get("/agents")

    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
    assert refused["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize("header", HEADERS)
def test_a_malformed_authorization_header_is_refused(header: str) -> None:
    refused = ServiceClient().get("/agents", HTTP_AUTHORIZATION=header)

    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("column", ["expires_at", "revoked_at"])
def test_an_expired_or_revoked_api_key_is_answered_like_an_unknown_one(
    api: ServiceClient, account: Account, column: str
) -> None:
    unknown = ServiceClient("mem_unknown").get("/agents", HTTP_X_REQUEST_ID="same")
    ApiKey.objects.filter(account=account).update(**{column: timezone.now() - timedelta(seconds=1)})

    refused = api.get("/agents", HTTP_X_REQUEST_ID="same")

    assert refused.status_code == 401
    assert refused.content == unknown.content


def test_a_read_only_api_key_cannot_write(account: Account) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    refused = reader.post("/agents", {"agent_id": "planner"})

    assert reader.get("/agents").status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")


def test_the_last_use_of_an_api_key_is_recorded_once_a_minute(api: ServiceClient, account: Account) -> None:
    api.get("/agents")
    first_use = ApiKey.objects.get(account=account).last_used_at

    api.get("/agents")

    assert first_use is not None
    assert ApiKey.objects.get(account=account).last_used_at == first_use


def test_authentication_costs_one_query(api: ServiceClient, django_assert_num_queries: Any) -> None:
    api.get("/agents")

    with django_assert_num_queries(2):
        assert api.get("/agents").status_code == 200


def test_only_the_hash_of_an_api_key_is_stored(account: Account) -> None:
    issued = issue_key(account, scopes=READ_WRITE_OPERATE)

    row = ApiKey.objects.values().get(id=issued.key.id)

    assert issued.secret not in str(row)
    assert issued.secret.startswith(row["prefix"])

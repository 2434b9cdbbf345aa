"""Paths that the service does not have: the answer names the nearest one."""

import pytest

from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/api/v1/fact", "/api/v1/facts?"),
        ("/api/v1/memory", "/api/v1/memories?"),
        ("/api/facts", "/api/v1/facts?"),
        ("/api/v1/conversation/trip/turns", "/api/v1/conversations/{conversation_id}/turns?"),
        ("/api/v1/facts/42", "/api/v1/facts/{fact_id}? Ids that the service makes are UUIDs in lower case."),
        ("/api/v1/users/ana", "/api/v1/profiles/{user_id}?"),
        ("/api/v1/sessions/trip", "/api/v1/conversations/{conversation_id}?"),
        ("/api/v1/planets/ana", None),
        ("/api/v1", None),
        ("/api/v1/" + "x" * 10_000, None),
    ],
)
def test_an_unknown_path_is_answered_with_the_nearest_one(api: ServiceClient, path: str, nearest: str | None) -> None:
    problem = api.get(path).json()

    assert (problem["status"], problem["code"]) == (404, "unknown_route")
    assert len(problem["detail"]) < 400
    assert (f"Did you mean {nearest}" in problem["detail"]) if nearest else ("Did you mean" not in problem["detail"])

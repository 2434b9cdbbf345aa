"""Requests of `/contexts/{id}/entries`, as clients send them."""

from typing import Any

from tests.api_client import ServiceClient


def new_context(client: ServiceClient) -> str:
    """Create a context and return its id."""
    return str(client.post("/contexts", {"name": "notes"}).json()["id"])


def keep(client: ServiceClient, context: str, content: str = "The roof leaks", **fields: Any) -> Any:
    return client.post(f"/contexts/{context}/entries", {"content": content, **fields})


def listed(client: ServiceClient, context: str, query: str = "") -> list[str]:
    """Return the contents of the first page."""
    answer = client.get(f"/contexts/{context}/entries{query}").json()
    return [entry["content"] for entry in answer["results"]]

"""Requests of `/conversations/{id}/turns`, as clients send them."""

from typing import Any

from tests.api_client import ServiceClient, segment

TURNS = "/conversations/c1/turns"


def say(client: ServiceClient, *turns: Any, conversation_id: str = "c1", **fields: Any) -> Any:
    body = {"agent_id": "assistant", "turns": list(turns), **fields}
    return client.post(f"/conversations/{segment(conversation_id)}/turns", body)


def turn(content: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


def numbered(count: int) -> list[dict[str, Any]]:
    return [turn(f"message {number}") for number in range(count)]


def log(client: ServiceClient, query: str = "") -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = client.get(f"{TURNS}?agent_id=assistant{query}").json()["results"]
    return results


def contents(turns: list[dict[str, Any]]) -> list[Any]:
    return [each["content"] for each in turns]

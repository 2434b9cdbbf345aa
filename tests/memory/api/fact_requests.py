"""Requests of `/facts`, as `assistant` sends them."""

from typing import Any

from tests.api_client import ServiceClient

CLAIM = "Ana lives in Berlin."
MUNICH = "Ana lives in Munich."
ME = "agent_id=assistant"


def learn(api: ServiceClient, claim: str = CLAIM, **fields: Any) -> Any:
    return api.post("/facts", {"agent_id": "assistant", "claim": claim, **fields})


def act(api: ServiceClient, fact_id: str, action: str, **fields: Any) -> Any:
    return api.post(f"/facts/{fact_id}/{action}", {"agent_id": "assistant", **fields})


def correct(api: ServiceClient, fact_id: str, *, if_match: str | None = None, **fields: Any) -> Any:
    headers: dict[str, Any] = {} if if_match is None else {"HTTP_IF_MATCH": if_match}
    return api.patch(f"/facts/{fact_id}", {"agent_id": "assistant", **fields}, **headers)


def read(api: ServiceClient, fact_id: str) -> Any:
    return api.get(f"/facts/{fact_id}?{ME}").json()


def listed(api: ServiceClient, **asked: Any) -> list[str]:
    answer = api.get("/facts", {"agent_id": "assistant", **asked})
    assert answer.status_code == 200, answer.content
    return [fact["claim"] for fact in answer.json()["results"]]


def entity_of(api: ServiceClient, name: str = "Ana", kind: str = "person") -> str:
    return str(api.post("/entities", {"agent_id": "assistant", "name": name, "type": kind}).json()["id"])


def said_by(api: ServiceClient, agent_id: str = "assistant", conversation_id: str = "c1") -> str:
    body = {"agent_id": agent_id, "turns": [{"role": "user", "content": "I moved to Berlin."}]}
    turns = api.post(f"/conversations/{conversation_id}/turns", body).json()["turns"]
    return str(turns[0]["id"])

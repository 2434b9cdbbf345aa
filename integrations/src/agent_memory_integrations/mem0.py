"""`/compat/mem0`: the routes that mem0's `MemoryClient` calls, answered by the agent memory service.

`MemoryClient(api_key=KEY, host="http://127.0.0.1:8010/compat/mem0")` works with a key of the service. A `user_id` is
the service's user, an `agent_id` its agent, a `run_id` its conversation. Messages are stored word for word as turns,
from which knowledge is extracted; with `infer=False` each message becomes a note. Searches recall all kinds.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from agent_memory_client import AgentMemoryError, AsyncClient, StatusError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

DEFAULT_AGENT = "mem0"
MAX_LISTED = 1_000
PAGE_SIZE = 100
ENTITY_IDS = ("user_id", "agent_id", "run_id", "app_id")
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The entities that a request names, as the service's fields, and the members that metadata must have."""

    user_id: str
    agent_id: str
    conversation_id: str
    metadata: Mapping[str, Any]

    @property
    def owner(self) -> Answer:
        return {"agent_id": self.agent_id, "user_id": self.user_id or None}

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        return all(metadata.get(name) == value for name, value in self.metadata.items())


def read_scope(body: Mapping[str, Any]) -> Scope:
    """Return the scope of a body: ids at the top or in `filters`, where conditions may be nested in `AND`."""
    conditions = {name: body[name] for name in ENTITY_IDS if body.get(name)}
    metadata: dict[str, Any] = {}
    for name, value in flatten(body.get("filters") or {}):
        if name in ENTITY_IDS:
            conditions[name] = value
        elif name == "metadata" and isinstance(value, dict):
            metadata |= value
    return Scope(
        user_id=str(conditions.get("user_id", "")),
        agent_id=str(conditions.get("agent_id", "")) or DEFAULT_AGENT,
        conversation_id=str(conditions.get("run_id", "")),
        metadata=metadata,
    )


def flatten(filters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in filters.items():
        if name in ("AND", "OR") and isinstance(value, list):
            found += [pair for each in value if isinstance(each, dict) for pair in flatten(each)]
        elif value != "*":
            found.append((name, value))
    return found


async def ping(client: AsyncClient, request: Request) -> Answer:
    """Say that the key is valid."""
    key = await client.get_key()
    return {"status": "ok", "org_id": "default", "project_id": "default", "user_email": f"{key.prefix}@key"}


async def add(client: AsyncClient, request: Request) -> Answer:
    """Store messages."""
    body = await request.json()
    scope, messages = read_scope(body), body["messages"]
    options = {"metadata": body["metadata"]} if body.get("metadata") else {}
    talk = {"conversation_id": scope.conversation_id} if scope.conversation_id else {}
    if body.get("infer", True):
        turns = [{**each, **options} for each in messages]
        made = await client.infer(turns, **talk, **scope.owner)
        stored = [(turn.id, each["content"]) for turn, each in zip(made.turns, messages, strict=True)]
    else:
        expiry = {"expires_at": f"{body['expiration_date']}T00:00:00Z"} if body.get("expiration_date") else {}
        notes = [
            await client.remember(each["content"], **options, **expiry, **talk, **scope.owner) for each in messages
        ]
        stored = [(note.id, note.text) for note in notes]
    return {"results": [{"id": each, "memory": text, "event": "ADD"} for each, text in stored]}


async def search(client: AsyncClient, request: Request) -> Answer:
    """Find memories."""
    body = await request.json()
    scope = read_scope(body)
    limits = {"min_score": body["threshold"]} if body.get("threshold") else {}
    talk = {"conversation_id": scope.conversation_id} if scope.conversation_id else {}
    top_k = int(body.get("top_k") or 10)
    found = await client.recall(body["query"], top_k=top_k, **limits, **talk, **scope.owner)
    results = []
    for each in found.results:
        memory = describe((await client.get_memory(each.id, **scope.owner)).to_dict()) if scope.metadata else {}
        if scope.admits(memory.get("metadata", {})):
            score = each.confidence if each.similarity is None else each.similarity
            shown = {"id": each.id, "memory": each.text, "score": score, "created_at": each.event_time}
            results.append({**memory, **shown, "user_id": scope.user_id, "categories": []})
    return {"results": results}


async def list_all(client: AsyncClient, request: Request) -> Answer:
    """List memories, latest first, in pages."""
    body = await request.json()
    scope = read_scope(body)
    found = await list_memories(client, scope)
    size = int(request.query_params.get("page_size", PAGE_SIZE))
    start = (int(request.query_params.get("page", 1)) - 1) * size
    more = str(request.url.include_query_params(page=start // size + 2)) if start + size < len(found) else None
    return {"count": len(found), "next": more, "previous": None, "results": found[start : start + size]}


async def list_memories(client: AsyncClient, scope: Scope) -> list[Answer]:
    talk = {"conversation_id": scope.conversation_id} if scope.conversation_id else {}
    found: list[Answer] = []
    async for each in client.memories(page_size=PAGE_SIZE, **talk, **scope.owner):
        if (not scope.user_id or each.user_id == scope.user_id) and scope.admits(each.metadata):
            found.append(describe(each.to_dict()))
        if len(found) == MAX_LISTED:
            break
    return found


async def get(client: AsyncClient, request: Request) -> Answer:
    """Return a memory."""
    return describe((await client.get_memory(request.path_params["id"])).to_dict())


async def update(client: AsyncClient, request: Request) -> Answer:
    """Change a memory."""
    return await change(client, request.path_params["id"], await request.json())


async def change(client: AsyncClient, memory_id: str, body: Mapping[str, Any]) -> Answer:
    """Change a note, or supersede a fact, which keeps its history."""
    held = await client.get_memory(memory_id)
    of_user: Answer = {"user_id": held.user_id or None, "agent_id": held.agent_id or DEFAULT_AGENT}
    if held.kind == "fact" and body.get("text"):
        made = await client.supersede_fact(memory_id, claim=body["text"], agent_id=of_user["agent_id"])
        return {"id": made.id, "memory": body["text"], "text": body["text"]}
    changes: Answer = {name: body[name] for name in ("text", "metadata") if body.get(name) is not None}
    if "expiration_date" in body:
        date = body["expiration_date"]
        changes["expires_at"] = f"{date}T00:00:00Z" if date else None
    changed = describe((await client.update_memory(memory_id, **changes, **of_user)).to_dict())
    return {**changed, "text": changed["memory"]}


async def delete(client: AsyncClient, request: Request) -> Answer:
    """Delete a memory."""
    await forget(client, request.path_params["id"])
    return {"message": "Memory deleted successfully!"}


async def forget(client: AsyncClient, memory_id: str) -> None:
    held = await client.get_memory(memory_id)
    if held.kind == "turn":
        await client.delete_conversation_turn(held.conversation_id, memory_id)
    else:
        await client.forget(memory_id, user_id=held.user_id or None, agent_id=held.agent_id or DEFAULT_AGENT)


async def delete_all(client: AsyncClient, request: Request) -> Answer:
    """Delete all memories of a user."""
    await forget_user(client, request.query_params.get("user_id", ""))
    return {"message": "Memories deleted successfully!"}


async def forget_user(client: AsyncClient, user_id: str) -> None:
    """Delete what is known about a user, and the conversations with it."""
    while (await client.forget_all(dry_run=False, user_id=user_id)).remaining:
        pass
    async for each in client.list_conversations(user_id=user_id):
        await client.delete_conversation(each.conversation_id)


async def history(client: AsyncClient, request: Request) -> list[Answer]:
    """Return how a memory came to be. Former texts of notes are not kept."""
    memory = describe((await client.get_memory(request.path_params["id"])).to_dict())
    added = {"id": memory["id"], "memory_id": memory["id"], "event": "ADD", "old_memory": None}
    return [{**added, "new_memory": memory["memory"], "user_id": memory["user_id"], "created_at": memory["created_at"]}]


async def list_entities(client: AsyncClient, request: Request) -> Answer:
    """List the users and agents that memories belong to."""
    users: dict[str, None] = {}
    async for each in client.memories(page_size=PAGE_SIZE, user_id=None):
        users[each.user_id] = None
        if len(users) == MAX_LISTED:
            break
    agents = [each.agent_id async for each in client.list_agents()]
    named = [("user", name) for name in users if name] + [("agent", name) for name in agents]
    return {"count": len(named), "results": [{"type": kind, "name": name, "id": name} for kind, name in named]}


async def delete_entity(client: AsyncClient, request: Request) -> Answer:
    """Delete all memories of a user, or a conversation."""
    kind, name = request.path_params["kind"], request.path_params["name"]
    if kind == "user":
        await forget_user(client, name)
    elif kind == "run":
        await client.delete_conversation(name)
    else:
        await client.delete_agent(name)
    return {"message": "Entity deleted successfully!"}


async def change_many(client: AsyncClient, request: Request) -> Answer:
    """Change or delete several memories."""
    memories = (await request.json())["memories"]
    for each in memories:
        if request.method == "PUT":
            await change(client, each["memory_id"], each)
        else:
            await forget(client, each["memory_id"])
    done = "updated" if request.method == "PUT" else "deleted"
    return {"message": f"Successfully {done} {len(memories)} memories"}


def describe(memory: Mapping[str, Any]) -> Answer:
    """Return a memory under mem0's names."""
    shown = {name: memory.get(name) for name in ("id", "user_id", "agent_id", "metadata", "created_at", "updated_at")}
    return {**shown, "memory": memory["text"], "run_id": memory["conversation_id"] or None, "categories": []}


Handler = Callable[[AsyncClient, Request], Awaitable[Any]]
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/v1/ping/", ping),
    ("POST", "/v3/memories/add/", add),
    ("POST", "/v3/memories/search/", search),
    ("POST", "/v3/memories/", list_all),
    ("GET", "/v1/memories/{id}/", get),
    ("PUT", "/v1/memories/{id}/", update),
    ("DELETE", "/v1/memories/{id}/", delete),
    ("GET", "/v1/memories/{id}/history/", history),
    ("DELETE", "/v1/memories/", delete_all),
    ("GET", "/v1/entities/", list_entities),
    ("DELETE", "/v2/entities/{kind}/{name}/", delete_entity),
    ("PUT", "/v1/batch/", change_many),
    ("DELETE", "/v1/batch/", change_many),
)


def make_mem0_application(base_url: str) -> Starlette:
    """Return the application with mem0's routes, for the service at an address."""
    http = httpx2.AsyncClient(timeout=60.0)

    def serve(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            key = request.headers.get("Authorization", "").partition(" ")[2].strip()
            if not key:
                return JSONResponse({"detail": "Send Authorization: Token <API key>."}, status_code=401)
            client = AsyncClient(base_url, key, agent_id=DEFAULT_AGENT, user_id="", http_client=http)
            try:
                return JSONResponse(await handler(client, request))
            except StatusError as err:
                return JSONResponse({"detail": err.detail, "error": str(err)}, status_code=err.status)
            except AgentMemoryError as err:
                return JSONResponse({"detail": str(err)}, status_code=503)
            except (KeyError, ValueError, TypeError) as err:
                return JSONResponse({"detail": f"The request is malformed: {err!r}"}, status_code=400)

        return endpoint

    return Starlette(routes=[Route(path, serve(handler), methods=[method]) for method, path, handler in ROUTES])

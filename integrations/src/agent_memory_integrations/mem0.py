"""`/compat/mem0`: the routes that mem0's `MemoryClient` calls, answered by the agent memory service.

`MemoryClient(api_key=KEY, host="http://127.0.0.1:8004/compat/mem0")` works with a key of the service. A `user_id` is
the service's user, an `agent_id` its agent, a `run_id` its conversation. Messages are stored word for word as turns,
from which knowledge is extracted; with `infer=False` each message becomes a note. Searches find all kinds. What would
delete or find more than was asked for is refused.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from agent_memory_client import AgentMemoryError, AsyncClient, StatusError
from agent_memory_client.models import MemoryAnswer, SearchedMemory
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_memory_integrations.mcp.callers import Callers

DEFAULT_AGENT = "mem0"
"""Agent of requests that name none, by keys that are bound to none."""
MAX_LISTED = 1_000
"""Memories that a list looks at."""
PAGE_SIZE = 100
MAX_TOP_K = 100
MAX_BODY_BYTES = 4 * 1024 * 1024
ENTITY_IDS = ("user_id", "agent_id", "run_id")
KINDS = ("turn", "episode", "fact", "entity", "strategy", "goal", "artifact", "learning", "note")
"""What searches find: all that `get` returns."""
Answer = dict[str, Any]


class Mem0RequestError(Exception):
    """A request that is refused, with the reason as a sentence."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


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

    @property
    def conversation(self) -> Answer:
        return {"conversation_id": self.conversation_id} if self.conversation_id else {}

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        return all(metadata.get(name) == value for name, value in self.metadata.items())


def read_scope(client: AsyncClient, body: Mapping[str, Any]) -> Scope:
    """Return the scope of a body: ids at the top or in `filters`. Raises Mem0RequestError for other conditions."""
    if body.get("app_id"):
        raise Mem0RequestError("app_id has no meaning here. Name a user_id, an agent_id or a run_id.")
    top = {name: body[name] for name in ENTITY_IDS if body.get(name)}
    ids: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    for name, value in [*top.items(), *read_conditions(body.get("filters") or {})]:
        if name == "metadata":
            metadata |= value
        elif not isinstance(value, str) or ids.setdefault(name, value) != value:
            raise Mem0RequestError(f"{name} must be one text.")
    return Scope(
        user_id=ids.get("user_id", ""),
        agent_id=ids.get("agent_id", "") or client.settings.agent_id or DEFAULT_AGENT,
        conversation_id=ids.get("run_id", ""),
        metadata=metadata,
    )


def read_conditions(filters: Any) -> list[tuple[str, Any]]:
    """Return the conditions of filters, all of which must hold. Raises Mem0RequestError for what is not understood."""
    if not isinstance(filters, dict):
        raise Mem0RequestError("Filters must be a JSON object.")
    found = []
    for name, value in filters.items():
        if name == "AND" and isinstance(value, list):
            found += [pair for each in value for pair in read_conditions(each)]
        elif name in ENTITY_IDS:
            found += [(name, value)] if value != "*" else []
        elif (
            name == "metadata"
            and isinstance(value, dict)
            and not any(isinstance(each, dict) for each in value.values())
        ):
            found.append((name, value))
        else:
            raise Mem0RequestError(
                f"The filter {name[:100]} is not understood. Allowed: {', '.join(ENTITY_IDS)} with a text or *, "
                "metadata with values to be equal to, and AND with a list of these."
            )
    return found


async def ping(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Say that the key is valid."""
    key = await client.get_key()
    return {"status": "ok", "org_id": "default", "project_id": "default", "user_email": f"{key.prefix}@key"}


async def add(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Store messages."""
    scope, messages = read_scope(client, body), read_objects(body, "messages")
    options = {"metadata": body["metadata"]} if body.get("metadata") else {}
    if body.get("infer", True):
        if body.get("expiration_date"):
            raise Mem0RequestError("An expiration_date needs infer=False, since what was said does not expire.")
        turns = [{**each, **options} for each in messages]
        made = await client.infer(turns, **scope.conversation, **scope.owner)
        stored = [(turn.id, each["content"]) for turn, each in zip(made.turns, messages, strict=True)]
    else:
        expiry = {"expires_at": end_of_day(body["expiration_date"])} if body.get("expiration_date") else {}
        options |= {**expiry, **scope.conversation, **scope.owner}
        notes = [await client.remember(each["content"], **options) for each in messages]
        stored = [(note.id, note.text) for note in notes]
    return {"results": [{"id": each, "memory": text, "event": "ADD"} for each, text in stored]}


async def search(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Find memories. A threshold and conditions on metadata choose among the best MAX_TOP_K."""
    scope, top_k, threshold = read_scope(client, body), int(body.get("top_k") or 10), read_threshold(body)
    wanted = {"kinds": KINDS, "whole": True, "top_k": MAX_TOP_K if scope.metadata or threshold else top_k}
    found = await client.search(body["query"], **wanted, **scope.conversation, **scope.owner)
    results = []
    for each in found.results:
        score = (each.confidence if each.similarity is None else each.similarity) or 0.0
        if score >= threshold and scope.admits(each.metadata):
            details = {"score_details": explain_score(each, score, threshold)} if body.get("explain") else {}
            results.append({**describe(each.to_dict()), "score": score, **details})
    return {"results": results[:top_k]}


def read_threshold(body: Answer) -> float:
    """Return the least score of a result, 0 for none. Raises Mem0RequestError."""
    threshold = body.get("threshold") or 0.0
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise Mem0RequestError("threshold must be a number from 0 to 1.")
    return float(threshold)


def explain_score(found: SearchedMemory, score: float, threshold: float) -> Answer:
    """Return how a result came to its place, under mem0's names where there are any."""
    return {
        "semantic_score": found.similarity,
        "final_score": score,
        "threshold": threshold,
        "likelihood": found.confidence,
        "rank_score": found.score,
        "reasons": found.reasons,
    }


async def list_all(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """List memories, latest first, in pages."""
    size, page = (read_number(request, name, value) for name, value in (("page_size", PAGE_SIZE), ("page", 1)))
    scope, start = read_scope(client, body), (page - 1) * size
    found = [
        describe(each.to_dict())
        async for each in latest_memories(client, **scope.conversation, **scope.owner)
        if (not scope.user_id or each.user_id == scope.user_id) and scope.admits(each.metadata)
    ]
    more = str(request.url.include_query_params(page=page + 1)) if start + size < len(found) else None
    return {"count": len(found), "next": more, "previous": None, "results": found[start : start + size]}


async def latest_memories(client: AsyncClient, **filters: Any) -> AsyncIterator[MemoryAnswer]:
    """Yield the latest MAX_LISTED memories, but for facts that are true no more."""
    count = 0
    async for each in client.memories(page_size=PAGE_SIZE, **filters):
        if each.status not in ("superseded", "ended"):
            yield each
        count += 1
        if count == MAX_LISTED:
            return


async def get(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Return a memory."""
    return describe((await client.get_memory(request.path_params["id"])).to_dict())


async def update(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Change a memory."""
    return await change(client, request.path_params["id"], body)


async def change(client: AsyncClient, memory_id: str, body: Mapping[str, Any]) -> Answer:
    """Change a note, or supersede a fact, which keeps its history."""
    held = await client.get_memory(memory_id)
    if held.kind == "fact" and body.get("text"):
        made = await client.supersede_fact(memory_id, claim=body["text"], user_id=held.user_id or None)
        return {"id": made.id, "memory": body["text"], "text": body["text"]}
    changes: Answer = {name: body[name] for name in ("text", "metadata") if body.get(name) is not None}
    if "expiration_date" in body:
        changes["expires_at"] = end_of_day(body["expiration_date"]) if body["expiration_date"] else None
    changed = describe((await client.update_memory(memory_id, user_id=held.user_id or None, **changes)).to_dict())
    return {**changed, "text": changed["memory"]}


async def delete(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Delete a memory."""
    await forget(client, request.path_params["id"])
    return {"message": "Memory deleted successfully!"}


async def forget(client: AsyncClient, memory_id: str) -> None:
    held = await client.get_memory(memory_id)
    if held.kind == "turn":
        await client.delete_conversation_turn(held.conversation_id, memory_id)
    else:
        await client.forget(memory_id, user_id=held.user_id or None)


async def delete_all(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Delete all memories of a user, or a conversation."""
    named = {name: value for name, value in request.query_params.multi_items() if value}
    if len(named) != 1 or len(request.query_params.multi_items()) != 1 or "*" in named.values():
        raise Mem0RequestError("delete_all takes one user_id or one run_id, and no other condition.")
    [(kind, name)] = named.items()
    if kind not in ("user_id", "run_id"):
        raise Mem0RequestError("delete_all takes a user_id or a run_id.")
    await delete_named(client, kind.removesuffix("_id"), name)
    return {"message": "Memories deleted successfully!"}


async def delete_entity(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Delete all memories of a user or an agent, or a conversation."""
    await delete_named(client, request.path_params["kind"], request.path_params["name"])
    return {"message": "Entity deleted successfully!"}


async def delete_named(client: AsyncClient, kind: str, name: str) -> None:
    """Delete what is known about a user with the conversations with it, a conversation, or what an agent has."""
    if kind == "user":
        while (await client.forget_all(dry_run=False, user_id=name)).remaining:
            pass
        for each in [each.conversation_id async for each in client.list_conversations(user_id=name)]:
            await client.delete_conversation(each)
    elif kind == "run":
        await client.delete_conversation(name)
    elif kind == "agent":
        await client.delete_agent(name)
    else:
        raise Mem0RequestError("Only users, agents and runs are deleted.")


async def history(client: AsyncClient, request: Request, body: Answer) -> list[Answer]:
    """Return how a memory came to be. Former texts of notes are not kept."""
    memory = describe((await client.get_memory(request.path_params["id"])).to_dict())
    added = {"id": memory["id"], "memory_id": memory["id"], "event": "ADD", "old_memory": None}
    return [{**added, "new_memory": memory["memory"], "user_id": memory["user_id"], "created_at": memory["created_at"]}]


async def list_entities(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """List the users and the agent that the latest memories of this agent belong to."""
    agent_id = client.settings.agent_id or DEFAULT_AGENT
    named: dict[tuple[str, str], None] = {}
    # `delete_users` and `reset` delete all that is listed, so that other agents are not
    async for each in latest_memories(client, agent_id=agent_id):
        if each.agent_id == agent_id:
            named |= {("user", each.user_id): None, ("agent", agent_id): None}
    results = [{"type": kind, "name": name, "id": name} for kind, name in sorted(named, reverse=True) if name]
    return {"count": len(results), "results": results}


async def change_many(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Change or delete several memories."""
    memories = read_objects(body, "memories")
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
    shown |= {"expiration_date": last_day(str(memory["expires_at"]))} if memory.get("expires_at") else {}
    return {**shown, "memory": memory["text"], "run_id": memory["conversation_id"] or None, "categories": []}


def end_of_day(value: Any) -> str:
    """Return the end of a day, which is the last one of a memory with this `expiration_date`."""
    try:
        following = date.fromisoformat(str(value)) + timedelta(days=1)
    except (ValueError, OverflowError) as err:
        raise Mem0RequestError("expiration_date must be a date, YYYY-MM-DD.") from err
    return f"{following}T00:00:00Z"


def last_day(expires_at: str) -> str:
    """Return the last day on which a memory that ends then is there for some time."""
    return (datetime.fromisoformat(expires_at) - timedelta(microseconds=1)).date().isoformat()


def read_objects(body: Mapping[str, Any], name: str) -> list[Answer]:
    """Return a member of the body that must be a list of objects."""
    found = body.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Mem0RequestError(f"{name} must be a list of JSON objects.")
    return found


def read_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= MAX_LISTED):
        raise Mem0RequestError(f"{name} must be a number from 1 to {MAX_LISTED}.")
    return int(text)


async def read_body(request: Request) -> Answer:
    """Return the JSON object of a request, empty if there is none."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BODY_BYTES:
            raise Mem0RequestError(f"A body has at most {MAX_BODY_BYTES} bytes.", status=413)
    body = json.loads(bytes(read) or b"{}")
    if not isinstance(body, dict):
        raise Mem0RequestError("Send a JSON object.")
    return body


Handler = Callable[[AsyncClient, Request, Answer], Awaitable[Any]]
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
    ("DELETE", "/v2/entities/{kind}/{name:path}/", delete_entity),
    ("PUT", "/v1/batch/", change_many),
    ("DELETE", "/v1/batch/", change_many),
)


async def open_client(callers: Callers, token: str) -> AsyncClient:
    """Return the client of a key: as its agent, else for the account. A user's key acts as DEFAULT_AGENT."""
    key = await callers.read_key(token)
    return callers.open(token, agent_id=key.agent_id or (DEFAULT_AGENT if key.user_id else ""), user_id="")


def make_mem0_application(callers: Callers) -> Starlette:
    """Return the application with mem0's routes, for the service of the callers."""

    def serve(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            token = request.headers.get("Authorization", "").partition(" ")[2].strip()
            if not token:
                return JSONResponse({"detail": "Send Authorization: Token <API key>."}, status_code=401)
            try:
                client = await open_client(callers, token)
                return JSONResponse(await handler(client, request, await read_body(request)))
            except Mem0RequestError as err:
                return JSONResponse({"detail": str(err)}, status_code=err.status)
            except StatusError as err:
                return JSONResponse({"detail": err.detail, "error": str(err)}, status_code=err.status)
            except AgentMemoryError as err:
                return JSONResponse({"detail": str(err)}, status_code=503)
            except KeyError as err:
                return JSONResponse({"detail": f"{err.args[0]} is missing."}, status_code=400)
            except (ValueError, TypeError, OverflowError, RecursionError) as err:
                return JSONResponse({"detail": f"The request is malformed: {err!r}"}, status_code=400)

        return endpoint

    return Starlette(routes=[Route(path, serve(handler), methods=[method]) for method, path, handler in ROUTES])

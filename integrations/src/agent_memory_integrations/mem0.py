"""`/compat/mem0`: the routes that mem0's `MemoryClient` calls, answered by the agent memory service.

`MemoryClient(api_key=KEY, host="http://127.0.0.1:8004/compat/mem0")` works with a key of the service. A `user_id` is
the service's user, an `agent_id` its agent, a `run_id` its conversation. Messages are stored word for word as turns,
from which knowledge is extracted; with `infer=False` each message becomes a note. Searches find all kinds. What would
delete or find more than was asked for is refused.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from agent_memory_client import (
    AgentMemoryError,
    AsyncClient,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    StatusError,
)
from agent_memory_client.config import is_key
from agent_memory_client.models import MemoryAnswer, SearchedMemory
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mem0_changes import (
    change_many,
    delete,
    delete_all,
    delete_entity,
    history,
    read_current,
    update,
)
from agent_memory_integrations.mem0_requests import (
    DEFAULT_AGENT,
    MAX_LISTED,
    MAX_TOP_K,
    Answer,
    Mem0RequestError,
    Scope,
    describe,
    end_of_day,
    read_body,
    read_note,
    read_number,
    read_objects,
    read_scope,
    read_threshold,
    read_top_k,
)
from agent_memory_integrations.turns import is_erased_memory

PAGE_SIZE = 100
KINDS = ("turn", "episode", "fact", "entity", "strategy", "goal", "artifact", "learning", "note")
"""What searches find: all that `get` returns."""


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
        try:
            made = await client.infer(turns, **scope.conversation, **scope.owner)
        except NotFoundError as err:
            if not scope.conversation_id:
                raise
            raise refuse_run(scope) from err
        stored = [(turn.id, each["content"]) for turn, each in zip(made.turns, messages, strict=True)]
    else:
        expiry = {"expires_at": end_of_day(body["expiration_date"])} if body.get("expiration_date") else {}
        options |= {**expiry, **scope.conversation, **scope.owner}
        texts = [read_note(each) for each in messages]
        if scope.conversation_id:
            await join_run(client, scope)
        stored = [(note.id, note.text) for note in await remember_all(client, texts, **options)]
    return {"results": [{"id": each, "memory": text, "event": "ADD"} for each, text in stored]}


async def remember_all(client: AsyncClient, texts: Sequence[str], **options: Any) -> list[MemoryAnswer]:
    """Store notes, all or none: those that are stored are deleted again if a later one is refused."""
    stored: list[MemoryAnswer] = []
    try:
        for text in texts:
            stored.append(await client.remember(text, **options))
    except AgentMemoryError:
        for note in stored:
            await client.forget(note.id, user_id=note.user_id or None)
        raise
    return stored


async def join_run(client: AsyncClient, scope: Scope) -> None:
    """Let the agent take part in the conversation of a run, which is created if it is new: to mem0, it is a tag."""
    try:
        await client.get_conversation(scope.conversation_id, agent_id=scope.agent_id)
        return
    except NotFoundError:
        pass
    try:
        try:
            await client.create_conversation(conversation_id=scope.conversation_id, **scope.owner)
        except ConflictError:
            await client.add_participant(scope.conversation_id, participant_id=scope.agent_id)
    except (NotFoundError, PermissionDeniedError) as err:
        raise refuse_run(scope) from err


def refuse_run(scope: Scope) -> Mem0RequestError:
    """Return the error for a run that exists, and in which the key takes no part."""
    return Mem0RequestError(
        f"The run {scope.conversation_id} is another agent's or another user's, and this key takes no part in it. Take "
        f"another run_id, or let a key that is bound to nobody add the agent {scope.agent_id} as a participant.",
        status=403,
    )


async def search(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Find memories, in the order of their scores. A user, a threshold and metadata choose among the best MAX_TOP_K."""
    scope, top_k, threshold = read_scope(client, body), read_top_k(body), read_threshold(body)
    chooses = scope.user_id or scope.metadata or threshold
    wanted = {"kinds": KINDS, "whole": True, "top_k": MAX_TOP_K if chooses else min(top_k, MAX_TOP_K)}
    found = await client.search(body["query"], **wanted, **scope.conversation, **scope.owner)
    results = []
    for each in found.results:
        score = (each.confidence if each.similarity is None else each.similarity) or 0.0
        if score >= threshold and scope.admits(each):
            details = {"score_details": explain_score(each, score, threshold)} if body.get("explain") else {}
            results.append({**describe(each.to_dict()), "score": score, **details})
    # the service's own order chooses them, and `rank_score` of the details keeps it
    return {"results": sorted(results[:top_k], key=lambda each: each["score"], reverse=True)}


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
        if scope.admits(each)
    ]
    more = str(request.url.include_query_params(page=page + 1)) if start + size < len(found) else None
    return {"count": len(found), "next": more, "previous": None, "results": found[start : start + size]}


async def latest_memories(client: AsyncClient, **filters: Any) -> AsyncIterator[MemoryAnswer]:
    """Yield the latest MAX_LISTED memories, but for facts that are true no more and what was erased."""
    count = 0
    async for each in client.memories(page_size=PAGE_SIZE, **filters):
        if each.status not in ("superseded", "ended") and not is_erased_memory(each):
            yield each
        count += 1
        if count == MAX_LISTED:
            return


async def get(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Return a memory; of a fact that was superseded, what is true now."""
    return describe((await read_current(client, request.path_params["id"])).to_dict())


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
            if not is_key(token):
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

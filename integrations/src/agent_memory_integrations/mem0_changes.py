"""Changes and deletions as mem0's clients ask for them.

To mem0 a memory keeps its id when its text changes. Here a fact is superseded by another one, so an old id stands for
what is true now.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError, PermissionDeniedError, UnprocessableError
from agent_memory_client.calls import Id
from agent_memory_client.models import MemoryAnswer
from starlette.requests import Request

from agent_memory_integrations.mem0_requests import Answer, Mem0RequestError, describe, end_of_day, read_objects
from agent_memory_integrations.turns import is_erased_memory
from agent_memory_integrations.updates import forget_versions, read_former, read_versions, update_fact

STAYS = (
    "What other agents stored in this run stays, because this key is bound to an agent or a user that may not delete "
    "it. The rest is deleted."
)


async def read_current(client: AsyncClient, memory_id: Id) -> MemoryAnswer:
    """Return a memory; of a fact that was superseded, the one that is true now. Raises as `refuse_erased` does."""
    return refuse_erased((await read_versions(client, memory_id))[-1])


def refuse_erased(memory: MemoryAnswer) -> MemoryAnswer:
    """Return the memory. Raises Mem0RequestError for a turn that was erased."""
    if is_erased_memory(memory):
        raise Mem0RequestError("This memory was deleted.", status=404)
    return memory


async def update(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Change a memory."""
    return await change(client, request.path_params["id"], body)


async def change(client: AsyncClient, memory_id: Id, body: Mapping[str, Any]) -> Answer:
    """Change a note, or supersede a fact, which keeps its history. The answer has the id of what is true now."""
    held, text = await read_current(client, memory_id), body.get("text")
    check_change(held, body)
    if held.kind == "fact":
        metadata = held.metadata if body.get("metadata") is None else body["metadata"]
        made = await update_fact(client, held, str(text), metadata)
        shown = describe((await client.get_memory(made.id)).to_dict())
        return {**shown, "text": shown["memory"]}
    changes: Answer = {name: body[name] for name in ("text", "metadata") if body.get(name) is not None}
    if "expiration_date" in body:
        changes["expires_at"] = end_of_day(body["expiration_date"]) if body["expiration_date"] else None
    changed = describe((await client.update_memory(held.id, user_id=held.user_id or None, **changes)).to_dict())
    return {**changed, "text": changed["memory"]}


def check_change(held: MemoryAnswer, body: Mapping[str, Any]) -> None:
    """Raise Mem0RequestError for a change that the memory does not take."""
    text = body.get("text")
    if held.kind == "turn":
        raise Mem0RequestError("This is what was said, and is not changed. Delete it, and add what is true instead.")
    if held.kind not in ("note", "fact"):
        raise Mem0RequestError(f"Only notes and facts are changed, and this memory is of the kind {held.kind}.")
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise Mem0RequestError("text must be a text, not only blanks.")
    if text is None and body.get("metadata") is None and "expiration_date" not in body:
        raise Mem0RequestError("Nothing is changed. Name a text, metadata or an expiration_date.")
    if held.kind == "fact" and (text is None or body.get("expiration_date")):
        raise Mem0RequestError(
            "A fact is changed by a new text, with metadata if you want, and has no expiration_date."
        )


async def delete(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Delete a memory with its former texts, and what updates made of it."""
    await forget_versions(client, request.path_params["id"])
    return {"message": "Memory deleted successfully!"}


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
    """Delete what is known about a user with the conversations with it, a run, or what an agent has."""
    if kind == "user":
        while (await client.forget_all(dry_run=False, user_id=name)).remaining:
            pass
        for each in [each.conversation_id async for each in client.list_conversations(user_id=name)]:
            await client.delete_conversation(each)
    elif kind == "run":
        await delete_run(client, name)
    elif kind == "agent":
        await client.delete_agent(name)
    else:
        raise Mem0RequestError("Only users, agents and runs are deleted.")


async def delete_run(client: AsyncClient, name: str) -> None:
    """Delete a conversation with what was learned from it alone, and all else that lists show under it.

    A key that may not delete the conversation deletes what it may. Raises NotFoundError if there is nothing, and
    Mem0RequestError if something stays.
    """
    listed = [each async for each in client.memories(conversation_id=name, page_size=100)]
    # before the conversation: what updates made of its facts is listed under no run
    kept = await forget_many(client, [each for each in listed if each.kind != "turn"])
    try:
        await client.delete_conversation(name)
    except NotFoundError:
        if not listed:
            raise
    except PermissionDeniedError:
        kept += await forget_many(client, [each for each in listed if each.kind == "turn"])
    if kept:
        raise Mem0RequestError(STAYS, status=403)


async def forget_many(client: AsyncClient, memories: Sequence[MemoryAnswer]) -> int:
    """Delete those of the memories that the key may, and return the number of those that it may not."""
    agent_id, kept = client.settings.agent_id, 0
    for each in memories:
        # a long talk with another agent is not tried turn by turn
        if each.kind == "turn" and agent_id not in ("", each.agent_id):
            kept += 1
            continue
        try:
            await forget_versions(client, each.id)
        except (NotFoundError, UnprocessableError):
            # it went with another one, or goes with the conversation, such as a summary
            continue
        except PermissionDeniedError:
            kept += 1
    return kept


async def history(client: AsyncClient, request: Request, body: Answer) -> list[Answer]:
    """Return how a memory came to be: added, and updated if it is a fact. Former texts of notes are not kept."""
    versions = await read_versions(client, request.path_params["id"])
    refuse_erased(versions[0])
    older = [{**each.to_dict(), "text": each.claim} for each in await read_former(client, versions[0])]
    changes: list[Answer] = []
    former = None
    for each in [*older, *(version.to_dict() for version in versions)]:
        memory = describe(each)
        event = {"id": memory["id"], "memory_id": memory["id"], "event": "UPDATE" if former else "ADD"}
        texts = {"old_memory": former, "new_memory": memory["memory"]}
        changes.append({**event, **texts, "user_id": memory["user_id"], "created_at": memory["created_at"]})
        former = memory["memory"]
    return changes


async def change_many(client: AsyncClient, request: Request, body: Answer) -> Answer:
    """Change or delete several memories."""
    memories = read_objects(body, "memories")
    for each in memories:
        if request.method == "PUT":
            await change(client, each["memory_id"], each)
        else:
            await forget_versions(client, each["memory_id"])
    done = "updated" if request.method == "PUT" else "deleted"
    return {"message": f"Successfully {done} {len(memories)} memories"}

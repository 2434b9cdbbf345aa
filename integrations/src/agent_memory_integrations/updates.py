"""Updates of facts: one memory to programs that change its text, though each of its versions has an id here.

A fact that an update made carries UPDATED in its metadata, and supersedes the former one: forgetting it leaves nothing
of the former text. One that was learned in the place of another one, because a later talk said something else, has no
such mark: both are memories of their own, and forgetting the later one brings the former one back.
"""

from collections.abc import Mapping
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError
from agent_memory_client.calls import Id
from agent_memory_client.models import FactAnswer, FactDetail, MemoryAnswer

from agent_memory_integrations.turns import forget_any

UPDATED = "mem0_id"
"""Member of the metadata of a fact that an update made: the id that the memory had before its first update."""
MAX_VERSIONS = 1_000
"""Facts that supersede each other which are followed."""


async def read_versions(client: AsyncClient, memory_id: Id) -> list[MemoryAnswer]:
    """Return a memory and, of a fact, those that superseded it, in order. Raises NotFoundError for the first one."""
    versions = [await client.get_memory(memory_id)]
    while versions[-1].status == "superseded" and len(versions) < MAX_VERSIONS:
        last = versions[-1]
        later = (await client.get_fact(last.id, user_id=last.user_id or None)).superseded_by
        if not later:
            break
        try:
            versions.append(await client.get_memory(later[-1]))
        except NotFoundError:
            break
    return versions


async def read_former(client: AsyncClient, held: MemoryAnswer) -> list[FactDetail]:
    """Return the facts that updates made this one of, the first one first, also those that are believed no more."""
    first, former = held.metadata.get(UPDATED), dict[str, FactDetail]()
    waiting = [held.id] if held.kind == "fact" and first else []
    while waiting and len(former) < MAX_VERSIONS:
        fact = await client.get_fact(waiting.pop(), user_id=held.user_id or None)
        for each in set(fact.supersedes) - former.keys():
            older = await client.get_fact(each, user_id=held.user_id or None)
            if first in (older.id, older.metadata.get(UPDATED)):
                former[older.id] = older
                waiting.append(older.id)
    return list(reversed(former.values()))


async def update_fact(client: AsyncClient, held: MemoryAnswer, text: str, metadata: Mapping[str, Any]) -> FactAnswer:
    """Supersede a fact by what an update makes of it, which is marked as such. Raises the errors of the client."""
    marked = {**metadata, UPDATED: held.metadata.get(UPDATED) or held.id}
    return await client.supersede_fact(held.id, claim=text, metadata=marked, user_id=held.user_id or None)


async def forget_with_former(client: AsyncClient, held: MemoryAnswer) -> None:
    """Forget a memory; of a fact, with the statements that updates replaced. Raises NotFoundError if it is gone.

    The oldest goes first: a call that fails on the way can be repeated.
    """
    for each in await read_former(client, held):
        await client.delete_fact(each.id, erase=True, user_id=each.user_id or None)
    await forget_any(client, held)


async def forget_versions(client: AsyncClient, memory_id: Id) -> None:
    """Forget a memory with all that updates made of it, or it of. What else superseded a fact is its own, and stays."""
    held, *later = await read_versions(client, memory_id)
    first = held.metadata.get(UPDATED) or held.id
    for each in reversed(later):
        if each.metadata.get(UPDATED) == first:
            await forget_any(client, each)
    await forget_with_former(client, held)

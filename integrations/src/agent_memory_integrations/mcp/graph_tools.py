"""The nine tools of the profile `/mcp/graph`, those of the reference memory server.

Entities and relations are items of a persistent context, since the reference takes any type and any statement as it
is; `recall` of the other profiles finds them too.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from weakref import WeakValueDictionary

from agent_memory_client import AsyncClient
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent_memory_integrations.contexts import AsyncNamedContext
from agent_memory_integrations.item_pages import ItemPages, is_cut
from agent_memory_integrations.mcp.tools import Answer, Query, Toolset

CONTEXT = "knowledge-graph"
ENTITIES, RELATIONS = ["entities"], ["relations"]
MAX_ITEMS = 1_000
"""Entities, and relations. More are refused, instead of overlooking some."""
LOCKS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class GraphShape(BaseModel):
    """Base of the shapes, whose members have the reference's names."""

    model_config = ConfigDict(alias_generator=to_camel, serialize_by_alias=True)


class GraphEntity(GraphShape):
    """A node: a name, a type and statements about it."""

    name: str = Field(description="The name of the entity, which identifies it.", min_length=1, max_length=150)
    entity_type: str = Field(description="The type of the entity, such as person.")
    observations: list[str] = Field(description="Statements about the entity, one each.")


class GraphRelation(GraphShape):
    """A directed relation between two entities, in active voice."""

    source: str = Field(alias="from", description="The name of the entity where the relation starts.")
    target: str = Field(alias="to", description="The name of the entity where the relation ends.")
    relation_type: str = Field(description="The type of the relation, such as works_at.")


class NewObservations(GraphShape):
    """Statements to add to an entity."""

    entity_name: str = Field(description="The name of the entity.")
    contents: list[str] = Field(description="The statements to add.")


class OldObservations(GraphShape):
    """Statements to delete from an entity."""

    entity_name: str = Field(description="The name of the entity.")
    observations: list[str] = Field(description="The statements to delete.")


Names = Annotated[list[str], Field(description="Names of entities.")]


async def read_graph(memory: AsyncClient) -> Answer:
    """Read the whole graph."""
    return {"entities": await list_all(memory, ENTITIES), "relations": await list_all(memory, RELATIONS)}


async def search_nodes(memory: AsyncClient, query: Query) -> Answer:
    """Search nodes whose name, type or observations contain the query; or else those that are nearest in meaning."""
    graph = await read_graph(memory)
    words = query.lower()
    names = [each["name"] for each in graph["entities"] if any(words in text.lower() for text in texts_of(each))]
    if not names and graph["entities"]:
        found = await search_items(memory, {"namespace_prefix": ENTITIES, "query": query, "limit": 5})
        names = [each["name"] for each in found]
    return select_nodes(graph, names)


async def open_nodes(memory: AsyncClient, names: Names) -> Answer:
    """Open nodes by their names, with the relations between them."""
    found = {"entities": await find_entities(memory, names), "relations": await list_all(memory, RELATIONS)}
    return select_nodes(found, names)


async def create_entities(memory: AsyncClient, entities: list[GraphEntity]) -> Answer:
    """Create entities. Those that exist stay as they are."""
    async with lock_of(memory):
        new: dict[str, dict[str, Any]] = {}
        for each in entities:
            held = new.setdefault(each.name, each.model_dump())["observations"]
            held.extend(text for text in each.observations if text not in held)
        known = {each["name"] for each in await find_entities(memory, list(new))}
        added = [each for name, each in new.items() if name not in known]
        await check_room(memory, ENTITIES, len(added))
        await write(memory, [entity_item(each) for each in added])
    return {"entities": added}


async def create_relations(memory: AsyncClient, relations: list[GraphRelation]) -> Answer:
    """Create relations between entities. Those that exist are left out."""
    async with lock_of(memory):
        wanted = unique(relation.model_dump() for relation in relations)
        known = await read_values(memory, [relation_path(each) for each in wanted])
        new = [each for each in wanted if each not in known]
        await check_room(memory, RELATIONS, len(new))
        await write(memory, [relation_item(each) for each in new])
    return {"relations": new}


async def add_observations(memory: AsyncClient, observations: list[NewObservations]) -> Answer:
    """Add statements to entities that exist."""
    async with lock_of(memory):
        found = await find_entities(memory, [each.entity_name for each in observations])
        entities = {each["name"]: each for each in found}
        results = []
        for each in observations:
            if each.entity_name not in entities:
                raise ToolError(f"Entity with name {each.entity_name} not found")
            held = entities[each.entity_name]["observations"]
            added = [text for text in dict.fromkeys(each.contents) if text not in held]
            held.extend(added)
            results.append({"entityName": each.entity_name, "addedObservations": added})
        await write(memory, [entity_item(each) for each in found])
    return {"results": results}


async def delete_entities(memory: AsyncClient, entityNames: Names) -> Answer:  # noqa: N803 - the reference's name
    """Delete entities and their relations."""
    async with lock_of(memory):
        relations = await list_all(memory, RELATIONS)
        cut = [each for each in relations if {each["from"], each["to"]} & set(entityNames)]
        await write(memory, [], deleted=[*map(entity_path, dict.fromkeys(entityNames)), *map(relation_path, cut)])
    return {"success": True, "message": "Entities deleted successfully"}


async def delete_observations(memory: AsyncClient, deletions: list[OldObservations]) -> Answer:
    """Delete statements of entities."""
    async with lock_of(memory):
        found = await find_entities(memory, [each.entity_name for each in deletions])
        for entity in found:
            gone = {text for each in deletions if each.entity_name == entity["name"] for text in each.observations}
            entity["observations"] = [text for text in entity["observations"] if text not in gone]
        await write(memory, [entity_item(each) for each in found])
    return {"success": True, "message": "Observations deleted successfully"}


async def delete_relations(memory: AsyncClient, relations: list[GraphRelation]) -> Answer:
    """Delete relations."""
    await write(memory, [], deleted=[relation_path(each.model_dump()) for each in relations])
    return {"success": True, "message": "Relations deleted successfully"}


def lock_of(memory: AsyncClient) -> asyncio.Lock:
    """Return the lock that writes of a key hold in this process, so that none is lost between its read and write."""
    return LOCKS.setdefault(memory.settings.api_key, asyncio.Lock())


def entity_path(name: str) -> Answer:
    return {"namespace": ENTITIES, "key": name}


def entity_item(entity: Answer) -> Answer:
    return {**entity_path(entity["name"]), "value": entity, "texts": [". ".join(texts_of(entity))]}


def triple_of(relation: Answer) -> list[str]:
    return [relation["from"], relation["relationType"], relation["to"]]


def relation_path(relation: Answer) -> Answer:
    """Return the path of a relation. The key is a digest, since two names may be longer than a path."""
    return {"namespace": RELATIONS, "key": hashlib.sha256(json.dumps(triple_of(relation)).encode()).hexdigest()}


def relation_item(relation: Answer) -> Answer:
    text = " ".join(triple_of(relation))
    return {**relation_path(relation), "value": relation, "texts": [text] if text.strip() else []}


def texts_of(entity: Answer) -> Sequence[str]:
    return [text for text in (entity["name"], entity["entityType"], *entity["observations"]) if text.strip()]


def unique(relations: Iterable[Answer]) -> list[Answer]:
    return list({tuple(each.items()): each for each in relations}.values())


def select_nodes(graph: Answer, names: Sequence[str]) -> Answer:
    """Return these entities and the relations that begin or end at one of them."""
    wanted = set(names)
    return {
        "entities": [each for each in graph["entities"] if each["name"] in wanted],
        "relations": [each for each in graph["relations"] if {each["from"], each["to"]} & wanted],
    }


async def find_entities(memory: AsyncClient, names: Sequence[str]) -> list[Answer]:
    """Return the entities of these names that exist, each once."""
    return await read_values(memory, [entity_path(each) for each in dict.fromkeys(names)])


async def read_values(memory: AsyncClient, paths: Sequence[Answer]) -> list[Answer]:
    context_id = await AsyncNamedContext(memory, CONTEXT).find_id()
    if not context_id or not paths:
        return []
    found = (await memory.query_items(context_id, reads=paths)).to_dict()
    if is_cut(found) and len(paths) > 1:
        half = len(paths) // 2
        return [*await read_values(memory, paths[:half]), *await read_values(memory, paths[half:])]
    return [each["value"] for each in found["reads"] if each is not None]


async def search_items(memory: AsyncClient, search: Answer) -> list[Answer]:
    context_id, pages = await AsyncNamedContext(memory, CONTEXT).find_id(), ItemPages(search, wanted=search["limit"])
    found = []
    while context_id and (asked := pages.next_search()):
        found += pages.read_items((await memory.query_items(context_id, searches=[asked])).to_dict())
    return [each["value"] for each in found]


async def list_all(memory: AsyncClient, namespace: list[str]) -> list[Answer]:
    """Return all entities or all relations, the oldest first."""
    found = await search_items(memory, {"namespace_prefix": namespace, "limit": MAX_ITEMS})
    return found[::-1]


async def check_room(memory: AsyncClient, namespace: list[str], count: int) -> None:
    """Raise ToolError if so many more would be more than `list_all` returns."""
    full = count > MAX_ITEMS or (
        count and await search_items(memory, {"namespace_prefix": namespace, "limit": 1, "offset": MAX_ITEMS - count})
    )
    if full:
        raise ToolError(f"The graph has at most {MAX_ITEMS} {namespace[0]}. Delete some that are not needed any more.")


async def write(memory: AsyncClient, items: list[Answer], *, deleted: Sequence[Answer] = ()) -> None:
    """Store items and delete others, in as many requests as the deletions need."""
    if items or deleted:
        context_id = await AsyncNamedContext(memory, CONTEXT).ensure_id()
        await memory.write_items(context_id, items=items, deleted=deleted[:MAX_ITEMS])
        for start in range(MAX_ITEMS, len(deleted), MAX_ITEMS):
            await memory.write_items(context_id, deleted=deleted[start : start + MAX_ITEMS])


GRAPH_TOOLS = Toolset(
    instructions="A knowledge graph of entities, relations and observations that outlives the conversation.",
    reads=(read_graph, search_nodes, open_nodes),
    writes=(
        create_entities,
        create_relations,
        add_observations,
        delete_entities,
        delete_observations,
        delete_relations,
    ),
    destructive=frozenset({"delete_entities", "delete_observations", "delete_relations"}),
)

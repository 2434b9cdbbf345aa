"""The nine tools of the profile `/mcp/graph`, those of the reference memory server.

Entities and relations are items of a persistent context, since the reference takes any type and any statement as it
is; `recall` of the other profiles finds them too.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from agent_memory_client import AsyncClient
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent_memory_integrations.contexts import AsyncNamedContext
from agent_memory_integrations.mcp.tools import Answer, Query, Toolset

CONTEXT = "knowledge-graph"
ENTITIES, RELATIONS = ["entities"], ["relations"]
MAX_ITEMS = 1_000


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
    context_id = await AsyncNamedContext(memory, CONTEXT).find_id()
    if not context_id:
        return {"entities": [], "relations": []}
    searches = [{"namespace_prefix": each, "limit": MAX_ITEMS} for each in (ENTITIES, RELATIONS)]
    found = (await memory.query_items(context_id, searches=searches)).to_dict()["searches"]
    entities, relations = ([item["value"] for item in reversed(each["items"])] for each in found)
    return {"entities": entities, "relations": relations}


async def search_nodes(memory: AsyncClient, query: Query) -> Answer:
    """Search nodes whose name, type or observations contain the query; or else those that are nearest in meaning."""
    graph = await read_graph(memory)
    words = query.lower()
    names = [each["name"] for each in graph["entities"] if any(words in text.lower() for text in texts_of(each))]
    if not names and graph["entities"]:
        search = {"namespace_prefix": ENTITIES, "query": query, "limit": 5}
        found = await memory.query_items(await AsyncNamedContext(memory, CONTEXT).find_id(), searches=[search])
        names = [item["value"]["name"] for item in found.to_dict()["searches"][0]["items"]]
    return select_nodes(graph, names)


async def open_nodes(memory: AsyncClient, names: Names) -> Answer:
    """Open nodes by their names, with the relations between them."""
    return select_nodes(await read_graph(memory), names)


async def create_entities(memory: AsyncClient, entities: list[GraphEntity]) -> Answer:
    """Create entities. Those that exist stay as they are."""
    known = {each["name"] for each in (await read_graph(memory))["entities"]}
    new = {each.name: each.model_dump() for each in entities if each.name not in known}
    await write(memory, [entity_item(each) for each in new.values()])
    return {"entities": list(new.values())}


async def create_relations(memory: AsyncClient, relations: list[GraphRelation]) -> Answer:
    """Create relations between entities. Those that exist are left out."""
    known = (await read_graph(memory))["relations"]
    new = [each for each in unique(relation.model_dump() for relation in relations) if each not in known]
    await write(memory, [relation_item(each) for each in new])
    return {"relations": new}


async def add_observations(memory: AsyncClient, observations: list[NewObservations]) -> Answer:
    """Add statements to entities that exist."""
    entities = by_name(await read_graph(memory))
    results = []
    for each in observations:
        if each.entity_name not in entities:
            raise ValueError(f"Entity with name {each.entity_name} not found")
        held = entities[each.entity_name]["observations"]
        added = [text for text in dict.fromkeys(each.contents) if text not in held]
        held.extend(added)
        results.append({"entityName": each.entity_name, "addedObservations": added})
    await write(memory, [entity_item(entities[name]) for name in {each.entity_name for each in observations}])
    return {"results": results}


async def delete_entities(memory: AsyncClient, entityNames: Names) -> Answer:  # noqa: N803 - the reference's name
    """Delete entities and their relations."""
    graph = await read_graph(memory)
    gone = [each for each in graph["entities"] if each["name"] in entityNames]
    cut = [each for each in graph["relations"] if {each["from"], each["to"]} & set(entityNames)]
    await write(memory, [], deleted=[*map(entity_path, gone), *map(relation_path, cut)])
    return {"success": True, "message": "Entities deleted successfully"}


async def delete_observations(memory: AsyncClient, deletions: list[OldObservations]) -> Answer:
    """Delete statements of entities."""
    entities = by_name(await read_graph(memory))
    changed = [each for each in deletions if each.entity_name in entities]
    for each in changed:
        held = entities[each.entity_name]["observations"]
        entities[each.entity_name]["observations"] = [text for text in held if text not in each.observations]
    await write(memory, [entity_item(entities[name]) for name in {each.entity_name for each in changed}])
    return {"success": True, "message": "Observations deleted successfully"}


async def delete_relations(memory: AsyncClient, relations: list[GraphRelation]) -> Answer:
    """Delete relations."""
    await write(memory, [], deleted=[relation_path(each.model_dump()) for each in relations])
    return {"success": True, "message": "Relations deleted successfully"}


def entity_path(entity: Answer) -> Answer:
    return {"namespace": ENTITIES, "key": entity["name"]}


def entity_item(entity: Answer) -> Answer:
    return {**entity_path(entity), "value": entity, "texts": [". ".join(texts_of(entity))]}


def relation_path(relation: Answer) -> Answer:
    return {"namespace": RELATIONS, "key": " ".join((relation["from"], relation["relationType"], relation["to"]))}


def relation_item(relation: Answer) -> Answer:
    path = relation_path(relation)
    return {**path, "value": relation, "texts": [path["key"]]}


def texts_of(entity: Answer) -> Sequence[str]:
    return [text for text in (entity["name"], entity["entityType"], *entity["observations"]) if text.strip()]


def by_name(graph: Answer) -> dict[str, Any]:
    return {each["name"]: each for each in graph["entities"]}


def unique(relations: Iterable[Answer]) -> list[Answer]:
    return list({tuple(each.items()): each for each in relations}.values())


def select_nodes(graph: Answer, names: Sequence[str]) -> Answer:
    """Return these entities and the relations that begin or end at one of them."""
    wanted = set(names)
    return {
        "entities": [each for each in graph["entities"] if each["name"] in wanted],
        "relations": [each for each in graph["relations"] if {each["from"], each["to"]} & wanted],
    }


async def write(memory: AsyncClient, items: list[Answer], *, deleted: Sequence[Answer] = ()) -> None:
    if items or deleted:
        context_id = await AsyncNamedContext(memory, CONTEXT).ensure_id()
        await memory.write_items(context_id, items=items, deleted=deleted)


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

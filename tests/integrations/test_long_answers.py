"""Integrations whose data has no room in one answer of the service, here one of 64 KiB."""

import asyncio
from collections.abc import Iterator

import pytest
from agent_memory_client import AsyncClient, Client
from agent_memory_integrations.claude_memory import MemoryTool
from agent_memory_integrations.langgraph import AgentMemoryStore
from agent_memory_integrations.mcp.graph_tools import GraphEntity, create_entities, open_nodes, read_graph
from langgraph.store.base import GetOp, PutOp, SearchOp

from tests.web_server import SharedServers

SPACE = ("users", "anton")
LONG = "x" * 1_500
COUNT = 100


@pytest.fixture
def narrow_url(transactional_db: None, empty_redis: None, shared_server: SharedServers) -> str:
    return f"http://127.0.0.1:{shared_server({'MEMORY_ANSWER_LIMIT_BYTES': '65536'}).port}"


@pytest.fixture
def narrow_client(narrow_url: str, api_key: str) -> Iterator[Client]:
    with Client(narrow_url, api_key, agent_id="assistant") as client:
        yield client


def test_a_store_of_langgraph_reads_a_batch_in_parts(narrow_client: Client) -> None:
    store = AgentMemoryStore(narrow_client, index=False)
    store.batch([PutOp(SPACE, f"k{number}", {"n": number, "text": LONG}) for number in range(COUNT)])
    keys = [f"k{number}" for number in range(COUNT)]

    *gets, missing, found, rest = store.batch(
        [
            *(GetOp(SPACE, key) for key in keys),
            GetOp(SPACE, ""),
            SearchOp(SPACE, limit=COUNT),
            SearchOp(SPACE, limit=COUNT, offset=COUNT - 3),
        ]
    )

    assert [each.key for each in gets] == keys  # type: ignore[union-attr]
    assert missing is None
    assert {each.key for each in found} == set(keys)  # type: ignore[union-attr]
    assert len(rest) == 3  # type: ignore[arg-type]


def test_a_tree_of_files_is_read_in_parts(narrow_client: Client) -> None:
    context = narrow_client.create_context(name="tree")
    paths = [{"namespace": ["files"], "key": f"f{number}"} for number in range(COUNT)]
    narrow_client.write_items(context.id, items=[{**each, "value": {"text": LONG}} for each in paths])
    tool = MemoryTool(narrow_client, context="tree")

    shown = str(tool.call({"command": "view", "path": "/memories"}))

    assert shown.count("/memories/f") == COUNT


def test_a_graph_is_read_in_parts(narrow_url: str, api_key: str) -> None:
    names = [f"e{number}" for number in range(COUNT)]
    entities = [
        GraphEntity.model_validate({"name": name, "entityType": "thing", "observations": [LONG]}) for name in names
    ]

    async def use() -> None:
        async with AsyncClient(narrow_url, api_key, agent_id="assistant") as client:
            await create_entities(client, entities)

            assert {each["name"] for each in (await read_graph(client))["entities"]} == set(names)
            assert len((await open_nodes(client, names))["entities"]) == COUNT

    asyncio.run(use())

"""The MCP server by mcp's own client, over streamable HTTP and over stdio."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import cache
from typing import Any

import httpx2
import pytest
from agent_memory_client import Client, NotFoundError
from agent_memory_integrations.mem0_memory import Memory
from mcp import Client as McpClient
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from lab.ports import find_port
from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.concurrency import PATIENCE_SECONDS
from tests.integrations.environments import OURS

PATHS = os.pathsep.join(map(str, OURS))
READ_TOOLS = {"recall", "get_context", "resume", "list_goals"}
WRITE_TOOLS = {"remember", "remember_messages", "correct", "forget", "add_goal", "complete_goal"}
NINE_TOOLS = {
    "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
    "delete_relations", "read_graph", "search_nodes", "open_nodes",
}  # fmt: skip


@pytest.fixture(scope="session")
def shared_mcp() -> Iterator[Callable[[str], str]]:
    """A server in front of a service, which all tests share: it keeps nothing of a key but its rights."""
    with ExitStack() as stack:
        yield cache(lambda url: stack.enter_context(serve_mcp(url)))


@pytest.fixture
def mcp_url(url: str, shared_mcp: Callable[[str], str]) -> str:
    return shared_mcp(url)


@contextmanager
def serve_mcp(url: str) -> Iterator[str]:
    mcp_port = find_port()
    command = [sys.executable, "-m", "agent_memory_integrations.mcp.http", "127.0.0.1", str(mcp_port), url]
    # what the environment names is not what a key is bound to
    named = {"AGENT_MEMORY_AGENT_ID": "stranger", "AGENT_MEMORY_USER_ID": "stranger"}
    hosts = {"MEMORY_MCP_HOSTS": "memory.example, other.example:1"}
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": PATHS} | named | hosts)
    try:
        wait_for(mcp_port)
        yield f"http://127.0.0.1:{mcp_port}/mcp"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the MCP server did not start")


@asynccontextmanager
async def connect(url: str, key: str, **options: Any) -> AsyncIterator[McpClient]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http,
        McpClient(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


def over_http(url: str, key: str, use: Callable[[McpClient], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with connect(url, key, **options) as client:
            return await use(client)

    return asyncio.run(run())


async def call(client: McpClient, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


@pytest.fixture
def bound_key(account: Account) -> str:
    return issue_key(account, scopes=READ_WRITE, agent_id="assistant").secret


def test_what_is_remembered_is_recalled_corrected_and_forgotten(mcp_url: str, bound_key: str) -> None:
    async def use(client: McpClient) -> None:
        made = await call(client, "remember", text="The door code is 4711.")
        [found] = (await call(client, "recall", query="What is the door code?"))["results"]
        assert (found["id"], found["text"]) == (made["id"], "The door code is 4711.")
        await call(client, "correct", memory_id=made["id"], text="The door code is 1234.")
        context = await call(client, "get_context", query="What is the door code?")
        assert "1234" in context["context"]
        await call(client, "forget", memory_id=made["id"])
        assert (await call(client, "recall", query="What is the door code?"))["results"] == []

    over_http(mcp_url, bound_key, use)


@pytest.mark.parametrize(("path", "tool"), [("", "forget"), ("/mem0", "delete_memory")])
def test_what_was_said_is_forgotten_and_not_corrected(mcp_url: str, bound_key: str, path: str, tool: str) -> None:
    said = [{"role": "user", "content": "My passport number is X991."}, {"role": "user", "content": "It is raining."}]

    async def say(client: McpClient) -> str:
        await call(client, "remember_messages", messages=said, conversation_id="trip")
        [found] = (await call(client, "recall", query="passport number", top_k=1))["results"]
        refused = await client.call_tool("correct", {"memory_id": found["id"], "text": "It is Y992."})
        assert "Call `remember` with what is true" in str(refused.content)
        return str(found["id"])

    async def forget(client: McpClient) -> None:
        await call(client, tool, memory_id=turn_id)

    async def recall(client: McpClient) -> str:
        return str(await call(client, "recall", query="passport number"))

    turn_id = over_http(mcp_url, bound_key, say)
    over_http(f"{mcp_url}{path}", bound_key, forget)

    found = over_http(mcp_url, bound_key, recall)
    assert "X991" not in found
    assert "raining" in found


def test_goals_are_opened_resumed_and_completed(mcp_url: str, bound_key: str) -> None:
    async def use(client: McpClient) -> None:
        goal = await call(client, "add_goal", description="Book the flight to Madeira.")
        assert "Madeira" in (await call(client, "resume"))["text"]
        resource = await client.read_resource("memory://goals")
        assert goal["id"] in str(resource)
        assert [each["status"] for each in (await call(client, "list_goals"))["goals"]] == ["active"]
        await call(client, "complete_goal", goal_id=goal["id"], result="Booked.")
        assert (await call(client, "list_goals"))["goals"] == []
        [found] = (await call(client, "recall", query="Madeira", kinds=["goal"]))["results"]
        assert (found["id"], found["status"]) == (goal["id"], "completed")

    over_http(mcp_url, bound_key, use)


def test_messages_are_stored_with_progress(mcp_url: str, bound_key: str) -> None:
    async def use(client: McpClient) -> None:
        steps: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        messages = [{"role": "user", "content": "I live in Lisbon."}]
        given = {"messages": messages, "conversation_id": "trip"}
        result = await client.call_tool("remember_messages", given, progress_callback=note)
        assert result.structured_content is not None
        assert result.structured_content["stored"] == 1
        assert steps == [0, 1]

    over_http(mcp_url, bound_key, use)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_listed_with_descriptions_in_all_revisions(mcp_url: str, bound_key: str, mode: str) -> None:
    async def use(client: McpClient) -> Any:
        return (await client.list_tools()).tools

    tools = over_http(mcp_url, bound_key, use, mode=mode)

    assert {tool.name for tool in tools} == READ_TOOLS | WRITE_TOOLS
    assert all(tool.description for tool in tools)
    assert all(each.get("description") for tool in tools for each in tool.input_schema["properties"].values())


def test_a_read_only_key_sees_and_calls_only_tools_that_read(mcp_url: str, account: Account) -> None:
    async def use(client: McpClient) -> Any:
        refused = await client.call_tool("remember", {"text": "x"})
        assert refused.is_error
        return (await client.list_tools()).tools

    async def ask(client: McpClient) -> None:
        for given in ({}, {"conversation_id": "trip"}):
            assert "context" in await call(client, "get_context", query="What is the door code?", **given)

    key = issue_key(account, scopes=["read"], agent_id="assistant").secret
    tools = over_http(mcp_url, key, use)
    over_http(mcp_url, key, ask)

    assert {tool.name for tool in tools} == READ_TOOLS


def test_a_refusal_of_the_service_is_a_sentence(mcp_url: str, bound_key: str) -> None:
    async def use(client: McpClient) -> Any:
        return await client.call_tool("forget", {"memory_id": "0190b3c4-0000-7000-8000-000000000000"})

    result = over_http(mcp_url, bound_key, use)

    assert result.is_error
    assert "404" in result.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("forget", {"memory_id": "colour"}, "memory_id: Input should be a valid UUID"),
        ("complete_goal", {"goal_id": "g1"}, "goal_id: Input should be a valid UUID"),
        ("recall", {"query": "x", "limit": 3}, "recall does not take limit. Allowed: kinds, query, top_k."),
        ("remember", {}, "The arguments of remember are not valid. text: Field required."),
    ],
)
def test_arguments_that_a_tool_does_not_take_are_refused(
    mcp_url: str, bound_key: str, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    async def use(client: McpClient) -> Any:
        return await client.call_tool(tool, arguments)

    result = over_http(mcp_url, bound_key, use)

    assert result.is_error
    assert sentence in result.content[0].text
    assert "errors.pydantic.dev" not in result.content[0].text


def test_a_fact_is_corrected_whatever_kind_the_model_takes_it_for(url: str, mcp_url: str, bound_key: str) -> None:
    with Client(url, bound_key) as memory:
        fact = memory.learn("The door code is 4711")
        said = memory.add_turns("talk", [{"role": "user", "content": "Hello there."}]).turns[0]

    async def use(client: McpClient) -> Any:
        await call(client, "correct", memory_id=fact.id, text="The door code is 1234")
        return await client.call_tool("correct", {"memory_id": said.id, "text": "Good day."})

    refused = over_http(mcp_url, bound_key, use)

    assert "Only notes and facts are corrected" in refused.content[0].text
    with Client(url, bound_key) as memory:
        assert memory.get_fact(fact.id).status == "superseded"


@pytest.mark.parametrize(
    ("path", "update", "delete", "position"),
    [
        ("", "correct", "forget", -1),
        ("/mem0", "update_memory", "delete_memory", -1),
        ("/mem0", "update_memory", "delete_memory", 0),
    ],
)
def test_nothing_of_a_former_statement_is_left_when_an_updated_fact_is_forgotten(
    url: str, mcp_url: str, bound_key: str, path: str, update: str, delete: str, position: int
) -> None:
    with Client(url, bound_key) as memory:
        ids = [memory.learn("The door code is 4711", metadata={"a": 1}).id]

        async def use(client: McpClient) -> None:
            for code in ("1234", "5678"):
                made = await call(client, update, memory_id=ids[-1], text=f"The door code is {code}")
                ids.append(made["id"])
            assert memory.get_memory(ids[-1]).metadata["a"] == 1
            await call(client, delete, memory_id=ids[position])

        over_http(f"{mcp_url}{path}", bound_key, use)

        for each in ids:
            with pytest.raises(NotFoundError):
                memory.get_fact(each)


def test_forgetting_a_fact_brings_back_what_a_later_talk_replaced(url: str, mcp_url: str, bound_key: str) -> None:
    with Client(url, bound_key) as memory:
        former, now = (memory.learn(f"Ana works at {name}").id for name in ("Acme", "Initech"))

        async def use(client: McpClient) -> None:
            await call(client, "forget", memory_id=now)

        over_http(mcp_url, bound_key, use)

        assert memory.get_fact(former).status == "active"


def test_forgetting_a_former_statement_keeps_the_correction(url: str, mcp_url: str, bound_key: str) -> None:
    with Client(url, bound_key) as memory:
        former = memory.learn("The door code is 4711").id

        async def use(client: McpClient) -> str:
            made = await call(client, "correct", memory_id=former, text="The door code is 1234")
            await call(client, "forget", memory_id=former)
            return str(made["id"])

        made = over_http(mcp_url, bound_key, use)

        assert memory.get_fact(made).claim == "The door code is 1234"
        with pytest.raises(NotFoundError):
            memory.get_fact(former)


def test_a_correction_is_known_to_the_routes_of_mem0(url: str, mcp_url: str, bound_key: str) -> None:
    with (
        Client(url, bound_key) as memory,
        closing(Memory(url=f"{mcp_url.removesuffix('/mcp')}/compat/mem0", api_key=bound_key)) as mem0,
    ):
        former = memory.learn("The door code is 4711").id

        async def use(client: McpClient) -> str:
            return str((await call(client, "correct", memory_id=former, text="The door code is 1234"))["id"])

        made = over_http(mcp_url, bound_key, use)

        assert [each["id"] for each in mem0.history(made)] == [former, made]
        mem0.delete(former)
        assert mem0.get(made) is None


def post(url: str, **headers: str) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    sent = {"Accept": "application/json, text/event-stream", **{n.replace("_", "-"): v for n, v in headers.items()}}
    return httpx2.post(url, json=body, headers=sent).status_code


def test_a_context_is_given_once_to_a_conversation_and_always_without_one(mcp_url: str, account: Account) -> None:
    for agent_id, user_id in (("assistant", ""), ("other", "ana")):
        talk = {"conversation_id": f"talk-{agent_id}"}
        expected: list[tuple[dict[str, str], bool]] = [({}, True), ({}, True), (talk, True), (talk, False)]

        async def use(client: McpClient, expected: list[tuple[dict[str, str], bool]] = expected) -> None:
            await call(client, "remember", text="The door code is 4711.")
            for given, is_told in expected:
                context = (await call(client, "get_context", query="What is the door code?", **given))["context"]
                assert ("4711" in context) == is_told, given

        over_http(mcp_url, issue_key(account, scopes=READ_WRITE, agent_id=agent_id, user_id=user_id).secret, use)


@pytest.mark.slow
def test_a_service_that_is_away_is_503(bound_key: str) -> None:
    with serve_mcp("http://127.0.0.1:9") as mcp_url:
        assert post(mcp_url, Authorization=f"Bearer {bound_key}") == 503


def test_a_wrong_key_is_401_and_a_foreign_host_421(mcp_url: str, bound_key: str) -> None:
    assert post(mcp_url) == 401
    assert post(mcp_url, Authorization="Bearer wrong") == 401
    assert post(mcp_url, Authorization=f"Bearer {bound_key}", Host="evil.example") == 421
    for host in ("memory.example", "memory.example:8443", "other.example:1"):
        assert post(mcp_url, Authorization=f"Bearer {bound_key}", Host=host) != 421
    assert post(mcp_url, Authorization=f"Bearer {bound_key}", Host="other.example:2") == 421


@pytest.mark.parametrize("path", ["/mcp", "/mcp/mem0"])
def test_a_stream_without_a_request_is_refused(mcp_url: str, bound_key: str, path: str) -> None:
    headers = {"Authorization": f"Bearer {bound_key}", "Accept": "text/event-stream"}

    answer = httpx2.get(mcp_url.removesuffix("/mcp") + path, headers=headers, timeout=10)

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_the_profile_mem0_has_mem0s_names(url: str, mcp_url: str, account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE, agent_id="assistant").secret
    memory = Client(url, key)

    async def use(client: McpClient) -> None:
        added = await call(client, "add_memory", text="Ana likes tea.", metadata={"a": 1})
        found = (await call(client, "search_memories", query="What does Ana like?"))["results"]
        assert [each["memory"] for each in found] == ["Ana likes tea."]
        memory_id = added["results"][0]["id"]
        assert (await call(client, "update_memory", memory_id=memory_id, text="Ana likes coffee."))["memory"]
        listed = (await call(client, "get_memories"))["results"]
        assert [each["memory"] for each in listed] == ["Ana likes coffee."]
        await call(client, "delete_memory", memory_id=memory_id)
        assert (await call(client, "get_memories"))["results"] == []
        _old, new = (memory.learn(f"Ana works at {name}") for name in ("Acme", "Initech"))
        listed = (await call(client, "get_memories", limit=1))["results"]
        assert [each["id"] for each in listed] == [new.id]
        await call(client, "update_memory", memory_id=new.id, text="Ana works at Globex")
        listed = (await call(client, "get_memories"))["results"]
        assert [each["memory"] for each in listed] == ["Ana works at Globex"]
        refused = await client.call_tool("delete_all_memories", {})
        assert "bound to no user" in str(refused.content)

    with memory:
        over_http(f"{mcp_url}/mem0", key, use)


@pytest.mark.slow
def test_the_profile_graph_has_the_nine_tools_of_the_reference(mcp_url: str, bound_key: str) -> None:
    relation = {"from": "Ana", "to": "Acme", "relationType": "works_at"}

    async def use(client: McpClient) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == NINE_TOOLS
        ana = {"name": "Ana", "entityType": "person", "observations": ["likes tea"]}
        acme = {"name": "Acme", "entityType": "company", "observations": []}
        assert (await call(client, "create_entities", entities=[ana, acme, ana]))["entities"] == [ana, acme]
        assert (await call(client, "create_relations", relations=[relation]))["relations"] == [relation]
        assert (await call(client, "create_relations", relations=[relation]))["relations"] == []
        more = [{"entityName": "Ana", "contents": ["likes tea", "lives in Lisbon"]}]
        added = await call(client, "add_observations", observations=more)
        assert added["results"] == [{"entityName": "Ana", "addedObservations": ["lives in Lisbon"]}]
        found = await call(client, "search_nodes", query="lisbon")
        assert ([each["name"] for each in found["entities"]], found["relations"]) == (["Ana"], [relation])
        gone = [{"entityName": "Ana", "observations": ["likes tea"]}]
        await call(client, "delete_observations", deletions=gone)
        assert (await call(client, "open_nodes", names=["Ana"]))["entities"][0]["observations"] == ["lives in Lisbon"]
        await call(client, "delete_entities", entityNames=["Acme"])
        graph = await call(client, "read_graph")
        assert ([each["name"] for each in graph["entities"]], graph["relations"]) == (["Ana"], [])

    over_http(f"{mcp_url}/graph", bound_key, use)


@pytest.mark.slow
def test_relations_of_long_names_and_parallel_observations_are_kept(mcp_url: str, bound_key: str) -> None:
    names = ["a b", "c", "a", "b c", "x" * 150, "y" * 150]
    triples = [("a b", "c", "r"), ("a", "b c", "r"), ("x" * 150, "y" * 150, "r")]
    relations = [{"from": one, "to": other, "relationType": kind} for one, other, kind in triples]

    async def use(client: McpClient) -> None:
        entities = [{"name": each, "entityType": "thing", "observations": []} for each in names]
        await call(client, "create_entities", entities=entities)
        assert (await call(client, "create_relations", relations=relations))["relations"] == relations
        additions = [[{"entityName": "c", "contents": [f"statement {number}"]}] for number in range(5)]
        await asyncio.gather(*(call(client, "add_observations", observations=each) for each in additions))
        opened = await call(client, "open_nodes", names=["c"])
        assert len(opened["entities"][0]["observations"]) == 5
        await call(client, "delete_relations", relations=relations[:1])
        assert (await call(client, "read_graph"))["relations"] == relations[1:]

    over_http(f"{mcp_url}/graph", bound_key, use)


@pytest.mark.slow
def test_an_entity_that_is_named_twice_keeps_the_observations_of_both(mcp_url: str, bound_key: str) -> None:
    first = {"name": "Ana", "entityType": "person", "observations": ["likes tea"]}
    second = {"name": "Ana", "entityType": "traveller", "observations": ["likes tea", "lives in Lisbon"]}

    async def use(client: McpClient) -> None:
        [ana] = (await call(client, "create_entities", entities=[first, second]))["entities"]
        assert ana == {**first, "observations": ["likes tea", "lives in Lisbon"]}
        assert (await call(client, "open_nodes", names=["Ana"]))["entities"] == [ana]

    over_http(f"{mcp_url}/graph", bound_key, use)


def test_a_full_graph_takes_no_more_and_keeps_what_it_has(mcp_url: str, bound_key: str, url: str) -> None:
    def entity(name: str, kind: str) -> dict[str, Any]:
        return {"name": name, "entityType": kind, "observations": []}

    with Client(url, bound_key) as service:
        context = service.create_context(name="knowledge-graph")
        paths = [{"namespace": ["entities"], "key": f"e{number}"} for number in range(999)]
        items = [{**each, "value": entity(str(each["key"]), "thing")} for each in paths]
        service.write_items(context.id, items=items)

    async def use(client: McpClient) -> None:
        assert (await call(client, "create_entities", entities=[entity("e0", "other")]))["entities"] == []
        refused = await client.call_tool("create_entities", {"entities": [entity("a", "x"), entity("b", "x")]})
        assert refused.is_error
        assert "at most 1000 entities" in refused.content[0].text  # type: ignore[union-attr]
        await call(client, "create_entities", entities=[entity("a", "x")])
        assert len((await call(client, "read_graph"))["entities"]) == 1_000

    over_http(f"{mcp_url}/graph", bound_key, use)


@pytest.mark.slow
def test_an_entity_with_as_many_relations_as_there_may_be_is_deleted(mcp_url: str, bound_key: str) -> None:
    relations = [{"from": "hub", "to": f"e{number}", "relationType": "knows"} for number in range(1_000)]

    async def use(client: McpClient) -> None:
        await call(client, "create_relations", relations=relations)
        await call(client, "delete_entities", entityNames=["hub"])
        assert (await call(client, "read_graph"))["relations"] == []

    over_http(f"{mcp_url}/graph", bound_key, use)


def test_the_command_without_a_key_says_what_to_do() -> None:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": PATHS}
    command = [sys.executable, "-m", "agent_memory_integrations.mcp.stdio"]

    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

    assert done.returncode == 2
    assert "set AGENT_MEMORY_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_tools_are_served_over_stdio_for_the_user_that_is_named(url: str, api_key: str) -> None:
    named = {"AGENT_MEMORY_AGENT_ID": "assistant", "AGENT_MEMORY_USER_ID": "ana"}
    environ = {"PYTHONPATH": PATHS, "AGENT_MEMORY_BASE_URL": url, "AGENT_MEMORY_API_KEY": api_key, **named}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agent_memory_integrations.mcp.stdio"], env=environ
    )

    async def run() -> None:
        async with McpClient(server) as client:
            await call(client, "remember", text="The door code is 4711.")
            found = (await call(client, "recall", query="What is the door code?"))["results"]
            assert [each["text"] for each in found] == ["The door code is 4711."]

    asyncio.run(run())
    with Client(url, api_key) as client:
        [note] = client.memories(user_id="ana")
    assert (note.agent_id, note.user_id) == ("assistant", "ana")

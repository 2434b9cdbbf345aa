"""Claude's memory tool on the service beside the SDK's tool on files: the same commands, the same answers."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from agent_memory_client import AsyncClient, Client
from agent_memory_integrations.claude_memory import AsyncMemoryTool, MemoryTool
from agent_memory_integrations.memory_files import FileTree, run_command
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from anthropic.types.beta import BetaMemoryTool20250818Command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.concurrency import PATIENCE_SECONDS
from tests.integrations.environments import OURS
from tests.integrations.former_service import serve_former

COMMAND: TypeAdapter[Any] = TypeAdapter(BetaMemoryTool20250818Command)
DIRECTORY_SIZE = re.compile(r"^[\d.]+[BKMG](\t(?:/memories\S*|.*/))$", re.M)

names = st.sampled_from(["a", "b", "a.txt", ".hidden", "ü ä", ".", "..", "memories"])
paths = st.one_of(
    st.lists(names, max_size=4).map(lambda parts: "/".join(["/memories", *parts])),
    st.sampled_from(
        ["/memories/", "/memories//a", "/memoriesa", "/etc/passwd", "a", "/memories/../memories/a", "/memory"]
    ),
    st.sampled_from(["/memories/a/", "/memories/../../x", "/memories/..a"]),
)
texts = st.one_of(
    st.sampled_from(["", "\n", "one\ntwo\n", "one\none", "a\r\nb", "x" * 1_500]),
    st.text(st.sampled_from("one tw\n\rü"), max_size=12),
)
commands = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": paths}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": paths, "view_range": st.lists(st.integers(-2, 5), min_size=2, max_size=2)}
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": paths, "old_str": texts, "new_str": texts}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": paths, "insert_line": st.integers(-1, 4), "insert_text": texts}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)
runs = st.lists(commands, min_size=1, max_size=15)


def answer(tool: Any, command: dict[str, Any]) -> str:
    """Return what a tool answers, or its error, without the sizes of directories, which file systems differ in."""
    try:
        text = str(tool.call(command))
    except ToolError as err:
        return f"ToolError: {err}"
    except OSError as err:
        # its text names a path of the machine
        return f"OSError: {err.errno}"
    return DIRECTORY_SIZE.sub(r"DIR\1", text) if "2 levels deep" in text else text


class TreeTool:
    """The commands on a tree in memory, with the errors of the tool."""

    def __init__(self) -> None:
        self.tree = FileTree({}, set(), {})

    def call(self, command: dict[str, Any]) -> str:
        try:
            return run_command(self.tree, COMMAND.validate_python(command))
        except Exception as err:
            if isinstance(err, OSError):
                raise
            raise ToolError(str(err)) from err


@pytest.fixture
def sdk_tool(tmp_path: Path) -> BetaLocalFilesystemMemoryTool:
    return BetaLocalFilesystemMemoryTool(str(tmp_path))


@settings(deadline=None)
@given(runs)
def test_random_commands_are_answered_as_by_the_sdk(run: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        theirs, ours = BetaLocalFilesystemMemoryTool(folder), TreeTool()

        for command in run:
            assert answer(ours, command) == answer(theirs, command), command


# every example has a tree of its own
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=runs)
def test_random_commands_on_the_service_are_answered_as_by_the_sdk(client: Client, run: list[dict[str, Any]]) -> None:
    ours = MemoryTool(client, context=uuid4().hex)
    with TemporaryDirectory() as folder:
        theirs = BetaLocalFilesystemMemoryTool(folder)

        for command in run:
            assert answer(ours, command) == answer(theirs, command), command


def test_files_are_changed_on_a_service_without_versions(url: str, api_key: str) -> None:
    with serve_former(url) as former, Client(former, api_key, agent_id="assistant") as client:
        tool = MemoryTool(client)

        tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
        tool.call({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "first"})

        assert "first" in str(tool.call({"command": "view", "path": "/memories/a"}))


STORY: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/notes/trip.txt", "file_text": "Ana flies to Madeira.\nOn 4 May.\n"},
    {"command": "create", "path": "/memories/notes/trip.txt", "file_text": "again"},
    {"command": "view", "path": "/memories"},
    {"command": "str_replace", "path": "/memories/notes/trip.txt", "old_str": "4 May", "new_str": "5 May"},
    {"command": "insert", "path": "/memories/notes/trip.txt", "insert_line": 1, "insert_text": "By plane."},
    {"command": "view", "path": "/memories/notes/trip.txt"},
    {"command": "rename", "old_path": "/memories/notes", "new_path": "/memories/2026/may"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
    {"command": "delete", "path": "/memories/2026/may/trip.txt"},
    {"command": "view", "path": "/memories"},
]


def test_a_story_is_answered_as_by_the_sdk_and_every_version_stays(
    client: Client, sdk_tool: BetaLocalFilesystemMemoryTool
) -> None:
    ours = MemoryTool(client)

    assert [answer(ours, each) for each in STORY] == [answer(sdk_tool, each) for each in STORY]
    [context] = client.list_contexts(name="claude-memory:ana")
    assert context.agent_id == "assistant"
    assert ours.clear_all_memory() == "All memory cleared"
    assert answer(ours, STORY[-1]) == answer(MemoryTool(client), STORY[0])


def test_the_versions_of_a_file_stay(client: Client) -> None:
    ours = MemoryTool(client)
    for command in STORY[1:2] + STORY[4:6]:
        answer(ours, command)
    [context] = client.list_contexts(name="claude-memory:ana")

    [entry] = client.list_context_entries(context.id, key="files/notes/trip.txt")

    assert [each.content.count("\n") for each in client.list_entry_versions(entry.id)] == [2, 2, 3]


def test_a_file_that_is_too_large_is_refused_with_a_sentence(client: Client) -> None:
    large = {"command": "create", "path": "/memories/a", "file_text": "x" * 70_000}

    assert answer(MemoryTool(client), large).startswith("ToolError: 413")


def test_the_asynchronous_tool_answers_the_same(
    url: str, api_key: str, sdk_tool: BetaLocalFilesystemMemoryTool
) -> None:
    async def run() -> Iterator[str]:
        async with AsyncClient(url, api_key, agent_id="assistant") as client:
            tool, answers = AsyncMemoryTool(client), []
            for command in STORY:
                try:
                    answers.append(str(await tool.call(command)))
                except ToolError as err:
                    answers.append(f"ToolError: {err}")
            return iter(answers)

    found = [DIRECTORY_SIZE.sub(r"DIR\1", each) if "2 levels deep" in each else each for each in asyncio.run(run())]

    assert found == [answer(sdk_tool, each) for each in STORY]


def test_the_tools_go_on_after_their_context_was_deleted(client: Client, url: str, api_key: str) -> None:
    create = {"command": "create", "path": "/memories/a", "file_text": "x"}

    def delete() -> None:
        [context] = client.list_contexts(name="claude-memory:ana")
        client.delete_context(context.id)

    async def use_asynchronous() -> list[str]:
        async with AsyncClient(url, api_key, agent_id="assistant", user_id="ana") as other:
            tool = AsyncMemoryTool(other)
            first = str(await tool.call(create))
            await asyncio.to_thread(delete)
            return [first, str(await tool.call(create))]

    tool = MemoryTool(client)
    answers = [tool.call(create)]
    delete()
    answers.append(tool.call(create))
    delete()
    answers += asyncio.run(use_asynchronous())

    assert answers == ["File created successfully at: /memories/a"] * 4


@pytest.mark.slow
def test_a_full_tree_is_read_and_emptied_but_not_extended(client: Client) -> None:
    context = client.create_context(name="full")
    paths = [{"namespace": ["files"], "key": f"f{number}"} for number in range(1_000)]
    client.write_items(context.id, items=[{**each, "value": {"text": "x"}} for each in paths])
    tool = MemoryTool(client, context="full")
    create = {"command": "create", "path": "/memories/new", "file_text": "x"}

    assert answer(tool, create).startswith("ToolError: At most 1000 files")
    assert "f999" in answer(tool, {"command": "view", "path": "/memories"})
    answer(tool, {"command": "delete", "path": "/memories/f0"})
    assert answer(tool, create) == "File created successfully at: /memories/new"


def test_what_another_program_stored_without_a_text_is_no_file(client: Client) -> None:
    context = client.create_context(name="mixed")
    client.write_items(context.id, items=[{"namespace": ["files"], "key": "x", "value": {"n": 1}}])
    tool = MemoryTool(client, context="mixed")

    assert answer(tool, {"command": "create", "path": "/memories/a", "file_text": "y"}).startswith("File created")
    assert answer(tool, {"command": "view", "path": "/memories/x"}).startswith("ToolError")


def test_edits_of_one_file_at_once_are_all_kept(client: Client) -> None:
    MemoryTool(client).call({"command": "create", "path": "/memories/a", "file_text": "first\n"})
    inserts = [
        {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": f"line {number}"}
        for number in range(8)
    ]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda command: MemoryTool(client).call(command), inserts))

    shown = str(MemoryTool(client).call({"command": "view", "path": "/memories/a"}))
    assert [number for number in range(8) if f"line {number}" not in shown] == []


def test_edits_of_one_file_by_two_processes_at_once_are_all_kept(url: str, api_key: str, client: Client) -> None:
    MemoryTool(client).call({"command": "create", "path": "/memories/a", "file_text": "first\n"})
    edit = f"""
from agent_memory_client import Client
from agent_memory_integrations.claude_memory import MemoryTool
import sys
with Client({url!r}, {api_key!r}, agent_id="assistant", user_id="ana") as client:
    tool = MemoryTool(client)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(10):
        text = f"line {{number}} of {{sys.argv[1]}}"
        tool.call({{"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": text}})
"""

    names = ("one", "two")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", edit, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, OURS))},
        )
        for name in names
    ]
    pipes = [(process.stdin, process.stdout) for process in processes]
    assert all(output is not None and output.readline() == b"ready\n" for _, output in pipes)
    for entry, _ in pipes:
        assert entry is not None
        entry.write(b"go\n")
        entry.flush()
    for process in processes:
        process.communicate(timeout=PATIENCE_SECONDS)

    shown = str(MemoryTool(client).call({"command": "view", "path": "/memories/a"}))
    assert [process.returncode for process in processes] == [0, 0]
    assert [line for n in range(10) for name in names if (line := f"line {n} of {name}") not in shown] == []


def test_of_two_processes_that_create_a_file_one_is_refused(url: str, api_key: str, client: Client) -> None:
    """Two spellings of the address share no lock, as two processes do."""
    command = {"command": "create", "path": "/memories/a", "file_text": "x"}

    elsewhere = Client(url.replace("127.0.0.1", "localhost"), api_key, agent_id="assistant", user_id="ana")
    with elsewhere as other, ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(lambda each: answer(MemoryTool(each), command), (client, other)))

    assert answers == ["File created successfully at: /memories/a", "ToolError: File /memories/a already exists"]


def test_users_and_agents_have_trees_of_their_own(url: str, api_key: str, client: Client) -> None:
    path = "/memories/a"
    MemoryTool(client).call({"command": "create", "path": path, "file_text": "of ana"})

    for agent_id, user_id in (("assistant", "ben"), ("", "")):
        with Client(url, api_key, agent_id=agent_id, user_id=user_id) as other:
            tool = MemoryTool(other)
            assert answer(tool, {"command": "view", "path": path}).startswith("ToolError")
            assert answer(tool, {"command": "create", "path": path, "file_text": "x"}).startswith("File created")

"""`/compat/memory-tool` next to the SDK's tool on files: the same commands, the same answers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool

from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.integrations.former_service import serve_former
from tests.integrations.test_claude_memory import DIRECTORY_SIZE, STORY, answer
from tests.integrations.test_mcp import mcp_url as mcp_url
from tests.integrations.test_mcp import serve_mcp
from tests.integrations.test_mcp import shared_mcp as shared_mcp

CREATE = {"command": "create", "path": "/memories/a", "file_text": "x"}
VIEW = {"command": "view", "path": "/memories/a"}


class ToolRoute:
    """The route, for one key."""

    def __init__(self, mcp_url: str, key: str) -> None:
        self.url = mcp_url.replace("/mcp", "/compat/memory-tool")
        self.key = key

    def send(self, body: Any, query: str = "", **headers: str) -> httpx2.Response:
        sent = {"Authorization": f"Bearer {self.key}", **headers}
        return httpx2.post(self.url + query, json=body, headers=sent, timeout=30)

    def call(self, command: dict[str, Any], query: str = "") -> str:
        found = self.send(command, query).json()
        text = f"ToolError: {found['content']}" if found["is_error"] else found["content"]
        return DIRECTORY_SIZE.sub(r"DIR\1", text) if "2 levels deep" in text else text


@pytest.fixture
def route(mcp_url: str, api_key: str) -> ToolRoute:
    return ToolRoute(mcp_url, api_key)


def test_a_story_is_answered_as_by_the_sdk(route: ToolRoute, tmp_path: Path) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))

    assert [route.call(each) for each in STORY] == [answer(theirs, each) for each in STORY]
    ranged = {"command": "view", "path": "/memories/a", "view_range": [1, 1]}
    assert [route.call(each) for each in (CREATE, ranged)] == [answer(theirs, each) for each in (CREATE, ranged)]


def test_edits_of_one_file_at_once_are_all_kept(route: ToolRoute) -> None:
    route.call(CREATE)
    inserts = [
        {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": f"line {number}"}
        for number in range(8)
    ]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(route.call, inserts))

    shown = route.call(VIEW)
    assert [number for number in range(8) if f"line {number}" not in shown] == []


def test_files_are_changed_on_a_service_without_versions(url: str, api_key: str) -> None:
    with serve_former(url) as former, serve_mcp(former) as mcp:
        route = ToolRoute(mcp, api_key)
        edit = {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "first"}

        assert [route.send(each).status_code for each in (CREATE, edit)] == [200, 200]
        assert "first" in route.call(VIEW)

        route.call({"command": "delete", "path": "/memories/a"})
        assert route.call(VIEW).startswith("ToolError")


@pytest.mark.slow
def test_agents_users_and_contexts_have_trees_of_their_own(route: ToolRoute, account: Account) -> None:
    own = ToolRoute(route.url, issue_key(account, scopes=READ_WRITE, agent_id="assistant").secret)

    for tool, query in ((route, ""), (own, ""), (route, "?user_id=ana"), (route, "?context=other")):
        assert tool.call(CREATE, query).startswith("File created"), query
        assert tool.call(VIEW, query).startswith("Here's the content"), query
    assert route.call(CREATE, "?agent_id=assistant").startswith("ToolError: File /memories/a already exists")


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer a b", "Bearer cl\u00e9", "Bearer wrong"])
def test_what_is_no_key_is_refused_as_such(route: ToolRoute, authorization: str) -> None:
    sent = {b"Authorization": authorization.encode("latin-1"), b"Content-Type": b"application/json"}

    assert httpx2.post(route.url, json=VIEW, headers=sent, timeout=30).status_code == 401


@pytest.mark.slow
def test_what_is_no_command_is_refused_with_a_sentence(route: ToolRoute) -> None:
    refusals: list[Any] = [{}, {"command": "rm"}, {"command": "view"}, {**VIEW, "view_range": [1.5]}, []]
    for body in [*refusals, {**CREATE, "path": 3}]:
        refused = route.send(body)
        assert (refused.status_code, bool(refused.json()["detail"])) == (400, True), body
    assert route.send(VIEW, "?user=ana").status_code == 400
    assert ToolRoute(route.url, "wrong").send(VIEW).status_code == 401
    assert route.send(VIEW, Authorization="").status_code == 401
    assert route.send(VIEW, Host="evil.example").status_code == 421
    assert route.send({"command": "rename", "old_path": "/memories/a", "new_path": "/x"}).json()["is_error"] is True

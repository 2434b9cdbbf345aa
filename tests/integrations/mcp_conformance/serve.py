"""Serve the MCP server of the service for the conformance suite, which sends no API key.

`python -m tests.integrations.mcp_conformance.serve PORT URL KEY [contents]`: the key is added to every request, as a
proxy in front of the server would. With `contents`, `/mcp` has what the suite calls by name besides our own tools.
"""

import sys

import uvicorn
from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mcp.http import build_servers, mount_servers
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.integrations.mcp_conformance.contents import add_prompts, add_resources, add_tools
from tests.integrations.mcp_conformance.rounds import add_rounds


class KeyAdder:
    """Adds an API key to requests."""

    def __init__(self, app: ASGIApp, *, key: str) -> None:
        self._app, self._key = app, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {self._key}".encode())]}
        await self._app(scope, receive, send)


def main() -> None:
    """Serve until stopped."""
    port, url, key, *options = sys.argv[1:]
    callers = Callers(base_url=url)
    servers = build_servers(callers)
    if "contents" in options:
        for add in (add_tools, add_resources, add_prompts, add_rounds):
            add(servers["/mcp"])
    application = KeyAdder(mount_servers(servers, callers), key=key)
    uvicorn.run(application, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()

"""`/mcp`, `/mcp/mem0` and `/mcp/graph` over streamable HTTP, without sessions, `/compat/mem0`, `/compat/memory-tool`.

`python -m agent_memory_integrations.mcp.http HOST PORT URL` serves them for the service at that URL.
Host headers other than those of this machine are answered 421 unless MEMORY_MCP_HOSTS names them, and a service that
is away 503. `/health/live`, `/health/ready` and `/metrics` answer probes and scrapes.
"""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvicorn
from agent_memory_client import AgentMemoryError
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mcp.limits import OPTIONS
from agent_memory_integrations.mcp.operations import CountedApplication
from agent_memory_integrations.mcp.server import PROFILES, MemoryServer, build_server
from agent_memory_integrations.mem0 import make_mem0_application
from agent_memory_integrations.memory_tool_routes import PATH as MEMORY_TOOL
from agent_memory_integrations.memory_tool_routes import make_memory_tool_application

PATHS = (
    *(f"/mcp/{profile}".rstrip("/") for profile in sorted(PROFILES, reverse=True)),
    "/compat/mem0",
    "/compat/memory-tool",
)
"""What is served, the longer paths first, as requests are counted by."""
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def make_application(*, base_url: str, hosts: Sequence[str] = ()) -> Starlette:
    """Return the application of all profiles. `hosts` are Host headers, `*` as port for any."""
    callers = Callers(base_url=base_url)
    return mount_servers(build_servers(callers), callers, hosts=hosts)


def build_servers(callers: Callers) -> dict[str, MemoryServer]:
    """Return the MCP server of each path."""
    return {
        f"/mcp/{profile}".rstrip("/"): build_server(profile, callers, issuer_url=callers.base_url)
        for profile in PROFILES
    }


def mount_servers(servers: Mapping[str, MemoryServer], callers: Callers, *, hosts: Sequence[str] = ()) -> Starlette:
    """Return the application that serves these MCP servers at their paths, and the routes of other services."""
    allowed = [
        *hosts,
        *(f"{host}:*" for host in hosts if not has_port(host)),
        *(f"{host}:*" for host in LOCAL_HOSTS),
        *LOCAL_HOSTS,
    ]
    origins = [f"{scheme}://{host}" for host in allowed for scheme in ("http", "https")]
    security = TransportSecuritySettings(allowed_hosts=allowed, allowed_origins=origins)
    applications: dict[str, Starlette] = {}
    for path, server in servers.items():
        # answers are event streams: a plain JSON answer has no place for the progress of a call
        applications[path] = server.streamable_http_app(
            streamable_http_path=path, stateless_http=True, json_response=False, transport_security=security
        )
        applications[path].add_middleware(OutageAnswers)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for application in applications.values():
                await stack.enter_async_context(application.router.lifespan_context(application))
            yield

    outer = Starlette(lifespan=lifespan)
    outer.mount("/compat/mem0", HostGuard(make_mem0_application(callers), security))
    outer.routes.append(Route(MEMORY_TOOL, HostGuard(make_memory_tool_application(callers), security)))
    outer.mount("/", PathDispatcher(applications))
    return outer


def has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() or host.endswith(":*")


class HostGuard:
    """Answers 421 to foreign Host headers, as MCP's own application does."""

    def __init__(self, application: ASGIApp, security: TransportSecuritySettings) -> None:
        self._application = application
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._security.validate_request(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._application)(scope, receive, send)


class OutageAnswers:
    """Answers 503 where the service cannot be asked about a key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except AgentMemoryError as err:
            await JSONResponse({"detail": str(err)}, status_code=503)(scope, receive, send)


class PathDispatcher:
    """Hands requests to the application of their path, and all others to the first one.

    GET at a path of MCP would open a stream of what the server says by itself, which is nothing: it is answered 405.
    """

    def __init__(self, applications: dict[str, Starlette]) -> None:
        self._applications = applications

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope["path"]).rstrip("/")
        chosen: ASGIApp = self._applications.get(path, self._applications["/mcp"])
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and path in self._applications:
            chosen = JSONResponse({"detail": "Send POST."}, status_code=405, headers={"Allow": "POST"})
        await chosen(scope, receive, send)


def main() -> None:
    """Serve until stopped."""
    host, port, base_url = sys.argv[1:]
    hosts = [each.strip() for each in os.environ.get("MEMORY_MCP_HOSTS", "").split(",") if each.strip()]
    application = CountedApplication(make_application(base_url=base_url, hosts=hosts), base_url=base_url, paths=PATHS)
    log: dict[str, Any] = {"log_level": "warning", "log_config": None, "access_log": False}
    uvicorn.run(application, host=host, port=int(port), **log, **OPTIONS)


if __name__ == "__main__":
    main()

"""MCP servers by profile."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agent_memory_client import AgentMemoryError
from mcp.server import MCPServer
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, Tool, ToolAnnotations
from pydantic import AnyHttpUrl, ValidationError

from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mcp.graph_tools import GRAPH_TOOLS
from agent_memory_integrations.mcp.mem0_tools import MEM0_TOOLS
from agent_memory_integrations.mcp.tools import MEMORY_TOOLS, Toolset, add_resources

VERSION = "0.1.0"
PROFILES: Mapping[str, Toolset] = {"": MEMORY_TOOLS, "mem0": MEM0_TOOLS, "graph": GRAPH_TOOLS}


class MemoryServer(MCPServer[Any]):
    """An MCP server that shows a key the tools that its scopes allow, and answers failures as sentences."""

    def __init__(self, callers: Callers, toolset: Toolset, **options: Any) -> None:
        super().__init__("agent-memory", version=VERSION, **options)
        self.callers = callers
        self.written = frozenset(tool.__name__ for tool in toolset.writes)
        self.arguments = {tool.__name__: arguments_of(tool) for tool in (*toolset.reads, *toolset.writes)}
        for tool in (*toolset.reads, *toolset.writes):
            read_only = tool.__name__ not in self.written
            annotations = ToolAnnotations(
                read_only_hint=read_only,
                destructive_hint=tool.__name__ in toolset.destructive,
                open_world_hint=False,
            )
            self.add_tool(bind(tool, callers), annotations=annotations)

    async def list_tools(self) -> list[Tool]:
        """List the tools that the key may use."""
        listed = await super().list_tools()
        scopes = await self.callers.scopes()
        return listed if "write" in scopes else [tool for tool in listed if tool.name not in self.written]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Call a tool. Raises ToolError where the key may not use it, and for arguments that it does not take."""
        try:
            scopes = await self.callers.scopes() if name in self.written else frozenset({"write"})
        except AgentMemoryError as err:
            raise ToolError(str(err)) from err
        if "write" not in scopes:
            raise ToolError(f"The API key may only read, so {name} is not available.")
        if name in self.arguments and (unknown := sorted(set(arguments) - self.arguments[name])):
            allowed = ", ".join(sorted(self.arguments[name])) or "none"
            raise ToolError(f"{name} does not take {', '.join(unknown)}. Allowed: {allowed}.")
        try:
            result: CallToolResult = await super().call_tool(name, arguments, context)  # type: ignore[assignment]
        except ToolError as err:
            if isinstance(err.__cause__, ValidationError):
                raise ToolError(format_invalid_arguments(name, err.__cause__)) from err
            raise
        return result


def arguments_of(tool: Callable[..., Any]) -> frozenset[str]:
    """Return the arguments that clients may send: all but the client of the request and the context."""
    _, *names = inspect.signature(tool).parameters
    return frozenset(names) - {"ctx"}


def format_invalid_arguments(tool: str, err: ValidationError) -> str:
    """Return a sentence for each argument that is not valid, for the model that sent it."""
    said = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in err.errors()]
    return f"The arguments of {tool} are not valid. {' '.join(said)}"


def bind(tool: Callable[..., Any], callers: Callers) -> Callable[..., Any]:
    """Return the tool without its first parameter, which becomes the client of the request."""

    @functools.wraps(tool)
    async def bound(*args: Any, **kwargs: Any) -> Any:
        try:
            return await tool(await callers.client(), *args, **kwargs)
        except AgentMemoryError as err:
            raise ToolError(str(err)) from err

    signature = inspect.signature(tool, eval_str=True)
    _, *parameters = signature.parameters.values()
    bound.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    bound.__annotations__ = {each.name: each.annotation for each in parameters} | {
        "return": signature.return_annotation
    }
    del bound.__wrapped__
    return bound


def build_server(profile: str, callers: Callers, *, issuer_url: str = "") -> MemoryServer:
    """Return the server of a profile. With an issuer, requests need an API key of the service as bearer token."""
    secured: dict[str, Any] = {}
    if issuer_url:
        auth = AuthSettings(issuer_url=AnyHttpUrl(issuer_url), resource_server_url=None)
        secured = {"auth": auth, "token_verifier": callers}
    server = MemoryServer(callers, PROFILES[profile], instructions=PROFILES[profile].instructions, **secured)
    if not profile:
        add_resources(server, callers)
    return server

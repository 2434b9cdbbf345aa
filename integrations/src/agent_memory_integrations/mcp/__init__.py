"""An MCP server over the agent memory service, in three profiles.

- `server`: `MemoryServer`, an `MCPServer` that shows a key the tools that it may use; `build_server` by profile.
- `callers`: for whom a request acts: its API key, and the agent and user that the key is bound to.
- `tools`, `mem0_tools`, `graph_tools`: the tools of the profiles.
- `http`: `/mcp`, `/mcp/mem0` and `/mcp/graph` as an ASGI application, served by uvicorn.
- `stdio`: the command `agent-memory-mcp`.
"""

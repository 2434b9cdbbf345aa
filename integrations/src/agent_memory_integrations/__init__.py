"""The agent memory service as the memory of agent frameworks, one module each.

Every module stands on `agent_memory_client`. The framework's own package is an extra of the distribution.

- `langgraph`: `AgentMemoryStore`, a LangGraph `BaseStore`.
- `mcp`: an MCP server over HTTP and stdio.
- `mem0`: the routes of mem0's `MemoryClient`, which the MCP server's process serves under `/compat/mem0`.
- `claude_memory`: `MemoryTool` and `AsyncMemoryTool`, Claude's memory tool; `memory_files` has its commands.
- `mem0_memory`: `Memory`, the calls of mem0's open-source memory.
- `memory_tool_routes`: Claude's memory tool over HTTP, in the same process; `memory_trees` stores its trees.
- `langchain`: `AgentMemoryChatHistory`, a LangChain chat history.
- `openai_agents`, `pydantic_ai`, `strands`, `google_adk`, `llama_index`, `crewai`, `agent_framework`: sessions,
  memories and stores of agent SDKs (docs/guides/agent-sdks.md).
- `turns`: messages of frameworks as turns that give them back as they were.
- `hooks`: the command `agent-memory hook`, for coding agents.
- `contexts`: find the persistent context that an integration keeps its data in.
"""

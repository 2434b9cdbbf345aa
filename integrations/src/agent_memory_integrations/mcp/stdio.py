"""The command `agent-memory-mcp`: the MCP server over stdio, with the key of AGENT_MEMORY_API_KEY."""

import argparse

from agent_memory_client import AgentMemoryError
from agent_memory_client.config import read_settings

from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mcp.server import PROFILES, build_server


def main() -> None:
    """Serve on stdin and stdout until they are closed."""
    parser = argparse.ArgumentParser(prog="agent-memory-mcp", description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="", help="Which tools to offer.")
    arguments = parser.parse_args()
    try:
        settings = read_settings(base_url=None, api_key=None, agent_id=None, user_id=None, max_retries=2)
    except AgentMemoryError as err:
        parser.error(str(err))
    callers = Callers(settings.base_url, settings.api_key, settings.agent_id, settings.user_id)
    build_server(arguments.profile, callers).run("stdio")


if __name__ == "__main__":
    main()

"""The MCP server as a part of the service: with its log. It is run by name, since the service knows no clients."""

import logging.config
import os
import runpy
import sys

from memory_project.logs import configure_logging

SERVER = "agent_memory_integrations.mcp.http"

if __name__ == "__main__":
    format_, level = os.environ.get("MEMORY_LOG_FORMAT", "text"), os.environ.get("MEMORY_LOG_LEVEL", "INFO")
    logging.config.dictConfig(configure_logging(format_, level=level, task_level="WARNING"))
    logging.getLogger("memory_project.mcp").info("MCP server starts at %s", " port ".join(sys.argv[1:3]))
    runpy.run_module(SERVER, run_name="__main__", alter_sys=True)

"""`/compat/memory-tool`: the six commands of Claude's memory tool over HTTP, for programs in other languages.

A POST takes what Claude sends as the input of the tool, and answers `content` and `is_error`, as a `tool_result` has
them. The key's agent has the tree; `?agent_id=` names another one, `?user_id=` a user of it, `?context=` another tree.
"""

import json
from types import SimpleNamespace
from typing import Any

from agent_memory_client import AgentMemoryError, StatusError
from agent_memory_client.config import is_key
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agent_memory_integrations.contexts import AsyncNamedContext
from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.mem0_requests import Mem0RequestError, read_body
from agent_memory_integrations.memory_files import COMMANDS, PREFIX, ROOT, MemoryCommandError, run_command
from agent_memory_integrations.memory_trees import change_tree, name_context

PATH = "/compat/memory-tool"
DEFAULT_AGENT = "claude"
"""Agent of keys that are bound to none, where a request names none."""
PARAMETERS = frozenset({"agent_id", "user_id", "context"})
FIELDS: dict[str, dict[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
"""Fields of each command; `view_range` is optional in `view`."""


def read_command(body: dict[str, Any]) -> SimpleNamespace:
    """Return a command. Raises ValueError for what is none."""
    name = body.get("command")
    if name not in COMMANDS:
        raise ValueError(f"command must be one of: {', '.join(COMMANDS)}.")
    for field, kind in FIELDS[name].items():
        if not isinstance(body.get(field), kind) or isinstance(body.get(field), bool):
            raise ValueError(f"The command {name} needs {field}, a {'text' if kind is str else 'whole number'}.")
    view_range = body.get("view_range")
    is_range = isinstance(view_range, list) and all(type(each) is int for each in view_range)
    if view_range is not None and not is_range:
        raise ValueError("view_range must be a list of two whole numbers.")
    optional = {"view_range": view_range} if name == "view" else {}
    given = {field: body[field] for field in FIELDS[name]}
    return SimpleNamespace(command=name, **given, **optional)


def make_memory_tool_application(callers: Callers) -> Starlette:
    """Return the application with the one route, for the service of the callers."""

    async def endpoint(request: Request) -> JSONResponse:
        token = request.headers.get("Authorization", "").partition(" ")[2].strip()
        if not is_key(token):
            return JSONResponse({"detail": "Send Authorization: Bearer <API key>."}, status_code=401)
        asked = dict(request.query_params)
        try:
            if unknown := asked.keys() - PARAMETERS:
                raise ValueError(f"Unknown parameters: {', '.join(sorted(unknown))}.")
            key = await callers.read_key(token)
            agent_id = asked.get("agent_id") or key.agent_id or DEFAULT_AGENT
            client = callers.open(token, agent_id=agent_id, user_id=asked.get("user_id") or key.user_id)
            context = AsyncNamedContext(client, asked.get("context") or name_context(client.settings.user_id))
            command = read_command(await read_body(request))
            content = await change_tree(context, lambda tree: run_command(tree, command))
            return JSONResponse({"content": content, "is_error": False})
        except MemoryCommandError as err:
            return JSONResponse({"content": str(err), "is_error": True})
        except OSError as err:
            path = str(err.filename or "").replace(ROOT, PREFIX)
            return JSONResponse({"content": f"{err.strerror}: {path}", "is_error": True})
        except Mem0RequestError as err:
            return JSONResponse({"detail": str(err)}, status_code=err.status)
        except StatusError as err:
            return JSONResponse({"detail": err.detail, "error": str(err)}, status_code=err.status)
        except AgentMemoryError as err:
            return JSONResponse({"detail": str(err)}, status_code=503)
        except (ValueError, RecursionError) as err:
            reason = "The body is no JSON." if isinstance(err, json.JSONDecodeError) else str(err)
            return JSONResponse({"detail": reason}, status_code=400)

    return Starlette(routes=[Route(PATH, endpoint, methods=["POST"])])

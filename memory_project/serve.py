"""`python -m memory_project.serve ROLE`: one role of a node, for containers and supervisors; `all` is a whole node.

Each role but `all` takes PostgreSQL and Redis from DATABASE_URL and REDIS_URL, has `/health/live`, `/health/ready` and
`/metrics` at MEMORY_HOST and MEMORY_HEALTH_PORT (the MCP server at its own port), and finishes its work at SIGTERM.
It replaces this process.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module

from memory_project import up
from memory_project.embedded.environment import acquire_servers
from memory_project.embedded.errors import EmbeddedServerError
from memory_project.env import SettingError
from memory_project.logs import say_last
from memory_project.role_health import ADDRESS_VARIABLE
from memory_project.supervisor.parts import Address, Part, beat_part, mcp_part, web_part, worker_part

ROLES = ("web", "worker", "beat", "mcp", "all")
SERVICE_URL = "MEMORY_SERVICE_URL"


def main() -> int:
    """Become the role, or return an exit code."""
    options = read_options()
    if options.role == "all":
        return up.main()
    try:
        for name in up.SETTINGS:
            # refuses malformed ones before anything is started
            import_module(name)
        part = choose_part(options, up.address_from_environment())
        if options.role != "mcp":
            require_servers()
    except (EmbeddedServerError, SettingError, up.UpError) as err:
        return say_last(str(err))
    if part.sources:
        given = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*map(str, part.sources), given]))
    # the signals of whoever watches this process go to the part itself
    os.execv(part.command[0], [*part.command])  # noqa: S606  our own command lines
    return 1


def read_options() -> Namespace:
    parser = ArgumentParser(
        prog="python -m memory_project.serve",
        description="Serve one role of a node: the web server, a worker, which schedules jobs as well, the scheduler "
        "alone, or the MCP server. `all` is a whole node, with servers of its own where none are configured. "
        "Migrate the database before (`manage.py migrate`); only `all` does it by itself.",
    )
    parser.add_argument("role", choices=ROLES, help="what to serve")
    parser.add_argument(
        "--no-beat",
        action="store_true",
        help="have this worker schedule no jobs: where there are many workers, one `beat` or a few of them suffice",
    )
    return parser.parse_args()


def choose_part(options: Namespace, address: Address) -> Part:
    """Return the part that the role is, and name the address of its health checks. Raises UpError."""
    if options.role == "web":
        up.check_apart(address.health_port, "MEMORY_HEALTH_PORT", {address.port: "MEMORY_PORT"})
        return web_part(address)
    if options.role == "mcp":
        return mcp_part(address, require_mcp_port(address), service_url=os.environ.get(SERVICE_URL) or address.url())
    if address.health_port is not None:
        os.environ[ADDRESS_VARIABLE] = address.health_netloc()
    return beat_part() if options.role == "beat" else worker_part(has_beat=not options.no_beat)


def require_mcp_port(address: Address) -> int:
    if address.mcp_port is None:
        raise up.UpError("MEMORY_MCP_PORT must be a port number for the role mcp, not 'none'.")
    return address.mcp_port


def require_servers() -> None:
    """Prepare the environment as `all` does. Raises EmbeddedServerError without configured servers or secrets."""
    missing = [name for name in ("DATABASE_URL", "REDIS_URL") if name not in os.environ]
    if missing:
        raise EmbeddedServerError(
            f"A role of its own needs servers of all nodes: set {' and '.join(missing)}. The role `all` starts those "
            "that are not configured."
        )
    acquire_servers(os.environ)


if __name__ == "__main__":
    sys.exit(main())

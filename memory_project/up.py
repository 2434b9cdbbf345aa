"""`make up`: from nothing to a running service, in the foreground.

servers → migrate → first account → the addresses and, the first time, the keys → web, worker, beat → one log
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from memory_project.embedded.environment import acquire_servers
from memory_project.embedded.errors import EmbeddedServerError, os_errors_as_sentences
from memory_project.embedded.locks import FileLock
from memory_project.embedded.paths import PROJECT, data_folder, make_data_folder
from memory_project.embedded.servers import SharedServers
from memory_project.embedded.users import ServerUser
from memory_project.env import SettingError, declare
from memory_project.installation import IS_CLONE, MANAGE
from memory_project.logs import say_last
from memory_project.supervisor.log import Log
from memory_project.supervisor.loop import OWN_NAME, Loop, StopRequest
from memory_project.supervisor.part_user import CannotSwitchError, environ_of, find_part_user
from memory_project.supervisor.parts import Address, RunningPart, end_marked, parts_at

SETTINGS = ("memory_project.settings", "memory.conf")
LEFTOVER_GRACE_SECONDS = 10.0
PORTS_BESIDE: Mapping[str, tuple[str, str]] = {
    "health_port": ("MEMORY_HEALTH_PORT", "Health checks have no port of their own now."),
    "mcp_port": ("MEMORY_MCP_PORT", "MCP is not served now."),
}
"""The ports that follow the main one by default: the setting of each, and the consequence if it is taken."""


class UpError(Exception):
    """The service cannot run; the text is a whole sentence."""


def main() -> int:
    stop = StopRequest()
    stop.listen()
    try:
        with os_errors_as_sentences():
            for name in SETTINGS:
                # refuses malformed ones before anything is started
                import_module(name)
            address = address_from_environment()
            folder = data_folder(os.environ)
            make_data_folder(folder)
            with FileLock(folder / "up.lock") as lock:
                run(stop, claim(lock, address), mark=str(lock.path))
    except (EmbeddedServerError, SettingError, UpError) as err:
        return say_last(str(err))
    return 0


declare("MEMORY_HOST", default="127.0.0.1", description="Address on which the web server listens.")
declare("MEMORY_PORT", default="8002", allowed="1 to 65535", description="Port on which the web server listens.")
declare(
    "MEMORY_HEALTH_PORT",
    default="the port after MEMORY_PORT",
    allowed="1 to 65535, none",
    description="Port where only `/health/live`, `/health/ready` and `/metrics` are served.",
)
declare(
    "MEMORY_MCP_PORT",
    default="the second port after MEMORY_PORT",
    allowed="1 to 65535, none",
    description="Port on which `make up` serves MCP.",
)
declare(
    "MEMORY_SERVICE_URL",
    default="http://127.0.0.1 and MEMORY_PORT",
    description="Address of the web server for the MCP server, where that is a role of its own.",
)
declare(
    "MEMORY_MCP_HOSTS",
    default="none",
    description="Host headers that the MCP server answers besides those of this machine, separated by commas.",
)
declare(
    "MEMORY_SOCKET_DIR",
    default="/tmp",  # noqa: S108 - the documented default
    description="Folder in which `make up` makes the private folder of the embedded servers' sockets.",
)
declare(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    default="none",
    description="Address to which traces (`gen_ai.memory.*`) are sent by OTLP over HTTP.",
)


def address_from_environment() -> Address:
    """Return the address of MEMORY_HOST and the ports beside it. Raises UpError."""
    port = read_port("MEMORY_PORT", "8002")
    beside = {
        field: None if os.environ.get(name) == "none" else read_port(name, str((port + distance - 1) % 65535 + 1))
        for distance, (field, (name, _)) in enumerate(PORTS_BESIDE.items(), start=1)
    }
    return Address(host=os.environ.get("MEMORY_HOST", "127.0.0.1"), port=port, **beside)


def read_port(name: str, default: str) -> int:
    """Return the port of an environment variable. Raises UpError."""
    port = os.environ.get(name, default)
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise UpError(f"{name} must be a port number, not {port!r}.")
    return int(port)


def claim(lock: FileLock, address: Address) -> Address:
    """Claim the data folder and the ports for this `make up`, and end what a killed one left running.

    Returns the address without those ports beside the main one that nobody chose and that are taken.
    """
    if not lock.try_exclusive():
        raise UpError(f"The service already runs on {lock.path.parent}; stop that one first.")
    for part in parts_at(address):
        end_marked(f"{lock.path}:{part.name}", grace_seconds=LEFTOVER_GRACE_SECONDS)
    check_port(address.host, address.port, variables="MEMORY_HOST or MEMORY_PORT")
    for field, (name, consequence) in PORTS_BESIDE.items():
        port = getattr(address, field)
        try:
            if port is not None:
                check_apart(port, name, others_than(name, address))
                check_port(address.host, port, variables=name)
        except UpError as err:
            if name in os.environ:
                raise
            sys.stderr.write(f"{err} {consequence}\n")
            given_up: dict[str, Any] = {field: None}
            address = replace(address, **given_up)
    return address


def others_than(name: str, address: Address) -> dict[int | None, str]:
    """Return the main port, and the ports beside it that somebody chose, but for that of `name`, with their settings.

    Those that nobody chose follow the main port, so they are apart from each other.
    """
    chosen = {
        getattr(address, field): other
        for field, (other, _) in PORTS_BESIDE.items()
        if other in os.environ and other != name
    }
    return {**chosen, address.port: "MEMORY_PORT"}


def check_apart(port: int | None, name: str, others: Mapping[int | None, str]) -> None:
    """Raise UpError if the port, which the setting `name` gives, is that of another setting as well."""
    if port in others:
        raise UpError(f"Port {port} cannot be used twice: it is that of {others[port]}. Set {name} to another one.")


def check_port(host: str, port: int, *, variables: str) -> None:
    """Check that the port is free before anything is started: web would only find out at the end."""
    try:
        # as the web server binds
        is_ipv6 = ":" in host
        family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        socket.create_server((host, port), family=family, dualstack_ipv6=is_ipv6).close()
    except OSError as err:
        reason = (err.strerror or str(err)).partition(" (while")[0].lower()
        raise UpError(f"Port {port} of {host} cannot be used: {reason}. Set {variables}.") from err


def run(stop: StopRequest, address: Address, *, mark: str) -> None:
    """Run the servers and the parts until asked to stop. The caller holds the lock."""
    log = Log(os.environ)
    servers = acquire_servers(os.environ)
    try:
        prepare(log, address)
        user = find_user(log, address)
        environ = environ_of(user, os.environ) if user else os.environ
        parts = [RunningPart(part, environ=environ, mark=mark, log=log, user=user) for part in parts_at(address)]
        loop = Loop(parts, servers=servers, log=log)
        try:
            loop.run(stop, url=address.url())
        finally:
            loop.stop(stop)
    finally:
        leave(servers, log)


def find_user(log: Log, address: Address) -> ServerUser | None:
    """Return the user of the parts; None for the current one, which is said in a sentence if it is root."""
    try:
        return find_part_user(os.environ, (address.port, address.health_port, address.mcp_port))
    except CannotSwitchError as err:
        log.say(OWN_NAME, f"web server and worker run as root, because {err}", level="WARNING")
        return None


def prepare(log: Log, address: Address) -> None:
    """Migrate, and make the first account."""
    log.say(OWN_NAME, "migrating the database")
    manage("migrate", "--no-input", "--verbosity", "0")
    print_addresses(log, address, json.loads(manage("bootstrap")))


def manage(*arguments: str) -> str:
    """Run a manage.py command, which uses our servers through the environment, and return what it printed."""
    done = subprocess.run(  # noqa: S603  our own command lines
        [sys.executable, "-m", "memory_project.manage", *arguments],
        cwd=PROJECT,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is noted by us; a migration ends in its own time
        start_new_session=True,
    )
    if done.returncode != 0:
        raise UpError(f"`manage.py {arguments[0]}` failed; what it says is above.")
    return done.stdout


def print_addresses(log: Log, address: Address, made: Mapping[str, str | None]) -> None:
    """Print the addresses, and secrets if `manage.py bootstrap` has just made them: else they are None there."""
    executable = Path(sys.executable)
    python = executable.relative_to(PROJECT) if executable.is_relative_to(PROJECT) else executable
    manage_by = f"{python} {MANAGE}" if IS_CLONE else MANAGE
    user = made["admin_user"]
    password = made["admin_password"] or f"as before; to reset it: {manage_by} changepassword {user}"
    key = made["api_key"] or f"as before; for another one: {manage_by} create_api_key --account NAME"
    once = "" if made["api_key"] is None else "\n  The password and the key are shown this once.\n"
    addresses = {"api_docs": f"{address.url()}/api/docs", "admin": f"{address.url()}/admin/", "mcp": address.mcp_url()}
    log.announce(
        {**addresses, **made},
        f"\n  API docs        {address.url()}/api/docs\n"
        f"  Admin           {address.url()}/admin/\n"
        f"  MCP             {address.mcp_url() or 'not served'}\n"
        f"  Admin user      {user}\n"
        f"  Admin password  {password}\n"
        f"  API key         {key}\n{once}",
    )


def leave(servers: SharedServers | None, log: Log) -> None:
    """Release the servers. The last process to do so stops them: Valkey, then PostgreSQL."""
    if servers is None:
        return
    log.say(OWN_NAME, "stopping Valkey and PostgreSQL")
    if not servers.release():
        log.say(OWN_NAME, "they run on: another process uses them")


if __name__ == "__main__":
    sys.exit(main())

"""The parts that run next to the servers: each part is one command."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from memory_project.embedded.daemons import signal_on_parent_death
from memory_project.embedded.locks import wait_until
from memory_project.embedded.paths import PROJECT
from memory_project.embedded.users import ServerUser
from memory_project.supervisor.log import LineBuffer, Log
from memory_project.supervisor.restarts import MAX_WAIT_SECONDS, Restarts

READ_BYTES = 65_536
MCP_SOURCES = (PROJECT / "clients/python/src", PROJECT / "integrations/src")
FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""For glibc, which else keeps freed memory for each of up to eight threads a core."""
MCP_PACKAGE = "agent_memory_integrations"
MARK_VARIABLE = "MEMORY_PART_OF"
"""The environment variable by which the processes of a part are found, whatever group they went to."""
WEB_END_SECONDS = 5.0
SEEN_FROM_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  compared only


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address on which the web part listens, and the ports of its health checks and of MCP; None: there is none."""

    host: str
    port: int
    health_port: int | None = None
    mcp_port: int | None = None

    def netloc(self) -> str:
        """Format it as servers spell it."""
        return _netloc(self.host, self.port)

    def health_netloc(self) -> str:
        """Format the address of the health checks; "none" without one."""
        return "none" if self.health_port is None else _netloc(self.host, self.health_port)

    def url(self) -> str:
        """Return the URL as seen from this machine."""
        return self._url_at(self.port)

    def mcp_url(self) -> str:
        """Return the URL of the MCP server as seen from this machine; "" without one."""
        return "" if self.mcp_port is None else f"{self._url_at(self.mcp_port)}/mcp"

    def _url_at(self, port: int) -> str:
        return f"http://{_netloc(SEEN_FROM_HERE.get(self.host, self.host), port)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part. `grace_seconds` is how long it may take to finish its work when it is asked to stop.

    `sources` are the folders that Python finds its packages in besides the installed ones.
    """

    name: str
    command: Sequence[str]
    grace_seconds: float
    sources: Sequence[Path] = ()


# static files come from the packages; root runs the worker only where root runs everything
PYTHON = (sys.executable, "-W", "ignore:No directory at", "-W", "ignore:You're running the worker")
CELERY = (*PYTHON, "-m", "celery", "--app", "memory_project.celery", "--quiet")
LEVEL = ("--loglevel", "INFO")


def parts_at(address: Address) -> list[Part]:
    """Return the node (web server and worker), and before it, as it stops first, the MCP server if it has a port."""
    mcp = []
    if address.mcp_port is not None and is_mcp_installed():
        mcp = [mcp_part(address, address.mcp_port, service_url=address.url())]
    return [*mcp, node_part(address)]


def node_part(address: Address) -> Part:
    """Return web server and worker, which share what they have loaded."""
    command = (*PYTHON, "-m", "memory_project.node", "--bind", address.netloc(), "--health", address.health_netloc())
    return Part(name="node", command=command, grace_seconds=web_stop_seconds())


def web_part(address: Address) -> Part:
    """Return the web server."""
    command = (*PYTHON, "-m", "memory_project.web", "--bind", address.netloc(), "--health", address.health_netloc())
    return Part(name="web", command=command, grace_seconds=web_stop_seconds())


def worker_part(*, has_beat: bool) -> Part:
    """Return a worker; with beat, it schedules jobs as well."""
    options = ("--without-gossip", "--without-mingle", *(["--beat"] if has_beat else []))
    return Part(name="worker", command=(*CELERY, "worker", *LEVEL, *options), grace_seconds=8)


def beat_part() -> Part:
    """Return the scheduler alone."""
    return Part(name="beat", command=(*CELERY, "beat", *LEVEL, "--pidfile="), grace_seconds=8)


def web_stop_seconds() -> float:
    """Return the seconds that the web part may take to stop: those of its settings, and some to end."""
    from memory_project.settings import DRAIN_SECONDS, STOP_SECONDS  # noqa: PLC0415  refused ones are reported by `up`

    return DRAIN_SECONDS + STOP_SECONDS + WEB_END_SECONDS


def is_mcp_installed() -> bool:
    """Return whether the MCP server is there: beside the service in a clone, or installed."""
    return any(each.exists() for each in MCP_SOURCES) or find_spec(MCP_PACKAGE) is not None


def mcp_part(address: Address, port: int, *, service_url: str) -> Part:
    """Return the MCP server, which is a client of the web server at `service_url`."""
    command = (sys.executable, "-m", "memory_project.mcp_role", address.host, str(port), service_url)
    return Part(name="mcp", command=command, grace_seconds=10, sources=[each for each in MCP_SOURCES if each.exists()])


class RunningPart:
    """One part and its process, restarted when it dies."""

    def __init__(
        self, part: Part, *, environ: Mapping[str, str], mark: str, log: Log, user: ServerUser | None = None
    ) -> None:
        self.part = part
        self._user = user
        self._mark = f"{mark}:{part.name}"
        self._environ = {**FEW_ARENAS, **environ, MARK_VARIABLE: self._mark, "PYTHONUNBUFFERED": "1"}
        if part.sources:
            given = environ.get("PYTHONPATH", "")
            self._environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*map(str, part.sources), given]))
        self._log = log
        self._lines = LineBuffer()
        self._restarts = Restarts()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = self._start_at = 0.0

    def tend(self, now: float) -> None:
        """Pass on what it says; start it again if it died. `now` is monotonic."""
        self.pump()
        if self._process is None:
            if now >= self._start_at:
                try:
                    self._start(now)
                except OSError as err:
                    # out of memory or processes, for example, which is waited out
                    self._start_at = now + MAX_WAIT_SECONDS
                    self._log.say(self.part.name, f"cannot be started: {err.strerror}", level="ERROR")
        elif (returncode := self._process.poll()) is not None:
            self._bury(returncode, now)

    def pump(self) -> None:
        """Pass on what it has said since."""
        if self._process is None or self._process.stdout is None or self._process.stdout.closed:
            return
        while data := self._process.stdout.read(READ_BYTES):
            for line in self._lines.feed(data):
                self._log.write(self.part.name, line)

    def ask_to_stop(self) -> None:
        """Ask its main process to stop, which stops the others."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def has_stopped(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def end(self) -> None:
        """Kill all of its processes."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._clean_up()

    def _start(self, now: float) -> None:
        self._started_at = now
        self._process = subprocess.Popen(  # noqa: S603  our own command lines
            self.part.command,
            cwd=PROJECT,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            # a terminal's Ctrl-C is for us alone: we stop the parts one after the other
            start_new_session=True,
            preexec_fn=signal_on_parent_death(signal.SIGTERM),
            **(self._user.switch() if self._user else {}),
        )
        if self._process.stdout is not None:
            os.set_blocking(self._process.stdout.fileno(), False)

    def _bury(self, returncode: int, now: float) -> None:
        self._clean_up()
        wait = self._restarts.wait_seconds(now - self._started_at)
        death = f"ended with exit code {returncode}"
        if returncode < 0:
            death = f"was killed by {signal.Signals(-returncode).name}"
        self._log.say(self.part.name, f"{death}; starting it again in {wait:.1f} s", level="WARNING")
        self._start_at = time.monotonic() + wait

    def _clean_up(self) -> None:
        """Log its last lines and end the processes that it left: a killed leader does not end its children."""
        end_marked(self._mark, grace_seconds=0)
        self.pump()
        for line in self._lines.flush():
            self._log.write(self.part.name, line)
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


def marked_processes(mark: str) -> list[psutil.Process]:
    """Return the living processes of ours that were started with this mark."""
    # where there is none: gone meanwhile, a zombie, or not ours
    return [
        each for each in psutil.process_iter(["environ"]) if (each.info["environ"] or {}).get(MARK_VARIABLE) == mark
    ]


def end_marked(mark: str, *, grace_seconds: float) -> int:
    """Stop the processes with this mark, by force after `grace_seconds`, and return how many there were."""
    found = marked_processes(mark)
    for process in found:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.terminate()
    wait_until(lambda: not marked_processes(mark), seconds=grace_seconds)
    for process in marked_processes(mark):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
    return len(found)


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

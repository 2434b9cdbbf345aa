"""`make up`, the real thing: real processes, on a free port, with data of its own."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import pytest

from lab.ports import find_port
from memory_project.embedded.locks import FileLock
from memory_project.embedded.paths import PROJECT
from memory_project.supervisor.parts import Address, marked_processes
from memory_project.up import UpError, address_from_environment, claim
from tests.project.private_clones import is_private_clone

SECONDS = 200
# each starts half a dozen processes while other tests run
pytestmark = pytest.mark.timeout(400)
# pytest-django names the settings, which the service must find by itself
SERVER_VARIABLES = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "MEMORY_SECRET_KEY", "DJANGO_SETTINGS_MODULE")


PARTS = ("mcp", "node")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {SECONDS} seconds"
        time.sleep(0.05)


@dataclass(slots=True, kw_only=True)
class Service:
    """One `make up` and the folder that its successors find the data in."""

    data: Path
    extra: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=find_port)
    mcp_port: int = field(default_factory=find_port)
    process: "subprocess.Popen[bytes] | None" = None

    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
        own = {"MEMORY_DATA_DIR": str(self.data), "MEMORY_PORT": str(self.port), "MEMORY_WORKER_PROCESSES": "1"}
        own |= {"MEMORY_MCP_PORT": str(self.mcp_port)}
        return kept | own | {"MEMORY_WEB_WORKERS": "1"} | self.extra

    def output(self) -> str:
        return (self.data / "output").read_text()

    def start(self) -> None:
        with (self.data / "output").open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "memory_project.up"],
                cwd=PROJECT,
                env=self.environ(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_for(self.is_ready, "the start")

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output()
        return "ready: " in self.output()

    def send(self, number: signal.Signals) -> int:
        """Signal its main process and wait until it has ended."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=SECONDS)

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *command],
            cwd=PROJECT,
            env=self.environ(),
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def is_live(self, *, seconds: float = SECONDS) -> bool:
        """Return whether the service answers within so many seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def refuses_strangers_over_mcp(self) -> bool:
        """Return whether the MCP server answers, which starts after the others."""
        connection = http.client.HTTPConnection("127.0.0.1", self.mcp_port, timeout=SECONDS)
        try:
            connection.request("POST", "/mcp", body="{}", headers={"Content-Type": "application/json"})
            return connection.getresponse().status == 401
        except OSError:
            return False
        finally:
            connection.close()

    def mark_of(self, part: str) -> str:
        return f"{self.data}/up.lock:{part}"

    def pid_of(self, server: str) -> int:
        return int((self.data / server).read_text().split()[0])

    def master_of(self, part: str) -> int:
        """Return the process of a part that the main process started itself."""
        assert self.process is not None
        pids = [process.pid for process in marked_processes(self.mark_of(part))]
        [master] = [pid for pid in pids if parent_of(pid) == self.process.pid]
        return int(master)

    def processes(self) -> list[int]:
        """Everything that works on this data: parts by their mark, servers by their command line."""
        parts = [process.pid for name in PARTS for process in marked_processes(self.mark_of(name))]
        return parts + [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if self.serves(pid)]

    def serves(self, pid: int) -> bool:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return False
        names_server = command.startswith((b"postgres", b"valkey-server")) or b"/bin/postgres" in command
        return names_server and folder.startswith(str(self.data))


def parent_of(pid: int) -> int:
    """Zero once the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("\nPPid:")[2].split()[0])


@contextmanager
def data_folder() -> Iterator[Path]:
    """A folder that the servers' user can get to, unlike pytest's own ones."""
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-up-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Nothing of it is left running behind the block."""
    yield service
    if service.process is not None and service.process.poll() is None:
        service.send(signal.SIGTERM)


@pytest.fixture
def service() -> Iterator[Service]:
    """One that was never started."""
    with data_folder() as data, serving(Service(data=data)) as service:
        yield service


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStart:
    """A start from an empty folder: the running service, and what was left after it was stopped."""

    service: Service
    is_live: bool
    printed: str
    exit_code: int
    left: list[int]
    users: set[int]
    """The users of its parts."""


@pytest.fixture(scope="module")
def first_start() -> Iterator[FirstStart]:
    """Start the service once for all tests, since it takes half a minute while others run."""
    with data_folder() as data, serving(Service(data=data)) as service:
        service.start()
        is_live = service.is_live()
        wait_for(service.refuses_strangers_over_mcp, "an answer of the MCP server")
        users = {part.uids().real for name in PARTS for part in marked_processes(service.mark_of(name))}
        exit_code = service.send(signal.SIGTERM)
        yield FirstStart(
            service=service,
            is_live=is_live,
            printed=service.output(),
            exit_code=exit_code,
            left=service.processes(),
            users=users,
        )


@pytest.fixture
def known(first_start: FirstStart) -> Iterator[Service]:
    """One on data that is there already."""
    with serving(Service(data=first_start.service.data)) as service:
        yield service


def test_one_command_starts_everything_prints_its_urls_and_leaves_no_process_when_stopped(
    first_start: FirstStart,
) -> None:
    printed = first_start.printed
    for line in (f"http://127.0.0.1:{first_start.service.port}/{page}" for page in ("api/docs", "admin/")):
        assert printed.count(line) == 1
    assert re.search(r"Admin password  \S{12,}$", printed, re.MULTILINE)
    assert re.search(r"API key         \S{20,}$", printed, re.MULTILINE)
    assert first_start.is_live

    assert first_start.exit_code == 0
    order = [line.split("stopping ")[1] for line in printed.splitlines() if " INFO stopping " in line]
    assert order == ["mcp", "node", "Valkey and PostgreSQL"]
    assert first_start.left == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")
def test_parts_that_root_starts_run_as_the_user_of_the_servers(first_start: FirstStart) -> None:
    servers = (first_start.service.data / "postgres").stat().st_uid

    assert servers != 0
    # a part could not read its own code there
    assert first_start.users == {0 if is_private_clone() else servers}


@pytest.mark.slow
def test_the_next_start_takes_over_the_servers_of_a_killed_service(known: Service) -> None:
    known.start()
    servers = [known.pid_of("postgres/postmaster.pid"), known.pid_of("valkey/valkey.pid")]
    assert known.process is not None
    known.process.kill()
    known.process.wait()

    known.start()

    assert known.is_live()
    assert "as before; to reset it" in known.output()
    assert [known.pid_of("postgres/postmaster.pid"), known.pid_of("valkey/valkey.pid")] == servers
    assert known.send(signal.SIGINT) == 0
    assert known.processes() == []


@pytest.mark.slow
def test_killed_parts_are_restarted_and_commands_share_the_running_servers(known: Service) -> None:
    known.start()
    node = known.master_of("node")

    for pid in (node, known.pid_of("valkey/valkey.pid"), known.pid_of("postgres/postmaster.pid")):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "starting it again" in known.output() and "starting again" in known.output(), "a restart")
    # one that is asked of whom has been killed never comes
    wait_for(lambda: known.is_live(seconds=5), "an answer")

    again = known.run("manage.py", "bootstrap")
    assert json.loads(again.stdout)["api_key"] is None
    assert known.is_live()
    second = known.run("-m", "memory_project.up")
    assert second.returncode == 1
    assert second.stderr == f"The service already runs on {known.data}; stop that one first.\n"


def test_a_port_in_use_is_reported_in_one_sentence(service: Service) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", service.port))
        taken.listen()

        done = service.run("-m", "memory_project.up")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"Port {service.port} of 127.0.0.1 cannot be used: address already in use" in done.stderr
    assert service.processes() == []


@pytest.mark.parametrize("port", ["", "web", "0", "70000"])
def test_an_invalid_port_is_reported_in_one_sentence(port: str, service: Service) -> None:
    service.extra["MEMORY_PORT"] = port

    done = service.run("-m", "memory_project.up")

    assert (done.returncode, done.stderr) == (1, f"MEMORY_PORT must be a port number, not {port!r}.\n")


def test_an_incomplete_data_folder_is_reported_in_one_sentence(service: Service) -> None:
    (service.data / "postgres").mkdir()
    (service.data / "postgres" / "base").mkdir()
    shutil.chown(service.data / "postgres", "nobody" if os.geteuid() == 0 else os.geteuid())

    done = service.run("-m", "memory_project.up")

    assert done.returncode == 1
    assert done.stderr.endswith("is not a complete PostgreSQL data folder; move it away and run again.\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_no_embedded_server_starts_if_external_servers_are_configured(service: Service) -> None:
    name = f"up_{service.port}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    service.extra |= {
        "DATABASE_URL": os.environ["DATABASE_URL"].replace("/memory?", f"/{name}?"),
        "MEMORY_SECRET_KEY": "a secret that all nodes share, of fifty characters or more",
        "REDIS_URL": os.environ["REDIS_URL"],
        "CELERY_BROKER_URL": os.environ["CELERY_BROKER_URL"],
    }

    service.start()

    assert service.is_live()
    assert not (service.data / "postgres").exists()
    assert not (service.data / "valkey").exists()
    assert service.send(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("setting", "field", "consequence"),
    [
        ("MEMORY_HEALTH_PORT", "health_port", "Health checks have no port of their own now."),
        ("MEMORY_MCP_PORT", "mcp_port", "MCP is not served now."),
    ],
)
def test_a_port_that_nobody_chose_is_given_up_where_it_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    field: str,
    consequence: str,
) -> None:
    monkeypatch.delenv(setting, raising=False)
    with socket.socket() as taken, socket.socket() as free, FileLock(tmp_path / "up.lock") as lock:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free.bind(("127.0.0.1", 0))
        main, beside = free.getsockname()[1], taken.getsockname()[1]
        address = replace(Address(host="127.0.0.1", port=main), **{field: beside})
        free.close()

        assert getattr(claim(lock, address), field) is None
        assert consequence in capsys.readouterr().err

        monkeypatch.setenv(setting, str(beside))
        with pytest.raises(UpError, match=setting):
            claim(lock, address)


def address_of(monkeypatch: pytest.MonkeyPatch, **ports: int) -> Address:
    """Return the address by these ports: `main` of MEMORY_PORT, `health` of MEMORY_HEALTH_PORT, and so on."""
    for setting in ("MEMORY_HEALTH_PORT", "MEMORY_MCP_PORT"):
        monkeypatch.delenv(setting, raising=False)
    for name, port in ports.items():
        monkeypatch.setenv("MEMORY_PORT" if name == "main" else f"MEMORY_{name.upper()}_PORT", str(port))
    return address_from_environment()


@pytest.mark.parametrize(
    ("beside", "refusal"),
    [
        ({"mcp": 0}, "it is that of MEMORY_PORT. Set MEMORY_MCP_PORT to another one."),
        ({"health": 0}, "it is that of MEMORY_PORT. Set MEMORY_HEALTH_PORT to another one."),
        ({"health": 1, "mcp": 1}, "it is that of MEMORY_MCP_PORT. Set MEMORY_HEALTH_PORT to another one."),
    ],
    ids=["mcp", "health", "both"],
)
def test_two_settings_of_one_port_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: dict[str, int], refusal: str
) -> None:
    main = find_port()
    address = address_of(monkeypatch, main=main, **{name: main + apart for name, apart in beside.items()})

    with FileLock(tmp_path / "up.lock") as lock, pytest.raises(UpError) as refused:
        claim(lock, address)

    assert str(refused.value).endswith(f"cannot be used twice: {refusal}")


def test_a_port_that_nobody_chose_is_given_up_for_one_that_somebody_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = find_port()
    address = address_of(monkeypatch, main=main, health=main + 2)

    with FileLock(tmp_path / "up.lock") as lock:
        claimed = claim(lock, address)

    assert (claimed.health_port, claimed.mcp_port) == (main + 2, None)
    assert "it is that of MEMORY_HEALTH_PORT. Set MEMORY_MCP_PORT to another one. MCP is not" in capsys.readouterr().err


def test_ports_follow_the_main_one_unless_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORY_HEALTH_PORT", "MEMORY_MCP_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMORY_PORT", "65534")
    followed = address_from_environment()
    monkeypatch.setenv("MEMORY_MCP_PORT", "none")

    assert (followed.health_port, followed.mcp_port) == (65535, 1)
    assert address_from_environment().mcp_port is None

"""Valkey servers of a test, beside the one that all share: single ones, Sentinels, and a cluster."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

from lab.ports import find_port
from memory_project.embedded.paths import PROGRAM_COPIES, SYSTEM_DATA
from memory_project.embedded.programs import programs_for
from memory_project.embedded.users import user_for
from memory_project.redis_urls import DEFAULT_NAME
from tests.concurrency import PATIENCE_SECONDS, wait_until

SLOTS = 16_384
MASTERS = 3


class Servers:
    """Valkey servers on ports of this machine, which end with the block that made them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._running = folder, dict[int, "subprocess.Popen[bytes]"]()
        self._program = str(programs_for(user_for(folder / "none"), copies=SYSTEM_DATA / PROGRAM_COPIES).valkey)

    def start(self, *arguments: str, configuration: str = "", password: str = "") -> int:
        """Start a server and return its port. One that ends, as where its port was taken, is started on another."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            port = find_port()
            own = self.folder / str(port)
            own.mkdir()
            (own / "conf").write_text(
                configuration.format(port=port, folder=own) or f"port {port}\ndir {own}\nsave ''\n"
            )
            with (own / "log").open("wb") as log:
                command = [self._program, str(own / "conf"), *arguments]
                process = subprocess.Popen(command, stdout=log, stderr=log, cwd=own)
            self._running[port] = process
            with redis.Redis(port=port, password=password or None) as asked:
                while process.poll() is None:
                    if answers(asked, process.pid):
                        return port
                    assert time.monotonic() < deadline, (own / "log").read_text()
                    time.sleep(0.05)
            assert time.monotonic() < deadline, (own / "log").read_text()

    def signal(self, port: int, number: int) -> None:
        self._running[port].send_signal(number)

    def kill(self, port: int) -> None:
        process = self._running.pop(port)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for port in [*self._running]:
            self.kill(port)


@pytest.fixture
def servers() -> Iterator[Servers]:
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-test-valkeys-", dir="/tmp"))
    made = Servers(folder)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def answers(asked: "redis.Redis", pid: int) -> bool:
    """Return whether the server answers that has this process id."""
    try:
        return int(asked.info("server")["process_id"]) == pid
    except redis.RedisError:
        return False


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A cluster of three masters, one of which serves the slot of the service's keys and has a replica."""

    servers: Servers
    masters: list[int]
    master: int
    replica: int

    def url(self, name: str = "") -> str:
        nodes = ",".join(f"127.0.0.1:{port}" for port in (*self.masters, self.replica))
        return f"redis+cluster://{nodes}/{name}"

    def others(self) -> list[int]:
        """Return the masters of other slots."""
        return [port for port in self.masters if port != self.master]

    def replicate(self) -> None:
        """Wait until the replica has what was written so far."""
        with node_at(self.replica) as replica, node_at(self.master) as master:
            wait_until(lambda: offset(replica, "slave_repl_offset") >= offset(master, "master_repl_offset"))

    def move_slot(self, target: int) -> None:
        """Move the slot to another master, in one piece."""
        with node_at(self.master) as source, node_at(target) as other:
            name = other.execute_command("CLUSTER", "MYID")
            source.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", str(SLOT), str(SLOT), "NODE", name)
            wait_until(lambda: "success" in str(source.execute_command("CLUSTER", "GETSLOTMIGRATIONS")))
        self.master = target


SLOT = key_slot(DEFAULT_NAME.encode())


def node_at(port: int) -> "redis.Redis":
    return redis.Redis(port=port, decode_responses=True)


def is_complete(node: "redis.Redis", nodes: int) -> bool:
    """Return whether the node serves, and knows that many."""
    known = node.cluster("info")
    return (known["cluster_state"], known["cluster_known_nodes"]) == ("ok", str(nodes))


def offset(node: "redis.Redis", name: str) -> int:
    return int(node.info("replication")[name])


def start_cluster(servers: Servers) -> Cluster:
    masters = [start_node(servers) for _ in range(MASTERS)]
    replica = start_node(servers)
    with ExitStack() as stack:
        nodes = {
            port: stack.enter_context(redis.Redis(port=port, decode_responses=True)) for port in (*masters, replica)
        }
        bounds = [SLOTS * number // MASTERS for number in range(MASTERS + 1)]
        for number, port in enumerate(masters):
            nodes[port].execute_command("CLUSTER", "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
            nodes[port].execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        master = masters[SLOT * MASTERS // SLOTS]
        first = nodes[masters[0]]
        for port in (*masters[1:], replica):
            first.execute_command("CLUSTER", "MEET", "127.0.0.1", port)
        name = nodes[master].execute_command("CLUSTER", "MYID")

        def replicate() -> bool:
            with suppress(redis.ResponseError):
                # it may not know the master yet
                return bool(nodes[replica].execute_command("CLUSTER", "REPLICATE", name))
            return False

        wait_until(replicate)
        wait_until(lambda: nodes[replica].info("replication")["master_link_status"] == "up")
        wait_until(lambda: all(node.cluster("info")["cluster_state"] == "ok" for node in nodes.values()))
        wait_until(
            lambda: all(node.cluster("info")["cluster_known_nodes"] == str(len(nodes)) for node in nodes.values())
        )
    return Cluster(servers=servers, masters=masters, master=master, replica=replica)


def start_node(servers: Servers) -> int:
    return servers.start("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")

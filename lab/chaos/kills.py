"""A service under `make up` whose processes are killed one after the other, and writers that count what is lost."""

import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from django.core.management.base import CommandError

from lab.benchmarks.web import UNLIMITED
from lab.chaos.stage import Finding, Stage
from lab.ports import find_port
from memory_project.embedded.paths import PROJECT

SERVER_VARIABLES = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "MEMORY_SECRET_KEY")
START_SECONDS = 180.0
STOP_SECONDS = 60.0
BACK_SECONDS = 90.0
"""Longer than the mark of a request in flight, whose client is answered 409 after a kill of its process."""
ANSWER_SECONDS = 10.0
RETRY_SECONDS = 0.1
MAX_REST_SECONDS = 2.0
WRITERS = 4
PAGE = 200
LIST_LENGTH = 500
"""Values of a list in working memory before the next one begins, so that none becomes too large."""


@dataclass(slots=True)
class Service:
    """A running `make up`: its main process, where it listens, and a key of its first account."""

    process: "subprocess.Popen[bytes]"
    port: int
    secret: str

    def victims(self) -> dict[str, list[psutil.Process]]:
        """Return the processes that may be killed, by what they are: servers, and processes of node and MCP."""
        found: dict[str, list[psutil.Process]] = {}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                name, parent = process.name(), process.parent()
                is_backend = name.startswith("postgres") and parent is not None and parent.name().startswith("postgres")
            except psutil.NoSuchProcess:
                continue
            if is_backend:
                name = "backend of PostgreSQL"
            found.setdefault(name, []).append(process)
        return found


@contextmanager
def service_under_supervisor() -> Iterator[Service]:
    """Run `make up` in a folder of its own until the end of the block. Raises CommandError if it does not start."""
    port = find_port()
    with tempfile.TemporaryDirectory(prefix="agent-memory-chaos-") as name:
        folder = Path(name)
        # the servers have a user of their own
        folder.chmod(0o755)
        environ = {key: value for key, value in os.environ.items() if key not in SERVER_VARIABLES}
        environ |= {"MEMORY_DATA_DIR": name, "MEMORY_PORT": str(port), "MEMORY_HEALTH_PORT": str(find_port())}
        environ |= {"MEMORY_MCP_PORT": str(find_port()), "MEMORY_RATE_LIMIT_PER_MINUTE": UNLIMITED}
        log = folder / "output"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "memory_project.up"],
                cwd=PROJECT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield Service(process=process, port=port, secret=read_key(process, log))
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def read_key(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return the key that the first start prints, once the service is ready."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        text = log.read_text()
        key = re.search(r"API key +(\S+)", text)
        if key and "ready: " in text:
            return key[1]
        time.sleep(RETRY_SECONDS)
    raise CommandError(f"The service did not start: {log.read_text()[-2_000:]}")


@dataclass(slots=True, kw_only=True)
class Writer:
    """A client that writes one value after the other, each again, with the same key, until it is acknowledged."""

    service: Service
    name: str
    path: Callable[[str, int], str]
    body: Callable[[str, int], dict[str, Any]]
    acknowledged: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    last_at: float = 0.0
    """When the last value was acknowledged (monotonic)."""

    def write(self, ended: threading.Event) -> None:
        """Write until the end, and until the last value is acknowledged."""
        while not ended.is_set():
            key = uuid4().hex
            while not self.is_taken(key):
                time.sleep(RETRY_SECONDS)
            self.acknowledged += 1
            self.last_at = time.monotonic()

    def is_taken(self, key: str) -> bool:
        """Send the present value, and return whether it was acknowledged."""
        number = self.acknowledged
        try:
            status, _answer = ask(
                self.service, "POST", self.path(self.name, number), self.body(self.name, number), idempotency_key=key
            )
        except (OSError, http.client.HTTPException):
            status = 0
        self.statuses[status] += 1
        return 200 <= status < 300


def ask(service: Service, method: str, path: str, body: Any = None, *, idempotency_key: str = "") -> tuple[int, Any]:
    """Return status and answer. Raises OSError or HTTPException without one."""
    wire = http.client.HTTPConnection("127.0.0.1", service.port, timeout=ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {service.secret}", "Content-Type": "application/json"}
    if idempotency_key:
        headers["Idempotency-Key"] = idempotency_key
    try:
        wire.request(method, f"/api/v1{path}", body=None if body is None else json.dumps(body), headers=headers)
        answer = wire.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        wire.close()


def fetch(service: Service, path: str) -> Any:
    """Return the answer of GET. Raises CommandError for any answer but success."""
    status, answer = ask(service, "GET", path)
    if status != 200:
        raise CommandError(f"GET {path} answered {status}: {answer}")
    return answer


def turn_writer(service: Service, name: str) -> Writer:
    """Return a writer of turns, which PostgreSQL keeps."""
    return Writer(
        service=service,
        name=name,
        path=lambda name, _number: f"/conversations/{name}/turns",
        body=lambda name, number: {"agent_id": name, "turns": [{"role": "user", "content": f"number {number}"}]},
    )


def list_writer(service: Service, name: str) -> Writer:
    """Return a writer that appends numbers to lists of working memory, which Redis keeps."""
    return Writer(
        service=service,
        name=name,
        path=lambda name, number: f"/agents/{name}/working-memory/list-{number // LIST_LENGTH}/append",
        body=lambda _name, number: {"value": number},
    )


def read_turns(writer: Writer) -> list[int]:
    """Return the numbers of the stored turns."""
    numbers: list[int] = []
    path: str | None = f"/conversations/{writer.name}/turns?agent_id={writer.name}&page_size={PAGE}"
    while path:
        page = fetch(writer.service, path)
        numbers += [int(turn["content"].split()[1]) for turn in page["results"]]
        path = page["next"] and page["next"].partition("/api/v1")[2]
    return numbers


def read_lists(writer: Writer) -> list[int]:
    """Return the numbers of all lists."""
    numbers: list[int] = []
    for first in range(0, writer.acknowledged, LIST_LENGTH):
        numbers += fetch(writer.service, f"/agents/{writer.name}/working-memory/list-{first // LIST_LENGTH}")["value"]
    return numbers


def kill_processes(stage: Stage) -> Finding:
    """Kill processes of a service while clients write, and compare what is there with what was acknowledged."""
    seed = time.time_ns()
    with service_under_supervisor() as service:
        turns = [turn_writer(service, f"turns-{number}") for number in range(WRITERS)]
        lists = [list_writer(service, f"lists-{number}") for number in range(WRITERS)]
        writers = [*turns, *lists]
        with writing(writers):
            killed, waits = kill_in_turn(service, [turns, lists], seed, seconds=stage.seconds)
        lost = doubled = acknowledged = 0
        for writer in writers:
            stored = Counter(read_turns(writer) if writer in turns else read_lists(writer))
            acknowledged += writer.acknowledged
            lost += len(set(range(writer.acknowledged)) - set(stored))
            doubled += stored.total() - len(stored)
    statuses = sum((writer.statuses for writer in writers), Counter[int]())
    figures = {
        "seed": seed,
        "killed": dict(killed),
        "seconds_until_it_serves": waits,
        "acknowledged": acknowledged,
        "lost": lost,
        "doubled": doubled,
        "statuses": dict(sorted(statuses.items())),
    }
    missed = [f"{lost} acknowledged writes were lost and {doubled} doubled."] if lost or doubled else []
    if statuses[500]:
        missed.append(f"{statuses[500]} requests were answered 500.")
    return Finding(figures=figures, missed=missed)


@contextmanager
def writing(writers: Sequence[Writer]) -> Iterator[None]:
    """Have each write, in a thread of its own, until the end of the block and until its last value is acknowledged."""
    ended = threading.Event()
    threads = [threading.Thread(target=writer.write, args=[ended], daemon=True) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(BACK_SECONDS)


def kill_in_turn(
    service: Service, groups: Sequence[Sequence[Writer]], seed: int, *, seconds: float
) -> tuple[Counter[str], dict[str, float]]:
    """Kill processes at random for so many seconds. Returns how many of each kind, and how long writers waited.

    Each kind has the same chance, however many processes it has. Waited for is the first writer of each group.
    Raises CommandError if that takes too long.
    """
    choose = random.Random(seed)  # noqa: S311  no secret
    killed: Counter[str] = Counter()
    worst: dict[str, float] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        victims = service.victims()
        kind = choose.choice(sorted(victims))
        begun = time.monotonic()
        try:
            choose.choice(victims[kind]).kill()
        except psutil.NoSuchProcess:
            continue
        killed[kind] += 1
        while not all(any(writer.last_at > begun for writer in group) for group in groups):
            if time.monotonic() > begun + BACK_SECONDS:
                raise CommandError(
                    f"{BACK_SECONDS:.0f} s after {kind} was killed, not all clients are served; seed {seed}."
                )
            time.sleep(RETRY_SECONDS)
        worst[kind] = max(worst.get(kind, 0.0), round(time.monotonic() - begun, 1))
        time.sleep(choose.uniform(0, MAX_REST_SECONDS))
    return killed, worst

"""The faults, and what clients meet meanwhile. Each scenario returns figures, and sentences about missed targets."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psutil

from lab.chaos.kills import kill_processes
from lab.chaos.malformed import MalformedSender
from lab.chaos.servers import HangingEmbedder, locked_row, stopped_postgresql
from lab.chaos.stage import Finding, Stage
from lab.chaos.watching import PROBE_SECONDS, Asker, Watch, watching
from memory_project.embedded.paths import PROJECT
from memory_project.supervisor.parts import Address

IDLE, WRITERS, READERS = 500, 200, 50
DOCUMENT_CLIENTS = 16
CLIENTS = 32
LOCKED_CLIENTS = 4
SENDERS = 4
LIVE_TARGET_MS = 500.0
P95_TARGET = 2.0
FAILURE_TARGET_MS = 10_000.0
BREAKER_TARGET_MS = 50.0
CONTENTION_TARGET_MS = 500.0
QUIET_MS = 5.0
"""Below this, a client's p95 may be any multiple of what it was: nobody notices."""
BREAKER_SECONDS = 12.0
"""Seconds until a breaker has certainly opened: three failures of five seconds at once, with some to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystanders:
    """Answers of `/health/live` on each listener, and the memory of the web server before and after, in MB."""

    live: Mapping[str, Watch]
    memory_mb: tuple[int, int]


def serve_beside_crowd(stage: Stage) -> Finding:
    """Measure a client beside idle connections, slow writers and slow readers."""
    with stage.web_server() as address:
        client = stage.asker(address, "GET", "/agents")
        before, _beside = observe(stage, address, [client])
        with crowd_held(address.port, idle=IDLE, writers=WRITERS, readers=READERS):
            during, beside = observe(stage, address, [client])
    figures = {"client_before": before.to_dict(), "client": during.to_dict(), **describe_bystanders(beside)}
    return Finding(figures=figures, missed=[*judge_live(beside), *judge_client(before, during)])


def load_documents(stage: Stage) -> Finding:
    """Have many clients load the OpenAPI document, the metrics and the log-in page without a pause."""
    with stage.web_server() as address:
        client = stage.asker(address, "GET", "/agents")
        before, _beside = observe(stage, address, [client])
        figures: dict[str, Any] = {"client_before": before.to_dict()}
        missed: list[str] = []
        for path in ("/api/schema", "/metrics", "/admin/login/"):
            loaders = [Asker(address.port, "GET", path) for _ in range(DOCUMENT_CLIENTS)]
            with watching(loaders, pause_seconds=0) as loads:
                during, beside = observe(stage, address, [client])
            figures[path] = {"client": during.to_dict(), "loads": loads.to_dict(), **describe_bystanders(beside)}
            missed += [f"{path}: {sentence}" for sentence in judge_live(beside)]
    return Finding(figures=figures, missed=missed)


def stop_postgresql(stage: Stage) -> Finding:
    """Stop all processes of PostgreSQL in their midst, as a dead network would, and let them go on later."""
    with stage.web_server() as address:
        clients = [stage.asker(address, "GET", "/agents") for _ in range(CLIENTS)]
        with watching(clients, pause_seconds=0.05) as before:
            time.sleep(2)
        with stopped_postgresql():
            during, beside = observe(stage, address, clients)
        begun = time.monotonic()
        while clients[0].ask() != 200 and time.monotonic() < begun + stage.seconds:
            time.sleep(0.1)
        back = time.monotonic() - begun
    figures = {"before": before.to_dict(), "clients": during.to_dict(), "seconds_until_it_serves": round(back, 1)}
    missed = judge_live(beside)
    if max(during.seconds) * 1_000 > FAILURE_TARGET_MS or not set(during.statuses) <= {200, 503}:
        missed.append(f"Requests took {max(during.seconds):.1f} s at worst, statuses {dict(during.statuses)}.")
    if back >= stage.seconds:
        missed.append("The service did not come back.")
    return Finding(figures={**figures, **describe_bystanders(beside)}, missed=missed)


def lock_a_row(stage: Stage) -> Finding:
    """Hold the lock of one row that some clients want to change, while another client changes another row."""
    with stage.web_server() as address:
        for name in ("locked", "free"):
            stage.asker(address, "POST", "/agents", {"agent_id": name}).ask()
        client = stage.asker(address, "PATCH", "/agents/free", lambda: {"description": uuid4().hex})
        before, _beside = observe(stage, address, [client])
        blocked = [
            stage.asker(address, "PATCH", "/agents/locked", lambda: {"description": uuid4().hex})
            for _ in range(LOCKED_CLIENTS)
        ]
        with locked_row("locked"), watching(blocked, pause_seconds=0.1) as refused:
            during, beside = observe(stage, address, [client])
    figures = {"client_before": before.to_dict(), "client": during.to_dict(), "blocked": refused.to_dict()}
    missed = [*judge_live(beside), *judge_client(before, during)]
    return Finding(figures={**figures, **describe_bystanders(beside)}, missed=missed)


def contend_for_a_fact(stage: Stage) -> Finding:
    """Have many clients change the same fact, each without a pause."""
    with stage.web_server() as address:
        fact = {"agent_id": "writer", "claim": "The ferry leaves at nine."}
        creator = stage.asker(address, "POST", "/facts", fact)
        creator.ask()
        creator.close()
        path = f"/facts/{json.loads(creator.answer)['id']}"
        writers = [
            stage.asker(
                address, "PATCH", path, lambda: {**fact, "claim": f"The ferry of {uuid4().hex} leaves at nine."}
            )
            for _ in range(CLIENTS)
        ]
        during, beside = observe(stage, address, writers)
    missed = judge_live(beside)
    found = during.to_dict()
    if found["p50_ms"] > CONTENTION_TARGET_MS or set(during.statuses) != {200}:
        missed.append(f"A change took {found['p50_ms']:.0f} ms (p50), statuses {found['statuses']}.")
    return Finding(figures={"writers": found, **describe_bystanders(beside)}, missed=missed)


def hang_the_embedder(stage: Stage) -> Finding:
    """Have the embedding endpoint take requests and answer none."""
    with ExitStack() as stack:
        embedder = stack.enter_context(HangingEmbedder())
        address = stack.enter_context(stage.web_server(**embedder.variables()))
        writer = stage.asker(
            address,
            "POST",
            "/conversations/chaos/turns",
            lambda: {"agent_id": "writer", "turns": [{"role": "user", "content": uuid4().hex}]},
        )
        before, _beside = observe(stage, address, [writer])
        embedder.hangs = True
        writers = [writer.again() for _ in range(CLIENTS)]
        with watching(writers, pause_seconds=0.5) as opening:
            time.sleep(BREAKER_SECONDS)
        during, beside = observe(stage, address, [writer])
    figures = {"writer_before": before.to_dict(), "until_open": opening.to_dict(), "writer": during.to_dict()}
    missed = judge_live(beside)
    more = during.to_dict()["p95_ms"] - before.to_dict()["p95_ms"]
    if more > BREAKER_TARGET_MS or set(during.statuses) != {201}:
        missed.append(f"Writes took {more:.0f} ms more with the breaker open, statuses {dict(during.statuses)}.")
    return Finding(figures={**figures, **describe_bystanders(beside)}, missed=missed)


def send_malformed_requests(stage: Stage) -> Finding:
    """Send requests that were broken at random. None may get a 500 or stop the server."""
    with stage.web_server() as address:
        client = stage.asker(address, "GET", "/agents")
        seed = time.time_ns()
        senders = [MalformedSender(address.port, key=stage.secret, seed=seed + number) for number in range(SENDERS)]
        with watching(senders, pause_seconds=0) as sent:
            during, beside = observe(stage, address, [client])
    figures = {"seed": seed, "sent": sent.to_dict(), "client": during.to_dict(), **describe_bystanders(beside)}
    missed = judge_live(beside)
    # 501 and 505 are right for encodings and versions that do not exist
    if sent.statuses[500]:
        missed.append(f"{sent.statuses[500]} malformed requests were answered 500; the seed was {seed}.")
    if set(during.statuses) != {200}:
        missed.append(f"A client beside them got the statuses {dict(during.statuses)}.")
    return Finding(figures=figures, missed=missed)


SCENARIOS: Mapping[str, Callable[[Stage], Finding]] = {
    "crowd": serve_beside_crowd,
    "documents": load_documents,
    "postgresql": stop_postgresql,
    "row": lock_a_row,
    "fact": contend_for_a_fact,
    "embedder": hang_the_embedder,
    "malformed": send_malformed_requests,
    "kills": kill_processes,
}


def observe(stage: Stage, address: Address, clients: Sequence[Asker]) -> tuple[Watch, Bystanders]:
    """Watch clients that work, health on both listeners, and memory, for the seconds of the stage."""
    main_probe = Asker(address.port, "GET", "/health/live")
    own_probe = Asker(address.health_port or address.port, "GET", "/health/live")
    clients[0].ask()
    memory_before = web_memory_mb()
    with (
        watching([main_probe], pause_seconds=PROBE_SECONDS) as main,
        watching([own_probe], pause_seconds=PROBE_SECONDS) as own,
        watching(clients, pause_seconds=0.01 * len(clients)) as work,
    ):
        time.sleep(stage.seconds)
    return work, Bystanders(live={"main": main, "own": own}, memory_mb=(memory_before, web_memory_mb()))


def web_memory_mb() -> int:
    """Return the memory of the web server's processes in MB, with shared pages by share. Its session is not ours."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) != os.getsid(0):
                total += process.memory_full_info().pss
    return round(total / 1e6)


def describe_bystanders(bystanders: Bystanders) -> dict[str, Any]:
    live = {f"live_on_{listener}_listener": watch.to_dict() for listener, watch in bystanders.live.items()}
    return {**live, "memory_mb": bystanders.memory_mb}


def judge_live(bystanders: Bystanders) -> list[str]:
    """Return a sentence for each listener that answered too late, or not at all."""
    found = {listener: watch.to_dict() for listener, watch in bystanders.live.items()}
    return [
        f"/health/live on the {listener} listener took {each['worst_ms']:.0f} ms at worst, statuses {each['statuses']}."
        for listener, each in found.items()
        if each["worst_ms"] > LIVE_TARGET_MS or set(each["statuses"]) != {200}
    ]


def judge_client(before: Watch, during: Watch) -> list[str]:
    was, became = before.to_dict()["p95_ms"], during.to_dict()["p95_ms"]
    if became <= max(P95_TARGET * was, QUIET_MS) and set(during.statuses) == {200}:
        return []
    return [f"A client's p95 went from {was} to {became} ms, statuses {dict(during.statuses)}."]


@contextmanager
def crowd_held(port: int, **counts: int) -> Iterator[None]:
    """Hold a crowd from a process of its own until the end of the block."""
    options = [part for kind, count in counts.items() for part in (f"--{kind}", str(count))]
    command = [sys.executable, "-m", "lab.chaos.crowds", str(port), *options]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)  # noqa: S603  our own
    try:
        if process.stdout is None or process.stdout.readline().strip() != "held":
            raise RuntimeError("The crowd could not be held.")
        yield
    finally:
        process.kill()
        process.communicate()

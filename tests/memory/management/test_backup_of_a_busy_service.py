"""A backup taken while clients write, restored into another folder, other servers and without any of the keys."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.embedded.paths import PROJECT
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer, broker_url, store_url
from tests.concurrency import PATIENCE_SECONDS
from tests.servers import make_temporary_paths
from tests.web_server import WebServer, database_url, serve

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

SECRETS = ("MEMORY_SECRET_KEY", "MEMORY_ENCRYPTION_KEYS", "MEMORY_TOMBSTONE_KEY")
EMBEDDER = {"EMBEDDING_PROVIDER": "tiny", "MEMORY_ALLOW_TINY_EMBEDDINGS": "1"}
PASSPHRASE = {"MEMORY_BACKUP_PASSPHRASE": "a passphrase of tests"}
QUESTIONS = ("What colour is the boiler?", "Who repairs the pump?", "the key of the cellar")
SAID = ("The boiler is green.", "Olga repairs the pump on Mondays.", "The key of the cellar hangs in the hall.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A client of one server with one key."""

    server: WebServer
    key: str

    def ask(self, method: str, path: str, **body: Any) -> Any:
        data = json.dumps({"agent_id": "assistant", **body}).encode() if body or method != "GET" else None
        answer = self.server.request(method, f"/api/v1{path}", key=self.key, body=data)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def recall(self) -> list[list[str]]:
        """Return the ids of what is recalled in one conversation, which nobody writes to."""
        only_here = {"conversation_id": "calm", "scopes": ["session"]}
        found = [self.ask("POST", "/recall", query=question, **only_here) for question in QUESTIONS]
        return [[result["id"] for result in each["results"]] for each in found]


@dataclass(slots=True, kw_only=True)
class Writer:
    """A client that says and injects something again and again; what was answered, with the time of each request."""

    caller: Caller
    number: int
    marked: list[tuple[float, float, str]] = field(default_factory=list)

    def write_until(self, stop: Event) -> None:
        conversation = f"busy-{self.number}"
        while not stop.is_set():
            item, asked_at = f"item:{len(self.marked)}", time.monotonic()
            turn = {"role": "user", "content": f"message {len(self.marked)} of {self.number}"}
            self.caller.ask("POST", f"/conversations/{conversation}/turns", turns=[turn])
            self.caller.ask("POST", f"/ledger/{conversation}/mark", item_key=item)
            self.marked.append((asked_at, time.monotonic(), item))


def manage(*arguments: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=os.environ | EMBEDDER | PASSPHRASE | environ,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def other_installation() -> Iterator[dict[str, str]]:
    """Yield the environment of servers without any data, and of a folder without any key."""
    with ExitStack() as stack:
        place = make_temporary_paths("agent-memory-test-restored-")
        stack.callback(shutil.rmtree, place.base, ignore_errors=True)
        postgres, valkey = PostgresServer(place), ValkeyServer(place)
        for server in (postgres, valkey):
            stack.callback(server.stop)
            server.start()
        (place.base / "data").mkdir()
        yield {
            "DATABASE_URL": postgres.url(),
            "REDIS_URL": store_url(valkey.socket()),
            "CELERY_BROKER_URL": broker_url(valkey.socket()),
            "MEMORY_DATA_DIR": str(place.base / "data"),
            **dict.fromkeys(SECRETS, ""),
        }


@contextmanager
def writing(caller: Caller, *, writers: int = 3) -> Iterator[list[Writer]]:
    """Write with several clients until the end of the block."""
    stop, them = Event(), [Writer(caller=caller, number=number) for number in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        running: list[Future[None]] = [pool.submit(writer.write_until, stop) for writer in them]
        try:
            yield them
        finally:
            stop.set()
        for each in running:
            each.result()


def wait_for_marks(writers: list[Writer], *, more: int = 5) -> None:
    wanted = [len(writer.marked) + more for writer in writers]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(len(writer.marked) < count for writer, count in zip(writers, wanted, strict=True)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fill(caller: Caller) -> str:
    """Store turns, a value, a mark and a sealed invocation; return the id of the invocation."""
    turns = [{"role": "user", "content": text} for text in SAID]
    caller.ask("POST", "/conversations/calm/turns", turns=turns)
    caller.ask("PUT", "/working-memory/calm", data={"scratchpad": "call Olga"})
    caller.ask("POST", "/ledger/calm/mark", item_key="skill:pump", value="v2")
    called = caller.ask(
        "POST",
        "/tool-invocations",
        conversation_id="calm",
        tool_name="search",
        tool_input={"query": "the sealed question"},
    )
    return str(called["id"])


def test_a_restored_service_answers_as_it_did_at_the_backup(account: Account, tmp_path: Path) -> None:
    key = issue_key(account, scopes=READ_WRITE_OPERATE).secret
    here = {"DATABASE_URL": database_url()}
    with serve() as server:
        caller = Caller(server=server, key=key)
        invocation = fill(caller)
        manage("run_job", "embed", environ=here)
        with writing(caller) as writers:
            wait_for_marks(writers)
            began_at = time.monotonic()
            manage("backup", str(tmp_path / "backup"), environ=here)
            ended_at = time.monotonic()
            wait_for_marks(writers)
        recalled = caller.recall()

    with other_installation() as there:
        restored = json.loads(manage("restore", str(tmp_path / "backup"), "--json", environ=there))
        with serve(EMBEDDER | there) as server:
            caller = Caller(server=server, key=key)

            assert not restored["lacks_keys"]
            assert caller.recall() == recalled
            assert recalled[0]
            opened = caller.ask("GET", f"/tool-invocations/{invocation}?agent_id=assistant")
            assert (opened["sealed"], opened["tool_input"]) == (False, {"query": "the sealed question"})
            assert caller.ask("GET", "/working-memory/calm?agent_id=assistant") == {"scratchpad": "call Olga"}
            assert caller.ask("GET", "/ledger/calm?agent_id=assistant") == {"skill:pump": "v2"}
            for writer in writers:
                check_moment(caller, writer, began_at=began_at, ended_at=ended_at)


def check_moment(caller: Caller, writer: Writer, *, began_at: float, ended_at: float) -> None:
    """Check that the ledger has every mark from before the backup, none from after it, and no gap in between."""
    ledger = caller.ask("GET", f"/ledger/busy-{writer.number}?agent_id=assistant")
    before = {item for _, answered_at, item in writer.marked if answered_at < began_at}
    after = {item for asked_at, _, item in writer.marked if asked_at > ended_at}

    assert before <= set(ledger)
    assert after.isdisjoint(ledger)
    assert set(ledger) == {f"item:{number}" for number in range(len(ledger))}

    path, turns = f"/conversations/busy-{writer.number}/turns?agent_id=assistant&page_size=200", []
    while path:
        page = caller.ask("GET", path)
        turns += page["results"]
        path = (page["next"] or "").partition("/api/v1")[2]
    # each mark follows its turn
    assert len(ledger) <= len(turns) <= len(ledger) + 1

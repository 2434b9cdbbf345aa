"""Exports read from a real streaming replica, or all of it from the primary."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction

from lab.chaos.servers import suspended
from memory.models import Account, Transfer
from memory.owner import Owner
from memory.services.transfer import transfers
from memory.services.transfer.export import export_archive
from memory.services.transfer.selection import TransferScope
from memory_project.postgresql import replicas as module
from memory_project.postgresql.replicas import Replica
from tests.concurrency import PATIENCE_SECONDS, wait_until
from tests.embedding_server import EmbeddingServer
from tests.memory.facts import know
from tests.memory.services.transfer.test_transfers import request, run_job
from tests.memory.transfers import export_bytes, fill_account
from tests.memory.turns import say, turn
from tests.replica import ReplicaServer, with_replica
from tests.replica import registered as registered
from tests.replica import replica as replica
from tests.replica import replica_server as replica_server

pytestmark = [with_replica, pytest.mark.timeout(600)]

COUNT_EXPORTS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND query LIKE '%"transfer_%'
"""
READER = "export_reader"
SCOPES: list[Any] = [{}, {"user_id": "ana"}, {"agent_id": "assistant"}]


@pytest.fixture
def standby(replica: Replica, registered: ReplicaServer, monkeypatch: pytest.MonkeyPatch) -> ReplicaServer:
    # tests beside it write as much as the replica has to replay
    monkeypatch.setattr(module, "MAX_WAIT_SECONDS", PATIENCE_SECONDS)
    # and connections to it are slow to open beside them
    monkeypatch.setattr(module, "CONNECT_SECONDS", PATIENCE_SECONDS)
    return registered


@pytest.fixture
def limited_reader(standby: ReplicaServer) -> Iterator[None]:
    """The replica's role may read no table after `memories`: an archive from there breaks off in its middle."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {READER} LOGIN")
        cursor.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}")
        cursor.execute(f"REVOKE SELECT ON persistent_contexts, reasoning_traces, turn_records FROM {READER}")
    given: Any = connections["replica_1"].settings_dict
    given["USER"], user = READER, given["USER"]
    try:
        yield
    finally:
        given["USER"] = user
        with connection.cursor() as cursor:
            cursor.execute(f"DROP OWNED BY {READER}")
            cursor.execute(f"DROP ROLE {READER}")


class Target(BytesIO):
    """An archive that notes which servers are read from while it is written, and once acts within."""

    def __init__(self, standby: ReplicaServer, act: Callable[[], Any] = lambda: None) -> None:
        super().__init__()
        self.standby, self.act, self.servers, self.restarts = standby, act, set[str](), 0

    def write(self, data: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute(COUNT_EXPORTS)
            if cursor.fetchone()[0]:
                self.servers.add("primary")
            elif "replica" not in self.servers and is_read_from(self.standby):
                self.servers.add("replica")
                self.act()
        return super().write(data)

    def restart(self) -> None:
        self.restarts += 1
        self.truncate(self.seek(0))

    def export(self, owner: Owner, **scope: str) -> bytes:
        export_archive(TransferScope(account_id=owner.account_id, **scope), self, restart=self.restart)
        return self.getvalue()


def is_read_from(standby: ReplicaServer) -> bool:
    try:
        return bool(standby.execute(COUNT_EXPORTS)[0])
    except psycopg.OperationalError:
        return False


def fill(owner: Owner) -> None:
    for user_id in ("ana", "ben"):
        say(replace(owner, user_id=user_id), turn("I like figs."), conversation_id=f"talk-{user_id}")
        know(replace(owner, user_id=user_id), f"{user_id} likes figs.")


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_an_archive_is_read_from_the_replica_and_equals_that_of_the_primary(
    owner: Owner, standby: ReplicaServer, scope: Any
) -> None:
    fill(owner)
    target = Target(standby)

    archive = target.export(owner, **scope)

    assert (target.servers, target.restarts) == ({"replica"}, 0)
    assert archive == export_bytes(owner.account_id, **scope)


@pytest.mark.slow
def test_archives_of_every_kind_of_row_are_the_same_from_both(
    account: Account, standby: ReplicaServer, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_account(account, monkeypatch)
    targets = [Target(standby) for _ in SCOPES]

    archives = [
        target.export(Owner(account_id=account.id), **scope) for target, scope in zip(targets, SCOPES, strict=True)
    ]

    assert [(target.servers, target.restarts) for target in targets] == [({"replica"}, 0)] * 3
    assert archives == [export_bytes(account.id, **scope) for scope in SCOPES]


def test_a_replica_that_is_behind_is_left_out(
    owner: Owner, standby: ReplicaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAIT_SECONDS", 0.3)
    standby.pause()
    try:
        fill(owner)
        target = Target(standby)
        archive = target.export(owner)
    finally:
        standby.resume()

    assert (target.servers, target.restarts) == ({"primary"}, 0)
    assert archive == export_bytes(owner.account_id)


def test_an_export_waits_a_little_for_the_replica(owner: Owner, standby: ReplicaServer) -> None:
    standby.pause()
    fill(owner)
    target, resuming = Target(standby), Timer(0.5, standby.resume)

    resuming.start()
    archive = target.export(owner)
    resuming.join()

    assert target.servers == {"replica"}
    assert archive == export_bytes(owner.account_id)


def test_an_export_that_the_replica_cancels_begins_again_at_the_primary(owner: Owner, standby: ReplicaServer) -> None:
    fill(owner)
    standby.execute("ALTER SYSTEM SET max_standby_streaming_delay = '50ms'")
    standby.execute("SELECT pg_reload_conf()")

    def conflict() -> None:
        """Have the replica replay a lock on a table that the export reads."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE agent_short_term_memories IN ACCESS EXCLUSIVE MODE")
        wait_until(lambda: not is_read_from(standby))

    target = Target(standby, conflict)
    try:
        archive = target.export(owner, user_id="ana")
    finally:
        standby.execute("ALTER SYSTEM RESET max_standby_streaming_delay")
        standby.execute("SELECT pg_reload_conf()")

    assert (target.servers, target.restarts) == ({"replica", "primary"}, 1)
    assert archive == export_bytes(owner.account_id, user_id="ana")


@pytest.mark.slow
def test_an_export_whose_replica_vanishes_begins_again_at_the_primary(owner: Owner, standby: ReplicaServer) -> None:
    fill(owner)
    target = Target(standby, standby.server.stop)
    try:
        archive = target.export(owner)
        without = Target(standby).export(owner)
    finally:
        standby.server.start()

    assert (target.servers, target.restarts) == ({"replica", "primary"}, 1)
    assert archive == without == export_bytes(owner.account_id)


@pytest.mark.slow
def test_an_export_whose_replica_hangs_begins_again_at_the_primary(owner: Owner, standby: ReplicaServer) -> None:
    fill(owner)
    leader = psutil.Process(standby.server.pid())
    with ExitStack() as hanging:
        target = Target(standby, lambda: hanging.enter_context(suspended(leader)))
        began = time.monotonic()
        archive = target.export(owner)
        took = time.monotonic() - began

    assert (target.servers, target.restarts) == ({"replica", "primary"}, 1)
    assert archive == export_bytes(owner.account_id)
    assert took < PATIENCE_SECONDS


def test_a_job_keeps_no_part_of_an_archive_that_broke_off(
    owner: Owner, standby: ReplicaServer, limited_reader: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "PART_BYTES", 500)
    fill(owner)
    export = request(owner)

    run = run_job(owner.account_id)
    export.refresh_from_db()

    archive = b"".join(transfers.read_parts(export))
    assert (run.status, export.status, export.size_bytes) == ("completed", Transfer.Status.COMPLETED, len(archive))
    assert archive == export_bytes(owner.account_id, include_traces=False)


def test_a_command_writes_no_part_of_an_archive_that_broke_off(
    owner: Owner, standby: ReplicaServer, limited_reader: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(owner)
    path = tmp_path / "archive.zip"

    call_command("export_archive", "--account", "workshop", "--output", str(path), "--json")

    assert path.read_bytes() == export_bytes(owner.account_id)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["size_bytes"] == path.stat().st_size

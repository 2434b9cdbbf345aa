"""The environment of the embedded servers: what is configured is used, what is missing is embedded.

DATABASE_URL        missing: the embedded PostgreSQL, whose superuser DATABASE_OWNER_URL then names
REDIS_URL           missing: the embedded Valkey
CELERY_BROKER_URL   missing: the same server as REDIS_URL, unless that is a Redis Cluster
"""

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from memory_project.embedded.daemons import Daemon
from memory_project.embedded.errors import EmbeddedServerError, os_errors_as_sentences
from memory_project.embedded.paths import data_folder, make_data_folder, make_server_paths, secrets_folder
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer, broker_url, store_url
from memory_project.embedded.servers import SharedServers
from memory_project.files import scratch_file
from memory_project.redis_urls import broker_url as spell_for_broker

DEFAULT_SOCKET_PARENT = "/tmp"  # noqa: S108  the folder in it is checked before use
SERVERLESS_COMMANDS = frozenset(
    (
        "help",
        "version",
        "collectstatic",
        "findstatic",
        "diffsettings",
        "spectacular",
        "compilemessages",
        "describe_settings",
    )
)
"""Commands of manage.py that need no database. A new command need not be listed: it gets its servers."""
RESTORE = "restore"
"""The command that makes an installation where there is none; all others are refused there.

It brings the secrets of the installation: its first start may be with a database elsewhere.
"""
DRY_RUN = "--dry-run"

Environ = MutableMapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret that is generated once and stored next to the data, unless its variable gives one."""

    variable: str
    file_name: str
    make: Callable[[], str]


SECRETS = (
    Secret(variable="MEMORY_SECRET_KEY", file_name="secret_key", make=lambda: secrets.token_urlsafe(50)),
    Secret(variable="MEMORY_ENCRYPTION_KEYS", file_name="encryption_keys", make=lambda: Fernet.generate_key().decode()),
    Secret(variable="MEMORY_TOMBSTONE_KEY", file_name="tombstone_key", make=lambda: secrets.token_urlsafe(50)),
)


@contextmanager
def servers_for_command(arguments: Sequence[str], environ: Environ) -> Iterator[None]:
    """Run `manage.py` with the servers that the command needs, found or started, for as long as it runs.

    Raises EmbeddedServerError, also for a command that would find an empty database in a folder without an
    installation, which somebody mistyped or whose setting a cron job lacks.
    """
    wants_help = any(argument in {"--help", "-h", "--version"} for argument in arguments[1:])
    if len(arguments) < 2 or wants_help or arguments[1] in SERVERLESS_COMMANDS:
        yield
        return
    if is_trial_restore(arguments) and not has_installation(environ):
        # it verifies the backup, which needs no server, and there is nothing that it would replace
        yield
        return
    if arguments[1] != RESTORE:
        require_installation(environ)
    servers = acquire_servers(environ, brings_secrets=arguments[1] == RESTORE, announce=sys.stderr.write)
    try:
        yield
    finally:
        if servers is not None:
            servers.release()


def is_trial_restore(arguments: Sequence[str]) -> bool:
    """Return whether the command is `restore --dry-run`, also where the option is shortened."""
    return arguments[1] == RESTORE and any(
        len(argument) > len("--") and DRY_RUN.startswith(argument) for argument in arguments[2:]
    )


def has_installation(environ: Mapping[str, str]) -> bool:
    """Return whether there is a database: one that the environment names, or one in the data folder."""
    return "DATABASE_URL" in environ or (data_folder(environ) / PostgresServer.folder).exists()


def require_installation(environ: Mapping[str, str]) -> None:
    """Raise EmbeddedServerError where there is no database. Makes nothing."""
    with os_errors_as_sentences():
        if not has_installation(environ):
            raise EmbeddedServerError(
                f"Nothing is installed in {data_folder(environ)}. Set MEMORY_DATA_DIR to the folder of the "
                "installation, or make one: `make up`, `agent-memory up`, or the command `restore`."
            )


def acquire_servers(
    environ: Environ, *, brings_secrets: bool = False, announce: Callable[[str], object] = lambda _text: None
) -> SharedServers | None:
    """Share every server that the environment does not name, and name it there; return None if it names all.

    Also creates the data folder and the secrets that are stored there. With `brings_secrets`, the caller replaces them
    by those of the installation. `announce` is told if there was no installation in the data folder, so that nobody
    who mistyped the folder looks for the data in a new one. Raises EmbeddedServerError.
    """
    with os_errors_as_sentences():
        folder = data_folder(environ)
        make_data_folder(folder)
        environ["MEMORY_DATA_DIR"] = str(folder)
        environ["MEMORY_SECRETS_DIR"] = str(secrets_folder(environ))
        provide_secrets(environ, may_make=brings_secrets or "DATABASE_URL" not in environ)
        needs_postgres, needs_valkey = "DATABASE_URL" not in environ, "REDIS_URL" not in environ
        _let_broker_follow(environ)
        if not (needs_postgres or needs_valkey):
            return None
        place = make_server_paths(folder, socket_parent=Path(environ.get("MEMORY_SOCKET_DIR") or DEFAULT_SOCKET_PARENT))
        servers: list[Daemon] = []
        if needs_postgres:
            postgres = PostgresServer(place)
            servers.append(postgres)
            if not (place.base / postgres.folder).exists():
                announce(f"A new installation is made in {folder}, as there is none.\n")
            environ["DATABASE_URL"] = postgres.application_url()
            environ["DATABASE_OWNER_URL"] = postgres.url()
        if needs_valkey:
            valkey = ValkeyServer(place)
            servers.append(valkey)
            environ["REDIS_URL"] = store_url(valkey.socket())
            environ.setdefault("CELERY_BROKER_URL", broker_url(valkey.socket()))
        shared = SharedServers(place, servers)
        shared.acquire()
        return shared


def provide_secrets(environ: Environ, *, may_make: bool) -> None:
    """Generate the secrets that are missing. Raises EmbeddedServerError where other machines may have them."""
    folder = secrets_folder(environ)
    missing = [
        secret for secret in SECRETS if not (environ.get(secret.variable) or (folder / secret.file_name).exists())
    ]
    if missing and not may_make:
        raise EmbeddedServerError(
            "DATABASE_URL names a database that other machines may use, with the same secrets: set "
            f"{', '.join(secret.variable for secret in missing)}, or MEMORY_SECRETS_DIR to a folder that has "
            f"{', '.join(secret.file_name for secret in missing)}. If this is the first machine, make them once by "
            "`python -m memory_project.make_secrets FOLDER`."
        )
    for secret in missing:
        make_secret(secret, folder)


def make_secret(secret: Secret, folder: Path) -> None:
    """Generate a secret, whole or not at all, unless the folder has it. A folder that is missing is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = folder / secret.file_name
    # complete or not there at all, and the first one stays where two start at once
    with scratch_file(kept, secret.make().encode()) as scratch, suppress(FileExistsError):
        os.link(scratch, kept)


def _let_broker_follow(environ: Environ) -> None:
    """Use a configured Redis as the broker too, in kombu's spelling of its socket."""
    if "REDIS_URL" not in environ or "CELERY_BROKER_URL" in environ:
        return
    environ["CELERY_BROKER_URL"] = spell_for_broker(environ["REDIS_URL"])

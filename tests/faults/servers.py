"""Servers of a proof's own that keep what they hold when they are stopped, and may be started again."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from secrets import token_urlsafe

from cryptography.fernet import Fernet

from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer, broker_url, store_url
from tests.servers import make_temporary_paths

PREFIX = "agent-memory-fault-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Both of them, started."""

    postgres: PostgresServer
    valkey: ValkeyServer


@contextmanager
def durable_servers(**variables: str) -> Iterator[Servers]:
    """Start servers, name them in the environment along with these variables, and delete them at the end."""
    with ExitStack() as stack:
        # as people run them: what was written is there after a stop
        place = replace(make_temporary_paths(PREFIX), dies_with_parent=False)
        stack.callback(shutil.rmtree, place.base, ignore_errors=True)
        servers = Servers(postgres=PostgresServer(place), valkey=ValkeyServer(place))
        for server in (servers.postgres, servers.valkey):
            stack.callback(server.stop)
            server.start()
        data = place.base / "data"
        data.mkdir()
        os.environ |= {
            "DATABASE_URL": servers.postgres.url(),
            "REDIS_URL": store_url(servers.valkey.socket()),
            "CELERY_BROKER_URL": broker_url(servers.valkey.socket()),
            "MEMORY_DATA_DIR": str(data),
            "MEMORY_SECRET_KEY": token_urlsafe(32),
            "MEMORY_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
            "MEMORY_TOMBSTONE_KEY": token_urlsafe(32),
            **variables,
        }
        yield servers

"""Settings of the sessions with PostgreSQL: most of all of them, time limits of those of web processes.

A session gets them when it begins. A pooler in transaction mode gives each transaction another session, and refuses
options at the start: there, the role has them as its defaults (`store_role_settings`).
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import environ
import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from psycopg import sql

# custom plans: a generic one ignores how many rows an owner has; iterative scans: a filter never costs results
SESSION_SETTINGS: Mapping[str, str] = {
    "idle_in_transaction_session_timeout": "5min",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "hnsw.max_scan_tuples": "200000",
    "ivfflat.iterative_scan": "relaxed_order",
    "ivfflat.probes": "10",
}
UNLIMITED: Mapping[str, str] = {"statement_timeout": "0", "lock_timeout": "0"}
"""The limits of jobs and commands, whose statements may take hours, whatever their role has as its defaults."""
HMAC_BLOCK_BYTES = 64

FIND_ROLE_SETTINGS = """
SELECT setconfig FROM pg_db_role_setting
WHERE setrole = current_user::regrole AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def format_options(given: Mapping[str, str]) -> str:
    """Return the settings as libpq takes them when a session begins."""
    return " ".join(f"-c {name}={value}" for name, value in given.items())


def session_options(tombstone_key: str) -> str:
    """Return the options of sessions of jobs, commands and callers in Python."""
    return format_options({**SESSION_SETTINGS, **UNLIMITED, **mark_settings(tombstone_key)})


def mark_settings(tombstone_key: str) -> dict[str, str]:
    """Return the setting with which the database finds the marks of erased users: the two keys of the HMAC, padded.

    Sessions behind a pooler do not have it: who holds the pooler's role could read it from the catalog.
    """
    if not tombstone_key:
        return {}
    key = tombstone_key.encode()
    padded = (hashlib.sha256(key).digest() if len(key) > HMAC_BLOCK_BYTES else key).ljust(HMAC_BLOCK_BYTES, b"\0")
    return {"memory.mark_keys": "".join(bytes(byte ^ pad for byte in padded).hex() for pad in (0x36, 0x5C))}


def web_settings() -> dict[str, str]:
    """Return the settings of a session of a web process."""
    limits = {
        "statement_timeout": settings.STATEMENT_TIMEOUT_SECONDS,
        "lock_timeout": settings.LOCK_TIMEOUT_SECONDS,
    }
    return {**SESSION_SETTINGS, **{name: str(round(seconds * 1_000)) for name, seconds in limits.items()}}


def prepare_web_connections() -> None:
    """Limit the statements of this process and those forked from it, and connect them to the pooler if there is one.

    Call it before the first connection. Raises ImproperlyConfigured if the pooler's role lacks its settings.
    """
    limited = format_options({**web_settings(), **mark_settings(settings.TOMBSTONE_KEY)})
    replicas: list[Any] = [each for alias, each in settings.DATABASES.items() if alias != "default"]
    for replica in replicas:
        replica["OPTIONS"]["options"] = limited
    database: Any = settings.DATABASES["default"]
    if not settings.DATABASE_POOLER_URL:
        database["OPTIONS"]["options"] = limited
        return
    check_role_settings()
    given = environ.Env.db_url_config(settings.DATABASE_POOLER_URL)
    del database["OPTIONS"]["options"]
    # refused as well
    database["OPTIONS"] |= given.pop("OPTIONS", {})
    database |= given | {"ENGINE": database["ENGINE"], "IS_POOLED": True}


def store_role_settings() -> None:
    """Give the pooler's role the settings of web sessions as its defaults in this database."""
    with connect_to_pooler() as session:
        # loads the extension, or a role that is no superuser may not set what it defines
        session.execute("SELECT '[1]'::vector")
        for name, value in web_settings().items():
            statement = sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET {} = {}").format(
                sql.Identifier(session.info.dbname), sql.SQL(name), sql.Literal(value)
            )
            session.execute(statement)
            # the pooler goes on with this session, which began without
            session.execute(sql.SQL("SET {} = {}").format(sql.SQL(name), sql.Literal(value)))


def check_role_settings() -> None:
    """Raise ImproperlyConfigured if the pooler's role lacks settings, or the pooler cannot be asked."""
    try:
        with connect_to_pooler() as session:
            found = session.execute(FIND_ROLE_SETTINGS).fetchone()
    except psycopg.OperationalError as err:
        raise ImproperlyConfigured(f"DATABASE_POOLER_URL cannot be used: {str(err).strip()}") from err
    stored = dict(line.split("=", 1) for line in (found[0] if found else ()))
    if missing := [name for name, value in web_settings().items() if stored.get(name) != value]:
        raise ImproperlyConfigured(
            f"the role in DATABASE_POOLER_URL lacks the settings {', '.join(missing)}, which searches and limits need: "
            "run `manage.py migrate`, which stores them, then RECONNECT in the pooler's console"
        )


def connect_to_pooler() -> "psycopg.Connection[Any]":
    """Open a connection to the pooler for one transaction."""
    given = environ.Env.db_url_config(settings.DATABASE_POOLER_URL)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    parameters = {name: given[key] for name, key in names.items() if given.get(key)} | given.get("OPTIONS", {})
    return psycopg.connect(**{"connect_timeout": 3, **parameters}, prepare_threshold=None)

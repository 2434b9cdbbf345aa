"""URLs of Redis behind Sentinels, in the spellings of those who connect.

    redis+sentinel://user:password@host1:26379,host2:26379/name-of-the-master/0?sentinel_password=…

The user and the password are those of Redis. There is no scheme for TLS: the broker would not speak it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from memory_project.env import SettingError

SENTINEL_SCHEME = "redis+sentinel"
CLUSTER_SCHEMES = ("redis+cluster", "rediss+cluster", "redis-cluster", "rediss-cluster", "valkey+cluster")
"""Schemes by which other programs name a Redis Cluster. Its nodes say themselves that they are of one."""
NO_CLUSTER = (
    "must not name a Redis Cluster, which is not supported: a mark in the ledger changes keys of different slots "
    "together, and Celery has no transport for one. Use a single Redis or Valkey, with replicas behind Sentinels "
    "(redis+sentinel://…)."
)
DEFAULT_PORT = 26_379


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelAddress:
    """The Sentinels to ask for the master called `service`, and how to log in to both."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int
    username: str
    password: str
    sentinel_username: str
    sentinel_password: str

    def redis_options(self) -> dict[str, Any]:
        """Return what a connection to Redis takes besides its address."""
        login = {"username": self.username, "password": self.password}
        return {"db": self.database} | _without_empty(login)

    def sentinel_options(self) -> dict[str, Any]:
        """Return what a connection to a Sentinel takes besides its address."""
        login = {"username": self.sentinel_username, "password": self.sentinel_password}
        return _without_empty(login)

    def cache_location(self) -> str:
        """Return the URL for django-redis, whose host is the name of the master."""
        return f"redis://{self._login()}{self.service}/{self.database}"

    def broker_url(self) -> str:
        """Return the URL for Celery, which takes the name of the master apart (`master_name`)."""
        return ";".join(f"sentinel://{self._login()}{host}:{port}/{self.database}" for host, port in self.sentinels)

    def _login(self) -> str:
        if not (self.username or self.password):
            return ""
        return f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@"


def parse_sentinels(url: str) -> SentinelAddress | None:
    """Return the Sentinels that a URL names; None for the URL of a Redis. Raises SettingError."""
    parts = urlsplit(url)
    if parts.scheme != SENTINEL_SCHEME:
        return None
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    service, _, database = parts.path.strip("/").partition("/")
    asked = dict(parse_qsl(parts.query))
    if not service or not (database or "0").isdecimal() or set(asked) - {"sentinel_username", "sentinel_password"}:
        raise SettingError(
            "REDIS_URL must name the Sentinels and their master: redis+sentinel://user:password@host1:26379,host2:26379/"
            "name-of-the-master/0?sentinel_password=…, where all but the hosts and the name may be left out."
        )
    if service != service.lower():
        # a part of a URL for the cache, in which capitals are lost
        raise SettingError(f"REDIS_URL must name a master in small letters, not {service!r}.")
    return SentinelAddress(
        sentinels=tuple(_split_address(host) for host in hosts.split(",")),
        service=service,
        database=int(database or 0),
        username=unquote(username),
        password=unquote(password),
        sentinel_username=asked.get("sentinel_username", ""),
        sentinel_password=asked.get("sentinel_password", ""),
    )


def cache_settings(url: str, *, timeout_seconds: float) -> dict[str, Any]:
    """Return the settings of Django's cache in this Redis."""
    options: dict[str, Any] = {
        "REDIS_CLIENT_CLASS": "memory_project.redis.ImpatientRedis",
        "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
        "SOCKET_TIMEOUT": timeout_seconds,
        "SOCKET_CONNECT_TIMEOUT": timeout_seconds,
    }
    if (address := parse_sentinels(url)) is not None:
        timeouts = {"socket_timeout": timeout_seconds, "socket_connect_timeout": timeout_seconds}
        options |= {
            "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
            "SENTINELS": list(address.sentinels),
            "SENTINEL_KWARGS": address.sentinel_options() | timeouts,
        }
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": url if address is None else address.cache_location(),
        "KEY_PREFIX": "cache",
        "OPTIONS": options,
    }


def broker_url(url: str) -> str:
    """Return the URL of this Redis in Celery's spelling."""
    if (address := parse_sentinels(url)) is not None:
        return address.broker_url()
    if not url.startswith("unix://"):
        return url
    return re.sub(r"([?&])db=", r"\1virtual_host=", url.replace("unix://", "redis+socket://", 1))


def broker_options(url: str) -> dict[str, Any]:
    """Return the options with which Celery finds the master behind Sentinels; none for a Redis."""
    address = parse_sentinels(url)
    if address is None:
        return {}
    return {"master_name": address.service, "sentinel_kwargs": address.sentinel_options()}


def _split_address(text: str) -> tuple[str, int]:
    parts: SplitResult = urlsplit(f"//{text}")
    try:
        return parts.hostname or "", parts.port or DEFAULT_PORT
    except ValueError:
        raise SettingError(f"REDIS_URL must name Sentinels as host:port, not {text!r}.") from None


def _without_empty(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}

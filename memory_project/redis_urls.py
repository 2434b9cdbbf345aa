"""URLs of Redis behind Sentinels, and of a Redis Cluster, in the spellings of those who connect.

    redis+sentinel://user:password@host1:26379,host2:26379/name-of-the-master/0?sentinel_password=…
    redis+cluster://user:password@host1:6379,host2:6379/name-of-the-installation
    rediss+cluster://user:password@host1:6379,host2:6379/name-of-the-installation?ssl_ca_certs=…

The user and the password are those of Redis. Sentinels have no scheme for TLS: the broker would not speak it. A cluster
is no broker.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from memory_project.env import SettingError

SENTINEL_SCHEME = "redis+sentinel"
CLUSTER_SCHEME = "redis+cluster"
ENCRYPTED_CLUSTER_SCHEME = "rediss+cluster"
CLUSTER_SCHEMES = (CLUSTER_SCHEME, ENCRYPTED_CLUSTER_SCHEME)
FOREIGN_CLUSTER_SCHEMES = ("redis-cluster", "rediss-cluster", "valkey+cluster")
"""Schemes by which other programs name a Redis Cluster."""
OTHER_SPELLING = "must name a Redis Cluster as redis+cluster://host1:6379,host2:6379, or with rediss+cluster for TLS."
NO_CLUSTER_AS_BROKER = (
    "must not name a Redis Cluster: Celery has no transport for one. Name another broker, such as RabbitMQ "
    "(amqp://user:password@host:5672//) or a single Redis or Valkey (redis://host:6379/0)."
)
BROKER_WANTED = (
    "CELERY_BROKER_URL must be set where REDIS_URL names a Redis Cluster, for which Celery has no transport: name "
    "another broker, such as RabbitMQ (amqp://user:password@host:5672//) or a single Redis or Valkey "
    "(redis://host:6379/0). It holds nothing that must be kept."
)
DEFAULT_SENTINEL_PORT = 26_379
DEFAULT_PORT = 6_379
DEFAULT_NAME = "agent-memory"
NAME = re.compile(r"[a-z][a-z0-9-]*")


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
        sentinels=tuple(_split_address(host, "Sentinels", DEFAULT_SENTINEL_PORT) for host in hosts.split(",")),
        service=service,
        database=int(database or 0),
        username=unquote(username),
        password=unquote(password),
        sentinel_username=asked.get("sentinel_username", ""),
        sentinel_password=asked.get("sentinel_password", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """Nodes of a Redis Cluster, the name that this installation's keys begin with, and what a connection takes."""

    nodes: tuple[tuple[str, int], ...]
    name: str
    is_encrypted: bool
    options: Mapping[str, Any]


def is_cluster(url: str) -> bool:
    """Return True for the URL of a Redis Cluster."""
    return urlsplit(url).scheme in CLUSTER_SCHEMES


def parse_cluster(url: str) -> ClusterAddress:
    """Return what the URL of a Redis Cluster says. Raises SettingError."""
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    name, asked = parts.path.strip("/") or DEFAULT_NAME, dict(parse_qsl(parts.query))
    is_encrypted = parts.scheme == ENCRYPTED_CLUSTER_SCHEME
    allowed = {"ssl_ca_certs"} if is_encrypted else set()
    if not hosts or not NAME.fullmatch(name) or set(asked) - allowed:
        raise SettingError(
            "REDIS_URL must name nodes of the Redis Cluster, and may name the installation in small letters, digits, "
            "and hyphens: redis+cluster://user:password@host1:6379,host2:6379/agent-memory. A cluster has no numbered "
            "databases. With rediss+cluster, ?ssl_ca_certs=… may name a file of certificates."
        )
    return ClusterAddress(
        nodes=tuple(_split_address(host, "nodes", DEFAULT_PORT) for host in hosts.split(",")),
        name=name,
        is_encrypted=is_encrypted,
        options=_without_empty({"username": unquote(username), "password": unquote(password)}) | asked,
    )


def cache_settings(url: str, *, timeout_seconds: float) -> dict[str, Any]:
    """Return the settings of Django's cache in this Redis. Raises SettingError."""
    options: dict[str, Any] = {
        "REDIS_CLIENT_CLASS": "memory_project.redis.ImpatientRedis",
        "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
        "SOCKET_TIMEOUT": timeout_seconds,
        "SOCKET_CONNECT_TIMEOUT": timeout_seconds,
    }
    location: str | list[str] = url
    if is_cluster(url):
        parse_cluster(url)
        options["CONNECTION_FACTORY"] = "memory_project.redis_cluster.CacheConnections"
        # a text with commas would be several URLs
        location = [url]
    elif (address := parse_sentinels(url)) is not None:
        location = address.cache_location()
        timeouts = {"socket_timeout": timeout_seconds, "socket_connect_timeout": timeout_seconds}
        options |= {
            "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
            "SENTINELS": list(address.sentinels),
            "SENTINEL_KWARGS": address.sentinel_options() | timeouts,
        }
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": location,
        "KEY_PREFIX": "cache",
        "OPTIONS": options,
    }


def broker_url(url: str) -> str:
    """Return the URL of this Redis in Celery's spelling. Raises SettingError for a Redis Cluster."""
    if is_cluster(url):
        raise SettingError(BROKER_WANTED)
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


def _split_address(text: str, what: str, port: int) -> tuple[str, int]:
    parts: SplitResult = urlsplit(f"//{text}")
    try:
        return parts.hostname or "", parts.port or port
    except ValueError:
        raise SettingError(f"REDIS_URL must name {what} as host:port, not {text!r}.") from None


def _without_empty(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}

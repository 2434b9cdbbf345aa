"""Fixtures of all tests."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from memory import conf
from memory.models import Account
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.embedding.serving import CACHE
from memory.tiers.access_log import UNREPORTED
from memory_project import redis
from memory_project.postgresql import hangs
from tests import template
from tests.api_client import ServiceClient
from tests.concurrency import start_concurrently as start_concurrently
from tests.dripping_server import dripping_server as dripping_server
from tests.embedding_server import embedding_server as embedding_server
from tests.embedding_server import two_topics as two_topics
from tests.emptying import close_broken_connections, empty_after_commits
from tests.http_server import httpserver as httpserver
from tests.language_model_server import language_model_server as language_model_server
from tests.pooler import pooler_url as pooler_url
from tests.properties import register_profiles
from tests.redis_elsewhere import redis_away
from tests.reranker_server import reranker_server as reranker_server
from tests.servers import has_database
from tests.web_server import shared_server as shared_server

register_profiles()

SLOW_TIMEOUT_SECONDS = 600
"""The limit of slow tests that set none: on a busy machine they take several times as long."""


def pytest_configure() -> None:
    empty_after_commits()
    # else each client lists all static files before its first request, which takes longer than most tests
    settings.WHITENOISE_AUTOREFRESH = True
    # else each log-in with a password takes longer than most tests, as it should
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    wait_for_a_busy_machine()
    # while thousands of tests are collected there is nothing to collect, and a quarter of the time goes into looking
    gc.disable()


def wait_for_a_busy_machine() -> None:
    """Give pools, Redis, recall and silent servers time, since a busy machine is slow. Tests of timeouts set theirs."""
    database: Any = settings.DATABASES["default"]
    database["OPTIONS"]["pool"] |= {"max_size": 25, "timeout": 30}
    settings.REDIS_TIMEOUT_SECONDS = 30.0
    cache: Any = settings.CACHES["default"]
    cache["OPTIONS"] |= {"SOCKET_TIMEOUT": 30.0, "SOCKET_CONNECT_TIMEOUT": 30.0}
    conf.RECALL_DEADLINE_MS = 60_000
    hangs.SILENCE_SECONDS, hangs.PROBE_SECONDS = 10.0, 10


@pytest.fixture(autouse=True)
def embedding_state() -> Iterator[None]:
    """The configured embedding model serves, and no statement asks whether, unless a test stores that it does not."""
    conf.EMBEDDING_STATE_SECONDS = 3_600
    CACHE.remember(None)
    yield
    CACHE.remember(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a database and what draws examples, for targets to select by; give slow tests their time."""
    for item in items:
        if has_database(item):
            item.add_marker("database")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    try:
        yield
    finally:
        close_broken_connections()


def pytest_collection_finish() -> None:
    gc.freeze()
    # the defaults look for cycles dozens of times a test
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Databases are copied, not migrated each."""
    template.wait_until_made()
    connection.settings_dict["TEST"]["TEMPLATE"] = template.NAME


@pytest.fixture
def account(db: None) -> Account:
    return Account.objects.create(name="workshop")


@pytest.fixture
def stranger(db: None) -> Account:
    """Another account, which nothing may reach across to."""
    return Account.objects.create(name="strangers")


@pytest.fixture
def owner(account: Account) -> Owner:
    return Owner(account_id=account.id, agent_id="assistant")


@pytest.fixture
def api_key(account: Account) -> str:
    """A key of the account for everything but deep replay, bound to no agent."""
    return issue_key(account, scopes=READ_WRITE_OPERATE).secret


@pytest.fixture
def client_for() -> Callable[[str], ServiceClient]:
    """The client of a key: `client_for(api_key).get("/agents")`."""
    return ServiceClient


@pytest.fixture
def api(api_key: str) -> ServiceClient:
    """The client of `api_key`."""
    return ServiceClient(api_key)


@pytest.fixture
def bound_api(account: Account) -> ServiceClient:
    """The client of a key that is bound to the agent `assistant`."""
    return ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="assistant").secret)


@pytest.fixture
def stranger_api(stranger: Account) -> ServiceClient:
    """The client of another account."""
    return ServiceClient(issue_key(stranger, scopes=READ_WRITE_OPERATE).secret)


@pytest.fixture
def just_migrated(db: None) -> Iterator[None]:
    """An installation too new to expect a worker, however long the tests have run."""
    migration = MigrationRecorder.Migration.objects.create(app="tests", name="just now", applied=timezone.now())
    yield
    migration.delete()


@pytest.fixture
def empty_redis() -> Iterator[None]:
    """This worker's database of the test run's Redis, with nothing in it."""
    redis.client().flushdb()
    yield
    redis.client().flushdb()


@pytest.fixture
def dead_redis() -> Iterator[None]:
    """Make Redis unreachable for the length of the test."""
    with redis_away():
        yield
    UNREPORTED.pop_all()

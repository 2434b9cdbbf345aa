"""`manage.py bench`: every way gets its turn, figures are what they say, and nothing is left behind."""

import time
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from lab.benchmarks.cases import FIELDS
from lab.benchmarks.console import fill_account, list_pages, staff_session
from lab.benchmarks.growth import empty
from lab.benchmarks.measure import WARM_UP_ROUNDS, BenchmarkVariant, Case, measure
from lab.benchmarks.scratch import CONVERSATION, Scratch, fill_episodes, scratch_account
from lab.benchmarks.web import KeepAliveClient, server_variables, web_server
from ledger import store as ledger
from ledger.models import Injection
from memory.models import Account, Agent, ApiKey, Memory, Participant, Vector
from memory.tiers.working import WorkingMemory
from memory_project import redis
from memory_project.embedded.environment import SECRETS
from tests.memory.episodes import NOW


def test_every_variant_runs_once_in_every_round() -> None:
    order: list[str] = []
    ways = [
        BenchmarkVariant(name="a", run=lambda _round: order.append("a")),
        BenchmarkVariant(name="b", run=lambda _round: order.append("b")),
        BenchmarkVariant(name="c", run=lambda _round: order.append("c")),
    ]

    list(measure(Case(name="letters", ways=ways), rounds=3))

    measured = order[3 * WARM_UP_ROUNDS :]
    assert [sorted(measured[start : start + 3]) for start in (0, 3, 6)] == [["a", "b", "c"]] * 3
    assert measured[0] != measured[3] != measured[6]


@pytest.mark.slow
def test_figures_are_in_milliseconds_and_relative_to_the_first_variant() -> None:
    slow = BenchmarkVariant(name="slow", run=lambda _round: time.sleep(0.002))
    slower = BenchmarkVariant(name="slower", run=lambda _round: time.sleep(0.06))

    first, second = measure(Case(name="naps", ways=[slow, slower]), rounds=5)

    assert (first.p50_ratio, first.p95_ratio) == (1.0, 1.0)
    assert 2.0 <= first.p50_ms <= first.p95_ms
    assert second.p50_ratio == pytest.approx(second.p50_ms / first.p50_ms)
    assert second.p50_ratio > 1


def use(scratch: Scratch) -> None:
    fill_episodes(scratch, 40, now=NOW)
    WorkingMemory(scratch.owner()).set(CONVERSATION, FIELDS)
    ledger.mark(scratch.place, "skill:sql")


def use_until_interrupted() -> None:
    with scratch_account() as scratch:
        use(scratch)
        raise KeyboardInterrupt


@pytest.mark.django_db
def test_a_scratch_account_leaves_nothing_behind(empty_redis: None) -> None:
    with scratch_account() as scratch:
        use(scratch)
        assert Vector.objects.count() == 40

    for table in (Account, Agent, ApiKey, Injection, Memory, Participant, Vector):
        assert not table._default_manager.exists(), table
    assert [key for key in redis.client().scan_iter() if redis.client().type(key) != "stream"] == []
    assert redis.client().xlen("ledger:journal") == 0


@pytest.mark.django_db
def test_an_interrupted_scratch_account_leaves_nothing_behind(empty_redis: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        use_until_interrupted()

    assert not Account.objects.exists()
    assert redis.client().xlen("ledger:journal") == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_page_of_the_console_that_is_measured_opens(empty_redis: None) -> None:
    browser = Client()

    with scratch_account() as scratch, staff_session() as session_key:
        fill_account(scratch, 400, NOW)
        browser.cookies[settings.SESSION_COOKIE_NAME] = session_key
        answers = {page: browser.get(path).status_code for page, (path, _) in list_pages(scratch, 400).items()}
        empty(scratch)

    assert set(answers.values()) == {200}, answers
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_database_that_is_not_migrated_is_refused_in_a_sentence() -> None:
    [latest] = MigrationLoader(connection).graph.leaf_nodes("ledger")
    MigrationRecorder(connection).record_unapplied(*latest)

    with pytest.raises(CommandError, match=r"^The database is not migrated"):
        call_command("bench")


def test_the_benchmark_web_server_has_all_secrets_of_the_process(tmp_path: Path) -> None:
    variables = server_variables(str(tmp_path))

    assert all(variables[secret.variable] for secret in SECRETS)


@pytest.mark.slow
def test_the_benchmark_web_server_answers_and_is_stopped_afterwards() -> None:
    with web_server() as address:
        client = KeepAliveClient(address, "no key")
        assert client.request("GET", "/health/live")
        with pytest.raises(CommandError, match="answered 404"):
            client.request("GET", "/nowhere")
        client.close()

    with pytest.raises(ConnectionRefusedError):
        KeepAliveClient(address, "no key").request("GET", "/health/live")

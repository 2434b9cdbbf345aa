"""Settings from the environment: nonsense stops the start with one sentence that names the variable."""

import os
import runpy
import subprocess
import sys

import pytest
from django.test import override_settings

from memory import conf
from memory.conf import DJANGO_SETTINGS
from memory_project.embedded.paths import PROJECT
from memory_project.env import SettingError

CLUSTERS = [
    ("REDIS_URL", "redis-cluster://one:7000,two:7000", r"must name a Redis Cluster as redis\+cluster://"),
    ("REDIS_URL", "redis+cluster://one:7000/0", "must name nodes of the Redis Cluster"),
    ("CELERY_BROKER_URL", "rediss+cluster://one:7000", r"must not name a Redis Cluster.*amqp://"),
]

NONSENSE = [
    ("MEMORY_WEB_THREADS", "abc"),
    ("MEMORY_WEB_THREADS", "0"),
    ("MEMORY_WEB_WORKERS", "１"),
    ("MEMORY_WEB_WORKERS", ""),
    ("MEMORY_WORKER_PROCESSES", "2.5"),
    ("MEMORY_RATE_LIMIT_PER_MINUTE", "x"),
    ("MEMORY_RETRIEVAL_RATE_LIMIT_PER_MINUTE", "0"),
    ("MEMORY_IDEMPOTENCY_HOURS", "-1"),
    ("MEMORY_BODY_LIMIT_BYTES", "8MB"),
    ("MEMORY_CLIENT_TIMEOUT_SECONDS", "nan"),
    ("REDIS_TIMEOUT_SECONDS", "inf"),
    ("EMBEDDING_DIMENSIONS", "x"),
    ("EMBEDDING_TIMEOUT_SECONDS", "soon"),
    ("EMBEDDING_THREADS", "-1"),
    ("MEMORY_DEBUG", "maybe"),
    ("MEMORY_LOG_FORMAT", "xml"),
    ("MEMORY_LOG_LEVEL", "loud"),
    ("DATABASE_URL", "localhost"),
    ("REDIS_URL", "localhost:6379"),
]


@pytest.mark.parametrize(("name", "text", "reason"), CLUSTERS)
def test_a_wrong_url_of_a_redis_cluster_is_refused_with_the_right_one(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, reason: str
) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(SettingError, match=f"^{name} {reason}"):
        runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))


@pytest.mark.parametrize(("name", "text"), NONSENSE)
def test_an_invalid_setting_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(SettingError, match=f"^{name} must be .+[.]$"):
        runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))


@pytest.mark.parametrize(("name", "text"), [("MEMORY_AUDIT_LEVEL", "loud"), ("MEMORY_JOB_ATTEMPTS", "many")])
def test_an_invalid_domain_setting_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(SettingError, match=f"^{name} must be .+[.]$"):
        runpy.run_path(str(PROJECT / "memory" / "conf.py"))


SESSION_SETTINGS = [
    # the variable, its name in `memory.conf`, the default, the least and the greatest value
    ("MEMORY_RETENTION_DAYS", "RETENTION_DAYS", 90, 1, 36_500),
    ("MEMORY_SUMMARY_THRESHOLD", "SUMMARY_THRESHOLD", 50, 11, 99),
    ("MEMORY_MAX_CONTEXT_MESSAGES", "MAX_CONTEXT_MESSAGES", 20, 1, 100),
    ("MEMORY_SUMMARY_LEASE_SECONDS", "SUMMARY_LEASE_SECONDS", 20, 15, 3_600),
    ("MEMORY_SUMMARY_TIMEOUT_SECONDS", "SUMMARY_TIMEOUT_SECONDS", 100, 1, 3_600),
    ("SESSION_TTL_HOURS", "SESSION_TTL_HOURS", 24, 1, 168),
    ("SESSION_MAX_TTL_HOURS", "SESSION_MAX_TTL_HOURS", 168, 24, 168),
    ("SESSION_MAX_MESSAGES_BEFORE_SUMMARY", "SESSION_MAX_MESSAGES_BEFORE_SUMMARY", 30, 1, 10_000),
    ("MEMORY_BUFFER_MESSAGES", "BUFFER_MESSAGES", 100, 51, 10_000),
    ("MEMORY_BUFFER_BYTES", "BUFFER_BYTES", 4_194_304, 65_536, 1_073_741_824),
    ("MEMORY_SESSION_THOUGHTS", "SESSION_THOUGHTS", 100, 1, 10_000),
    ("MEMORY_SESSION_VALUES", "SESSION_VALUES", 200, 1, 100_000),
    ("MEMORY_SESSION_VALUE_BYTES", "SESSION_VALUE_BYTES", 65_536, 1_024, 1_048_576),
    ("MEMORY_SESSION_VALUE_TTL_SECONDS", "SESSION_VALUE_TTL_SECONDS", 3_600, 1, 604_800),
    ("MEMORY_SESSION_IDLE_MINUTES", "SESSION_IDLE_MINUTES", 30, 1, 10_080),
]
each_session_setting = pytest.mark.parametrize(
    ("variable", "name", "default", "low", "high"), SESSION_SETTINGS, ids=lambda part: part
)


def domain_settings() -> dict[str, object]:
    """Return the names of `memory.conf` as they would be after a start with the present environment."""
    installation = runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))
    documented = {name: installation[setting] for name, setting in DJANGO_SETTINGS.items()}
    with override_settings(**{setting: installation[setting] for setting in DJANGO_SETTINGS.values()}):
        return runpy.run_path(str(PROJECT / "memory" / "conf.py")) | documented


@each_session_setting
def test_a_session_setting_has_its_documented_default(
    monkeypatch: pytest.MonkeyPatch, variable: str, name: str, default: int, low: int, high: int
) -> None:
    monkeypatch.delenv(variable, raising=False)

    assert domain_settings()[name] == default


@each_session_setting
def test_a_session_setting_outside_its_bounds_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, name: str, default: int, low: int, high: int
) -> None:
    for value in (low, high):
        monkeypatch.setenv(variable, str(value))
        assert domain_settings()[name] == value

    for value in (low - 1, high + 1):
        monkeypatch.setenv(variable, str(value))
        with pytest.raises(SettingError):
            domain_settings()


@pytest.mark.parametrize("name", ["memory", "redis", "hybrid"])
def test_each_of_the_three_session_stores_can_be_chosen(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("SESSION_STORE_TYPE", raising=False)
    assert domain_settings()["SESSION_STORE_TYPE"] == "hybrid"

    monkeypatch.setenv("SESSION_STORE_TYPE", name)
    assert domain_settings()["SESSION_STORE_TYPE"] == name


@pytest.mark.parametrize(("name", "setting"), DJANGO_SETTINGS.items())
def test_a_documented_setting_is_a_django_setting(name: str, setting: str) -> None:
    value: object = "redis" if setting == "SESSION_STORE_TYPE" else 77

    with override_settings(**{setting: value}):
        assert getattr(conf, name) == value

    assert getattr(conf, name) != value


REFUSED_SESSION_SETTINGS = [
    ({"SESSION_STORE_TYPE": "disk"}, "SESSION_STORE_TYPE must be one of memory, redis, hybrid, not 'disk'."),
    ({"SESSION_TTL_HOURS": "169"}, "SESSION_TTL_HOURS must be a whole number from 1 to 168, not '169'."),
    ({"SESSION_MAX_TTL_HOURS": "169"}, "SESSION_MAX_TTL_HOURS must be a whole number from 1 to 168, not '169'."),
    (
        {"SESSION_MAX_TTL_HOURS": "12"},
        "SESSION_TTL_HOURS must be at most SESSION_MAX_TTL_HOURS, 12, not 24.",
    ),
    (
        {"MEMORY_SESSION_VALUE_TTL_SECONDS": "7201", "SESSION_MAX_TTL_HOURS": "2", "SESSION_TTL_HOURS": "2"},
        "MEMORY_SESSION_VALUE_TTL_SECONDS must be at most 7200, SESSION_MAX_TTL_HOURS, not 7201.",
    ),
    (
        {"MEMORY_BUFFER_MESSAGES": "50"},
        (
            "MEMORY_BUFFER_MESSAGES must be above MEMORY_SUMMARY_THRESHOLD, 50, not 50: "
            "messages would leave the buffer before they are summarized."
        ),
    ),
    (
        {"MEMORY_MAX_CONTEXT_MESSAGES": "101"},
        (
            "MEMORY_MAX_CONTEXT_MESSAGES must be at most MEMORY_BUFFER_MESSAGES, 100, not 101: "
            "messages are taken from the buffer."
        ),
    ),
]


@pytest.mark.parametrize(("variables", "sentence"), REFUSED_SESSION_SETTINGS)
def test_session_settings_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sentence: str
) -> None:
    for variable, text in variables.items():
        monkeypatch.setenv(variable, text)

    with pytest.raises(SettingError) as refused:
        domain_settings()

    assert str(refused.value) == sentence


def test_the_error_about_an_invalid_database_url_does_not_quote_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://memory:secret@127.0.0.1/memory")

    with pytest.raises(SettingError) as refused:
        runpy.run_path(str(PROJECT / "memory_project" / "settings.py"))

    assert "secret" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("-m", "memory_project.up"), ("manage.py", "check")], ids=["make up", "manage.py"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MEMORY_WEB_THREADS", "abc"),
        ("MEMORY_AUDIT_LEVEL", "loud"),
        ("SESSION_TTL_HOURS", "169"),
        ("MEMORY_BUFFER_MESSAGES", "50"),
    ],
)
def test_an_invalid_setting_ends_the_command_with_one_sentence_and_exit_code_1(
    command: tuple[str, ...], name: str, text: str
) -> None:
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env=os.environ | {name: text},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    [sentence] = ended.stderr.splitlines()
    assert sentence.startswith(f"{name} must be ")

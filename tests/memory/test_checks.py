"""System checks: what is misconfigured is named, with a hint; what needs a server is asked only where one is."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.checks import CheckMessage, run_checks
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memory import checks, conf
from memory.management.commands.migrate import Command as Migrate
from memory.models import Account, Conversation
from memory.providers.embeddings import embedding_provider
from memory.providers.language_models import language_model
from memory.retrieval import confidence, ranking
from memory.services.operations.alerts import ALERTS
from memory_project import redis
from tests.redis_elsewhere import own_redis


@pytest.fixture
def fresh_embedder() -> Iterator[None]:
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


@pytest.fixture
def fresh_language_model() -> Iterator[None]:
    language_model.cache_clear()
    yield
    language_model.cache_clear()


@pytest.fixture
def evicting_redis() -> Iterator[None]:
    with own_redis():
        redis.client().config_set("maxmemory-policy", "allkeys-lru")
        yield


@pytest.fixture
def weights_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Point the ranking at a file of weights that does not exist yet."""
    monkeypatch.setattr(ranking, "WEIGHTS_FILE", tmp_path / "weights.json")
    ranking.learned_weights.cache_clear()
    yield tmp_path / "weights.json"
    ranking.learned_weights.cache_clear()


def ids_of(messages: list[CheckMessage]) -> list[str]:
    assert all(message.hint for message in messages)
    return [str(message.id) for message in messages]


@pytest.mark.usefixtures("just_migrated")
def test_a_sound_installation_passes() -> None:
    messages = run_checks(databases=["default"])

    assert [message for message in messages if str(message.id).startswith("memory.")] == []


@pytest.mark.django_db
def test_without_a_database_named_no_server_is_asked(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert checks.check_database() == []
        assert checks.check_alerts() == []


@pytest.mark.django_db
def test_the_database_is_asked_once(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        checks.check_database(databases=["default"])


@pytest.mark.django_db
def test_missing_migrations_are_an_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    assert checks.check_migrations() == []
    assert ids_of(checks.check_migrations(databases=["default"])) == ["memory.E016"]


@pytest.mark.django_db
def test_migrate_does_not_report_the_migrations_that_it_is_to_apply() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    Migrate(stderr=StringIO()).check(databases=["default"])

    assert ids_of(checks.check_migrations(databases=["default"])) == ["memory.E016"]


def test_an_invalid_embedding_provider_is_an_error(settings: Settings, fresh_embedder: None) -> None:
    settings.EMBEDDING_PROVIDER = "oracle"

    assert ids_of(checks.check_embedder()) == ["memory.E001"]


def test_a_language_model_without_an_endpoint_is_an_error(settings: Settings, fresh_language_model: None) -> None:
    settings.SUMMARY_MODEL = "gpt"
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""

    messages = checks.check_language_models()

    assert ids_of(messages) == ["memory.E008"]
    assert "SUMMARY_MODEL needs OPENAI_API_KEY" in messages[0].msg


def test_a_language_model_at_an_endpoint_passes(settings: Settings, fresh_language_model: None) -> None:
    settings.SUMMARY_MODEL, settings.OPENAI_BASE_URL = "local", "http://127.0.0.1:9/v1"

    assert checks.check_language_models() == []


@pytest.mark.django_db
def test_a_plain_audit_table_is_an_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_audit_log; CREATE TABLE memory_audit_log (id uuid)")

    assert ids_of(checks.check_database(databases=["default"])) == ["memory.E006"]


@pytest.mark.django_db
def test_a_database_before_its_migrations_is_no_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_audit_log")

    assert checks.check_database(databases=["default"]) == []


@pytest.mark.django_db
def test_a_missing_text_search_configuration_is_an_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TEXT SEARCH CONFIGURATION public.memory_german RENAME TO low_german")
        cursor.execute("ALTER TEXT SEARCH CONFIGURATION public.memory_hindi SET SCHEMA pg_catalog")

    messages = checks.check_database(databases=["default"])

    assert ids_of(messages) == ["memory.E007"]
    assert "public.memory_german, public.memory_hindi" in messages[0].msg


@pytest.mark.django_db
def test_before_the_migrations_no_text_search_configuration_is_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_terms")
        cursor.execute("ALTER TEXT SEARCH CONFIGURATION public.memory_german RENAME TO low_german")

    assert checks.check_database(databases=["default"]) == []


@pytest.mark.parametrize(
    ("installed", "available", "expected"),
    [
        ("0.8.5", "0.8.5", []),
        (None, "0.8.0", []),
        ("0.10", "0.10", []),
        (None, None, ["memory.E004"]),
        (None, "0.7.4", ["memory.E005"]),
        ("0.7.4", "0.8.5", ["memory.E005"]),
    ],
)
def test_pgvector_has_to_be_there_and_recent(installed: str | None, available: str | None, expected: list[str]) -> None:
    assert ids_of(checks.complain_of_pgvector(installed, available)) == expected


@pytest.mark.usefixtures("just_migrated")
def test_a_redis_that_evicts_is_a_warning(evicting_redis: None) -> None:
    assert ids_of(checks.check_alerts(databases=["default"])) == ["memory.W002"]


@pytest.mark.usefixtures("just_migrated")
def test_a_redis_that_is_down_is_a_warning(dead_redis: None) -> None:
    assert ids_of(checks.check_alerts(databases=["default"])) == ["memory.W001"]


@pytest.mark.usefixtures("just_migrated")
def test_delayed_work_is_a_warning(account: Account) -> None:
    Conversation.objects.create(
        account=account, conversation_id="c", started_at=timezone.now(), extract_parked_at=timezone.now()
    )

    assert ids_of(checks.check_alerts(databases=["default"])) == ["memory.W006"]


def test_every_alert_has_its_own_warning() -> None:
    assert set(checks.ALERT_IDS) == set(ALERTS)
    assert len(set(checks.ALERT_IDS.values())) == len(ALERTS)


@pytest.mark.django_db
def test_before_the_migrations_no_work_is_delayed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE conversations RENAME TO to_be_made")

    assert checks.check_alerts(databases=["default"]) == []


@pytest.fixture
def no_keys(settings: Settings, tmp_path: Path) -> None:
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEYS_FILE, settings.TOMBSTONE_KEY = [], tmp_path / "none", ""


def test_missing_keys_are_errors_where_the_database_is_checked(no_keys: None) -> None:
    assert ids_of(checks.check_keys(databases=["default"])) == ["memory.E009", "memory.E010"]
    assert checks.check_keys() == []


@pytest.mark.django_db
def test_keys_stored_next_to_the_data_pass(no_keys: None, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS_FILE.write_text(Fernet.generate_key().decode())
    settings.TOMBSTONE_KEY = "x" * 16

    assert checks.check_keys(databases=["default"]) == []


def test_an_invalid_key_is_an_error_that_does_not_quote_it(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS, settings.TOMBSTONE_KEY = ["hunter2"], "hunter3"

    messages = checks.check_keys(databases=["default"])

    assert ids_of(messages) == ["memory.E009", "memory.E010"]
    assert not any("hunter" in f"{message.msg}{message.hint}" for message in messages)


def test_an_unknown_recall_technique_is_reported_at_startup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "RECALL_TECHNIQUES", ("-hyde", "telepathy"))

    [message] = checks.check_recall()

    assert message.id == "memory.E012"
    assert "telepathy" in message.msg
    assert (message.msg[-1], message.msg[-2:] == "..") == (".", False)


def test_recall_techniques_that_leave_no_retriever_are_reported_at_startup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "RECALL_TECHNIQUES", ("lexical", "-lexical"))

    [message] = checks.check_recall()

    assert message.id == "memory.E012"
    assert "No retriever is left" in message.msg


def test_the_default_recall_techniques_pass() -> None:
    assert checks.check_recall() == []


@pytest.mark.parametrize(
    "content", ['{"turns": {"words": NaN}, "others": {}}', "{}", None], ids=["weight", "shape", "none"]
)
def test_invalid_weights_are_reported_at_startup(weights_file: Path, content: str | None) -> None:
    if content is not None:
        weights_file.write_text(content)

    messages = checks.check_weights()

    assert ids_of(messages) == ["memory.E013"]
    assert str(weights_file) in messages[0].msg


def test_valid_weights_pass(weights_file: Path) -> None:
    weights_file.write_text('{"turns": {"talk": {"words": 1}}, "others": {}, "learnt": {"l2": 0.3}}')

    assert checks.check_weights() == []


def test_invalid_weights_of_confidence_are_reported_at_startup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "CONFIDENCE_FILE", tmp_path / "confidence.json")
    confidence.learned_calibrations.cache_clear()

    messages = checks.check_confidence()

    assert ids_of(messages) == ["memory.E015"]
    assert str(tmp_path) in messages[0].msg
    monkeypatch.undo()
    assert checks.check_confidence() == []


@pytest.mark.parametrize(("spare", "of_others", "is_enough"), [(0, 0, True), (-1, 0, False), (2, 3, False)])
def test_pools_that_may_exceed_the_connections_of_the_server_are_reported(
    settings: Settings, spare: int, of_others: int, is_enough: bool
) -> None:
    settings.WEB_WORKERS, settings.CELERY_WORKER_CONCURRENCY = 2, 3
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"]
    wanted = 2 * pool + 2 * 3 + 2

    found = [message.id for message in checks.complain_of_connections(wanted + spare, of_others)]

    assert found == ([] if is_enough else ["memory.W019"])
    settings.DATABASE_POOLER_URL = "postgres://memory@pooler/memory"
    assert checks.complain_of_connections(2 * 3 + 2 + of_others, of_others) == []

"""The encryption canary: keys that are not the database's are named before anything is read."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from memory import checks
from memory.models import EncryptionCanary
from memory.owner import Owner
from memory.services.operations.canary import check_keys
from memory.services.operations.reseal import find_sealed_tables, rotate_tables
from tests.concurrency import start_concurrently as start_concurrently
from tests.memory.procedures import invoke

pytestmark = pytest.mark.django_db

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


@pytest.fixture(autouse=True)
def _old_key(settings: Settings, db: None) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    EncryptionCanary.objects.all().delete()


def test_the_first_start_writes_the_canary_and_the_next_one_reads_it() -> None:
    check_keys()
    check_keys()

    assert EncryptionCanary.objects.count() == 1


def test_another_key_is_refused_in_a_sentence_that_quotes_none(settings: Settings) -> None:
    check_keys()
    settings.ENCRYPTION_KEYS = [NEW]

    with pytest.raises(ImproperlyConfigured, match="no key in MEMORY_ENCRYPTION_KEYS decrypts") as raised:
        check_keys()

    assert OLD not in str(raised.value)
    assert NEW not in str(raised.value)


@pytest.mark.django_db(transaction=True)
def test_of_two_keys_that_start_simultaneously_the_second_is_refused(
    settings: Settings, start_concurrently: Callable[[Callable[[], object]], Future[object]]
) -> None:
    with transaction.atomic():
        EncryptionCanary.objects.create(value="canary")
        settings.ENCRYPTION_KEYS = [NEW]
        second = start_concurrently(check_keys)

    with pytest.raises(ImproperlyConfigured, match="no key in MEMORY_ENCRYPTION_KEYS decrypts"):
        second.result()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["SECRET_KEY", "TOMBSTONE_KEY"])
def test_a_node_with_another_key_does_not_start_and_is_not_ready(settings: Settings, name: str) -> None:
    check_keys()
    setattr(settings, name, "a key of this node alone")

    with pytest.raises(ImproperlyConfigured, match=f"MEMORY_{name} is not the one that this database is used with"):
        check_keys()
    readiness = Client().get("/health/ready")

    assert (readiness.status_code, readiness.json()["status"]) == (503, "unavailable")
    assert readiness.json()["checks"]["keys"].startswith(f"MEMORY_{name} is not the one")
    assert [each.id for each in checks.complain_of_encryption_keys()] == ["memory.E014"]


def test_a_key_that_was_changed_on_purpose_can_be_accepted(settings: Settings) -> None:
    check_keys()
    settings.SECRET_KEY = "the new key of all nodes"

    call_command("rotate_encryption_keys", "--accept-loss", stdout=StringIO(), stderr=StringIO())

    check_keys()


def test_a_canary_of_an_earlier_version_gets_the_fingerprints(settings: Settings) -> None:
    EncryptionCanary.objects.create(value="canary")

    check_keys()

    assert set(EncryptionCanary.objects.get().value) == {"MEMORY_SECRET_KEY", "MEMORY_TOMBSTONE_KEY"}
    settings.TOMBSTONE_KEY = "a key of this node alone"
    with pytest.raises(ImproperlyConfigured, match="MEMORY_TOMBSTONE_KEY"):
        check_keys()


@pytest.mark.parametrize("keys", [[NEW, OLD], [OLD, NEW]])
def test_a_new_key_next_to_the_old_one_passes(settings: Settings, keys: list[str]) -> None:
    check_keys()
    settings.ENCRYPTION_KEYS = keys

    check_keys()


def test_after_a_rotation_the_old_key_can_go(settings: Settings) -> None:
    check_keys()
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    list(rotate_tables(find_sealed_tables()))
    settings.ENCRYPTION_KEYS = [NEW]

    check_keys()


@pytest.mark.parametrize(("keys", "reason"), [([], "is empty"), (["nonsense"], "holds what is no Fernet key")])
def test_missing_and_malformed_keys_are_refused_first(settings: Settings, keys: list[str], reason: str) -> None:
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEYS_FILE = keys, settings.BASE_DIR / "no such file"

    with pytest.raises(ImproperlyConfigured, match=reason):
        check_keys()

    assert not EncryptionCanary.objects.exists()


def test_an_upgraded_database_gets_its_canary_if_its_values_can_be_read(owner: Owner) -> None:
    invoke(owner, tool_input="in")

    check_keys()

    assert EncryptionCanary.objects.count() == 1


def test_an_upgraded_database_of_other_keys_gets_none(owner: Owner, settings: Settings) -> None:
    invoke(owner, error_message="wrong")
    settings.ENCRYPTION_KEYS = [NEW]

    with pytest.raises(ImproperlyConfigured, match="no key in MEMORY_ENCRYPTION_KEYS decrypts"):
        check_keys()

    settings.ENCRYPTION_KEYS = [OLD]
    assert not EncryptionCanary.objects.exists()


def test_before_the_migration_nothing_is_compared(caplog: pytest.LogCaptureFixture) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE encryption_canary RENAME TO to_be_made")

    with caplog.at_level(logging.WARNING):
        check_keys()

    assert "were not compared" in caplog.text
    assert checks.complain_of_encryption_keys() == []


def test_the_system_check_reports_another_key_and_writes_nothing(settings: Settings) -> None:
    assert checks.complain_of_encryption_keys() == []
    assert not EncryptionCanary.objects.exists()
    check_keys()
    settings.ENCRYPTION_KEYS = [NEW]

    [message] = checks.complain_of_encryption_keys()

    assert message.id == "memory.E014"


@pytest.mark.parametrize("command", [["bootstrap"], ["run_job", "compress"], ["bench"]])
def test_commands_refuse_another_key(settings: Settings, command: list[str]) -> None:
    check_keys()
    settings.ENCRYPTION_KEYS = [NEW]

    with pytest.raises(CommandError, match=r"^no key in MEMORY_ENCRYPTION_KEYS decrypts"):
        call_command(*command)


def test_once_the_loss_is_accepted_the_service_starts_again(settings: Settings) -> None:
    check_keys()
    settings.ENCRYPTION_KEYS = [NEW]

    call_command("rotate_encryption_keys", "--accept-loss")

    check_keys()


def test_a_dry_run_accepts_no_loss() -> None:
    with pytest.raises(CommandError, match="not with --dry-run"):
        call_command("rotate_encryption_keys", "--accept-loss", "--dry-run")

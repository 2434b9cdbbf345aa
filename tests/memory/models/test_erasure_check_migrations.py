"""The checks of erased users and the rights over the audit log: backward and forward again, with data."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from memory.audit import record_audit
from memory.errors import Conflict
from memory.models import Account, AuditEntry, Fact
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from tests import template
from tests.memory.facts import know
from tests.memory.migrations import connected_to, fetch, migrate_forward, migrate_to, new_database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CODE = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid) FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
UNION ALL SELECT tgrelid::regclass::text || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger
WHERE NOT tgisinternal
ORDER BY 1, 2
"""
NAMES = "SELECT memory_erase_audit_names(%s, %s)"


@pytest.fixture(autouse=True)
def _own_database(transactional_db: None) -> Iterator[None]:
    with new_database("backward", template=template.NAME) as name, connected_to(name):
        yield


@pytest.fixture
def owner() -> Owner:
    """An owner with a fact, of an account that erased the user `ben`."""
    account = Account.objects.create(name="workshop")
    owner = Owner(account_id=account.id, agent_id="assistant", user_id="ana")
    know(owner, "Ana likes figs.")
    request_subject(replace(owner, agent_id=""), "ben", reason="", now=timezone.now())
    return owner


def write_erased_user(owner: Owner) -> None:
    with transaction.atomic():
        know(replace(owner, user_id="ben"), "Ben likes figs.")


def erase_names_of_an_entry(owner: Owner) -> int:
    with transaction.atomic():
        record_audit(owner, operation="store", memory_type="episodic", query_text="an oven")
    entry = AuditEntry.objects.latest("timestamp", "id")
    with connection.cursor() as cursor:
        cursor.execute(NAMES, [owner.account_id, [entry.id]])
        (erased,) = cursor.fetchone()
    assert AuditEntry.objects.get(id=entry.id).query_text == ""
    return int(erased)


def test_going_back_and_forward_again_leaves_the_same_checks_and_all_data(owner: Owner) -> None:
    latest = fetch(CODE)
    texts = list(Fact.objects.values_list("text", flat=True))

    for earlier in ("0058_check_erased_users_once", "0057_left_out_rows"):
        migrate_to(earlier)
        with pytest.raises((DatabaseError, Conflict), match="erased"):
            write_erased_user(owner)
        assert erase_names_of_an_entry(owner) == 1, earlier
    first = fetch(CODE)
    migrate_to("0055_audited_changes")
    migrate_to("0057_left_out_rows")
    assert fetch(CODE) == first
    migrate_forward()

    assert fetch(CODE) == latest != first
    with pytest.raises((DatabaseError, Conflict), match="erased"):
        write_erased_user(owner)
    assert erase_names_of_an_entry(owner) == 1
    assert list(Fact.objects.values_list("text", flat=True)) == texts

"""Writes `tests/upgrades/<version>.sql.gz`: a database with rows of every kind, by all routes that write.

Not a test, and run by its name alone (see the package).
"""

from pathlib import Path

import pytest
from django.conf import settings as configured
from django.core.management import call_command
from pytest_django import Settings

from memory.models import Account
from memory.services.backup.database import dump_database, exported_snapshot
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.test_strangers import Ids
from tests.memory.api.test_strangers import real as real
from tests.memory.api.test_subject_canary import POOLS, Planter, plant, writes
from tests.upgrades.checksums import ENCRYPTION_KEY

FOLDER = Path(__file__).parent
SAMPLE = FOLDER.parent.parent / "docs" / "sample" / "conversations.jsonl"
MAX_BYTES = 300_000
JOBS = ("embed", "extract_knowledge", "summarize", "journal_injections", "write_audit_reads", "write_access_log")


@pytest.fixture(autouse=True)
def _known_key(settings: Settings, db: None) -> None:
    settings.ENCRYPTION_KEYS = [ENCRYPTION_KEY]


@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_make_dump(real: Ids, api: ServiceClient, account: Account, embedding_server: EmbeddingServer) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    api.post("/workflow-runs", {"workflow_run_id": "run-2"})
    for kind in POOLS.values():
        api.post("/workflow-runs/run-2/pools", {"pool_id": kind, "pool_type": kind})
    for operation in writes():
        plant(api, Planter(real), operation, named=False)
    call_command("import_conversations", str(SAMPLE), "--account", account.name)
    for job in JOBS:
        call_command("run_job", job)

    target = FOLDER / f"{configured.VERSION}.sql.gz"
    with exported_snapshot() as snapshot:
        dump_database(snapshot, target, lambda _size: None)

    assert target.stat().st_size < MAX_BYTES

"""Archives for tests: an account with rows in every table, its archive, and an account without rows."""

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, cast
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from memory import conf
from memory.maintenance import find_job
from memory.maintenance.runner import run_at_once
from memory.models import Account, ApiKey, Fact, FactReview, JobRun, Link, Transfer, Turn
from memory.reasoning import ReasoningTier
from memory.services.accounts.register import issue_key
from memory.services.memories.links import REPLACES
from memory.services.transfer.export import export_archive
from memory.services.transfer.load import load_archive
from memory.services.transfer.rules import exported_tables
from memory.services.transfer.selection import TransferScope
from memory_project.redis import client
from tests.api_client import ServiceClient
from tests.memory.hot_paths import CHANGING, READING, STORING, HotPaths, Request

ERASED = "dora"
"""A user that the requests erase."""
SMALL = ("COMPRESS_KEEP_RECORDS", "COMPRESS_AFTER_HOURS", "MERGE_AFTER_HOURS")
"""Settings that are 0 here, so that the jobs have work in a small account."""


def keys_of(account: Account) -> HotPaths:
    """Return what sends requests with a key of an agent, and that of its account."""
    keys = [issue_key(account, scopes=list(ApiKey.Scope), agent_id=agent_id) for agent_id in ("assistant", "")]
    return HotPaths(*(ServiceClient(key.secret) for key in keys))


def is_portable(request: Request) -> bool:
    """Return False for requests that are no writes of this account: jobs, and what is about the erased user."""
    return ERASED not in request.ids.values() and not request.operation.startswith(("POST /jobs", "POST /erasures"))


def fill_account(account: Account, monkeypatch: pytest.MonkeyPatch) -> HotPaths:
    """Write through every route that stores something, and run the jobs that derive from it."""
    Account.objects.filter(id=account.id).update(reasoning_tier=ReasoningTier.RAW_TRACE)
    for name in SMALL:
        monkeypatch.setattr(conf, name, 0)
    paths = keys_of(account)
    assert paths.send_all([each for each in STORING if is_portable(each)]) == []
    run_jobs(account, "extract_knowledge", "summarize", "embed", after=timedelta(hours=1))
    assert paths.send_all([each for each in [*READING, *CHANGING] if is_portable(each)]) == []
    run_jobs(account, "summarize", "extract_knowledge", "compress", "deduplicate", "promote_short_term", "embed",
        "link_replacements", "write_access_log", after=timedelta(days=1))  # fmt: skip
    earlier, later = Turn.objects.filter(account_id=account.id).order_by("id")[:2]
    replaces = {"source_id": later.id, "target_id": earlier.id, "type": REPLACES}
    Link.objects.get_or_create(account_id=account.id, **replaces, defaults={"weight": 0.75})
    first, second = Fact.objects.filter(account_id=account.id).order_by("id")[:2]
    FactReview.objects.create(account=account, old_fact=first, new_fact=second, similarity=0.75)
    return paths


def run_jobs(account: Account, *names: str, after: timedelta) -> None:
    for name in names:
        run = run_at_once(find_job(name), JobRun(account=account, job=name), clock=lambda: timezone.now() + after)
        assert run.status == JobRun.Status.COMPLETED, (name, run.error)


def export_bytes(
    account_id: UUID, *, include_vectors: bool = False, include_traces: bool = True, **scope: str
) -> bytes:
    """Return the archive of an account, or of an agent or user of it."""
    target, wanted = BytesIO(), TransferScope(account_id=account_id, **scope)
    export_archive(wanted, target, include_vectors=include_vectors, include_traces=include_traces)
    return target.getvalue()


def new_import(account_id: UUID, **values: Any) -> Transfer:
    return Transfer.objects.create(
        account_id=account_id, direction="import", requested_at=datetime.now(UTC), in_parts=False, **values
    )


def import_bytes(account_id: UUID, archive: bytes, **values: Any) -> Transfer:
    return load_archive(new_import(account_id, **values), BytesIO(archive), now=datetime.now(UTC))


def empty_account(account: Account) -> None:
    """Delete what archives have of an account, and everything in Redis."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for name in [*reversed(exported_tables()), "memory_terms"]:
            cursor.execute(f"DELETE FROM {name} WHERE account_id = %s", [account.id])
        cursor.execute("COMMIT")
    cast(Any, client()).flushdb()


def count_rows(account_id: UUID) -> dict[str, int]:
    """Return the number of rows of an account by exported table."""
    counts = {}
    with connection.cursor() as cursor:
        for name in exported_tables():
            cursor.execute(f"SELECT count(*) FROM {name} WHERE account_id = %s", [account_id])
            counts[name] = cursor.fetchone()[0]
    return counts

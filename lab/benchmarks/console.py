"""Times of the admin's lists and pages over a large account, as a member of staff waits for them."""

import http.client
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.core.management.base import CommandError
from django.db import connection
from django.urls import reverse

from lab.benchmarks.bulk import id_of, insert_rows
from lab.benchmarks.growth import empty, insert_conversations, insert_facts, insert_memories
from lab.benchmarks.scratch import Scratch, scratch_account
from lab.benchmarks.web import REQUEST_SECONDS, web_server
from memory.models import Kind, Link
from memory_project.admin_lists import MAX_COUNTED
from memory_project.supervisor.parts import Address

ROWS = 1_000_000
LIST_LIMIT_MS, PAGE_LIMIT_MS = 300.0, 200.0
"""Medians that lists and pages of one row may take, on an idle machine."""
ROUNDS = 20
WARM_UP_ROUNDS = 3
ROWS_OF_A_CONVERSATION = 20
ROWS_OF_A_LINK = 4
ROWS_OF_A_PAGE = 50
NUMBER = 7
"""The row whose pages are opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTime:
    """Milliseconds of a page of the admin, and the median that it may take."""

    page: str
    p50_ms: float
    p95_ms: float
    limit_ms: float


class StaffClient:
    """One connection of a browser that is signed in."""

    def __init__(self, address: Address, session_key: str) -> None:
        self._connection = http.client.HTTPConnection(address.host, address.port, timeout=REQUEST_SECONDS)
        self._headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session_key}"}

    def open(self, path: str) -> None:
        """Load a page. Raises CommandError for any answer but 200, such as the page to log in at."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != http.client.OK:
            raise CommandError(f"{path} answered {answer.status}")

    def close(self) -> None:
        self._connection.close()


def measure_console(rows: int, *, now: datetime) -> Iterator[PageTime]:
    """Fill an account of its own with `rows` memories, and yield the times of its lists and pages."""
    with scratch_account("console") as scratch:
        try:
            fill_account(scratch, rows, now)
            with (
                staff_session() as session_key,
                web_server() as address,
                closing(StaffClient(address, session_key)) as client,
            ):
                for page, (path, limit) in list_pages(scratch, rows).items():
                    yield time_page(client, page, path, limit)
        finally:
            empty(scratch)


def fill_account(scratch: Scratch, rows: int, now: datetime) -> None:
    """Insert facts and episodes, half of the rows each, with links among them, and conversations."""
    insert_facts(scratch, rows // 2, now, age=timedelta(days=1))
    insert_memories(scratch, Kind.EPISODE, rows // 2, now=now, conversation_id=f"'c' || n / {ROWS_OF_A_CONVERSATION}")
    insert_conversations(scratch, max(rows // ROWS_OF_A_CONVERSATION, NUMBER), now)
    insert_rows(
        scratch,
        Link,
        rows // ROWS_OF_A_LINK,
        source_id=id_of(scratch, Kind.FACT),
        target_id=id_of(scratch, Kind.EPISODE),
        type="'DERIVED_FROM'",
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def staff_session() -> Iterator[str]:
    """Sign in a superuser, and delete it with the session at the end."""
    user: Any = get_user_model()._default_manager.create_superuser(f"bench-{uuid4().hex[:12]}")
    session: Any = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    try:
        yield session.session_key
    finally:
        session.delete()
        user.delete()


def list_pages(scratch: Scratch, rows: int) -> Mapping[str, tuple[str, float]]:
    """Return the addresses of the pages, each with its limit."""
    fact, conversation = row_id(scratch, Kind.FACT), row_id(scratch, "conversation")
    mine = f"?account={scratch.account.id}"
    last = max(1, min(rows // 2, MAX_COUNTED) // ROWS_OF_A_PAGE)

    def listed(model: str, query: str = "") -> tuple[str, float]:
        return reverse(f"admin:memory_{model}_changelist") + query, LIST_LIMIT_MS

    def page(model: str, row: UUID, name: str = "change") -> tuple[str, float]:
        return reverse(f"admin:memory_{model}_{name}", args=[row]), PAGE_LIMIT_MS

    return {
        "list of all memories": listed("memory"),
        "list of all memories of the account": listed("memory", mine),
        "list of facts": listed("fact"),
        "list of facts of the account": listed("fact", mine),
        "list of facts, its last page": listed("fact", f"{mine}&p={last}"),
        "list of facts that are archived": listed("fact", f"{mine}&archived__exact=1"),
        "list of facts with a word": listed("fact", f"{mine}&q=pump"),
        "list of facts with a rare word": listed("fact", f"{mine}&q=4711"),
        "list of episodes": listed("episodicmemory"),
        "list of goals, of which there is none": listed("goal"),
        "list of goals of the account": listed("goal", mine),
        "list of conversations": listed("conversation"),
        "list of links": listed("link"),
        "list of the audit log": listed("auditentry"),
        "page of a fact": page("fact", fact),
        "page of a fact, why it is known": page("memory", fact, "why"),
        "page of a fact, its graph": page("memory", fact, "graph"),
        "page of a conversation": page("conversation", conversation),
        "page of the account": page("account", scratch.account.id),
        "first page": (reverse("admin:index"), LIST_LIMIT_MS),
        "inbox": (reverse("inbox:page"), LIST_LIMIT_MS),
    }


def row_id(scratch: Scratch, noun: str) -> UUID:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {id_of(scratch, noun, str(NUMBER))}")
        found: UUID = cursor.fetchone()[0]
    return found


def time_page(client: StaffClient, page: str, path: str, limit_ms: float) -> PageTime:
    spent = np.zeros(ROUNDS)
    for number in range(-WARM_UP_ROUNDS, ROUNDS):
        started = time.perf_counter()
        client.open(path)
        if number >= 0:
            spent[number] = (time.perf_counter() - started) * 1_000
    p50, p95 = np.percentile(spent, (50, 95))
    return PageTime(page=page, p50_ms=float(p50), p95_ms=float(p95), limit_ms=limit_ms)

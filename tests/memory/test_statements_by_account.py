"""Every statement of a hot path or job says the account of each table of accounts in it.

So a table that is partitioned or distributed by account is looked up on one machine, in one partition.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import conf
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, ApiKey, JobRun
from memory.reasoning import ReasoningTier
from memory.services.accounts.register import issue_key
from tests.api_client import API, ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.hot_paths import CHANGING, ERASING, OF_WORK, READING, STORING, HotPaths, Request
from tests.memory.statements import statements_captured, unfiltered_tables
from tests.openapi import operations

FILTERED = {
    "a parameter": "SELECT text FROM memories WHERE account_id = %s AND id = %(id)s",
    "a number": "SELECT text FROM memories WHERE id = $2 AND account_id = $1",
    "django": 'SELECT "goals"."text" FROM "memories" "goals" WHERE ("goals"."kind" = %s AND "goals"."account_id" = %s)',
    "a list": "SELECT id FROM memories WHERE account_id IN (%s, %s)",
    "an array": "SELECT id FROM memories m WHERE m.account_id = ANY(%s)",
    "a row": "SELECT id FROM memories WHERE (account_id, id) = (%s, %s)",
    "rows": "SELECT id FROM memories WHERE (account_id, id) IN (SELECT * FROM unnest(%s::uuid[], %s::uuid[]))",
    "a join": "SELECT FROM memories m JOIN memory_links l ON l.account_id = m.account_id WHERE m.account_id = %s",
    "a join using": "SELECT FROM memories m JOIN memory_links l USING (account_id) WHERE m.account_id = %s",
    "a left join": """
        SELECT FROM memories m LEFT JOIN agents a ON a.account_id = m.account_id AND a.agent_id = m.agent_id
        WHERE m.account_id = %s
    """,
    "a chain of joins": """
        SELECT FROM memory_links l JOIN memories s ON (s.account_id, s.id) = (l.account_id, l.source_id)
        JOIN memories t ON (t.account_id, t.id) = (s.account_id, l.target_id) WHERE t.account_id = %s
    """,
    "both branches": "SELECT FROM memories WHERE (account_id = %s AND pinned) OR (account_id = %s AND archived)",
    "a correlated query": """
        SELECT FROM memories m WHERE m.account_id = %s AND EXISTS (
            SELECT FROM memory_links l WHERE l.account_id = m.account_id AND l.source_id = m.id
        )
    """,
    "a lateral query": """
        SELECT FROM unnest(%s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
            SELECT text FROM memories WHERE account_id = %s AND id = wanted.id ORDER BY embedding <=> %s LIMIT 1
        ) found
    """,
    "a CTE": """
        WITH found AS MATERIALIZED (SELECT id, account_id FROM memories WHERE account_id = %s AND text LIKE '%%x')
        SELECT FROM found JOIN memory_vectors v ON v.account_id = found.account_id AND v.memory_id = found.id
    """,
    "a recursive CTE": """
        WITH RECURSIVE walk AS (
            SELECT account_id, id FROM memories WHERE account_id = %s
            UNION SELECT l.account_id, l.target_id FROM walk JOIN memory_links l USING (account_id)
        ) SELECT id FROM walk
    """,
    "a CTE named like a table": "WITH memories AS (SELECT 1 AS id) SELECT id FROM memories",
    "an update": "UPDATE memories SET text = %s WHERE id = %s AND account_id = %s",
    "an update from rows": """
        UPDATE memories m SET text = new.text FROM unnest(%s::uuid[], %s::text[]) AS new (id, text)
        WHERE m.id = new.id AND m.account_id = %s
    """,
    "a deletion": "DELETE FROM memory_links USING memories m WHERE memory_links.account_id = m.account_id"
    " AND m.account_id = %s",
    "a merge": "MERGE INTO agents a USING (SELECT 1) AS x ON a.account_id = %s WHEN MATCHED THEN DELETE",
    "values": "INSERT INTO agents (id, account_id, agent_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING id",
    "inserted rows": "INSERT INTO agents (id, account_id) SELECT id, account_id FROM teams WHERE account_id = %s",
    "the accounts": "SELECT FROM accounts a JOIN agents ON agents.account_id = a.id WHERE a.id = %s",
    "a table of the installation": "SELECT id FROM accounts WHERE name = %s",
    "no table": "SELECT set_config('x', 'memories', true)",
    "another command": "LOCK TABLE memories",
}
"""Statements that say the account of every table, by what is special about them."""

UNFILTERED = {
    "no condition": ("SELECT id FROM memories", ["memories"]),
    "the id": ("SELECT text FROM memories WHERE id = %s", ["memories"]),
    "a list of ids": ('DELETE FROM "agents" WHERE "agents"."id" IN (%s)', ["agents"]),
    "an order": ("SELECT id FROM memories WHERE (account_id, id) > (%s, %s)", ["memories"]),
    "another account": ("SELECT id FROM memories WHERE account_id <> %s", ["memories"]),
    "not": ("SELECT id FROM memories WHERE NOT account_id = %s", ["memories"]),
    "itself": ("SELECT id FROM memories m WHERE m.account_id = m.account_id", ["memories"]),
    "one branch": ("SELECT id FROM memories WHERE account_id = %s OR pinned", ["memories"]),
    "one of two": ("SELECT FROM memories m JOIN teams t ON t.id = m.id WHERE m.account_id = %s", ["teams"]),
    "another column": ("SELECT FROM memories m JOIN teams t ON t.id = m.account_id WHERE m.account_id = %s", ["teams"]),
    "the other's account": ("SELECT FROM memories m, teams t WHERE m.account_id = %s AND t.id = m.id", ["teams"]),
    "a join alone": ("SELECT FROM memories m JOIN teams t USING (account_id)", ["memories", "teams"]),
    "a join on ids": ("SELECT FROM memories m JOIN teams t USING (id) WHERE m.account_id = %s", ["teams"]),
    "a left join": (
        "SELECT FROM memories m LEFT JOIN teams t ON t.account_id = m.account_id AND m.account_id = %s",
        ["memories", "teams"],
    ),
    "a left join of a CTE": (
        "WITH x AS (SELECT %s AS account_id) SELECT FROM memories LEFT JOIN x USING (account_id)",
        ["memories"],
    ),
    "a scalar query": (
        "SELECT (SELECT name FROM teams t WHERE t.id = m.id) FROM memories m WHERE m.account_id = %s",
        ["teams"],
    ),
    "a correlated query": (
        "SELECT FROM memories m WHERE account_id = %s AND EXISTS (SELECT FROM teams t WHERE m.account_id = %s)",
        ["teams"],
    ),
    "a lateral query": (
        "SELECT FROM unnest(%s) AS x (id) CROSS JOIN LATERAL (SELECT name FROM teams WHERE id = x.id) AS found",
        ["teams"],
    ),
    "a CTE": ("WITH x AS (SELECT id FROM teams) SELECT id FROM x WHERE account_id = %s", ["teams"]),
    "a CTE named like its table": ("WITH teams AS (SELECT id FROM teams) SELECT id FROM teams", ["teams"]),
    "a recursive step": (
        """
        WITH RECURSIVE walk AS (
            SELECT id FROM memories WHERE account_id = %s
            UNION SELECT l.target_id FROM walk JOIN memory_links l ON l.source_id = walk.id
        ) SELECT id FROM walk
        """,
        ["memory_links"],
    ),
    "a union": ("SELECT id FROM teams WHERE account_id = %s UNION SELECT id FROM agents", ["agents"]),
    "an update": ("UPDATE memories SET account_id = %s WHERE id = %s", ["memories"]),
    "an update from a table": (
        "UPDATE memories m SET text = t.name FROM teams t WHERE m.account_id = %s AND t.id = m.id",
        ["teams"],
    ),
    "a deletion": ("DELETE FROM memories USING teams t WHERE t.account_id = %s", ["memories"]),
    "a merge": ("MERGE INTO agents a USING teams t ON t.id = a.id WHEN MATCHED THEN DELETE", ["agents", "teams"]),
    "values": ("INSERT INTO agents (id, agent_id) VALUES (%s, %s)", ["agents"]),
    "inserted rows": ("INSERT INTO agents (id, account_id) SELECT id, account_id FROM teams", ["teams"]),
    "all accounts": ("SELECT FROM accounts a JOIN agents g ON g.account_id = a.id", ["accounts", "agents"]),
    "accounts with rows": (
        "SELECT id FROM accounts a WHERE EXISTS (SELECT FROM agents g WHERE g.account_id = a.id)",
        ["accounts"],
    ),
    "another column of its own": ("SELECT FROM memories WHERE account_id = agent_id", ["memories"]),
    "another column of the other": (
        "SELECT FROM memories m JOIN teams t ON t.account_id = m.context_id WHERE m.account_id = %s",
        ["teams"],
    ),
    "a cursor": ("DECLARE c CURSOR FOR SELECT id FROM teams", ["teams"]),
    "a plan": ("EXPLAIN SELECT id FROM teams", ["teams"]),
    "the second statement": ("SELECT 1; SELECT id FROM teams", ["teams"]),
}
"""Statements with the tables whose account they do not say, by what they have instead."""


@pytest.mark.parametrize("sql", FILTERED.values(), ids=FILTERED)
def test_a_statement_that_says_the_account_of_each_table_is_accepted(sql: str) -> None:
    assert unfiltered_tables(sql) == []


@pytest.mark.parametrize(("sql", "tables"), UNFILTERED.values(), ids=UNFILTERED)
def test_a_table_whose_account_is_not_said_is_reported(sql: str, tables: list[str]) -> None:
    assert unfiltered_tables(sql) == tables


ROW_COUNTS = ("agent_short_term_memories", "conversations", "memories", "memory_links", "memory_pools")
EXCEPTIONS = {
    # whose turn it is: the rows are then read in one account at a time
    ("memory.services.account_walk.next_account_with", "accounts"): "finds the next account with rows to look at",
    ("memory.services.claims.accounts_with", "accounts"): "finds accounts with due work",
    ("memory.services.recall.term_statistics.find_changed_account", "accounts"): "finds an account with words to fold",
    ("memory.services.claims.count_due_rows", "conversations"): "counts due rows of all accounts on a dry run",
    ("memory.services.claims.count_due_rows", "memories"): "counts due rows of all accounts on a dry run",
    # the installation as a whole
    ("memory.services.embedding.account_indexes.rank_largest_accounts", "memory_vectors"): "compares the accounts",
    ("ledger.journal.count_lost_ledgers", "injections"): "counts all ledgers, since Redis lost all of them",
    ("ledger.journal.last_journalled_id", "injections"): "compares the newest row with Redis: one journal for all",
    ("ledger.journal.read_last_changes", "injections"): "pages through the ledgers of all accounts, each with its own",
    ("ledger.journal.read_histories", "injections"): "restores all ledgers, since Redis lost all of them",
    ("memory.services.operations.samples.sample_lag", "conversations"): "measures the installation",
    **{
        ("memory.services.operations.samples.sample_row_counts", each): "measures the installation"
        for each in ROW_COUNTS
    },
    # keys of rows that were read with their account: what Django deletes along with a row
    **{
        ("memory.services.conversations.staff_edits.delete_conversation_kinds", each): "deletes by keys that it read"
        for each in ("conversations", "memories", "reasoning_traces", "turn_records")
    },
    ("memory.services.custody.single.erase_agent", "idempotent_requests"): "deletes by keys that it read",
    # not named, but there
    ("memory.services.audit.insert_reads", "memory_audit_log"): "inserts whole rows from JSON, with their accounts",
}
"""Functions and the tables whose account a statement of theirs does not say, and why it need not."""

SMALL = ("COMPRESS_KEEP_RECORDS", "COMPRESS_AFTER_HOURS", "MERGE_AFTER_HOURS")
"""Settings that are 0 here, so that the jobs have work in a small account."""

LATER = {
    "GET /graph": "it has no answer without ids",
    "GET /erasures/preview": "it has no answer without an id",
    "GET /contexts/{context_id}/snapshots/{snapshot_id}": "there is none yet",
    "GET /export": "no archive is made yet",
    "GET /exports/{export_id}/download": "no archive is made yet",
    "GET /work-episodes/{episode_id}": "there is none yet",
    "GET /subjects/{user_id}/erasure": "of another user",
    "GET /exports/{export_id}": "there is none yet",
    "GET /imports/{import_id}": "there is none yet",
    "GET /pools/{pool_id}/cache": "of a pool of another type",
    "GET /pools/{pool_id}/cache/{key}": "of a pool of another type",
    "GET /pools/{pool_id}/postings": "of a pool of another type",
}
"""Reads that are not sent to the first ids, but with others, and why."""


@pytest.fixture
def paths(
    account: Account, embedding_server: EmbeddingServer, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> HotPaths:
    """Return what sends requests with a key of an agent, and that of its account, which keeps all that it may."""
    Account.objects.filter(id=account.id).update(reasoning_tier=ReasoningTier.RAW_TRACE, audit_level="verbose")
    for name in SMALL:
        monkeypatch.setattr(conf, name, 0)
    keys = [issue_key(account, scopes=list(ApiKey.Scope), agent_id=agent_id) for agent_id in ("assistant", "")]
    return HotPaths(*(ServiceClient(key.secret) for key in keys))


def all_reads() -> list[Request]:
    """Return a request for each operation that reads, and those that ask for more."""
    reads = [f"GET {operation.path.removeprefix(API)}" for operation in operations() if operation.method == "get"]
    return [Request(read) for read in reads if read not in LATER] + READING


def run_jobs(account: Account, *, after: timedelta, dry_run: bool) -> None:
    """Run all jobs, for the account and for all accounts, as they will be after a time."""
    for name, job in JOBS.items():
        for row in (JobRun(account=account), JobRun()):
            row.job, row.dry_run = name, dry_run
            run = run_at_once(job, row, clock=lambda: timezone.now() + after)
            assert run.status == JobRun.Status.COMPLETED, (name, run.error)


def work(paths: HotPaths, account: Account) -> list[str]:
    """Send all requests, with runs of all jobs between them, and return the refusals."""
    refusals = paths.send_all(STORING)
    refusals += paths.send_all(all_reads())
    run_jobs(account, after=timedelta(minutes=30), dry_run=True)
    run_jobs(account, after=timedelta(minutes=30), dry_run=False)
    for requests, days in ((CHANGING, 1), (OF_WORK, 60), (ERASING, 500)):
        refusals += paths.send_all(requests)
        run_jobs(account, after=timedelta(days=days), dry_run=False)
    return refusals


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_statement_of_requests_and_jobs_says_the_account_of_its_tables(paths: HotPaths, account: Account) -> None:
    with statements_captured() as statements:
        refusals = work(paths, account)

    found = {(place, table): sql for sql, place in statements.items() for table in unfiltered_tables(sql)}
    assert refusals == [], "\n".join(refusals)
    assert {str(operation) for operation in operations()} <= paths.sent
    assert sorted(found.keys() - EXCEPTIONS.keys()) == [], {key: found[key] for key in found.keys() - EXCEPTIONS.keys()}
    assert EXCEPTIONS.keys() - found.keys() == set(), "these need no exception any more"

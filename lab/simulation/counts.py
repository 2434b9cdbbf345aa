"""Counts of everything in an account, by name: `memories fact live`, `links ABOUT`, `access counts`.

One statement. What belongs to no account (partitions, samples) is counted as a whole.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db import connection

Counts = Mapping[str, int]

STATE = (
    "CASE WHEN quarantined THEN 'quarantined' WHEN archived THEN 'archived' WHEN buried THEN 'buried' ELSE 'live' END"
)
OF_ACCOUNT = (
    f"SELECT 'memories ' || kind || ' ' || {STATE}, count(*) FROM memories WHERE {{mine}} GROUP BY 1",  # noqa: S608 - constants
    "SELECT 'unembedded', count(*) FROM memories WHERE {mine} AND embed_after IS NOT NULL",
    "SELECT 'access counts', coalesce(sum(access_count), 0)::bigint FROM memories WHERE {mine}",
    "SELECT 'links ' || type, count(*) FROM memory_links WHERE {mine} GROUP BY 1",
    "SELECT 'vectors ' || kind, count(*) FROM memory_vectors WHERE {mine} AND passage = 0 GROUP BY 1",
    """SELECT 'short-term ' || CASE WHEN promoted_at IS NOT NULL THEN 'promoted' WHEN access_count >= 3
        THEN 'waiting' ELSE 'other' END, count(*) FROM agent_short_term_memories WHERE {mine} GROUP BY 1""",
    "SELECT 'conversations', count(*) FROM conversations WHERE {mine}",
    """SELECT 'conversations ' || state, count(*) FROM conversations CROSS JOIN LATERAL (VALUES
        ('archived', archived), ('ended', ended_at IS NOT NULL), ('cleared', cleared_at IS NOT NULL),
        ('to extract', extract_after IS NOT NULL), ('extracted', consolidated_at IS NOT NULL),
        ('extraction parked', extract_parked_at IS NOT NULL), ('to summarize', summarize_after IS NOT NULL),
        ('summary parked', summary_parked_at IS NOT NULL),
        ('looked at for patterns', patterns_extracted_at IS NOT NULL)
    ) AS states (state, is_so) WHERE {mine} AND is_so GROUP BY 1""",
    """SELECT 'turns forgotten by extraction', coalesce(sum(turn_count - extracted_count), 0)::bigint
    FROM conversations WHERE {mine} AND extract_after IS NULL AND extract_parked_at IS NULL""",
    "SELECT 'turns summarized', coalesce(sum(summarized_count), 0)::bigint FROM conversations WHERE {mine}",
    """SELECT 'turns covered by summaries', coalesce(sum(turns), 0)::bigint FROM (
        SELECT max((metadata->>'last_index')::int) + 1 AS turns FROM memories
        WHERE {mine} AND kind = 'episode' AND NOT archived GROUP BY conversation_id) AS covered""",
    """SELECT 'turns of archived conversations', coalesce(sum(turn_count), 0)::bigint FROM conversations
    WHERE {mine} AND archived""",
    "SELECT 'facts ' || status, count(*) FROM memories WHERE {mine} AND kind = 'fact' GROUP BY 1",
    """SELECT 'beliefs of facts', coalesce(sum(belief_number), 0)::bigint
    FROM memories WHERE {mine} AND kind = 'fact' AND recorded_at IS NOT NULL""",
    "SELECT 'fact versions ' || reason, count(*) FROM fact_versions WHERE {mine} GROUP BY 1",
    "SELECT 'fact reviews ' || status, count(*) FROM fact_reviews WHERE {mine} GROUP BY 1",
    "SELECT 'fact tombstones', count(*) FROM fact_tombstones WHERE {mine}",
    "SELECT 'entity names', count(*) FROM entity_names WHERE {mine}",
    """SELECT 'names of entities', coalesce(sum(1 + jsonb_array_length(aliases)), 0)::bigint
    FROM memories WHERE {mine} AND kind = 'entity'""",
    "SELECT 'profiles', count(*) FROM user_profiles WHERE {mine}",
    "SELECT 'preferences', count(*) FROM user_profiles, jsonb_object_keys(preferences) WHERE {mine}",
    """SELECT 'strategies ' || sort, coalesce(sum(n), 0)::bigint FROM memories
    CROSS JOIN LATERAL (VALUES ('succeeded', success_count), ('failed', failure_count)) AS uses (sort, n)
    WHERE {mine} AND kind = 'strategy' GROUP BY 1""",
    """SELECT 'strategy uses ' || CASE WHEN success THEN 'succeeded' ELSE 'failed' END, count(*)
    FROM strategy_uses WHERE {mine} GROUP BY 1""",
    "SELECT 'strategy tools', count(*) FROM strategy_tools WHERE {mine}",
    """SELECT 'tools named by strategies', count(DISTINCT (id, tool))
    FROM memories, jsonb_array_elements_text(tool_sequence) AS tool
    WHERE {mine} AND kind = 'strategy'""",
    "SELECT 'tools', count(*) FROM tools WHERE {mine}",
    "SELECT 'tool invocations', count(*) FROM tool_invocations WHERE {mine}",
    "SELECT 'goals ' || status, count(*) FROM memories WHERE {mine} AND kind = 'goal' GROUP BY 1",
    """SELECT 'goals looked at for patterns', count(*) FROM memories
    WHERE {mine} AND kind = 'goal' AND patterns_extracted_at IS NOT NULL""",
    "SELECT 'records of level ' || level, count(*) FROM turn_records WHERE {mine} GROUP BY 1",
    """SELECT 'votes ' || sort, coalesce(sum(n), 0)::bigint FROM memories
    CROSS JOIN LATERAL (VALUES ('helpful', helpful_count), ('unhelpful', unhelpful_count)) AS votes (sort, n)
    WHERE {mine} AND kind = 'learning' GROUP BY 1""",
    "SELECT 'entry versions', count(*) FROM context_entry_versions WHERE {mine}",
    "SELECT 'contexts', count(*) FROM persistent_contexts WHERE {mine}",
    "SELECT 'access log ' || action, sum(count)::bigint FROM context_access_logs WHERE {mine} GROUP BY 1",
    "SELECT 'pools', count(*) FROM memory_pools WHERE {mine}",
    "SELECT 'results of tools', count(*) FROM tool_cache_entries WHERE {mine}",
    "SELECT 'answers', count(*) FROM idempotent_requests WHERE {mine}",
    "SELECT 'injections ' || event, count(*) FROM injections WHERE {mine} GROUP BY 1",
    "SELECT 'terms', count(*) FROM memory_terms WHERE {mine}",
    "SELECT 'documents', coalesce(sum(docs), 0)::bigint FROM memory_terms WHERE {mine} AND term = ''",
    """SELECT 'audited ' || operation || ' ' || memory_type, sum(greatest(cardinality(affected_ids), 1))::bigint
    FROM memory_audit_log WHERE {mine} AND operation <> 'retrieve' GROUP BY 1""",
    "SELECT 'reads audited', count(*) FROM memory_audit_log WHERE {mine} AND operation = 'retrieve'",
    "SELECT 'job runs', count(*) FROM job_runs WHERE {mine}",
)
OF_ALL = (
    "SELECT 'partitions', count(*) FROM pg_inherits WHERE inhparent = 'memory_audit_log'::regclass",
    "SELECT 'samples', count(*) FROM metric_samples",
    """SELECT 'vector indexes', count(*) FROM pg_index
        JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'memory_vectors'::regclass
        WHERE pg_get_expr(indpred, indrelid) LIKE '%%' || {account} || '%%'""",
)
MINE, ACCOUNT = "account_id = %(account_id)s", "%(account_id)s::text"
STATEMENT = "\nUNION ALL ".join(each.format(mine=MINE, account=ACCOUNT) for each in (*OF_ACCOUNT, *OF_ALL))


def count_everything(account_id: UUID) -> Counts:
    """Return the counts by name; a count of zero may be missing."""
    with connection.cursor() as cursor:
        cursor.execute(STATEMENT, {"account_id": account_id})
        return {name: int(number) for name, number in cursor.fetchall()}


def changes(before: Counts, after: Counts) -> dict[str, int]:
    """Return the counts that changed, and by how much."""
    differences = {name: after.get(name, 0) - before.get(name, 0) for name in {*before, *after}}
    return {name: number for name, number in sorted(differences.items()) if number}


# of the statement that made it, before the entry that its transaction writes at its end; one worker extracts
EXTRACTED = """
SELECT count(*) FROM memory_links WHERE account_id = %(account_id)s AND created_at >= %(since)s AND created_at <= (
    SELECT max(timestamp) FROM memory_audit_log
    WHERE account_id = %(account_id)s AND operation = 'extract' AND timestamp >= %(since)s
)"""


def count_extracted_links(account_id: UUID, since: datetime) -> int:
    """Count the links made since, up to the last entry of an extraction in the audit log."""
    with connection.cursor() as cursor:
        cursor.execute(EXTRACTED, {"account_id": account_id, "since": since})
        return int(cursor.fetchone()[0])

"""The registry of stores: for each table, what erasing a user does to it.

What can be derived from the models is: a column `user_id` says whose rows are, a reference to a memory that cascades
says which rows go with a memory, and the types of columns say which may hold texts. For the rest, a table with texts
has a rule in RULES. What becomes of other tables and of the keys of Redis is said in the test of this module.
"""

from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from memory.models import MemoryRow
from memory.models.statements import fetch_rows
from memory.services.custody.naming import Naming
from memory_project.tenancy import AccountForeignKey

Model = type[models.Model]


class StoreRule(Enum):
    """The fate of a row of others whose texts name an erased user."""

    DELETE = "the row is deleted"
    MASK = "the texts and members of JSON that name the user are removed from the row"
    MEMORY = "the memory that the row belongs to is erased"
    OWN_STEP = "a step of its own erases it"
    KEEP = "it cannot hold texts about users"


RULES: dict[str, StoreRule] = {
    "accounts": StoreRule.KEEP,
    "staff_limits": StoreRule.KEEP,
    "agents": StoreRule.MASK,
    "teams": StoreRule.MASK,
    "api_keys": StoreRule.MASK,
    "user_profiles": StoreRule.MASK,
    "persistent_contexts": StoreRule.MASK,
    "conversations": StoreRule.MASK,
    "conversation_participants": StoreRule.DELETE,
    "context_snapshots": StoreRule.DELETE,
    "fact_tombstones": StoreRule.KEEP,
    "job_runs": StoreRule.KEEP,
    "memory_links": StoreRule.DELETE,
    "memory_audit_log": StoreRule.OWN_STEP,
    "memory_terms": StoreRule.OWN_STEP,
    "memories": StoreRule.OWN_STEP,
    "memory_vectors": StoreRule.OWN_STEP,
    "idempotent_requests": StoreRule.DELETE,
    "workflow_runs": StoreRule.MASK,
    "memory_pools": StoreRule.MASK,
    "blackboard_postings": StoreRule.DELETE,
    "tool_cache_entries": StoreRule.DELETE,
    "tools": StoreRule.MASK,
    "tool_invocations": StoreRule.MASK,
    "agent_short_term_memories": StoreRule.DELETE,
    "agent_working_memories": StoreRule.DELETE,
    "turn_records": StoreRule.MASK,
    "injections": StoreRule.DELETE,
    "metric_samples": StoreRule.KEEP,
    "model_usage": StoreRule.KEEP,
    "erasures": StoreRule.OWN_STEP,
    "bulk_changes": StoreRule.MASK,
    "bulk_change_pages": StoreRule.KEEP,
    "transfers": StoreRule.OWN_STEP,
    "embedding_state": StoreRule.KEEP,
}
"""Rules of tables by name. Rows that go with a memory need none: theirs is StoreRule.MEMORY."""

WHOLE_IF_NAMED = {"memory_pools": "pool_id", "workflow_runs": "workflow_run_id", "persistent_contexts": "name"}
"""Columns by which a row belongs to a user as a whole, where they name the user, by table."""

NOT_SEARCHED = frozenset(
    {
        *("agent_id", "channel", "language", "identity", "content_hash", "embed_error", "actor", "editor", "role"),
        *("model", "status", "certainty", "temporal", "valid_from_source", "entry_type", "source_type", "memory_type"),
        *("slot", "tier", "provenance", "compressor", "source", "secret_hash", "prefix", "scopes", "access_control"),
        *("summary_error", "extract_error", "compress_error", "name_digest", "request_hash", "body_hash", "agents"),
        *("content_type", "etag", "stream_id", "event", "decided_by", "tool_name", "requested_by"),
    }
)
"""Columns that hold names of the account's own software, hashes, or words of a fixed list."""
TEXTS = (models.CharField, models.TextField, models.JSONField, ArrayField)


@cache
def tables() -> dict[str, Model]:
    """Return the models that make tables, by the table's name."""
    found = [model for app in ("memory", "ledger") for model in apps.get_app_config(app).get_models()]
    return {model._meta.db_table: model for model in found if model._meta.managed and not model._meta.proxy}


def has_user(model: Model) -> bool:
    """Return True for a table whose rows may belong to a user."""
    return any(field.name == "user_id" for field in model._meta.concrete_fields)


def memory_field(model: Model) -> str:
    """Return the field that refers to the memory which a row goes with; "" for tables whose rows go with none."""
    for field in model._meta.concrete_fields:
        relation: Any = field.remote_field
        refers = isinstance(field, AccountForeignKey) and issubclass(relation.model, MemoryRow)
        if refers and relation.on_delete is models.CASCADE and not issubclass(model, MemoryRow):
            return field.name
    return ""


def text_fields(model: Model) -> "list[models.Field[Any, Any]]":
    """Return the columns of a table that may hold texts about a user."""
    found = [field for field in model._meta.concrete_fields if isinstance(field, TEXTS)]
    return [field for field in found if field.name not in {*NOT_SEARCHED, "user_id"} and not field.choices]


def rule_of(model: Model) -> StoreRule:
    """Return the rule of a table. Raises LookupError for a table with texts and without a rule."""
    table = model._meta.db_table
    if table in RULES:
        return RULES[table]
    if not text_fields(model):
        return StoreRule.KEEP
    if memory_field(model):
        return StoreRule.MEMORY
    raise LookupError(f"the table {table} has texts and no rule in memory.services.custody.stores.RULES")


def text_of(model: Model) -> str:
    """Return the SQL of a row's texts as one text, in which each column stands between line feeds."""
    columns = []
    for field in text_fields(model):
        # json keeps escapes as they were sent, jsonb does not
        name = f't."{field.column}"'
        columns.append(f"{name}::jsonb::text" if isinstance(field, models.JSONField) else f"{name}::text")
    return "E'\\n' || concat_ws(E'\\n', " + ", ".join(columns) + ") || E'\\n'"


def find_named(
    model: Model, account_id: UUID, naming: Naming, *, after: UUID, scan: int, column: str = "id"
) -> tuple[list[UUID], UUID | None]:
    """Return what `column` has in those of the next `scan` rows that name the user, and the row to continue after.

    That is None at the end of the table.
    """
    # composed of names of the models alone
    statement = f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM {model._meta.db_table} WHERE account_id = %s AND id > %s ORDER BY id LIMIT %s
    )
    SELECT (SELECT max(id::text) FROM page), (SELECT count(*) FROM page),
        ARRAY(SELECT t.{column} FROM page t WHERE {text_of(model)} ~ %s)
    """  # noqa: S608
    ((last, count, found),) = fetch_rows(statement, [account_id, after, scan, naming.pattern])
    return list(found), UUID(last) if count == scan else None

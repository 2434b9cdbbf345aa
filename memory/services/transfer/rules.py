"""The registry of tables for archives: each is exported, or left out for a reason. Columns come from the models."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from pgvector.django import HalfVectorField

from memory.services.custody.stores import Model, tables
from memory_project.fields import SealedJSONField
from memory_project.tenancy import ReferenceInAccount

EXPORTED = frozenset(
    {
        *("agents", "teams", "team_members", "user_profiles", "workflow_runs", "tools", "fact_tombstones"),
        *("conversations", "conversation_participants", "turn_records", "reasoning_traces", "tool_invocations"),
        *("memories", "memory_links", "memory_vectors", "entity_names", "fact_versions", "fact_reviews"),
        *("strategy_tools", "strategy_uses", "learning_votes", "injections"),
        *("persistent_contexts", "context_entry_versions", "context_snapshots", "context_snapshot_entries"),
        *("context_access_logs", "memory_pools", "blackboard_postings", "tool_cache_entries"),
        *("agent_short_term_memories", "agent_working_memories"),
    }
)
"""Tables that an archive has."""

LEFT_OUT = {
    "accounts": "rows are imported into an account that exists, with settings of its own",
    "api_keys": "secrets of the installation",
    "embedding_state": "the embedding models of the installation",
    "bulk_change_pages": "rows of bulk changes",
    "bulk_changes": "the record of what staff did in the installation",
    "encryption_canary": "belongs to the keys of the installation",
    "erasures": "marks and receipts under the key of the installation",
    "idempotent_requests": "answers to keys of the installation",
    "job_runs": "work of the installation",
    "memory_audit_log": "the record of what happened in the installation",
    "memory_terms": "counted when memories are stored",
    "metric_samples": "measurements of the installation",
    "model_usage": "costs of the installation",
    "reembed_queue": "work of the installation",
    "staff_limits": "staff of the installation",
    "transfer_parts": "archives themselves",
    "transfer_unstored_rows": "imports in progress",
    "transfers": "exports and imports of the installation",
}
"""Tables that an archive does not have, and why."""

OMITTED_COLUMNS: dict[str, frozenset[str]] = {
    "memories": frozenset({"embed_after", "embed_attempts", "embed_error"}),
    "conversations": frozenset({"summary_lease_until", "extract_lease_until", "erasing"}),
    # a vector repeats the owner's columns of its memory
    "memory_vectors": frozenset(
        {"kind", "agent_id", "user_id", "channel", "conversation_id", "context_id", "live", "event_time", "expires_at"}
    ),
}
"""Columns of work in progress, and such as follow from others. The account is never exported."""

ADDED_COLUMNS: dict[int, dict[str, dict[str, Any]]] = {}
"""Columns that a version of the format added, by version and table, with what rows of older archives get for them."""

TO_EMBED = "to_embed"
"""A member of memories besides their columns: true if a vector of it is there or due."""

SHARED = frozenset({"tools", "teams", "workflow_runs"})
"""Tables whose rows an archive of an agent or a user has if another row of it refers to them."""

BY_CONVERSATION = frozenset({"conversation_participants", "injections"})
"""Tables whose rows go with the conversation that `conversation_id` names."""

JOINING = frozenset({"memory_links", "tool_invocations", "strategy_tools", "strategy_uses", "team_members"})
"""Tables whose rows are imported even if what they belong to was in the account before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference to a row of the account. A row goes with what it refers to by one that `cascades`."""

    column: str
    target: str
    cascades: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """A table that archives have. `references` are set when a row is stored, `late_references` after all rows are."""

    name: str
    model: Model
    fields: "tuple[models.Field[Any, Any], ...]"
    references: tuple[Reference, ...]
    late_references: tuple[Reference, ...]

    @property
    def all_references(self) -> tuple[Reference, ...]:
        return (*self.references, *self.late_references)

    @property
    def file(self) -> str:
        return f"{self.name}.jsonl"

    @property
    def columns(self) -> list[str]:
        """The members of a line, in order."""
        names = [str(field.column) for field in self.fields]
        return sorted([*names, TO_EMBED] if self.name == "memories" else names)

    @property
    def sealed(self) -> list[str]:
        """The columns that are encrypted at rest."""
        return [str(field.column) for field in self.fields if isinstance(field, SealedJSONField)]

    @property
    def is_of_users(self) -> bool:
        """True if a line says whose the row is."""
        return any(field.column == "user_id" for field in self.fields)

    def db_type(self, field: "models.Field[Any, Any]") -> str:
        # without a length: a cast to it would truncate what the table refuses
        kind = str(field.db_type(connection))
        return kind if isinstance(field, (ArrayField, HalfVectorField)) else kind.partition("(")[0]


def added_since(version: int, table: str) -> dict[str, Any]:
    """Return the columns that rows of a table lack in an archive of a version, with their values."""
    later = (tables[table] for each, tables in ADDED_COLUMNS.items() if each > version and table in tables)
    return {column: value for columns in later for column, value in columns.items()}


def references_of(model: Model) -> list[Reference]:
    """Return the references of a table, by column."""
    found = []
    for constraint in model._meta.constraints:
        if isinstance(constraint, ReferenceInAccount):
            field: Any = model._meta.get_field(constraint.field)
            cascades = constraint.cascades
            if cascades is None:
                cascades = field.remote_field.on_delete is models.CASCADE
            target = field.related_model._meta.db_table
            found.append(Reference(column=str(field.column), target=target, cascades=cascades))
    return sorted(found, key=lambda each: each.column)


@cache
def exported_tables() -> dict[str, ExportedTable]:
    """Return the exported tables by name, each after those that its rows go with.

    References that such an order cannot serve are `late_references`.
    """
    references = {name: references_of(tables()[name]) for name in EXPORTED}
    placed: dict[str, ExportedTable] = {}
    while len(placed) < len(EXPORTED):
        name = next_table(references, placed)
        model, own = tables()[name], references[name]
        omitted = OMITTED_COLUMNS.get(name, frozenset()) | {"account_id"}
        fields = [field for field in model._meta.concrete_fields if field.column not in omitted]
        placed[name] = ExportedTable(
            name=name,
            model=model,
            fields=tuple(sorted(fields, key=lambda field: str(field.column))),
            references=tuple(each for each in own if each.target in placed),
            late_references=tuple(each for each in own if each.target not in placed),
        )
    return placed


def next_table(references: dict[str, list[Reference]], placed: dict[str, ExportedTable]) -> str:
    """Return the next table whose parents are placed, one without late references if there is any."""
    free = [
        name
        for name in sorted(references.keys() - placed.keys())
        if all(each.target in placed for each in references[name] if each.cascades)
    ]
    complete = [name for name in free if all(each.target in placed for each in references[name])]
    return (complete or free)[0]

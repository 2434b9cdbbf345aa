"""Rows of every kind and every table in the schema before kinds had one table (memory 0019, ledger 0001)."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zlib import crc32

from django.db import connection, models
from django.utils import timezone

from memory_project.ids import uuid7

ROWS = 5
"""Rows of each model in each account. The first has NULL wherever it may, the second is empty wherever it may."""

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ORDER = [
    "ApiKey",
    "IdempotentRequest",
    "AuditEntry",
    "JobRun",
    "Participant",
    "Agent",
    "ModelUsage",
    "Injection",
    "UserProfile",
    "FactTombstone",
    "Team",
    "TeamMember",
    "WorkflowRun",
    "AgentShortTermMemory",
    "SavedWorkingMemory",
    "PersistentContext",
    "ContextAccessLog",
    "MemoryPool",
    "BlackboardPosting",
    "ToolCacheEntry",
    "Tool",
    "MetricSample",
    "Conversation",
    "Turn",
    "EpisodicMemory",
    "Fact",
    "Entity",
    "Strategy",
    "Goal",
    "ContextEntry",
    "Learning",
    "WorkEpisode",
    "TurnRecord",
    "TurnSlot",
    "Artifact",
    "ContextEntryVersion",
    "ContextSnapshot",
    "SnapshotEntry",
    "LearningVote",
    "EntityName",
    "FactReview",
    "FactVersion",
    "StrategyTool",
    "StrategyUse",
    "ToolInvocation",
    "ReasoningTrace",
    "Link",
    "Vector",
]
"""Models, each after those that it refers to."""

KINDS = {
    "turns": "turn",
    "episodic_memories": "episode",
    "facts": "fact",
    "entities": "entity",
    "strategies": "strategy",
    "goals": "goal",
    "context_entries": "context_entry",
    "turn_slots": "turn_slot",
    "work_episodes": "work_episode",
    "artifacts": "artifact",
    "learnings": "learning",
}
"""Former tables and the kinds of their rows."""

SAID = 'Zoë "sings" \\ \t日本語 🎶 {}%s\n'
DOCUMENT = {"z": 1.50, "a": [None, "Zoë", {"y": "", "b": -0.0}], "10": 1e21}
READERS = {"read": ["*"], "write": [], "public_read": False}

Choose = Callable[[int], Any]


def cycle(*values: Any) -> Choose:
    return lambda number: values[number % len(values)]


def unless(*numbers: int, value: Any) -> Choose:
    return lambda number: None if number in numbers else value


AT: Mapping[str, Choose] = {"recorded_at": cycle(NOW), "retracted_at": unless(0, 1, value=NOW + timedelta(days=1))}
SPAN: Mapping[str, Choose] = {"valid_from": unless(0, value=NOW), "valid_to": unless(0, 1, value=NOW + timedelta(1))}
TIERS = ("none", "decision_summary", "structured_rationale")

# what checks and unique constraints ask for, by model and field
CHOSEN: Mapping[str, Mapping[str, Choose]] = {
    "ApiKey": {"scopes": cycle(["memory:read"], [])},
    "AuditEntry": {"timestamp": lambda _: timezone.now()},
    "JobRun": {
        "status": cycle("queued", "running", "completed", "incomplete", "failed"),
        "lease_until": unless(0, 2, 3, 4, value=NOW),
    },
    "Injection": {"event": cycle("marked", "ended", "evicted")},
    "WorkflowRun": {"status": cycle("running", "completed", "failed", "cancelled", "completed")},
    "PersistentContext": {"access_control": cycle(READERS)},
    "MemoryPool": {
        "access_control": cycle(READERS),
        "pool_type": cycle("shared", "agent_private", "shared_memory", "tool_cache", "blackboard"),
        "scope": cycle("global", "agent", "account", "team", "task"),
        "workflow_run": lambda number: None if number < 2 else ...,
        "is_own": lambda number: number == 1,
        "agent_id": cycle("assistant"),
    },
    "Tool": {"usage_count": cycle(50_000)},
    "Conversation": {"turn_count": cycle(50_000)},
    "Fact": {
        **AT,
        **SPAN,
        "recorded_at": unless(0, value=NOW),
        "status": cycle("pending", "active", "superseded", "retracted", "rejected"),
    },
    "FactVersion": {**AT, **SPAN},
    "FactReview": {"status": cycle("open", "accepted_new", "kept_old", "both_true", "kept_old")},
    "Goal": {
        "status": cycle("active", "blocked", "completed", "abandoned", "completed"),
        "completed_at": unless(0, 1, value=NOW),
    },
    "TurnRecord": {"last_index": unless(0, value=50_000)},
    "TurnSlot": {
        "slot": cycle("observation", "reasoning", "action", "outcome", "reasoning"),
        "tier": cycle("", "decision_summary", "", "", "none"),
        "provenance": cycle("", "provider_trace", "", "", "replay"),
        "level": cycle(0, 1),
    },
    "WorkEpisode": {"last_number": cycle(50_000), "level": cycle(2, 3), "tier": cycle(*TIERS)},
    "Link": {"type": cycle("SUBGOAL_OF", "SUBGOAL_OF", "CAUSED", "ABOUT", "Ähnlich")},
    "Vector": {"width": cycle(3)},
}


def fill(apps: Any) -> None:
    """Store rows of every model in two accounts."""
    for name in ("workshop", "strangers"):
        account = apps.get_model("memory", "Account").objects.create(
            name=name, settings={"b": 1, "a": []}, language="english", created_at=NOW
        )
        made: dict[str, list[Any]] = {"Account": [account] * ROWS, "Memory": []}
        for model_name in ORDER:
            model = apps.get_model("ledger" if model_name == "Injection" else "memory", model_name)
            rows = made[model_name] = []
            for number in range(ROWS):
                rows.append(make(model, number, made))
            if model._meta.pk.name == "memory_ptr":
                made["Memory"] += rows
    apps.get_model("memory", "EncryptionCanary").objects.create(id=1, value="canary")


def make(model: Any, number: int, made: dict[str, list[Any]]) -> Any:
    """Store one row: what the model's constraints ask for, else values by the types of columns."""
    chosen, values = CHOSEN.get(model.__name__, {}), {}
    for field in model._meta.concrete_fields:
        if field.name == "memory_ptr":
            continue
        value = chosen[field.name](number) if field.name in chosen else ...
        values[field.attname] = value_of(model, field, number, made) if value is ... else value
    return model.objects.create(**values)


def value_of(model: Any, field: Any, number: int, made: dict[str, list[Any]]) -> Any:
    """Return the value of a column: NULL or empty in early rows if it may be."""
    if field.primary_key:
        return uuid7()
    if field.name == "kind":
        return KINDS.get(model._meta.db_table, "fact")
    if field.name == "context" and model._meta.pk.name == "memory_ptr":
        return made["PersistentContext"][number].pk if model.__name__ in ("ContextEntry", "Learning") else None
    if field.name == "account_id":
        return made["Account"][0].pk
    if number == 0 and field.null:
        return None
    if field.remote_field:
        return target_of(field, number, made)
    if field.choices and not (number == 1 and field.blank):
        return field.choices[number % len(field.choices)][0]
    return plain_value(field, number, account=made["Account"][0].name)


def target_of(field: Any, number: int, made: dict[str, list[Any]]) -> Any:
    """Return the key of a row of the same account, of the same number if it does not refer to its own table."""
    rows = made[field.related_model.__name__]
    if field.name in ("target", "new_fact"):
        return rows[(number + 1) % len(rows)].pk
    if field.name == "memory":
        # of different kinds
        return rows[number * ROWS].pk
    return rows[min(number, len(rows) - 1)].pk


VALUES: Mapping[str, Callable[[Any, int, int], Any]] = {
    "UUIDField": lambda _field, _number, _amount: uuid7(),
    "JSONField": lambda _field, number, amount: [{}, [], DOCUMENT | {"n": amount}][number % 3],
    "BinaryField": lambda _field, _number, amount: {"sealed": amount},
    "BooleanField": lambda _field, number, _amount: number % 4 == 3,
    "FloatField": lambda _field, _number, amount: amount / 1_007,
    "DecimalField": lambda _field, _number, amount: Decimal(amount) / 1_000,
    "DateField": lambda _field, number, _amount: date(2026, 5, 1) + timedelta(days=number),
    "DateTimeField": lambda _field, _number, amount: NOW + timedelta(minutes=amount, microseconds=amount),
    "ArrayField": lambda field, _number, _amount: [uuid7()] if "ids" in field.name else ["b", "", "Zoë"],
    "HalfVectorField": lambda _field, number, _amount: [0.5, -1.0, float(number)],
}
"""Values by the type of a column, from the field, the number of the row and an amount. Other types are integers."""


def plain_value(field: Any, number: int, *, account: str) -> Any:
    """Return a value that tells the column and the row it belongs to."""
    if isinstance(field, models.CharField | models.TextField):
        return "" if number == 1 and field.blank else text_value(field, number, account)
    # the same for the columns of a name in all tables
    amount = crc32(field.name.encode()) % 1_000 + 1 + number
    value = VALUES.get(field.get_internal_type())
    return value(field, number, amount) if value else amount


def text_value(field: Any, number: int, account: str) -> str:
    if field.name == "language":
        return "german"
    return f"{number} {account} {field.name} {SAID}"[: field.max_length]


def contents() -> dict[str, dict[str, dict[str, str]]]:
    """Return all rows by table and key, with the columns that are not NULL as texts.

    The columns of a former table are those of its memories: they appear as they do in the one table.
    """
    found = {table: rows_of(table) for table in tables()}
    for table in KINDS.keys() & found.keys():
        for key, row in found.pop(table).items():
            del row["memory_ptr_id"]
            found["memories"][key] |= {RENAMED.get((table, name), name): value for name, value in row.items()}
    return {
        table: {key: {name: value for name, value in row.items() if value is not None} for key, row in rows.items()}
        for table, rows in found.items()
    }


LAST_ALIKE = "0030_tombstone_meanings"
"""The last version whose rows are those of the former one: the next ones fold the words of texts, and add columns."""

ADDED = {
    ("accounts", "contradictions"),
    ("api_keys", "user_id"),
    ("fact_tombstones", "meaning_digest"),
    ("memories", "valid_from_source"),
}
"""Columns of later versions, by table."""

RENAMED = {("artifacts", "record_id"): "source_record_id"}
"""Columns that have another name in the one table."""

TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND NOT relispartition AND relname !~ '^(auth|django)_' ORDER BY 1
"""


def tables() -> list[str]:
    """Return the tables of the service, without partitions."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return [name for (name,) in cursor.fetchall()]


def rows_of(table: str) -> dict[str, dict[str, str | None]]:
    """Return the rows of a table by key, with their columns as texts."""
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, table)
        names = [column.name for column in described if (table, column.name) not in ADDED]
        key = "memory_ptr_id" if "memory_ptr_id" in names else "id"
        texts = ", ".join(f'"{name}"::text' for name in names)
        cursor.execute(f"SELECT {key}::text, {texts} FROM {table}")
        return {row[0]: dict(zip(names, row[1:], strict=True)) for row in cursor.fetchall()}

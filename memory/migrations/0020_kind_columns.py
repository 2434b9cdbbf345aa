"""One table for all kinds, first half: columns for what the tables of kinds hold, and the values copied into them.

Each part commits by itself, reads and writes of the former release go on meanwhile, and a migration that was stopped
goes on where it was: rows that are copied are not copied again. The second half is `0021_one_table`.
"""

import sys
from collections.abc import Iterator
from typing import Any

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState, StateApps

import memory_project.fields
import memory_project.ids
import memory_project.tenancy

TABLES = {
    "turn": "turns",
    "episodicmemory": "episodic_memories",
    "fact": "facts",
    "entity": "entities",
    "strategy": "strategies",
    "goal": "goals",
    "contextentry": "context_entries",
    "turnslot": "turn_slots",
    "workepisode": "work_episodes",
    "artifact": "artifacts",
    "learning": "learnings",
}
"""Models of kinds and the tables they had."""

RENAMED = {("artifacts", "record_id"): "source_record_id"}
"""Columns that have another name in the one table, since slots of records have that name."""

ROWS_AT_A_TIME = 5_000
"""Rows of a statement that copies: a second or two, and locks of that long."""


class UnifyKinds(migrations.operations.base.Operation):
    """Make the models of kinds unmanaged, each with all the columns of a memory, over the table `memories`."""

    reduces_to_sql = False
    reversible = False

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        memory = state.models[app_label, "memory"]
        memory.options["managed"] = False
        for name in TABLES:
            kind = state.models[app_label, name]
            own = {name: field for name, field in kind.fields.items() if name != "memory_ptr"}
            kind.fields = {name: field.clone() for name, field in memory.fields.items()} | own
            kind.bases = (models.Model,)
            kind.options |= {"managed": False, "db_table": "memories", "constraints": [], "indexes": []}
        state.__dict__.pop("apps", None)
        state._relations = None  # type: ignore[attr-defined]

    def database_forwards(self, *args: Any) -> None:
        pass

    def describe(self) -> str:
        return "Make the models of kinds models of the table of memories"


def columns_of(editor: BaseDatabaseSchemaEditor, table: str) -> dict[str, str]:
    """Return the columns of a kind's former table, without its key, and their names in the one table."""
    with editor.connection.cursor() as cursor:
        described = editor.connection.introspection.get_table_description(cursor, table)
    names = [column.name for column in described if column.name != "memory_ptr_id"]
    return {name: RENAMED.get((table, name), name) for name in names}


def add_columns(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Add the columns of the kinds, NULL for now, in one statement, which rewrites no row."""
    quote, table = editor.quote_name, apps.get_model("memory", "MemoryTable")
    wanted = {name for former in TABLES.values() for name in columns_of(editor, former).values()}
    missing = wanted - columns_of(editor, "memories").keys()
    parts = []
    for field in table._meta.local_fields:
        if field.column in missing:
            check = field.db_parameters(editor.connection)["check"]
            column_type = f"{field.db_type(editor.connection)}{f' CHECK ({check})' if check else ''}"
            parts.append(f"ADD COLUMN {quote(field.column)} {column_type}")
    # a migration that goes on has them, and should not lock the table again
    if parts:
        editor.execute(f"ALTER TABLE memories {', '.join(parts)}")


def copy_statement(editor: BaseDatabaseSchemaEditor, table: str, chosen: str) -> str:
    """Return the statement that copies the chosen rows of a former table where they differ from the copy."""
    quote, columns = editor.quote_name, columns_of(editor, table)
    assigned = ", ".join(f"{quote(new)} = kind.{quote(old)}" for old, new in columns.items())
    # as texts, since the type json has no comparison
    copied = ", ".join(f"m.{quote(new)}::text" for new in columns.values())
    source = ", ".join(f"kind.{quote(old)}::text" for old in columns)
    return f"""UPDATE memories m SET {assigned} FROM {chosen} AS kind
        WHERE m.id = kind.memory_ptr_id AND ({copied}) IS DISTINCT FROM ({source})"""  # noqa: S608


def copy_rows(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Copy the rows of all kinds into the columns, and print how far it is where there is much to copy."""
    for table in TABLES.values():
        chosen = f"(SELECT * FROM {table} WHERE memory_ptr_id > %s AND memory_ptr_id <= %s)"  # noqa: S608
        statement = copy_statement(editor, table, chosen)
        with editor.connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  a name of this module
            (total,) = cursor.fetchone()
        copied = 0
        for after, until, rows in ranges_of(editor, table):
            editor.execute(statement, [after, until])
            copied += rows
            if total > ROWS_AT_A_TIME:
                sys.stdout.write(f"\n    {table}: {copied:,} of {total:,} rows copied")


def ranges_of(editor: BaseDatabaseSchemaEditor, table: str) -> Iterator[tuple[Any, Any, int]]:
    """Yield the ranges of keys, exclusive and inclusive, that hold at most `ROWS_AT_A_TIME` rows, and their number."""
    after: Any = "00000000-0000-0000-0000-000000000000"
    while True:
        with editor.connection.cursor() as cursor:
            cursor.execute(
                f"""SELECT max(memory_ptr_id::text)::uuid, count(*) FROM (
                    SELECT memory_ptr_id FROM {table} WHERE memory_ptr_id > %s ORDER BY memory_ptr_id LIMIT %s
                ) AS next""",  # noqa: S608
                [after, ROWS_AT_A_TIME],
            )
            until, rows = cursor.fetchone()
        if until is None:
            return
        yield after, until, rows
        after = until


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0019_encryption_canary")]

    operations = [
        UnifyKinds(),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="MemoryTable",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        (
                            "account",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.account",
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("turn", "Turn"),
                                    ("episode", "Episode"),
                                    ("fact", "Fact"),
                                    ("entity", "Entity"),
                                    ("strategy", "Strategy"),
                                    ("goal", "Goal"),
                                    ("context_entry", "Context Entry"),
                                    ("turn_slot", "Turn Slot"),
                                    ("work_episode", "Work Episode"),
                                    ("artifact", "Artifact"),
                                    ("learning", "Learning"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("identity", models.CharField(max_length=300)),
                        ("agent_id", models.CharField(blank=True, default="", max_length=100)),
                        ("user_id", models.CharField(blank=True, default="", max_length=100)),
                        ("channel", models.CharField(default="_global", max_length=100)),
                        ("conversation_id", models.CharField(blank=True, default="", max_length=100)),
                        (
                            "context",
                            memory_project.tenancy.AccountForeignKey(
                                blank=True,
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.persistentcontext",
                            ),
                        ),
                        ("text", models.TextField()),
                        (
                            "language",
                            models.CharField(
                                blank=True,
                                default="",
                                help_text="Language of the text. Empty: the account's language.",
                                max_length=20,
                            ),
                        ),
                        ("content_hash", models.CharField(editable=False, max_length=64)),
                        ("wording", models.BigIntegerField(editable=False, null=True)),
                        ("token_count", models.PositiveIntegerField(default=0)),
                        ("salience", models.FloatField(default=0.5)),
                        ("base_salience", models.FloatField(blank=True, editable=False, null=True)),
                        ("faded_salience", models.FloatField(blank=True, editable=False, null=True)),
                        ("access_count", models.PositiveIntegerField(default=0)),
                        ("last_accessed", models.DateTimeField(blank=True, null=True)),
                        ("event_time", models.DateTimeField()),
                        (
                            "created_at",
                            models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                        ),
                        ("expires_at", models.DateTimeField(blank=True, null=True)),
                        ("archived", models.BooleanField(default=False)),
                        ("quarantined", models.BooleanField(default=False)),
                        (
                            "buried",
                            models.BooleanField(default=False, help_text="Searches do not find it, but lists show it."),
                        ),
                        (
                            "pinned",
                            models.BooleanField(
                                default=False, help_text="Every recall of an agent that may see it returns it."
                            ),
                        ),
                        ("source", models.CharField(blank=True, default="", max_length=50)),
                        ("trust", models.FloatField(default=1.0)),
                        ("version", models.PositiveIntegerField(default=1)),
                        ("metadata", models.JSONField(blank=True, default=dict)),
                        ("embed_after", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("embed_attempts", models.PositiveSmallIntegerField(default=0, editable=False)),
                        ("embed_error", models.CharField(blank=True, default="", editable=False, max_length=100)),
                        (
                            "log",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.conversation",
                            ),
                        ),
                        ("index", models.PositiveIntegerField(null=True)),
                        ("role", models.CharField(max_length=20, null=True)),
                        ("model", models.CharField(max_length=100, null=True)),
                        ("client_id", models.CharField(max_length=100, null=True)),
                        ("payload", memory_project.fields.VerbatimJSONField(null=True)),
                        ("key_decisions", models.JSONField(null=True)),
                        ("entities_mentioned", models.JSONField(null=True)),
                        ("tools_called", models.JSONField(null=True)),
                        ("confidence", models.FloatField(null=True)),
                        ("base_confidence", models.FloatField(null=True)),
                        ("faded_confidence", models.FloatField(null=True)),
                        ("certainty", models.CharField(max_length=20, null=True)),
                        ("temporal", models.CharField(max_length=20, null=True)),
                        ("status", models.CharField(max_length=20, null=True)),
                        ("valid_from", models.DateTimeField(null=True)),
                        ("valid_to", models.DateTimeField(null=True)),
                        ("recorded_at", models.DateTimeField(null=True)),
                        ("retracted_at", models.DateTimeField(null=True)),
                        (
                            "source_turn",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.memory",
                            ),
                        ),
                        ("belief_number", models.PositiveIntegerField(null=True)),
                        ("name", models.CharField(max_length=500, null=True)),
                        ("type", models.CharField(max_length=50, null=True)),
                        ("aliases", models.JSONField(null=True)),
                        ("description", models.TextField(null=True)),
                        ("properties", models.JSONField(null=True)),
                        (
                            "merged_into",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.entity",
                            ),
                        ),
                        ("context_pattern", models.TextField(null=True)),
                        ("task_type", models.CharField(max_length=100, null=True)),
                        ("tool_sequence", models.JSONField(null=True)),
                        ("success_count", models.PositiveIntegerField(null=True)),
                        ("failure_count", models.PositiveIntegerField(null=True)),
                        ("last_used", models.DateTimeField(null=True)),
                        ("priority", models.IntegerField(null=True)),
                        ("deadline", models.DateTimeField(null=True)),
                        ("completed_at", models.DateTimeField(null=True)),
                        ("result", models.TextField(null=True)),
                        ("patterns_extracted_at", models.DateTimeField(null=True)),
                        ("key", models.CharField(max_length=200, null=True)),
                        ("value", memory_project.fields.VerbatimJSONField(null=True)),
                        ("entry_type", models.CharField(max_length=30, null=True)),
                        ("source_type", models.CharField(max_length=20, null=True)),
                        ("memory_type", models.CharField(max_length=20, null=True)),
                        ("importance", models.FloatField(null=True)),
                        ("content_version", models.PositiveIntegerField(null=True)),
                        (
                            "record",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.turnrecord",
                            ),
                        ),
                        ("slot", models.CharField(max_length=20, null=True)),
                        ("level", models.PositiveSmallIntegerField(null=True)),
                        ("data", memory_project.fields.VerbatimJSONField(null=True)),
                        ("tier", models.CharField(max_length=30, null=True)),
                        ("provenance", models.CharField(max_length=30, null=True)),
                        (
                            "for_goal",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.goal",
                            ),
                        ),
                        ("first_number", models.PositiveIntegerField(null=True)),
                        ("last_number", models.PositiveIntegerField(null=True)),
                        ("raw_tokens", models.PositiveIntegerField(null=True)),
                        ("compressor", models.CharField(max_length=100, null=True)),
                        ("uri", models.TextField(null=True)),
                        ("artifact_type", models.CharField(max_length=50, null=True)),
                        ("title", models.CharField(max_length=500, null=True)),
                        ("digest", models.CharField(max_length=200, null=True)),
                        ("revision", models.PositiveIntegerField(null=True)),
                        ("label", models.CharField(max_length=100, null=True)),
                        ("is_latest", models.BooleanField(null=True)),
                        (
                            "source_record",
                            memory_project.tenancy.AccountForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="memory.turnrecord",
                            ),
                        ),
                        ("helpful_count", models.PositiveIntegerField(null=True)),
                        ("unhelpful_count", models.PositiveIntegerField(null=True)),
                        ("score", models.FloatField(null=True)),
                    ],
                    options={
                        "db_table": "memories",
                        "default_permissions": (),
                        "indexes": [
                            models.Index(
                                fields=["account", "conversation_id", "kind", "event_time"], name="memory_conversation"
                            ),
                            models.Index(fields=["account", "agent_id", "kind", "event_time"], name="memory_agent"),
                            models.Index(fields=["account", "user_id", "channel", "kind"], name="memory_user_channel"),
                            models.Index(fields=["account", "channel", "kind"], name="memory_channel"),
                            models.Index(
                                condition=models.Q(("context__isnull", False)),
                                fields=["account", "context", "kind", "id"],
                                name="memory_context",
                            ),
                            django.contrib.postgres.indexes.BrinIndex(fields=["event_time"], name="memory_event_time"),
                            models.Index(
                                condition=models.Q(("archived", True)),
                                fields=["account", "kind", "event_time"],
                                name="memory_archived",
                            ),
                            models.Index(fields=["account", "kind", "event_time"], name="memory_latest"),
                            models.Index(
                                condition=models.Q(("embed_after__isnull", False)),
                                fields=["embed_after", "id"],
                                name="memory_to_embed",
                            ),
                            models.Index(
                                condition=models.Q(("wording__isnull", False)),
                                fields=["account", "wording", "user_id", "agent_id"],
                                name="memory_wording",
                            ),
                            models.Index(
                                condition=models.Q(
                                    ("kind__in", ["context_entry", "fact", "learning", "strategy"]), ("wording", None)
                                ),
                                fields=["account", "id"],
                                name="memory_unworded",
                            ),
                            models.Index(
                                condition=models.Q(("pinned", True)), fields=["account", "id"], name="memory_pinned"
                            ),
                            models.Index(
                                condition=models.Q(("embed_after__isnull", False)),
                                fields=["account", "agent_id"],
                                name="memory_pending",
                            ),
                            models.Index(
                                condition=models.Q(("source_turn__isnull", False)),
                                fields=["account", "source_turn"],
                                name="memory_fact_of_turn",
                            ),
                            models.Index(
                                condition=models.Q(("merged_into__isnull", False)),
                                fields=["account", "merged_into"],
                                name="memory_entity_merged",
                            ),
                            django.contrib.postgres.indexes.HashIndex(
                                condition=models.Q(("kind", "strategy")),
                                fields=["tool_sequence"],
                                name="memory_strategy_sequence",
                            ),
                            models.Index(
                                condition=models.Q(("completed_at", None), ("kind", "goal")),
                                fields=["account", "status", "deadline"],
                                name="memory_goal_deadline",
                            ),
                            models.Index(
                                condition=models.Q(
                                    ("kind", "goal"), ("patterns_extracted_at", None), ("status", "completed")
                                ),
                                fields=["account", "completed_at"],
                                name="memory_goal_for_patterns",
                            ),
                            models.Index(
                                condition=models.Q(("kind", "work_episode"), ("level", 2)),
                                fields=["account", "id"],
                                name="memory_work_episode_to_archive",
                            ),
                            django.contrib.postgres.indexes.HashIndex(
                                condition=models.Q(("kind", "artifact")), fields=["uri"], name="memory_artifact_uri"
                            ),
                            models.Index(
                                condition=models.Q(("source_record__isnull", False)),
                                fields=["account", "source_record"],
                                name="memory_artifact_of_record",
                            ),
                            models.Index(
                                condition=models.Q(("for_goal__isnull", False)),
                                fields=["account", "for_goal"],
                                name="memory_work_for_goal",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("account", "kind", "identity"), name="memory_identity"),
                            models.UniqueConstraint(fields=("account", "id"), name="memory_of_account"),
                            models.CheckConstraint(
                                condition=models.Q(("salience__range", (0, 1))), name="memory_salience_in_range"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("trust__range", (0, 1))), name="memory_trust_in_range"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("text", ""), _negated=True), name="memory_has_text"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("context__isnull", False), ("kind__in", ("context_entry", "learning"))),
                                    models.Q(
                                        ("context", None),
                                        models.Q(("kind__in", ("context_entry", "learning")), _negated=True),
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_in_context_by_kind",
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "context", cascades=True, name="memories_context_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "log", cascades=True, name="memories_log_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "source_turn", cascades=False, name="memories_source_turn_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "merged_into", cascades=False, name="memories_merged_into_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "record", cascades=True, name="memories_record_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "for_goal", cascades=False, name="memories_for_goal_in_account"
                            ),
                            memory_project.tenancy.ReferenceInAccount(
                                "source_record", cascades=False, name="memories_source_record_in_account"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "turn"), _negated=True),
                                    models.Q(
                                        ("client_id__isnull", False),
                                        ("index__isnull", False),
                                        ("log__isnull", False),
                                        ("model__isnull", False),
                                        ("name__isnull", False),
                                        ("role__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="turn_has_its_columns",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("log__isnull", False)),
                                fields=("account", "log", "index"),
                                name="memory_turn_index_once",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("client_id", ""), _negated=True),
                                fields=("account", "log", "client_id"),
                                name="memory_turn_client_id_once",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "episode"), _negated=True),
                                    models.Q(
                                        ("entities_mentioned__isnull", False),
                                        ("key_decisions__isnull", False),
                                        ("tools_called__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="episode_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "fact"), _negated=True),
                                    models.Q(
                                        ("belief_number__isnull", False),
                                        ("certainty__isnull", False),
                                        ("confidence__isnull", False),
                                        ("status__isnull", False),
                                        ("temporal__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="fact_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "fact"), _negated=True),
                                    models.Q(("confidence__range", (0, 1))),
                                    _connector="OR",
                                ),
                                name="memory_fact_confidence_in_range",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "fact"), _negated=True),
                                    models.Q(
                                        ("valid_from", None),
                                        ("valid_to", None),
                                        ("valid_to__gt", models.F("valid_from")),
                                        _connector="OR",
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_fact_ends_after_it_begins",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "fact"), _negated=True),
                                    models.Q(
                                        ("retracted_at", None),
                                        ("retracted_at__gte", models.F("recorded_at")),
                                        _connector="OR",
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_fact_retracted_after_recorded",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "fact"), _negated=True),
                                    models.Q(
                                        models.Q(("recorded_at", None), ("status", "pending")),
                                        models.Q(
                                            ("recorded_at__isnull", False), ("retracted_at", None), ("status", "active")
                                        ),
                                        models.Q(("recorded_at__isnull", False), ("status", "superseded")),
                                        models.Q(
                                            ("retracted_at__isnull", False), ("status__in", ("retracted", "rejected"))
                                        ),
                                        models.Q(("recorded_at", None), ("status__in", ("retracted", "rejected"))),
                                        _connector="OR",
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_fact_believed_by_status",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "entity"), _negated=True),
                                    models.Q(
                                        ("aliases__isnull", False),
                                        ("description__isnull", False),
                                        ("name__isnull", False),
                                        ("properties__isnull", False),
                                        ("type__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="entity_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "entity"), _negated=True),
                                    models.Q(("name", ""), _negated=True),
                                    _connector="OR",
                                ),
                                name="memory_entity_has_a_name",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "entity"), _negated=True),
                                    models.Q(("type", ""), _negated=True),
                                    _connector="OR",
                                ),
                                name="memory_entity_has_a_type",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "strategy"), _negated=True),
                                    models.Q(
                                        ("context_pattern__isnull", False),
                                        ("description__isnull", False),
                                        ("failure_count__isnull", False),
                                        ("success_count__isnull", False),
                                        ("task_type__isnull", False),
                                        ("tool_sequence__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="strategy_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "strategy"), _negated=True),
                                    models.Q(("description", ""), _negated=True),
                                    _connector="OR",
                                ),
                                name="memory_strategy_has_a_description",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "goal"), _negated=True),
                                    models.Q(
                                        ("priority__isnull", False),
                                        ("result__isnull", False),
                                        ("status__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="goal_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "goal"), _negated=True),
                                    models.Q(
                                        models.Q(("completed_at", None), ("status__in", ("active", "blocked"))),
                                        models.Q(
                                            ("completed_at__isnull", False), ("status__in", ("completed", "abandoned"))
                                        ),
                                        _connector="OR",
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_goal_closed_at_a_time",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "context_entry"), _negated=True),
                                    models.Q(
                                        ("confidence__isnull", False),
                                        ("content_version__isnull", False),
                                        ("entry_type__isnull", False),
                                        ("importance__isnull", False),
                                        ("key__isnull", False),
                                        ("memory_type__isnull", False),
                                        ("source_type__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="context_entry_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "context_entry"), _negated=True),
                                    models.Q(("importance__range", (0, 1))),
                                    _connector="OR",
                                ),
                                name="memory_entry_importance_in_range",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "context_entry"), _negated=True),
                                    models.Q(("confidence__range", (0, 1))),
                                    _connector="OR",
                                ),
                                name="memory_entry_confidence_in_range",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "context_entry"), _negated=True),
                                    models.Q(("content_version__gte", 1)),
                                    _connector="OR",
                                ),
                                name="memory_entry_versions_from_one",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "turn_slot"), _negated=True),
                                    models.Q(
                                        ("data__isnull", False),
                                        ("level__isnull", False),
                                        ("provenance__isnull", False),
                                        ("record__isnull", False),
                                        ("slot__isnull", False),
                                        ("tier__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="turn_slot_has_its_columns",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("record__isnull", False)),
                                fields=("account", "record", "slot", "level"),
                                name="memory_turn_slot_once_a_level",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "turn_slot"), _negated=True),
                                    models.Q(("level__range", (0, 1))),
                                    _connector="OR",
                                ),
                                name="memory_turn_slot_level_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "turn_slot"), _negated=True),
                                    models.Q(
                                        models.Q(
                                            ("slot", "reasoning"),
                                            ("tier__in", ["none", "decision_summary", "structured_rationale"]),
                                        ),
                                        models.Q(
                                            models.Q(("slot", "reasoning"), _negated=True),
                                            ("provenance", ""),
                                            ("tier", ""),
                                        ),
                                        _connector="OR",
                                    ),
                                    _connector="OR",
                                ),
                                name="memory_turn_slot_tells_no_trace",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "work_episode"), _negated=True),
                                    models.Q(
                                        ("compressor__isnull", False),
                                        ("data__isnull", False),
                                        ("first_number__isnull", False),
                                        ("last_number__isnull", False),
                                        ("level__isnull", False),
                                        ("log__isnull", False),
                                        ("raw_tokens__isnull", False),
                                        ("status__isnull", False),
                                        ("tier__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="work_episode_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "work_episode"), _negated=True),
                                    models.Q(("level__in", (2, 3))),
                                    _connector="OR",
                                ),
                                name="memory_work_episode_level_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "work_episode"), _negated=True),
                                    models.Q(("tier__in", ["none", "decision_summary", "structured_rationale"])),
                                    _connector="OR",
                                ),
                                name="memory_work_episode_tells_no_trace",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "work_episode"), _negated=True),
                                    models.Q(("last_number__gte", models.F("first_number"))),
                                    _connector="OR",
                                ),
                                name="memory_work_episode_numbers_in_order",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("kind", "work_episode")),
                                fields=("account", "log", "first_number", "level"),
                                name="memory_work_episode_once",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "artifact"), _negated=True),
                                    models.Q(
                                        ("artifact_type__isnull", False),
                                        ("digest__isnull", False),
                                        ("is_latest__isnull", False),
                                        ("label__isnull", False),
                                        ("revision__isnull", False),
                                        ("title__isnull", False),
                                        ("uri__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="artifact_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "artifact"), _negated=True),
                                    models.Q(("uri", ""), _negated=True),
                                    _connector="OR",
                                ),
                                name="memory_artifact_has_a_uri",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "artifact"), _negated=True),
                                    models.Q(("revision__gte", 1)),
                                    _connector="OR",
                                ),
                                name="memory_artifact_revision_counts",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "learning"), _negated=True),
                                    models.Q(
                                        ("helpful_count__isnull", False),
                                        ("score__isnull", False),
                                        ("unhelpful_count__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="learning_has_its_columns",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "learning"), _negated=True),
                                    models.Q(("score__range", (0, 1))),
                                    _connector="OR",
                                ),
                                name="memory_learning_score_in_range",
                            ),
                        ],
                    },
                ),
            ],
        ),
        migrations.RunPython(add_columns),
        migrations.RunPython(copy_rows),
    ]

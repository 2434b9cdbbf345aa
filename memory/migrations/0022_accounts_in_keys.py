"""The account in every key: primary keys, unique constraints and references between tables of accounts.

So PostgreSQL itself refuses a row that refers to another account, and the tables can be partitioned or distributed by
account. Indexes are built and references are checked while reads and writes go on. Keys change hands in one short
transaction. A migration that was stopped goes on where it was.
"""

import sys
from typing import Any

import django.db.models.deletion
from django.db import migrations, models, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState, StateApps

import memory_project.tenancy
from memory_project.tenancy import INSTALLATION_TABLES, ReferenceInAccount

# ordinary tables of accounts whose key has no account
UNKEYED = """
SELECT c.relname, k.conname FROM pg_class c
JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'account_id' AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
    AND a.attnum <> ALL (k.conkey) AND c.relname <> ALL (%s)
ORDER BY 1
"""

# references between tables of accounts that do not have their final name
FORMER_REFERENCES = """
SELECT k.conrelid::regclass::text, k.conname FROM pg_constraint k
WHERE k.contype = 'f' AND k.connamespace = current_schema()::regnamespace
    AND k.conrelid::regclass::text <> ALL (%(installation)s) AND k.confrelid::regclass::text <> ALL (%(installation)s)
    AND k.conrelid::regclass::text !~ '^(auth|django)_' AND k.conname <> ALL (%(final)s)
ORDER BY 1, 2
"""

UNIQUE = {
    "vector_once_a_model": ("memory_vectors", "account_id, memory_id, model", ""),
    "turn_record_number_once": ("turn_records", "account_id, log_id, number", ""),
    "turn_record_client_id_once": ("turn_records", "account_id, log_id, client_id", "WHERE client_id <> ''"),
    "trace_once_a_record": ("reasoning_traces", "account_id, record_id", ""),
}
"""Unique constraints that get the account, by name: table, columns and condition."""

FORMER_UNIQUE = {
    "context_of_account": "persistent_contexts",
    "conversation_of_account": "conversations",
    "tool_of_account": "tools",
    "turn_record_of_account": "turn_records",
    "reasoning_traces_record_id_key": "reasoning_traces",
}
"""Unique constraints that the new keys replace, and their tables."""

FORMER_INDEXES = """
DROP INDEX IF EXISTS team_members_team_id_eb8b893a, memory_vectors_memory_id_1ef1fecd, turn_record_goal_gone
"""

REPORTED_ROWS = 10_000
"""Memories from which on the migration prints how far it is."""

AUDIT_PARTITIONS = """
SELECT inhrelid::regclass::text, to_regclass(inhrelid::regclass::text || '_by_account') IS NOT NULL
FROM pg_inherits WHERE inhparent = 'memory_audit_log'::regclass ORDER BY 1
"""

AUDIT_KEY = """
SELECT conname FROM pg_constraint WHERE conrelid = 'memory_audit_log'::regclass AND contype = 'p'
"""


def fetch(editor: BaseDatabaseSchemaEditor, statement: str, parameters: Any) -> list[tuple[Any, ...]]:
    with editor.connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def build_index(editor: BaseDatabaseSchemaEditor, name: str, table: str, columns: str, condition: str = "") -> None:
    """Build a unique index while the table is written to. One that a stopped migration left behind is built again."""
    state = fetch(editor, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
    if state == [(True,)]:
        return
    editor.execute(f"DROP INDEX IF EXISTS {name}")
    # a test's transaction cannot build concurrently, and nothing is written there meanwhile
    mode = "" if editor.connection.in_atomic_block else "CONCURRENTLY"
    editor.execute(f"CREATE UNIQUE INDEX {mode} {name} ON {table} ({columns}) {condition}")


def change_keys(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Build the indexes of all keys, then let them take the place of the former keys in one short transaction."""
    unkeyed = fetch(editor, UNKEYED, [list(INSTALLATION_TABLES)])
    for number, (table, _) in enumerate(unkeyed, 1):
        build_index(editor, f"{table}_by_account", table, "id, account_id")
        report(editor, f"keys: {number} of {len(unkeyed)} tables")
    if unkeyed:
        for name, (table, columns, condition) in UNIQUE.items():
            build_index(editor, f"{name}_in_account", table, columns, condition)
        for partition, _ in fetch(editor, AUDIT_PARTITIONS, []):
            build_index(editor, f"{partition}_by_account", partition, "id, account_id, timestamp")
        with transaction.atomic(using=editor.connection.alias):
            final = [reference.name for _, reference in references(apps)]
            former = fetch(editor, FORMER_REFERENCES, {"installation": list(INSTALLATION_TABLES), "final": final})
            swap_keys(editor, unkeyed, former)


def swap_keys(editor: BaseDatabaseSchemaEditor, unkeyed: list[tuple[Any, ...]], former: list[tuple[Any, ...]]) -> None:
    """Drop the former references and keys, and name the new indexes as keys. No row is read."""
    for table, name in former:
        editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {editor.quote_name(name)}")
    for name, table in FORMER_UNIQUE.items():
        editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
    for table, key in unkeyed:
        editor.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT {editor.quote_name(key)},"
            f" ADD CONSTRAINT {table}_pkey PRIMARY KEY USING INDEX {table}_by_account"
        )
    for name, (table, _, condition) in UNIQUE.items():
        if condition:
            editor.execute(f"DROP INDEX IF EXISTS {name}")
            editor.execute(f"ALTER INDEX {name}_in_account RENAME TO {name}")
        else:
            editor.execute(
                f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name},"
                f" ADD CONSTRAINT {name} UNIQUE USING INDEX {name}_in_account"
            )
    editor.execute(FORMER_INDEXES)
    swap_audit_key(editor)


def swap_audit_key(editor: BaseDatabaseSchemaEditor) -> None:
    """Give the audit log its key: the partitions first, from their new indexes, since the log's key takes theirs."""
    ((key,),) = fetch(editor, AUDIT_KEY, [])
    editor.execute(f"ALTER TABLE memory_audit_log DROP CONSTRAINT {key}")
    for partition, is_built in fetch(editor, AUDIT_PARTITIONS, []):
        # a partition that was made meanwhile is small: the log's key builds its index
        if is_built:
            editor.execute(
                f"ALTER TABLE {partition}"
                f" ADD CONSTRAINT {partition}_pkey PRIMARY KEY USING INDEX {partition}_by_account"
            )
    editor.execute("ALTER TABLE memory_audit_log ADD PRIMARY KEY (id, account_id, timestamp)")


def references(apps: StateApps) -> list[tuple[Any, ReferenceInAccount]]:
    """Return the references of all tables, each with the model of its table."""
    tables = [model for model in apps.get_app_config("memory").get_models() if model._meta.managed]
    return [
        (model, each) for model in tables for each in model._meta.constraints if isinstance(each, ReferenceInAccount)
    ]


def add_references(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Add the references with the account, for new rows at once, and check those of existing rows one after another."""
    wanted = references(apps)
    for number, (model, reference) in enumerate(wanted, 1):
        table = model._meta.db_table
        known = "SELECT convalidated FROM pg_constraint WHERE conrelid = to_regclass(%s) AND conname = %s"
        state = fetch(editor, known, [table, reference.name])
        if not state:
            editor.execute(f"{reference.create_sql(model, editor)} NOT VALID")
        if state != [(True,)]:
            editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {editor.quote_name(reference.name)}")
        report(editor, f"references: {number} of {len(wanted)} checked")


def report(editor: BaseDatabaseSchemaEditor, line: str) -> None:
    """Print how far the migration is, if there is data that makes it worth while."""
    rows = fetch(editor, "SELECT reltuples FROM pg_class WHERE oid = 'memories'::regclass", [])
    if rows[0][0] > REPORTED_ROWS:
        sys.stdout.write(f"\n    {line}")


class ChangeState(migrations.SeparateDatabaseAndState):
    """Operations on the state alone. Django would render all models again after each, which takes many seconds."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0021_one_table"), ("ledger", "0001_initial")]

    operations = [
        ChangeState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="persistentcontext",
                    name="context_of_account",
                ),
                migrations.RemoveConstraint(
                    model_name="turnrecord",
                    name="turn_record_number_once",
                ),
                migrations.RemoveConstraint(
                    model_name="turnrecord",
                    name="turn_record_client_id_once",
                ),
                migrations.RemoveConstraint(
                    model_name="vector",
                    name="vector_once_a_model",
                ),
                migrations.AlterField(
                    model_name="blackboardposting",
                    name="pool",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="postings",
                        to="memory.memorypool",
                    ),
                ),
                migrations.AlterField(
                    model_name="contextaccesslog",
                    name="context",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access_logs",
                        to="memory.persistentcontext",
                    ),
                ),
                migrations.AlterField(
                    model_name="contextentryversion",
                    name="entry",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="memory.contextentry",
                    ),
                ),
                migrations.AlterField(
                    model_name="contextentryversion",
                    name="previous_version",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="newer_versions",
                        to="memory.contextentryversion",
                    ),
                ),
                migrations.AlterField(
                    model_name="contextsnapshot",
                    name="context",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="memory.persistentcontext",
                    ),
                ),
                migrations.AlterField(
                    model_name="entityname",
                    name="entity",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="known_names",
                        to="memory.entity",
                    ),
                ),
                migrations.AlterField(
                    model_name="factreview",
                    name="new_fact",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.fact",
                    ),
                ),
                migrations.AlterField(
                    model_name="factreview",
                    name="old_fact",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.fact",
                    ),
                ),
                migrations.AlterField(
                    model_name="factversion",
                    name="fact",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="memory.fact",
                    ),
                ),
                migrations.AlterField(
                    model_name="learningvote",
                    name="learning",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="votes",
                        to="memory.learning",
                    ),
                ),
                migrations.AlterField(
                    model_name="link",
                    name="source",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links_out",
                        to="memory.memory",
                    ),
                ),
                migrations.AlterField(
                    model_name="link",
                    name="target",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links_in",
                        to="memory.memory",
                    ),
                ),
                migrations.AlterField(
                    model_name="memorypool",
                    name="team",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="memory.team",
                    ),
                ),
                migrations.AlterField(
                    model_name="memorypool",
                    name="workflow_run",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pools",
                        to="memory.workflowrun",
                    ),
                ),
                migrations.AlterField(
                    model_name="persistentcontext",
                    name="team",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="memory.team",
                    ),
                ),
                migrations.AlterField(
                    model_name="reasoningtrace",
                    name="record",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="traces",
                        to="memory.turnrecord",
                    ),
                ),
                migrations.AlterField(
                    model_name="snapshotentry",
                    name="entry",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.contextentry",
                    ),
                ),
                migrations.AlterField(
                    model_name="snapshotentry",
                    name="snapshot",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="memory.contextsnapshot",
                    ),
                ),
                migrations.AlterField(
                    model_name="strategytool",
                    name="strategy",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tools",
                        to="memory.strategy",
                    ),
                ),
                migrations.AlterField(
                    model_name="strategytool",
                    name="tool",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="strategies",
                        to="memory.tool",
                    ),
                ),
                migrations.AlterField(
                    model_name="strategyuse",
                    name="conversation",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="memory.conversation",
                    ),
                ),
                migrations.AlterField(
                    model_name="strategyuse",
                    name="strategy",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="memory.strategy",
                    ),
                ),
                migrations.AlterField(
                    model_name="teammember",
                    name="team",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="memory.team",
                    ),
                ),
                migrations.AlterField(
                    model_name="toolcacheentry",
                    name="pool",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cached",
                        to="memory.memorypool",
                    ),
                ),
                migrations.AlterField(
                    model_name="toolinvocation",
                    name="record",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="invocations",
                        to="memory.turnrecord",
                    ),
                ),
                migrations.AlterField(
                    model_name="toolinvocation",
                    name="tool",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invocations",
                        to="memory.tool",
                    ),
                ),
                migrations.AlterField(
                    model_name="turnrecord",
                    name="episode",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="memory.workepisode",
                    ),
                ),
                migrations.AlterField(
                    model_name="turnrecord",
                    name="goal",
                    field=memory_project.tenancy.AccountForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="memory.goal",
                    ),
                ),
                migrations.AlterField(
                    model_name="turnrecord",
                    name="log",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="records",
                        to="memory.conversation",
                    ),
                ),
                migrations.AlterField(
                    model_name="vector",
                    name="memory",
                    field=memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vectors",
                        to="memory.memory",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="blackboardposting",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "pool", name="blackboard_postings_pool_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="contextaccesslog",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "context", name="context_access_logs_context_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="contextentryversion",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "entry", name="context_entry_versions_entry_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="contextentryversion",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "previous_version", name="context_entry_versions_previous_version_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="contextsnapshot",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "context", name="context_snapshots_context_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="entityname",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "entity", name="entity_names_entity_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="factreview",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "old_fact", name="fact_reviews_old_fact_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="factreview",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "new_fact", name="fact_reviews_new_fact_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="factversion",
                    constraint=memory_project.tenancy.ReferenceInAccount("fact", name="fact_versions_fact_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="learningvote",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "learning", name="learning_votes_learning_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="link",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "source", name="memory_links_source_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="link",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "target", name="memory_links_target_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="memorypool",
                    constraint=memory_project.tenancy.ReferenceInAccount("team", name="memory_pools_team_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="memorypool",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "workflow_run", name="memory_pools_workflow_run_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="persistentcontext",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "team", name="persistent_contexts_team_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="reasoningtrace",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "record", name="reasoning_traces_record_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="reasoningtrace",
                    constraint=models.UniqueConstraint(fields=("account", "record"), name="trace_once_a_record"),
                ),
                migrations.AddConstraint(
                    model_name="snapshotentry",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "snapshot", name="context_snapshot_entries_snapshot_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="snapshotentry",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "entry", name="context_snapshot_entries_entry_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="strategytool",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "strategy", name="strategy_tools_strategy_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="strategytool",
                    constraint=memory_project.tenancy.ReferenceInAccount("tool", name="strategy_tools_tool_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="strategyuse",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "strategy", name="strategy_uses_strategy_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="strategyuse",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "conversation", name="strategy_uses_conversation_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="teammember",
                    constraint=memory_project.tenancy.ReferenceInAccount("team", name="team_members_team_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="toolcacheentry",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "pool", name="tool_cache_entries_pool_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="toolinvocation",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "record", name="tool_invocations_record_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="toolinvocation",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "tool", name="tool_invocations_tool_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="turnrecord",
                    constraint=memory_project.tenancy.ReferenceInAccount("log", name="turn_records_log_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="turnrecord",
                    constraint=memory_project.tenancy.ReferenceInAccount("goal", name="turn_records_goal_in_account"),
                ),
                migrations.AddConstraint(
                    model_name="turnrecord",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "episode", name="turn_records_episode_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="turnrecord",
                    constraint=models.UniqueConstraint(
                        fields=("account", "log", "number"), name="turn_record_number_once"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="turnrecord",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("client_id", ""), _negated=True),
                        fields=("account", "log", "client_id"),
                        name="turn_record_client_id_once",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="vector",
                    constraint=memory_project.tenancy.ReferenceInAccount(
                        "memory", name="memory_vectors_memory_in_account"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="vector",
                    constraint=models.UniqueConstraint(
                        fields=("account", "memory", "model"), name="vector_once_a_model"
                    ),
                ),
            ],
        ),
        migrations.RunPython(change_keys),
        migrations.RunPython(add_references),
    ]

"""Which embedding model serves searches, which one is being prepared, and the memories that this one still lacks."""

import django.db.models.deletion
import django.db.models.functions.datetime
import memory_project.ids
import memory_project.tenancy
from django.db import migrations, models

KEYED_BY_ACCOUNT = """
ALTER TABLE reembed_queue DROP CONSTRAINT reembed_queue_pkey,
    ADD CONSTRAINT reembed_queue_pkey PRIMARY KEY (id, account_id)
"""
KEYED_BY_ID = """
ALTER TABLE reembed_queue DROP CONSTRAINT reembed_queue_pkey, ADD CONSTRAINT reembed_queue_pkey PRIMARY KEY (id)
"""

# volatile, so that the row is read by a new snapshot, after the lock was waited for. Whoever changes the row has the
# same lock for itself: it waits for transactions that have stored vectors, and all later ones see what it wrote
NOTE_VECTOR = """
CREATE FUNCTION memory_note_vector() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    state embedding_state;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1919249762, 0);
    SELECT * INTO state FROM embedding_state;
    IF NEW.model = state.serving ->> 'name' THEN
        IF state.phase IN ('walk', 'index', 'switch') AND NEW.model <> state.next ->> 'name' THEN
            INSERT INTO reembed_queue (id, account_id, memory_id)
            VALUES (gen_random_uuid(), NEW.account_id, NEW.memory_id)
            ON CONFLICT (account_id, memory_id) DO UPDATE SET attempts = 0, due_at = statement_timestamp();
        END IF;
    ELSIF NEW.model = state.former ->> 'name' THEN
        -- stored by a process that does not know of the switch yet
        UPDATE memories SET embed_after = statement_timestamp(), embed_attempts = 0, embed_error = ''
        WHERE account_id = NEW.account_id AND id = NEW.memory_id AND embed_after IS NULL AND NOT EXISTS (
            SELECT FROM memory_vectors AS own WHERE own.account_id = NEW.account_id
                AND own.memory_id = NEW.memory_id AND own.model = state.serving ->> 'name' AND own.passage = 0
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_note_vector AFTER INSERT OR UPDATE OF vector ON memory_vectors
FOR EACH ROW WHEN (NEW.passage = 0) EXECUTE FUNCTION memory_note_vector();
"""
FORGET_VECTOR = """
DROP TRIGGER memory_note_vector ON memory_vectors;
DROP FUNCTION memory_note_vector();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0045_transfers")]

    operations = [
        migrations.CreateModel(
            name="ServingModelState",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("serving", models.JSONField()),
                ("next", models.JSONField(null=True)),
                ("former", models.JSONField(null=True)),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("idle", "Idle"),
                            ("walk", "Walk"),
                            ("index", "Index"),
                            ("switch", "Switch"),
                            ("drop", "Drop"),
                            ("abort", "Abort"),
                        ],
                        default="idle",
                        max_length=20,
                    ),
                ),
                ("cursor", models.CharField(blank=True, default="", max_length=200)),
                (
                    "done",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Number of memories embedded, or vectors dropped."
                    ),
                ),
                (
                    "failed",
                    models.PositiveBigIntegerField(default=0, help_text="Number of failed attempts to embed a memory."),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("switched_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "embedding_state",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="embedding_state_is_single"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("next__isnull", False), ("phase__in", ("walk", "index", "switch", "abort"))),
                            models.Q(("next", None), ("phase__in", ("idle", "drop"))),
                            _connector="OR",
                        ),
                        name="embedding_state_phase_of_next",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReembedEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(db_default=0, help_text="Number of failed attempts to embed it."),
                ),
                ("due_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.account",
                    ),
                ),
                (
                    "memory",
                    memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.memory",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "reembed entries",
                "db_table": "reembed_queue",
                "indexes": [models.Index(fields=["account", "due_at"], name="reembed_due")],
                "constraints": [
                    memory_project.tenancy.ReferenceInAccount("memory", name="reembed_queue_memory_in_account"),
                    models.UniqueConstraint(fields=("account", "memory"), name="reembed_queued_once"),
                ],
            },
        ),
        migrations.RunSQL(KEYED_BY_ACCOUNT, KEYED_BY_ID),
        migrations.RunSQL(NOTE_VECTOR, FORGET_VECTOR),
    ]

"""Erasures of users, with the marks and receipts that they leave, and how the audit log forgets a user."""

import django.db.models.deletion
import django.db.models.functions.datetime
import memory_project.fields
import memory_project.ids
from django.db import migrations, models

KEYED_BY_ACCOUNT = """
ALTER TABLE erasures DROP CONSTRAINT erasures_pkey, ADD CONSTRAINT erasures_pkey PRIMARY KEY (id, account_id)
"""
KEYED_BY_ID = "ALTER TABLE erasures DROP CONSTRAINT erasures_pkey, ADD CONSTRAINT erasures_pkey PRIMARY KEY (id)"

# as in migration 0015, and the columns that name a user or a conversation may be blanked as well
REFUSE = """
CREATE OR REPLACE FUNCTION memory_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payloads text[] := ARRAY['query_text', 'error_message', 'metadata'];
    names text[] := ARRAY['user_id', 'session_id', 'conversation_id', 'affected_ids'];
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('memory.audit_erasure', true) IN ('on', 'names') THEN
        IF current_setting('memory.audit_erasure', true) = 'names' AND NEW.user_id = '' AND NEW.session_id = ''
            AND NEW.conversation_id = '' AND NEW.affected_ids <@ OLD.affected_ids
        THEN
            payloads := payloads || names;
        END IF;
        IF NEW.query_text = '' AND NEW.error_message = '' AND NEW.metadata - 'payload_erased_at' = '{}'
            AND to_jsonb(NEW) - payloads = to_jsonb(OLD) - payloads
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'entries of the audit log are neither changed nor deleted (%)', TG_OP
        USING ERRCODE = 'insufficient_privilege',
            HINT = 'memory_erase_audit_payloads(account, ids) erases their texts; old days go by AUDIT_RETENTION_DAYS.';
END $$;
CREATE FUNCTION memory_erase_audit_names(account uuid, ids uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    erased integer;
BEGIN
    PERFORM set_config('memory.audit_erasure', 'names', true);
    UPDATE memory_audit_log SET user_id = '', session_id = '', conversation_id = '',
        affected_ids = ARRAY(SELECT each FROM unnest(affected_ids) AS each WHERE each ~ '^[0-9a-f-]{36}$'),
        query_text = '', error_message = '',
        metadata = jsonb_build_object('payload_erased_at', statement_timestamp())
    WHERE account_id = account AND id = ANY(ids);
    GET DIAGNOSTICS erased = ROW_COUNT;
    PERFORM set_config('memory.audit_erasure', '', true);
    RETURN erased;
END $$;
"""

# what 0015 made may stay: it only refuses less
FORGET_REFUSE = "DROP FUNCTION memory_erase_audit_names(uuid, uuid[])"


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0037_note"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="has_erasures",
            field=models.BooleanField(
                db_default=False, editable=False, help_text="True once the erasure of a user was requested."
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="erasing",
            field=models.BooleanField(
                db_default=False, editable=False, help_text="True while it is erased: nothing can be written to it."
            ),
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("scope", models.CharField(choices=[("subject", "Subject"), ("filter", "Filter")], max_length=20)),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "Queued"), ("running", "Running"), ("completed", "Completed")],
                        default="queued",
                        max_length=20,
                    ),
                ),
                (
                    "subject_digest",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Keyed hash of account and user. Empty for a filter.",
                        max_length=64,
                    ),
                ),
                ("selection", memory_project.fields.SealedJSONField(blank=True, null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("requested_by", models.CharField(blank=True, default="", max_length=150)),
                ("requested_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "lifted_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Time from which the user may be written to again. Empty: not allowed.",
                        null=True,
                    ),
                ),
                ("step", models.CharField(blank=True, default="", max_length=50)),
                ("cursor", models.CharField(blank=True, default="", max_length=200)),
                (
                    "passes",
                    models.PositiveIntegerField(default=0, help_text="Number of complete passes over all stores."),
                ),
                (
                    "found",
                    models.PositiveIntegerField(default=0, help_text="Number of things erased in the current pass."),
                ),
                ("counts", models.JSONField(blank=True, default=dict, help_text="Numbers of things erased, by store.")),
                ("receipt", models.JSONField(blank=True, null=True)),
                ("signature", models.CharField(blank=True, default="", max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.account",
                    ),
                ),
            ],
            options={
                "db_table": "erasures",
                "indexes": [
                    models.Index(fields=["account", "subject_digest"], name="erasure_of_subject"),
                    models.Index(
                        condition=models.Q(("status", "completed"), _negated=True),
                        fields=["account", "id"],
                        name="erasure_unfinished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("status__in", ("queued", "running")), models.Q(("subject_digest", ""), _negated=True)
                        ),
                        fields=("account", "subject_digest"),
                        name="erasure_of_subject_once_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("completed_at__isnull", False), ("selection", None), ("status", "completed")),
                            models.Q(
                                models.Q(("status", "completed"), _negated=True),
                                ("completed_at", None),
                                ("selection__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="erasure_forgets_its_selection",
                    ),
                ],
            },
        ),
        migrations.RunSQL(KEYED_BY_ACCOUNT, KEYED_BY_ID),
        migrations.RunSQL(REFUSE, FORGET_REFUSE),
    ]

"""Exports and imports of archives."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import memory_project.fields
import memory_project.ids
import memory_project.tenancy

KEYED_BY_ACCOUNT = """
ALTER TABLE transfers DROP CONSTRAINT transfers_pkey, ADD CONSTRAINT transfers_pkey PRIMARY KEY (id, account_id);
ALTER TABLE transfer_parts DROP CONSTRAINT transfer_parts_pkey,
    ADD CONSTRAINT transfer_parts_pkey PRIMARY KEY (id, account_id);
ALTER TABLE transfer_unstored_rows DROP CONSTRAINT transfer_unstored_rows_pkey,
    ADD CONSTRAINT transfer_unstored_rows_pkey PRIMARY KEY (id, account_id)
"""
KEYED_BY_ID = """
ALTER TABLE transfers DROP CONSTRAINT transfers_pkey, ADD CONSTRAINT transfers_pkey PRIMARY KEY (id);
ALTER TABLE transfer_parts DROP CONSTRAINT transfer_parts_pkey, ADD CONSTRAINT transfer_parts_pkey PRIMARY KEY (id);
ALTER TABLE transfer_unstored_rows DROP CONSTRAINT transfer_unstored_rows_pkey,
    ADD CONSTRAINT transfer_unstored_rows_pkey PRIMARY KEY (id)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0044_conversation_to_link"),
    ]

    operations = [
        migrations.CreateModel(
            name="Transfer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("direction", models.CharField(choices=[("export", "Export"), ("import", "Import")], max_length=10)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "agent_id",
                    models.CharField(
                        blank=True, default="", help_text="Agent whose rows are exported.", max_length=100
                    ),
                ),
                (
                    "user_id",
                    models.CharField(blank=True, default="", help_text="User whose rows are exported.", max_length=100),
                ),
                ("include_vectors", models.BooleanField(default=False)),
                ("dry_run", models.BooleanField(default=False)),
                (
                    "in_parts",
                    models.BooleanField(default=True, help_text="False where a command reads or writes a file."),
                ),
                ("requested_by", models.CharField(blank=True, default="", max_length=150)),
                ("requested_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("size_bytes", models.PositiveBigIntegerField(default=0, help_text="Size of the archive.")),
                (
                    "digest",
                    models.CharField(
                        blank=True, default="", help_text="SHA-256 of the archive or its manifest.", max_length=64
                    ),
                ),
                (
                    "remaps",
                    models.BooleanField(help_text="True if rows get new ids. Empty until that is known.", null=True),
                ),
                ("position", models.CharField(blank=True, default="", max_length=100)),
                (
                    "counts",
                    models.JSONField(
                        blank=True, default=dict, help_text="Numbers of rows written or stored, by table."
                    ),
                ),
                (
                    "existing",
                    models.JSONField(blank=True, default=dict, help_text="Numbers of rows left alone, by table."),
                ),
                ("error", models.CharField(blank=True, default="", max_length=1000)),
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
                "db_table": "transfers",
            },
        ),
        migrations.CreateModel(
            name="TransferPart",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("data", memory_project.fields.SealedJSONField()),
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
                    "transfer",
                    memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="memory.transfer",
                    ),
                ),
            ],
            options={
                "db_table": "transfer_parts",
            },
        ),
        migrations.CreateModel(
            name="UnstoredRow",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("row_id", models.UUIDField()),
                ("existing_id", models.UUIDField(null=True)),
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
                    "transfer",
                    memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unstored_rows",
                        to="memory.transfer",
                    ),
                ),
            ],
            options={
                "db_table": "transfer_unstored_rows",
            },
        ),
        migrations.AddIndex(
            model_name="transfer",
            index=models.Index(
                condition=models.Q(("status__in", ("queued", "running"))),
                fields=["account", "id"],
                name="transfer_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="transfer",
            index=models.Index(fields=["account", "expires_at"], name="transfer_expires"),
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.UniqueConstraint(fields=("account", "id"), name="transfer_of_account"),
        ),
        migrations.AddConstraint(
            model_name="transferpart",
            constraint=memory_project.tenancy.ReferenceInAccount("transfer", name="transfer_parts_transfer_in_account"),
        ),
        migrations.AddConstraint(
            model_name="transferpart",
            constraint=models.UniqueConstraint(fields=("account", "transfer", "number"), name="transfer_part_once"),
        ),
        migrations.AddConstraint(
            model_name="unstoredrow",
            constraint=memory_project.tenancy.ReferenceInAccount(
                "transfer", name="transfer_unstored_rows_transfer_in_account"
            ),
        ),
        migrations.AddConstraint(
            model_name="unstoredrow",
            constraint=models.UniqueConstraint(fields=("account", "transfer", "row_id"), name="unstored_row_once"),
        ),
        migrations.RunSQL(KEYED_BY_ACCOUNT, KEYED_BY_ID),
    ]

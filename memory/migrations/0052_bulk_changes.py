"""Bulk changes of staff, with their pages: the rows of each, in parts that are changed in one transaction."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import memory_project.ids
import memory_project.tenancy

KEYED_BY_ACCOUNT = """
ALTER TABLE {0} DROP CONSTRAINT {0}_pkey, ADD CONSTRAINT {0}_pkey PRIMARY KEY (id, account_id)
"""
KEYED_BY_ID = "ALTER TABLE {0} DROP CONSTRAINT {0}_pkey, ADD CONSTRAINT {0}_pkey PRIMARY KEY (id)"
TABLES = ("bulk_changes", "bulk_change_pages")


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0050_runs_per_account"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkChange",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("model", models.CharField(max_length=50)),
                ("action", models.CharField(max_length=50)),
                ("reason", models.CharField(max_length=500)),
                ("requested_by", models.CharField(max_length=150)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("stopped", "Stopped"),
                        ],
                        default="queued",
                        max_length=20,
                    ),
                ),
                (
                    "undoes",
                    models.UUIDField(blank=True, help_text="Id of the bulk change that this one undoes.", null=True),
                ),
                (
                    "undone_by",
                    models.UUIDField(blank=True, help_text="Id of the bulk change that undoes this one.", null=True),
                ),
                ("total", models.PositiveIntegerField(default=0, help_text="Number of rows that were chosen.")),
                ("examined", models.PositiveIntegerField(default=0)),
                ("changed", models.PositiveIntegerField(default=0)),
                ("refused", models.PositiveIntegerField(default=0)),
                (
                    "refusals",
                    models.JSONField(blank=True, default=list, help_text="Some of the reasons why rows were refused."),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
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
                "db_table": "bulk_changes",
            },
        ),
        migrations.CreateModel(
            name="BulkChangePage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("row_ids", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                (
                    "changed_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
                ),
                ("done_at", models.DateTimeField(null=True)),
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
                    "change",
                    memory_project.tenancy.AccountForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memory.bulkchange",
                    ),
                ),
            ],
            options={
                "db_table": "bulk_change_pages",
            },
        ),
        *(migrations.RunSQL(KEYED_BY_ACCOUNT.format(table), KEYED_BY_ID.format(table)) for table in TABLES),
        migrations.AddIndex(
            model_name="bulkchange",
            index=models.Index(
                condition=models.Q(("status__in", ("queued", "running"))),
                fields=["account", "id"],
                name="bulk_change_unfinished",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkchangepage",
            constraint=memory_project.tenancy.ReferenceInAccount("change", name="bulk_change_pages_change_in_account"),
        ),
        migrations.AddConstraint(
            model_name="bulkchangepage",
            constraint=models.UniqueConstraint(fields=("account", "change", "number"), name="bulk_change_page_once"),
        ),
    ]

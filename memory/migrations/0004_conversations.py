"""Conversations, their turns, and what language models cost."""

import django.db.models.deletion
import django.db.models.functions.datetime
import memory_project.fields
import memory_project.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0003_live_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("conversation_id", models.CharField(max_length=100)),
                ("agent_id", models.CharField(blank=True, default="", help_text="Who began it.", max_length=100)),
                ("user_id", models.CharField(blank=True, default="", max_length=100)),
                ("channel", models.CharField(default="_global", max_length=100)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                (
                    "continues",
                    models.CharField(
                        blank=True, default="", help_text="The conversation that it resumes.", max_length=100
                    ),
                ),
                ("metadata", models.JSONField(blank=True, default=dict)),
                (
                    "outcome",
                    models.CharField(
                        blank=True, choices=[("success", "Success"), ("failure", "Failure")], default="", max_length=20
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("last_turn_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("cleared_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("archived", models.BooleanField(default=False)),
                ("consolidated_at", models.DateTimeField(blank=True, null=True)),
                ("patterns_extracted_at", models.DateTimeField(blank=True, null=True)),
                ("turn_count", models.PositiveIntegerField(default=0, editable=False)),
                ("summarized_count", models.PositiveIntegerField(default=0, editable=False)),
                ("buffer_from", models.PositiveIntegerField(default=0, editable=False)),
                ("summarize_after", models.DateTimeField(blank=True, editable=False, null=True)),
                ("summarize_to", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                ("summary_lease_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("summary_attempts", models.PositiveSmallIntegerField(default=0, editable=False)),
                ("summary_error", models.CharField(blank=True, default="", editable=False, max_length=100)),
                ("saved_session", models.JSONField(blank=True, editable=False, null=True)),
                ("saved_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "conversations",
            },
        ),
        migrations.CreateModel(
            name="ModelUsage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateField()),
                ("use", models.CharField(help_text="What for: summary, extraction, …", max_length=50)),
                ("model", models.CharField(max_length=100)),
                ("calls", models.PositiveIntegerField(default=0)),
                (
                    "failed_calls",
                    models.PositiveIntegerField(default=0, help_text="Refused, unanswered, or answered with garbage."),
                ),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("completion_tokens", models.PositiveBigIntegerField(default=0)),
                (
                    "cost",
                    models.DecimalField(
                        decimal_places=8, default=0, help_text="In the currency of the prices.", max_digits=18
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "model usage",
                "db_table": "model_usage",
            },
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "memory_ptr",
                    models.OneToOneField(
                        auto_created=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        parent_link=True,
                        primary_key=True,
                        serialize=False,
                        to="memory.memory",
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("system", "System"),
                            ("developer", "Developer"),
                            ("user", "User"),
                            ("assistant", "Assistant"),
                            ("tool", "Tool"),
                            ("function", "Function"),
                        ],
                        max_length=20,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", help_text="The speaker.", max_length=100)),
                (
                    "model",
                    models.CharField(blank=True, default="", help_text="The model that wrote it.", max_length=100),
                ),
                ("client_id", models.CharField(blank=True, default="", max_length=100)),
                ("payload", memory_project.fields.VerbatimJSONField(blank=True, null=True)),
            ],
            options={
                "db_table": "turns",
            },
            bases=("memory.memory",),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(fields=["account", "kind", "event_time"], name="memory_latest"),
        ),
        migrations.AddField(
            model_name="conversation",
            name="account",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memory.account"
            ),
        ),
        migrations.AddField(
            model_name="modelusage",
            name="account",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memory.account"
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="log",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="turns",
                to="memory.conversation",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["account", "user_id", "channel"], name="conversation_user_channel"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["account", "channel"], name="conversation_channel"),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("continues", ""), _negated=True),
                fields=["account", "continues"],
                name="conversation_resumed",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("summarize_after__isnull", False)),
                fields=["summarize_after"],
                name="conversation_to_summarize",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("cleared_at", None), ("ended_at__isnull", False)),
                fields=["ended_at"],
                name="conversation_to_clear",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.UniqueConstraint(
                fields=("account", "conversation_id"), name="conversation_once_in_account"
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("conversation_id", ""), _negated=True), name="conversation_has_an_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("continues", models.F("conversation_id")), _negated=True),
                name="conversation_resumes_another",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("buffer_from__lte", models.F("turn_count")), ("summarized_count__lte", models.F("turn_count"))
                ),
                name="conversation_counts_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("summarize_to", None),
                    models.Q(("summarize_after__isnull", False), ("summarize_to__lte", models.F("turn_count"))),
                    _connector="OR",
                ),
                name="conversation_summary_asked_for",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("cleared_at", None), ("ended_at__isnull", False), _connector="OR"),
                name="conversation_cleared_after_its_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("channel", ""), _negated=True), name="conversation_has_a_channel"
            ),
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ("", "success", "failure"))), name="conversation_outcome_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="modelusage",
            constraint=models.UniqueConstraint(
                fields=("account", "day", "use", "model"), name="model_usage_once_a_day"
            ),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(fields=("log", "index"), name="turn_index_once"),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                condition=models.Q(("client_id", ""), _negated=True),
                fields=("log", "client_id"),
                name="turn_client_id_once",
            ),
        ),
    ]

"""Time: what fades keeps what it was, runs keep their time, queues park what keeps failing, figures are sampled."""

import django.contrib.postgres.indexes
import memory_project.ids
from django.db import migrations, models


# jobs that others do the work of now; their history stays
FORMER_JOBS = """
DELETE FROM job_runs WHERE status = 'queued' AND job IN ('promote_short_term', 'forget_expired', 'forget_answers',
    'forget_access_log', 'forget_job_runs', 'archive_conversations');
UPDATE job_runs SET status = 'failed', lease_until = NULL, finished_at = now(), error = 'The job has another name now.'
WHERE status = 'running' AND job IN ('promote_short_term', 'forget_expired', 'forget_answers', 'forget_access_log',
    'forget_job_runs', 'archive_conversations');
"""

UNFADE = """
UPDATE memories SET salience = base_salience WHERE salience = faded_salience;
UPDATE facts SET confidence = base_confidence WHERE confidence = faded_confidence;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0013_evidence_walls'),
    ]

    operations = [
        migrations.RunSQL(FORMER_JOBS, migrations.RunSQL.noop),
        migrations.CreateModel(
            name='MetricSample',
            fields=[
                ('id', models.UUIDField(default=memory_project.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('name', models.CharField(max_length=100)),
                ('label', models.CharField(blank=True, default='', max_length=100)),
                ('value', models.FloatField()),
            ],
            options={
                'db_table': 'metric_samples',
            },
        ),
        migrations.RemoveIndex(
            model_name='memory',
            name='memory_pinned',
        ),
        migrations.AddField(
            model_name='account',
            name='audit_level',
            field=models.CharField(blank=True, choices=[('off', 'off'), ('writes', 'writes'), ('reads', 'reads'), ('verbose', 'verbose')], default='', help_text='What the audit log keeps; empty: as MEMORY_AUDIT_LEVEL says.', max_length=10),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='cross_channel_count',
            field=models.IntegerField(help_text='Results of other channels than the active one.', null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='extract_parked_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='summary_parked_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='fact',
            name='base_confidence',
            field=models.FloatField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='fact',
            name='faded_confidence',
            field=models.FloatField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='goal',
            name='patterns_extracted_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='jobrun',
            name='at',
            field=models.DateTimeField(blank=True, help_text='Acts as if it were then; empty: now.', null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='base_salience',
            field=models.FloatField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='faded_salience',
            field=models.FloatField(blank=True, editable=False, null=True),
        ),
        migrations.AlterField(
            model_name='jobrun',
            name='status',
            field=models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('incomplete', 'Incomplete'), ('failed', 'Failed')], default='queued', max_length=20),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('extract_parked_at__isnull', False)), fields=['extract_parked_at'], name='conversation_parked'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('summary_parked_at__isnull', False)), fields=['summary_parked_at'], name='conversation_summary_parked'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('ended_at__isnull', False), ('patterns_extracted_at', None)), fields=['ended_at'], name='conversation_for_patterns'),
        ),
        migrations.AddIndex(
            model_name='goal',
            index=models.Index(condition=models.Q(('patterns_extracted_at', None), ('status', 'completed')), fields=['completed_at'], name='goal_for_patterns'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('pinned', True)), fields=['account', 'id'], name='memory_pinned'),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("archived", True)),
                fields=["account", "kind", "event_time"],
                name="memory_archived",
            ),
        ),
        migrations.AddIndex(
            model_name="strategy",
            index=django.contrib.postgres.indexes.HashIndex(fields=["tool_sequence"], name="strategy_sequence"),
        ),
        migrations.AddIndex(
            model_name='vector',
            index=django.contrib.postgres.indexes.BrinIndex(fields=['created_at'], name='vector_created'),
        ),
        migrations.AddConstraint(
            model_name='account',
            constraint=models.CheckConstraint(condition=models.Q(('audit_level__in', ('', 'off', 'writes', 'reads', 'verbose'))), name='account_audit_level_known'),
        ),
        migrations.AddIndex(
            model_name='metricsample',
            index=models.Index(fields=['at'], name='sample_time'),
        ),
        migrations.AddConstraint(
            model_name='metricsample',
            constraint=models.UniqueConstraint(fields=('name', 'label', 'at'), name='sample_once'),
        ),
        # in the order in which they are claimed
        migrations.RemoveIndex(
            model_name='conversation',
            name='conversation_to_summarize',
        ),
        migrations.RemoveIndex(
            model_name='conversation',
            name='conversation_to_extract',
        ),
        migrations.RemoveIndex(
            model_name='memory',
            name='memory_to_embed',
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('summarize_after__isnull', False)), fields=['summarize_after', 'id'], name='conversation_to_summarize'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('extract_after__isnull', False)), fields=['extract_after', 'id'], name='conversation_to_extract'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('embed_after__isnull', False)), fields=['embed_after', 'id'], name='memory_to_embed'),
        ),
        # run first on the way back, before the bases go
        migrations.RunSQL(migrations.RunSQL.noop, UNFADE),
    ]

"""Help texts of models in plain words; the schema does not change."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0017_job_names'),
    ]

    operations = [
        migrations.AlterField(
            model_name='account',
            name='audit_level',
            field=models.CharField(blank=True, choices=[('off', 'off'), ('writes', 'writes'), ('reads', 'reads'), ('verbose', 'verbose')], default='', help_text='Level of detail of the audit log. Empty: the level that the setting MEMORY_AUDIT_LEVEL names.', max_length=10),
        ),
        migrations.AlterField(
            model_name='account',
            name='raw_trace_tokens',
            field=models.PositiveIntegerField(default=8000, help_text='Maximum length of a raw trace, in tokens. Longer traces are not stored.'),
        ),
        migrations.AlterField(
            model_name='account',
            name='reasoning_tier',
            field=models.CharField(choices=[('none', 'none'), ('decision_summary', 'decision summary'), ('structured_rationale', 'structured rationale'), ('raw_trace', 'raw trace')], default='structured_rationale', help_text='Deepest tier of reasoning that is stored and returned.', max_length=30),
        ),
        migrations.AlterField(
            model_name='apikey',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that the key acts for. Empty: the key is bound to no agent.', max_length=100),
        ),
        migrations.AlterField(
            model_name='artifact',
            name='label',
            field=models.CharField(blank=True, default='', help_text='Name that the client gave to the revision.', max_length=100),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='cross_channel_count',
            field=models.IntegerField(help_text='Number of results from channels other than the active one.', null=True),
        ),
        migrations.AlterField(
            model_name='blackboardposting',
            name='position',
            field=models.PositiveIntegerField(help_text='Number of the posting on its blackboard, from 0 without gaps.'),
        ),
        migrations.AlterField(
            model_name='contextsnapshot',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that made the snapshot.', max_length=100),
        ),
        migrations.AlterField(
            model_name='conversation',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that started the conversation.', max_length=100),
        ),
        migrations.AlterField(
            model_name='conversation',
            name='continues',
            field=models.CharField(blank=True, default='', help_text='Id of the conversation that this one resumes.', max_length=100),
        ),
        migrations.AlterField(
            model_name='conversation',
            name='record_count',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='Number of structured turns ever recorded, which is the number of the next one.'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='belief_number',
            field=models.PositiveIntegerField(default=1, help_text='Number of the latest version.'),
        ),
        migrations.AlterField(
            model_name='factreview',
            name='similarity',
            field=models.FloatField(blank=True, help_text='1 - cosine distance of the two vectors. Empty if one of the facts had none.', null=True),
        ),
        migrations.AlterField(
            model_name='facttombstone',
            name='fact_digest',
            field=models.CharField(help_text='Hash of the claim and entity digests together.', max_length=64),
        ),
        migrations.AlterField(
            model_name='jobrun',
            name='at',
            field=models.DateTimeField(blank=True, help_text='Time that the job takes for now. Empty: the current time.', null=True),
        ),
        migrations.AlterField(
            model_name='jobrun',
            name='attempts',
            field=models.PositiveSmallIntegerField(default=0, help_text='Number of times that workers began the current batch.'),
        ),
        migrations.AlterField(
            model_name='jobrun',
            name='figures',
            field=models.JSONField(blank=True, default=dict, help_text='Sums of the other figures that the job counts, by name.'),
        ),
        migrations.AlterField(
            model_name='memory',
            name='buried',
            field=models.BooleanField(default=False, help_text='Searches do not find it, but lists show it.'),
        ),
        migrations.AlterField(
            model_name='memory',
            name='language',
            field=models.CharField(blank=True, default='', help_text="Language of the text. Empty: the account's language.", max_length=20),
        ),
        migrations.AlterField(
            model_name='memory',
            name='pinned',
            field=models.BooleanField(default=False, help_text='Every recall of an agent that may see it returns it.'),
        ),
        migrations.AlterField(
            model_name='memorypool',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that owns it. Empty: the account itself.', max_length=100),
        ),
        migrations.AlterField(
            model_name='modelusage',
            name='cost',
            field=models.DecimalField(decimal_places=8, default=0, help_text='Cost in the currency of the configured prices.', max_digits=18),
        ),
        migrations.AlterField(
            model_name='modelusage',
            name='failed_calls',
            field=models.PositiveIntegerField(default=0, help_text='Calls that were refused, not answered, or answered with an unusable response.'),
        ),
        migrations.AlterField(
            model_name='modelusage',
            name='use',
            field=models.CharField(help_text='Purpose of the calls, such as summary or extraction.', max_length=50),
        ),
        migrations.AlterField(
            model_name='persistentcontext',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that owns it. Empty: the account itself.', max_length=100),
        ),
        migrations.AlterField(
            model_name='snapshotentry',
            name='attributes',
            field=models.JSONField(default=dict, help_text='Types, source and metadata of the entry, by column.'),
        ),
        migrations.AlterField(
            model_name='snapshotentry',
            name='number',
            field=models.PositiveIntegerField(help_text='Number of the version of the entry.'),
        ),
        migrations.AlterField(
            model_name='tool',
            name='timed_count',
            field=models.PositiveBigIntegerField(default=0, help_text='Number of invocations whose latency is known.'),
        ),
        migrations.AlterField(
            model_name='toolinvocation',
            name='success',
            field=models.BooleanField(blank=True, help_text='True if the call succeeded. Empty: unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='turn',
            name='model',
            field=models.CharField(blank=True, default='', help_text='Language model that wrote the message.', max_length=100),
        ),
        migrations.AlterField(
            model_name='turn',
            name='name',
            field=models.CharField(blank=True, default='', help_text='Name of the speaker.', max_length=100),
        ),
        migrations.AlterField(
            model_name='turnrecord',
            name='first_index',
            field=models.PositiveIntegerField(blank=True, help_text='Index of the first turn of the conversation that the record is about.', null=True),
        ),
        migrations.AlterField(
            model_name='workepisode',
            name='compressor',
            field=models.CharField(blank=True, default='', help_text='Name of the compressor that wrote the text.', max_length=100),
        ),
        migrations.AlterField(
            model_name='workepisode',
            name='raw_tokens',
            field=models.PositiveIntegerField(default=0, help_text='Size of the slots that it was made from, in tokens, as they were stored.'),
        ),
        migrations.AlterField(
            model_name='workflowrun',
            name='agent_id',
            field=models.CharField(blank=True, default='', help_text='Agent that began the run.', max_length=100),
        ),
        migrations.AlterField(
            model_name='workflowrun',
            name='workflow',
            field=models.CharField(blank=True, default='', help_text='Name of the workflow.', max_length=200),
        ),
    ]

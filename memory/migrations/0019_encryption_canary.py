"""A row by which every start notices that the encryption keys are not those of this database; the first writes it."""

import memory_project.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0018_plain_words'),
    ]

    operations = [
        migrations.CreateModel(
            name='EncryptionCanary',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('value', memory_project.fields.SealedJSONField()),
            ],
            options={
                'db_table': 'encryption_canary',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='encryption_canary_is_single')],
            },
        ),
    ]

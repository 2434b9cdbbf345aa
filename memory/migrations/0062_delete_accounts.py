"""Erasures may be of a whole account, and keys are named as they are written. Both are names only: no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0061_vacuum_word_counts")]

    operations = [
        migrations.AlterField(
            model_name="erasure",
            name="scope",
            field=models.CharField(
                choices=[("subject", "Subject"), ("filter", "Filter"), ("account", "Account")], max_length=20
            ),
        ),
        migrations.AlterModelOptions(name="apikey", options={"verbose_name": "API key"}),
    ]

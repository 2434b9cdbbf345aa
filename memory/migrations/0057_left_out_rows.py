"""Imports count the rows that the account lacks and that were left out."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0056_refuse_erased_users"),
    ]

    operations = [
        migrations.AddField(
            model_name="transfer",
            name="left_out",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Numbers of rows that the account lacks and that were not stored, by table.",
            ),
        ),
    ]

"""The index by which conversations of former versions are found, made while others write."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory", "0043_secrets"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="conversation",
            index=models.Index(
                fields=["account", "id"],
                name="conversation_to_link",
                condition=models.Q(replacements_due=True),
            ),
        ),
    ]

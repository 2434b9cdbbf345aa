"""The index by which the inbox finds open requests to forget something, made while others write."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory", "0063_value_account"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="memorytable",
            index=models.Index(
                fields=["id"],
                name="memory_to_forget",
                condition=models.Q(metadata__contains={"forget_request": "open"}),
            ),
        ),
    ]

"""An index by which the newest change is found, which was read from all rows before, several times a minute."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # an index that is built concurrently keeps no write waiting, and cannot be built in a transaction
    atomic = False

    dependencies = [("ledger", "0003_injections_by_item")]

    operations = [
        AddIndexConcurrently("injection", models.Index(fields=["stream_id"], name="injection_order")),
    ]

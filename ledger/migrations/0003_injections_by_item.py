"""An index by which the conversations that a memory was injected into are looked up."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # an index that is built concurrently keeps no write waiting, and cannot be built in a transaction
    atomic = False

    dependencies = [("ledger", "0002_accounts_in_keys")]

    operations = [
        AddIndexConcurrently(
            "injection", models.Index(fields=["account", "item_key", "stream_id"], name="injection_by_item")
        ),
    ]

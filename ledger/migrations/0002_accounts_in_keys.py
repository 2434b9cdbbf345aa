"""The account in the unique constraint of the journal. Its primary key is changed with those of `memory`."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("injection", "injection_once"),
        migrations.AddConstraint(
            "injection", models.UniqueConstraint(fields=("account", "stream_id"), name="injection_once")
        ),
    ]

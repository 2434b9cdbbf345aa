"""Accounts on the admin pages of their single values: permissions of their own, no table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memory", "0062_delete_accounts")]

    operations = [
        migrations.CreateModel(
            name="ValueAccount",
            fields=[],
            options={
                "verbose_name": "single values",
                "verbose_name_plural": "single values",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("memory.account",),
        )
    ]

"""Accounts as doors to working memory and ledger: permissions of their own, no tables."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_storage")]

    operations = [
        migrations.CreateModel(
            name="WorkingMemoryAccount",
            fields=[],
            options={
                "verbose_name": "working memory",
                "verbose_name_plural": "working memory",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("memory.account",),
        ),
        migrations.CreateModel(
            name="LedgerAccount",
            fields=[],
            options={
                "verbose_name": "injection ledger",
                "verbose_name_plural": "injection ledger",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("memory.account",),
        ),
    ]

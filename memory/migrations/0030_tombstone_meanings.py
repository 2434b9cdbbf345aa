"""Tombstones refuse paraphrases of a rejected claim as well; those of former releases refuse the same words only."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0029_account_contradictions"),
    ]

    operations = [
        migrations.AddField(
            model_name="facttombstone",
            name="meaning_digest",
            field=models.CharField(
                blank=True,
                default="",
                help_text=(
                    "Hash of holder, subject, attribute and value, which refuses paraphrases. Empty: not understood."
                ),
                max_length=64,
            ),
        ),
        migrations.AddIndex(
            model_name="facttombstone",
            index=models.Index(
                condition=models.Q(("meaning_digest__gt", "")),
                fields=["account", "meaning_digest"],
                name="tombstone_meaning",
            ),
        ),
    ]

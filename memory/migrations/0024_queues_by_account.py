"""Indexes of queues begin with the account, because due rows are claimed one account after another."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0023_row_triggers")]

    operations = [
        migrations.RemoveIndex("conversation", "conversation_to_summarize"),
        migrations.RemoveIndex("conversation", "conversation_to_extract"),
        migrations.RemoveIndex("memorytable", "memory_to_embed"),
        migrations.AddIndex(
            "conversation",
            models.Index(
                condition=models.Q(summarize_after__isnull=False),
                fields=["account", "summarize_after", "id"],
                name="conversation_to_summarize",
            ),
        ),
        migrations.AddIndex(
            "conversation",
            models.Index(
                condition=models.Q(extract_after__isnull=False),
                fields=["account", "extract_after", "id"],
                name="conversation_to_extract",
            ),
        ),
        migrations.AddIndex(
            "memorytable",
            models.Index(
                condition=models.Q(embed_after__isnull=False),
                fields=["account", "embed_after", "id"],
                name="memory_to_embed",
            ),
        ),
    ]

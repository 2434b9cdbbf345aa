"""Notes are a kind, and are deduplicated: the index of rows without a wording names the kinds that are."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

KINDS = [
    ("turn", "Turn"),
    ("episode", "Episode"),
    ("fact", "Fact"),
    ("entity", "Entity"),
    ("strategy", "Strategy"),
    ("goal", "Goal"),
    ("context_entry", "Context Entry"),
    ("turn_slot", "Turn Slot"),
    ("work_episode", "Work Episode"),
    ("artifact", "Artifact"),
    ("learning", "Learning"),
    ("note", "Note"),
]
WITHOUT_WORDING: Any = models.Q(kind__in=["context_entry", "fact", "learning", "note", "strategy"], wording=None)


class Migration(migrations.Migration):
    # the index is built while others write
    atomic = False

    dependencies = [("memory", "0035_quarantined_instructions")]

    operations = [
        RemoveIndexConcurrently("memorytable", "memory_unworded"),
        migrations.AlterField("memorytable", "kind", models.CharField(choices=KINDS, max_length=20)),
        migrations.AlterField("vector", "kind", models.CharField(choices=KINDS, max_length=20)),
        AddIndexConcurrently(
            "memorytable",
            models.Index(fields=["account", "id"], name="memory_unworded", condition=WITHOUT_WORDING),
        ),
    ]

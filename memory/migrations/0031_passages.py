"""Vectors of passages: a memory has a vector of the whole text by each model, and of a long one for each passage.

Reads and writes of vectors wait while the unique index is built again. Going back drops the vectors of passages.
"""

from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("memory", "0030_tombstone_meanings")]

    operations = [
        migrations.AddField(
            model_name="vector",
            name="passage",
            field=models.SmallIntegerField(db_default=0, help_text="Number of the passage, from 1. 0: the whole text."),
        ),
        migrations.AddField(
            model_name="vector",
            name="passage_start",
            field=models.IntegerField(help_text="First character of the passage in the text.", null=True),
        ),
        migrations.AddField(
            model_name="vector",
            name="passage_end",
            field=models.IntegerField(help_text="Character after the passage.", null=True),
        ),
        migrations.AddField(
            model_name="vector",
            name="is_given",
            field=models.BooleanField(db_default=False, help_text="The client sent it, so no passages are added."),
        ),
        migrations.AddConstraint(
            model_name="vector",
            constraint=models.CheckConstraint(
                condition=Q(passage=0, passage_start=None, passage_end=None)
                | Q(passage__gt=0, passage_start__gte=0, passage_end__gt=F("passage_start")),
                name="vector_of_whole_or_passage",
            ),
        ),
        migrations.AddConstraint(
            model_name="vector",
            constraint=models.UniqueConstraint(
                fields=("account", "memory", "model", "passage"), name="vector_once_a_passage"
            ),
        ),
        migrations.RemoveConstraint(model_name="vector", name="vector_once_a_model"),
        migrations.AddIndex(
            model_name="vector",
            index=models.Index(condition=Q(passage__gt=0), fields=["account", "model"], name="vector_passages"),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, "DELETE FROM memory_vectors WHERE passage > 0"),
    ]

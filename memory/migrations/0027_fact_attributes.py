"""Facts have the attribute that they are about, by which contradictions are found, and the source of their start.

The job `find_contradictions` reads the attributes of older facts, `0028_fact_beginnings` sets the sources.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0026_key_users")]

    operations = [
        migrations.AddField("memorytable", "attribute", models.CharField(max_length=200, null=True)),
        migrations.AddField("memorytable", "valid_from_source", models.CharField(max_length=10, null=True)),
        migrations.AddIndex(
            "memorytable",
            models.Index(
                condition=models.Q(attribute__gt="", status="active"),
                fields=["account", "attribute", "id"],
                name="memory_fact_attribute",
            ),
        ),
        migrations.AddIndex(
            "memorytable",
            models.Index(
                condition=models.Q(attribute=None, kind="fact"), fields=["account", "id"], name="memory_fact_unread"
            ),
        ),
    ]

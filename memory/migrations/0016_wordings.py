"""What says the same is found by its wording. Memories of before have none: the job `deduplicate` gives them one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0015_audit_log")]

    operations = [
        migrations.AddField("memory", "wording", models.BigIntegerField(editable=False, null=True)),
        migrations.AddIndex(
            "memory",
            models.Index(
                condition=models.Q(wording__isnull=False),
                fields=["account", "wording", "user_id", "agent_id"],
                name="memory_wording",
            ),
        ),
        migrations.AddIndex(
            "memory",
            models.Index(
                condition=models.Q(wording=None, kind__in=("context_entry", "fact", "learning", "strategy")),
                fields=["account", "id"],
                name="memory_unworded",
            ),
        ),
    ]

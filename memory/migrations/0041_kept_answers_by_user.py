"""Kept answers know the user and the conversation of their request, with which they are erased."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0040_erasures"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotentrequest",
            name="conversation_id",
            field=models.CharField(blank=True, default="", editable=False, max_length=100),
        ),
        migrations.AddField(
            model_name="idempotentrequest",
            name="user_id",
            field=models.CharField(blank=True, default="", editable=False, max_length=100),
        ),
    ]

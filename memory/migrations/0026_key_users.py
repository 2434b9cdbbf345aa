"""API keys can be bound to a user. Existing keys are bound to none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0025_partitioned_vectors")]

    operations = [
        migrations.AddField(
            "apikey",
            "user_id",
            models.CharField(
                blank=True,
                default="",
                help_text="User that the key acts for. Empty: the key is bound to no user.",
                max_length=100,
            ),
        ),
        migrations.AddConstraint(
            "apikey",
            models.CheckConstraint(
                condition=models.Q(
                    ("user_id", ""), models.Q(("scopes__contains", ["operate"]), _negated=True), _connector="OR"
                ),
                name="api_key_of_user_does_not_operate",
            ),
        ),
    ]

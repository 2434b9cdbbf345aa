"""When a key of the API was rotated, so that it is rotated once only."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0053_staff_limits")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="rotated_at",
            field=models.DateTimeField(editable=False, help_text="Time when another key replaced this one.", null=True),
        ),
    ]

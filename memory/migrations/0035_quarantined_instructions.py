"""An account may quarantine texts that give orders to the model that reads them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0034_trust_of_sources")]

    operations = [
        migrations.AddField(
            model_name="account",
            name="quarantines_instructions",
            field=models.BooleanField(
                default=False,
                help_text=(
                    "Quarantine new memories whose texts give orders to the model that reads them. Recalls mark them in "
                    "any case."
                ),
            ),
        ),
    ]

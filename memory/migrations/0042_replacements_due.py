"""Stored conversations are due to be searched for turns that replace earlier ones; new ones never are."""

from django.db import migrations, models

DUE = {
    "editable": False,
    "help_text": "True for one of a former version, until the job link_replacements has compared its turns.",
}


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0041_kept_answers_by_user"),
    ]

    operations = [
        # the rows that exist get the first default, without being written
        migrations.AddField(
            model_name="conversation",
            name="replacements_due",
            field=models.BooleanField(db_default=True, **DUE),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="replacements_due",
            field=models.BooleanField(db_default=False, **DUE),
        ),
    ]

"""An account may have its own way to treat contradictions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0028_fact_beginnings"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="contradictions",
            field=models.CharField(
                blank=True,
                choices=[("prefer_new", "prefer new"), ("prefer_old", "prefer old"), ("flag_review", "flag review")],
                default="",
                help_text=(
                    "What becomes of a fact that contradicts a believed one. Empty: what MEMORY_CONTRADICTIONS says."
                ),
                max_length=20,
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(("contradictions__in", ("", "prefer_new", "prefer_old", "flag_review"))),
                name="account_contradictions_known",
            ),
        ),
    ]

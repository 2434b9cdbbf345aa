"""A job runs once at a time for each account, so that a run of one account does not keep others waiting."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0048_retention"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="jobrun", name="job_runs_once_at_a_time"),
        migrations.AddConstraint(
            model_name="jobrun",
            constraint=models.UniqueConstraint(
                condition=Q(status="running", account=None), fields=("job",), name="job_runs_once_at_a_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="jobrun",
            constraint=models.UniqueConstraint(
                condition=Q(status="running"), fields=("account", "job"), name="job_runs_once_per_account"
            ),
        ),
    ]

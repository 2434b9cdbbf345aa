"""Rename the runs of three jobs to the names that say what they do; requests may use the former names for a release."""

from django.db import migrations

RENAMED = {"consolidate": "extract_knowledge", "graduate": "promote_short_term", "promote": "globalize_facts"}


def rename(pairs: dict[str, str]) -> list[tuple[str, list[str]]]:
    return [("UPDATE job_runs SET job = %s WHERE job = %s", [new, old]) for old, new in pairs.items()]


class Migration(migrations.Migration):
    dependencies = [("memory", "0016_wordings")]

    operations = [
        migrations.RunSQL(rename(RENAMED), rename({new: old for old, new in RENAMED.items()})),
    ]

"""Have autovacuum take the counts of words more often: their rows are replaced by sums every few minutes."""

from django.db import migrations

SET = """
ALTER TABLE memory_terms SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05)
"""
RESET = "ALTER TABLE memory_terms RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor)"


class Migration(migrations.Migration):
    dependencies = [("memory", "0060_wait_for_new_partition")]

    operations = [migrations.RunSQL(SET, RESET)]

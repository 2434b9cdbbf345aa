"""Count a day of the audit log as there once its maker has told all sessions, not once its commit can be seen.

A commit can be seen shortly before other sessions learn that the log has another partition. A session that looks the
day up meanwhile would find it, and have its entry refused for want of a partition. The maker holds the lock of the new
table until it has told everybody, and pg_relation_is_updatable waits for that lock.
"""

from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION memory_audit_has_partition(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    day regclass := to_regclass('memory_audit_log_' || to_char(at AT TIME ZONE 'UTC', 'YYYYMMDD'));
BEGIN
    IF pg_partition_root(day) IS NULL THEN
        RETURN false;
    END IF;
    RETURN pg_relation_is_updatable(day, false) <> 0;
END $$;
"""

BEFORE = """
CREATE OR REPLACE FUNCTION memory_audit_has_partition(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    name text := 'memory_audit_log_' || to_char(at AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
    RETURN pg_partition_root(to_regclass(name)) IS NOT NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0059_audit_erasure_rights")]

    operations = [migrations.RunSQL(FUNCTION, BEFORE)]

"""Inserted rows are checked for erased users once per statement and user: per row, it took longer than the insert."""

from django.db import migrations

TABLES = ("memories", "conversations", "turn_records", "tool_invocations", "user_profiles")

CHECK_ALL = """
CREATE FUNCTION memory_check_users() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM memory_refuse_if_erased(named.account_id, named.user_id)
    FROM (SELECT DISTINCT w.account_id, w.user_id::text FROM written w WHERE w.user_id <> '') named
    JOIN accounts a ON a.id = named.account_id AND a.has_erasures;
    RETURN NULL;
END $$;
"""
BY_STATEMENT = """
DROP TRIGGER refuse_erased_user ON {table};
CREATE TRIGGER refuse_erased_user AFTER INSERT ON {table} REFERENCING NEW TABLE AS written
FOR EACH STATEMENT EXECUTE FUNCTION memory_check_users();
"""
BY_ROW = """
DROP TRIGGER refuse_erased_user ON {table};
CREATE TRIGGER refuse_erased_user AFTER INSERT ON {table}
FOR EACH ROW WHEN (NEW.user_id <> '') EXECUTE FUNCTION memory_check_user();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0057_left_out_rows")]

    operations = [
        migrations.RunSQL(CHECK_ALL, "DROP FUNCTION memory_check_users()"),
        *[migrations.RunSQL(BY_STATEMENT.format(table=table), BY_ROW.format(table=table)) for table in TABLES],
    ]

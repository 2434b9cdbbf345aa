"""The audit log: no default partition, days made when an entry needs them, entries that nobody changes or deletes."""

from datetime import UTC, datetime, time, timedelta

from django.db import migrations

from memory import conf

# NEW is looked at in updates alone: a statement trigger has none. Statement triggers are no partition's unless it is
# given one.
REFUSE = """
CREATE FUNCTION memory_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    payloads text[] := ARRAY['query_text', 'error_message', 'metadata'];
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('memory.audit_erasure', true) = 'on' THEN
        IF NEW.query_text = '' AND NEW.error_message = '' AND NEW.metadata - 'payload_erased_at' = '{}'
            AND to_jsonb(NEW) - payloads = to_jsonb(OLD) - payloads
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'entries of the audit log are neither changed nor deleted (%)', TG_OP
        USING ERRCODE = 'insufficient_privilege',
            HINT = 'memory_erase_audit_payloads(account, ids) erases their texts; old days go by AUDIT_RETENTION_DAYS.';
END $$;
CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON memory_audit_log
    FOR EACH ROW EXECUTE FUNCTION memory_audit_refuse();
CREATE TRIGGER audit_log_stays_full BEFORE TRUNCATE ON memory_audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION memory_audit_refuse();
"""

ERASE = """
CREATE FUNCTION memory_erase_audit_payloads(account uuid, ids uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    erased integer;
BEGIN
    PERFORM set_config('memory.audit_erasure', 'on', true);
    UPDATE memory_audit_log SET query_text = '', error_message = '',
        metadata = jsonb_build_object('payload_erased_at', statement_timestamp())
    WHERE account_id = account AND id = ANY(ids);
    GET DIAGNOSTICS erased = ROW_COUNT;
    PERFORM set_config('memory.audit_erasure', '', true);
    RETURN erased;
END $$;
"""

DAY = """
CREATE FUNCTION memory_audit_has_partition(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    name text := 'memory_audit_log_' || to_char(at AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
    RETURN pg_partition_root(to_regclass(name)) IS NOT NULL;
END $$;
CREATE FUNCTION memory_audit_keep_full(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER audit_log_stays_full BEFORE TRUNCATE ON %I'
        ' FOR EACH STATEMENT EXECUTE FUNCTION memory_audit_refuse()', name);
END $$;
"""

# ATTACH stops no writer, since there is no default partition whose rows it would have to look through.
# A day's table that is there but no partition was detached: it comes back with its rows.
PARTITION = """
CREATE FUNCTION memory_audit_make_partition(at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    day date := (at AT TIME ZONE 'UTC')::date;
    name text := 'memory_audit_log_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF memory_audit_has_partition(at) THEN
        RETURN false;
    END IF;
    -- one makes it, who came second finds it made
    LOCK TABLE ONLY memory_audit_log IN SHARE UPDATE EXCLUSIVE MODE;
    IF memory_audit_has_partition(at) THEN
        RETURN false;
    END IF;
    IF to_regclass(name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE memory_audit_log INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
    END IF;
    PERFORM memory_audit_keep_full(name);
    EXECUTE format('ALTER TABLE memory_audit_log ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        name, day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00');
    RETURN true;
END $$;
"""

# Who makes a partition holds a lock until its transaction ends, and whoever needs that day waits for it. At the commit
# neither is going to wait for rows of the other any more; sooner, two writers would wait for each other.
LATE = """
CREATE TABLE memory_audit_late (id uuid PRIMARY KEY, entry jsonb NOT NULL);
CREATE FUNCTION memory_audit_settle() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    line memory_audit_log := jsonb_populate_record(NULL::memory_audit_log, NEW.entry);
BEGIN
    PERFORM memory_audit_make_partition(line.timestamp);
    INSERT INTO memory_audit_log SELECT line.* ON CONFLICT DO NOTHING;
    DELETE FROM memory_audit_late WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER audit_late_settles AFTER INSERT ON memory_audit_late
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION memory_audit_settle();
"""

# the level of the account and the entry, in one statement of the client's
WRITE = """
CREATE FUNCTION memory_audit_write(entry jsonb, needed text, fallback text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    levels text[] := ARRAY['off', 'writes', 'reads', 'verbose'];
    line memory_audit_log := jsonb_populate_record(NULL::memory_audit_log, entry);
    level text := coalesce((SELECT nullif(audit_level, '') FROM accounts WHERE id = line.account_id), fallback);
BEGIN
    IF array_position(levels, level) < array_position(levels, needed) THEN
        RETURN false;
    END IF;
    IF level <> 'verbose' THEN
        line.metadata := '{}';
    END IF;
    line.config_snapshot := jsonb_build_object('audit_level', level) || line.config_snapshot;
    line.timestamp := coalesce(line.timestamp, statement_timestamp());
    IF memory_audit_has_partition(line.timestamp) THEN
        INSERT INTO memory_audit_log SELECT line.* ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO memory_audit_late VALUES (line.id, to_jsonb(line)) ON CONFLICT DO NOTHING;
    END IF;
    RETURN true;
END $$;
"""

# A role that may write and make no tables gets the day's partition all the same. pg_temp last: else a caller's own
# temporary tables would be found first.
RIGHTS = """
DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY ARRAY['memory_audit_make_partition(timestamptz)', 'memory_audit_settle()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', of, current_schema());
    END LOOP;
END $$;
"""

NOTHING_LEFT = """
DROP FUNCTION memory_audit_write(jsonb, text, text);
DROP TABLE memory_audit_late;
DROP FUNCTION memory_audit_settle();
DROP FUNCTION memory_audit_make_partition(timestamptz);
DROP FUNCTION memory_audit_keep_full(text);
DROP FUNCTION memory_audit_has_partition(timestamptz);
DROP FUNCTION memory_erase_audit_payloads(uuid, uuid[]);
DROP FUNCTION memory_audit_refuse() CASCADE;
CREATE TABLE memory_audit_log_default PARTITION OF memory_audit_log DEFAULT;
"""

DAYS_IN_DEFAULT = "SELECT DISTINCT (timestamp AT TIME ZONE 'UTC')::date FROM memory_audit_log_former"

NO_DEFAULT = """
LOCK TABLE memory_audit_log IN ACCESS EXCLUSIVE MODE;
ALTER TABLE memory_audit_log DETACH PARTITION memory_audit_log_default;
ALTER TABLE memory_audit_log_default RENAME TO memory_audit_log_former;
"""

FORMER_PARTITIONS = """
SELECT memory_audit_keep_full(relname) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'memory_audit_log'::regclass
"""

MOVE = """
INSERT INTO memory_audit_log ({columns}) SELECT {columns} FROM memory_audit_log_former;
DROP TABLE memory_audit_log_former;
"""


def spread_default(apps, schema_editor):
    """Its entries go into partitions of their days; today and the days ahead have theirs, too."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(NO_DEFAULT)
        cursor.execute(FORMER_PARTITIONS)
        cursor.execute(DAYS_IN_DEFAULT)
        found = [day for (day,) in cursor.fetchall()]
        today = datetime.now(UTC).date()
        ahead = [today + timedelta(days=days) for days in range(conf.AUDIT_PARTITIONS_AHEAD + 1)]
        for day in sorted({*found, *ahead}):
            cursor.execute("SELECT memory_audit_make_partition(%s)", [datetime.combine(day, time(), UTC)])
        fields = apps.get_model("memory", "AuditEntry")._meta.concrete_fields
        cursor.execute(MOVE.format(columns=", ".join(field.column for field in fields)))


class Migration(migrations.Migration):
    dependencies = [("memory", "0014_time")]

    operations = [
        migrations.RunSQL(REFUSE + ERASE + DAY + PARTITION + LATE + WRITE + RIGHTS, NOTHING_LEFT),
        migrations.RunPython(spread_default, migrations.RunPython.noop),
    ]

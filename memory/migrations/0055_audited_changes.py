"""Keep the request id, and the reason and values of changes of staff, in audit entries at every level but `off`."""

from django.db import migrations

KEEP_CHANGES = """
CREATE OR REPLACE FUNCTION memory_audit_write(entry jsonb, needed text, fallback text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    levels text[] := ARRAY['off', 'writes', 'reads', 'verbose'];
    line memory_audit_log := jsonb_populate_record(NULL::memory_audit_log, entry);
    level text := coalesce((SELECT nullif(audit_level, '') FROM accounts WHERE id = line.account_id), fallback);
BEGIN
    IF array_position(levels, level) < array_position(levels, needed) THEN
        RETURN false;
    END IF;
    IF level <> 'verbose' THEN
        line.metadata := coalesce((
            SELECT jsonb_object_agg(name, value) FROM jsonb_each(line.metadata) AS each(name, value)
            WHERE name IN ('request_id', 'reason', 'changes')
        ), '{}');
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

KEEP_NOTHING = """
CREATE OR REPLACE FUNCTION memory_audit_write(entry jsonb, needed text, fallback text) RETURNS boolean
LANGUAGE plpgsql AS $$
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


class Migration(migrations.Migration):
    dependencies = [("memory", "0054_key_rotations")]

    operations = [migrations.RunSQL(KEEP_CHANGES, KEEP_NOTHING)]

"""Let a role that may add entries to the audit log, but not change them, erase their texts and names."""

from django.db import migrations

# Who calls it is the role that logged in: within, the function's owner is the current one.
REFUSE_OTHERS = """
CREATE FUNCTION memory_audit_refuse_others() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT has_table_privilege(session_user, 'memory_audit_log', 'INSERT') THEN
        RAISE EXCEPTION 'role % may not erase texts of the audit log', session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END $$;
"""

PAYLOADS = """
CREATE OR REPLACE FUNCTION memory_erase_audit_payloads(account uuid, ids uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    erased integer;
BEGIN
    {check}PERFORM set_config('memory.audit_erasure', 'on', true);
    UPDATE memory_audit_log SET query_text = '', error_message = '',
        metadata = jsonb_build_object('payload_erased_at', statement_timestamp())
    WHERE account_id = account AND id = ANY(ids);
    GET DIAGNOSTICS erased = ROW_COUNT;
    PERFORM set_config('memory.audit_erasure', '', true);
    RETURN erased;
END $$;
"""

NAMES = """
CREATE OR REPLACE FUNCTION memory_erase_audit_names(account uuid, ids uuid[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    erased integer;
BEGIN
    {check}PERFORM set_config('memory.audit_erasure', 'names', true);
    UPDATE memory_audit_log SET user_id = '', session_id = '', conversation_id = '',
        affected_ids = ARRAY(SELECT each FROM unnest(affected_ids) AS each WHERE each ~ '^[0-9a-f-]{{36}}$'),
        query_text = '', error_message = '',
        metadata = jsonb_build_object('payload_erased_at', statement_timestamp())
    WHERE account_id = account AND id = ANY(ids);
    GET DIAGNOSTICS erased = ROW_COUNT;
    PERFORM set_config('memory.audit_erasure', '', true);
    RETURN erased;
END $$;
"""

CHECK = "PERFORM memory_audit_refuse_others();\n    "

# pg_temp last: else a caller's own temporary tables would be found first
AS_OWNER = """
DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY ARRAY['memory_erase_audit_payloads', 'memory_erase_audit_names'] LOOP
        EXECUTE format('ALTER FUNCTION %I(uuid, uuid[]) SECURITY DEFINER SET search_path = %I, pg_temp',
            of, current_schema());
    END LOOP;
END $$;
"""

AS_BEFORE = """
DROP FUNCTION memory_erase_audit_payloads(uuid, uuid[]);
DROP FUNCTION memory_erase_audit_names(uuid, uuid[]);
DROP FUNCTION memory_audit_refuse_others();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0058_check_erased_users_once")]

    operations = [
        migrations.RunSQL(
            REFUSE_OTHERS + PAYLOADS.format(check=CHECK) + NAMES.format(check=CHECK) + AS_OWNER,
            AS_BEFORE + PAYLOADS.format(check="") + NAMES.format(check=""),
        ),
    ]

"""The database refuses rows of a user who was erased, or is being erased, whoever writes them."""

from django.db import migrations

TABLES = ("memories", "conversations", "turn_records", "tool_invocations", "user_profiles")

# the HMAC of `memory.services.custody.marks.digest_subject`; `keys` are its two padded keys in hexadecimal digits
MARKS = """
CREATE FUNCTION memory_subject_digest(keys text, account_id uuid, user_id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(sha256(decode(right(keys, 128), 'hex') || sha256(decode(left(keys, 128), 'hex') || convert_to(
        encode(sha256(convert_to('7:subject36:' || account_id || length(user_id) || ':' || user_id, 'UTF8')), 'hex'),
        'UTF8'
    ))), 'hex')
$$;
CREATE FUNCTION memory_refuse_if_erased(account uuid, named text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    keys text := current_setting('memory.mark_keys', true);
BEGIN
    IF coalesce(keys, '') <> '' AND EXISTS (
        SELECT FROM erasures e WHERE e.account_id = account AND e.lifted_at IS NULL
        AND e.subject_digest = memory_subject_digest(keys, account, named)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'MS409', MESSAGE = 'This user was erased, or is being erased: nothing may '
            'name it. If the user has come back, lift the mark with POST /subjects/{user_id}/readmit or '
            '`manage.py erase_subject --readmit`.';
    END IF;
END $$;
CREATE FUNCTION memory_check_user() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM memory_refuse_if_erased(NEW.account_id, NEW.user_id::text)
    FROM accounts a WHERE a.id = NEW.account_id AND a.has_erasures;
    RETURN NULL;
END $$;
"""
UNMARK = """
DROP FUNCTION memory_check_user();
DROP FUNCTION memory_refuse_if_erased(uuid, text);
DROP FUNCTION memory_subject_digest(text, uuid, text);
"""
CHECK = """
CREATE TRIGGER refuse_erased_user AFTER INSERT ON {table}
FOR EACH ROW WHEN (NEW.user_id <> '') EXECUTE FUNCTION memory_check_user();
CREATE TRIGGER refuse_erased_user_later AFTER UPDATE OF user_id ON {table}
FOR EACH ROW WHEN (NEW.user_id <> '' AND NEW.user_id <> OLD.user_id) EXECUTE FUNCTION memory_check_user();
"""
UNCHECK = """
DROP TRIGGER refuse_erased_user_later ON {table};
DROP TRIGGER refuse_erased_user ON {table};
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0055_audited_changes")]

    operations = [
        migrations.RunSQL(MARKS, UNMARK),
        *[migrations.RunSQL(CHECK.format(table=table), UNCHECK.format(table=table)) for table in TABLES],
    ]

"""What Django cannot say of tiers: references within an account, versions and postings that never change, the shape of
access control, and the context beside each vector."""

from django.db import migrations

REFERENCES = """
ALTER TABLE memories ADD CONSTRAINT memory_in_context_of_account
    FOREIGN KEY (account_id, context_id) REFERENCES persistent_contexts (account_id, id) ON DELETE CASCADE;
ALTER TABLE context_entry_versions ADD CONSTRAINT entry_version_of_account
    FOREIGN KEY (account_id, entry_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE context_entry_versions ADD CONSTRAINT entry_version_before
    FOREIGN KEY (previous_version_id) REFERENCES context_entry_versions (id) ON DELETE SET NULL;
CREATE INDEX entry_version_after ON context_entry_versions (previous_version_id) WHERE previous_version_id IS NOT NULL;
ALTER TABLE context_snapshot_entries ADD CONSTRAINT snapshot_entry_of_account
    FOREIGN KEY (account_id, entry_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE context_snapshot_entries ADD CONSTRAINT snapshot_entry_in_snapshot
    FOREIGN KEY (snapshot_id) REFERENCES context_snapshots (id) ON DELETE CASCADE;
ALTER TABLE context_access_logs ADD CONSTRAINT access_of_account
    FOREIGN KEY (account_id, context_id) REFERENCES persistent_contexts (account_id, id) ON DELETE CASCADE;
ALTER TABLE learning_votes ADD CONSTRAINT vote_of_account
    FOREIGN KEY (account_id, learning_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
"""

NO_REFERENCES = """
ALTER TABLE memories DROP CONSTRAINT memory_in_context_of_account;
DROP INDEX entry_version_after;
ALTER TABLE context_entry_versions DROP CONSTRAINT entry_version_of_account, DROP CONSTRAINT entry_version_before;
ALTER TABLE context_snapshot_entries DROP CONSTRAINT snapshot_entry_of_account,
    DROP CONSTRAINT snapshot_entry_in_snapshot;
ALTER TABLE context_access_logs DROP CONSTRAINT access_of_account;
ALTER TABLE learning_votes DROP CONSTRAINT vote_of_account;
"""

UNCHANGING = """
CREATE FUNCTION memory_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is written once', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER posting_written_once BEFORE UPDATE ON blackboard_postings
FOR EACH ROW EXECUTE FUNCTION memory_refuse_change();
CREATE TRIGGER entry_version_written_once BEFORE UPDATE OF entry_id, number, content, value, editor, created_at
ON context_entry_versions FOR EACH ROW EXECUTE FUNCTION memory_refuse_change();
"""

CHANGING = """
DROP TRIGGER posting_written_once ON blackboard_postings;
DROP TRIGGER entry_version_written_once ON context_entry_versions;
DROP FUNCTION memory_refuse_change();
"""

# what the rules of `models.access` read must be there
ACCESS_CONTROL = """
CREATE FUNCTION memory_is_access_control(value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(value) = 'object' THEN coalesce(
        jsonb_typeof(value -> 'read') = 'array' AND jsonb_typeof(value -> 'write') = 'array'
        AND jsonb_typeof(value -> 'public_read') = 'boolean'
        AND value - 'read' - 'write' - 'public_read' = '{}'::jsonb
        AND NOT jsonb_path_exists(value, 'strict $.read[*] ? (@.type() != "string")', '{}', true)
        AND NOT jsonb_path_exists(value, 'strict $.write[*] ? (@.type() != "string")', '{}', true), false)
    ELSE false END
$$;
ALTER TABLE memory_pools ADD CONSTRAINT pool_access_control CHECK (memory_is_access_control(access_control));
ALTER TABLE persistent_contexts ADD CONSTRAINT context_access_control CHECK (memory_is_access_control(access_control));
"""

NO_ACCESS_CONTROL = """
ALTER TABLE memory_pools DROP CONSTRAINT pool_access_control;
ALTER TABLE persistent_contexts DROP CONSTRAINT context_access_control;
DROP FUNCTION memory_is_access_control(jsonb);
"""

FOLLOW = """
CREATE OR REPLACE FUNCTION memory_vectors_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_vectors SET kind = NEW.kind, agent_id = NEW.agent_id, user_id = NEW.user_id, channel = NEW.channel,
        conversation_id = NEW.conversation_id, context_id = NEW.context_id,
        live = NOT (NEW.archived OR NEW.quarantined), expires_at = NEW.expires_at
    WHERE memory_id = NEW.id;
    RETURN NULL;
END $$;
DROP TRIGGER memory_vectors_follow ON memories;
CREATE TRIGGER memory_vectors_follow AFTER UPDATE OF
    kind, agent_id, user_id, channel, conversation_id, context_id, archived, quarantined, expires_at ON memories
FOR EACH ROW WHEN (
    (OLD.kind, OLD.agent_id, OLD.user_id, OLD.channel, OLD.conversation_id, OLD.context_id, OLD.archived,
        OLD.quarantined, OLD.expires_at)
    IS DISTINCT FROM
    (NEW.kind, NEW.agent_id, NEW.user_id, NEW.channel, NEW.conversation_id, NEW.context_id, NEW.archived,
        NEW.quarantined, NEW.expires_at)
) EXECUTE FUNCTION memory_vectors_follow();
"""

FOLLOW_AS_BEFORE = """
CREATE OR REPLACE FUNCTION memory_vectors_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_vectors SET kind = NEW.kind, agent_id = NEW.agent_id, user_id = NEW.user_id, channel = NEW.channel,
        conversation_id = NEW.conversation_id, live = NOT (NEW.archived OR NEW.quarantined), expires_at = NEW.expires_at
    WHERE memory_id = NEW.id;
    RETURN NULL;
END $$;
DROP TRIGGER memory_vectors_follow ON memories;
CREATE TRIGGER memory_vectors_follow AFTER UPDATE OF
    kind, agent_id, user_id, channel, conversation_id, archived, quarantined, expires_at ON memories
FOR EACH ROW WHEN (
    (OLD.kind, OLD.agent_id, OLD.user_id, OLD.channel, OLD.conversation_id, OLD.archived, OLD.quarantined, OLD.expires_at)
    IS DISTINCT FROM
    (NEW.kind, NEW.agent_id, NEW.user_id, NEW.channel, NEW.conversation_id, NEW.archived, NEW.quarantined, NEW.expires_at)
) EXECUTE FUNCTION memory_vectors_follow();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0005_tiers")]

    operations = [
        migrations.RunSQL(REFERENCES, NO_REFERENCES),
        migrations.RunSQL(UNCHANGING, CHANGING),
        migrations.RunSQL(ACCESS_CONTROL, NO_ACCESS_CONTROL),
        migrations.RunSQL(FOLLOW, FOLLOW_AS_BEFORE),
    ]

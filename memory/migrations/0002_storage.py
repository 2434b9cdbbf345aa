"""What Django cannot say: generated words, vectors out of TOAST, references within an account, daily audit partitions."""

from django.db import migrations

WORDS = """
-- The words of a text, each behind its account's prefix, so that the index keeps accounts apart. The language names a
-- text search configuration. Bounded, since a tsvector holds 1 MB and a word 2,046 bytes; texts of wide characters
-- (more than two bytes each on average) sooner.
CREATE FUNCTION memory_lexemes(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(
        '''' || replace(replace(right(account_id::text, 6) || lexeme, '\\', '\\\\'), '''', '''''') || ''':'
        || array_to_string(positions, ','), ' '), '')::tsvector
    FROM unnest(to_tsvector(
        language::regconfig, left(body, CASE WHEN octet_length(body) > 2 * length(body) THEN 30000 ELSE 100000 END)
    ))
    WHERE octet_length(lexeme) < 2000
$$;
ALTER TABLE memories ADD COLUMN lexemes tsvector
    GENERATED ALWAYS AS (memory_lexemes(account_id, language, text)) STORED;
CREATE INDEX memory_lexemes_gin ON memories USING gin (lexemes);
"""

NO_WORDS = """
ALTER TABLE memories DROP COLUMN lexemes;
DROP FUNCTION memory_lexemes(uuid, text, text);
"""

VECTORS = """
ALTER TABLE memory_vectors ALTER COLUMN vector SET STORAGE PLAIN;
ALTER TABLE memory_vectors ADD CONSTRAINT vector_of_memory_in_account
    FOREIGN KEY (account_id, memory_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
CREATE FUNCTION memory_vectors_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_vectors SET kind = NEW.kind, agent_id = NEW.agent_id, user_id = NEW.user_id, channel = NEW.channel,
        conversation_id = NEW.conversation_id, live = NOT (NEW.archived OR NEW.quarantined), expires_at = NEW.expires_at
    WHERE memory_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_vectors_follow AFTER UPDATE OF
    kind, agent_id, user_id, channel, conversation_id, archived, quarantined, expires_at ON memories
FOR EACH ROW WHEN (
    (OLD.kind, OLD.agent_id, OLD.user_id, OLD.channel, OLD.conversation_id, OLD.archived, OLD.quarantined, OLD.expires_at)
    IS DISTINCT FROM
    (NEW.kind, NEW.agent_id, NEW.user_id, NEW.channel, NEW.conversation_id, NEW.archived, NEW.quarantined, NEW.expires_at)
) EXECUTE FUNCTION memory_vectors_follow();
"""

NO_VECTORS = """
DROP TRIGGER memory_vectors_follow ON memories;
DROP FUNCTION memory_vectors_follow();
ALTER TABLE memory_vectors DROP CONSTRAINT vector_of_memory_in_account;
"""

LINKS = """
ALTER TABLE memory_links ADD CONSTRAINT link_source_in_account
    FOREIGN KEY (account_id, source_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE memory_links ADD CONSTRAINT link_target_in_account
    FOREIGN KEY (account_id, target_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
"""

NO_LINKS = """
ALTER TABLE memory_links DROP CONSTRAINT link_source_in_account;
ALTER TABLE memory_links DROP CONSTRAINT link_target_in_account;
"""

AUDIT = """
ALTER TABLE memory_audit_log RENAME TO memory_audit_log_plain;
CREATE TABLE memory_audit_log (LIKE memory_audit_log_plain INCLUDING DEFAULTS, PRIMARY KEY (id, timestamp))
    PARTITION BY RANGE (timestamp);
DROP TABLE memory_audit_log_plain;
-- catches what has no partition of its day yet, so that a late job never refuses a write
CREATE TABLE memory_audit_log_default PARTITION OF memory_audit_log DEFAULT;
CREATE INDEX idx_audit_account ON memory_audit_log (account_id, timestamp);
CREATE INDEX idx_audit_user ON memory_audit_log (account_id, user_id, timestamp);
CREATE INDEX idx_audit_session ON memory_audit_log (account_id, session_id, timestamp);
CREATE INDEX idx_audit_operation ON memory_audit_log (account_id, operation, timestamp);
CREATE INDEX idx_audit_memory_type ON memory_audit_log (account_id, memory_type, timestamp);
CREATE INDEX idx_audit_source_channel ON memory_audit_log (account_id, source_channel, timestamp);
"""

PLAIN_AUDIT = """
CREATE TABLE memory_audit_log_plain (LIKE memory_audit_log INCLUDING DEFAULTS, PRIMARY KEY (id));
INSERT INTO memory_audit_log_plain SELECT * FROM memory_audit_log;
DROP TABLE memory_audit_log;
ALTER TABLE memory_audit_log_plain RENAME TO memory_audit_log;
CREATE INDEX idx_audit_account ON memory_audit_log (account_id, timestamp);
CREATE INDEX idx_audit_user ON memory_audit_log (account_id, user_id, timestamp);
CREATE INDEX idx_audit_session ON memory_audit_log (account_id, session_id, timestamp);
CREATE INDEX idx_audit_operation ON memory_audit_log (account_id, operation, timestamp);
CREATE INDEX idx_audit_memory_type ON memory_audit_log (account_id, memory_type, timestamp);
CREATE INDEX idx_audit_source_channel ON memory_audit_log (account_id, source_channel, timestamp);
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.RunSQL(WORDS, NO_WORDS),
        migrations.RunSQL(VECTORS, NO_VECTORS),
        migrations.RunSQL(LINKS, NO_LINKS),
        migrations.RunSQL(AUDIT, PLAIN_AUDIT),
    ]

"""Triggers that a distributed database can run: row by row, within the account of the row, without advisory locks.

The words of new memories are counted by the statement that inserts them (`memory.models.writer`), once for all rows.
"""

from django.db import migrations

WORDS = """
DROP TRIGGER memory_terms_added ON memories;
DROP FUNCTION memory_terms_added();
DROP TRIGGER memory_terms_removed ON memories;
CREATE OR REPLACE FUNCTION memory_terms_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- the words of an account that is deleted as well are deleted with it
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT OLD.account_id, term, docs, tokens FROM (
        SELECT '' AS term, -1 AS docs, -OLD.token_count AS tokens
        UNION ALL
        SELECT lexeme, -1, 0 FROM unnest(OLD.lexemes)
    ) AS gone WHERE EXISTS (SELECT FROM accounts WHERE id = OLD.account_id);
    RETURN NULL;
END $$;
CREATE TRIGGER memory_terms_removed AFTER DELETE ON memories
FOR EACH ROW WHEN (NOT (OLD.archived OR OLD.quarantined OR OLD.buried)) EXECUTE FUNCTION memory_terms_removed();
"""

VECTORS = """
CREATE OR REPLACE FUNCTION memory_vectors_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_vectors SET kind = NEW.kind, agent_id = NEW.agent_id, user_id = NEW.user_id, channel = NEW.channel,
        conversation_id = NEW.conversation_id, context_id = NEW.context_id, event_time = NEW.event_time,
        live = NOT (NEW.archived OR NEW.quarantined OR NEW.buried), expires_at = NEW.expires_at
    WHERE account_id = NEW.account_id AND memory_id = NEW.id;
    RETURN NULL;
END $$;
"""

# the same lock as services take (`lock_goal_graph`): one row of accounts, which excludes on every machine
CYCLES = """
CREATE OR REPLACE FUNCTION memory_refuse_rings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM accounts WHERE id = NEW.account_id FOR NO KEY UPDATE;
    IF EXISTS (
        WITH RECURSIVE ahead AS (
            SELECT NEW.target_id AS id
            UNION
            SELECT l.target_id FROM memory_links l JOIN ahead ON l.source_id = ahead.id
            WHERE l.account_id = NEW.account_id AND l.type = NEW.type
        )
        SELECT FROM ahead WHERE id = NEW.source_id
    ) THEN
        RAISE EXCEPTION 'goals in a ring' USING ERRCODE = 'check_violation', CONSTRAINT = 'goal_links_without_rings';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0022_accounts_in_keys")]

    operations = [migrations.RunSQL(WORDS), migrations.RunSQL(VECTORS), migrations.RunSQL(CYCLES)]

"""What Django cannot say of knowledge: references within an account, goals without rings, beliefs that never change,
and the knowledge that conversations stored before still hold."""

from django.db import migrations

REFERENCES = """
ALTER TABLE entities ADD CONSTRAINT entity_merged_into
    FOREIGN KEY (merged_into_id) REFERENCES entities (memory_ptr_id) ON DELETE SET NULL;
CREATE INDEX entity_merged ON entities (merged_into_id) WHERE merged_into_id IS NOT NULL;
ALTER TABLE entity_names ADD CONSTRAINT entity_name_of_account
    FOREIGN KEY (account_id, entity_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE facts ADD CONSTRAINT fact_from_turn
    FOREIGN KEY (source_turn_id) REFERENCES memories (id) ON DELETE SET NULL;
CREATE INDEX fact_of_turn ON facts (source_turn_id) WHERE source_turn_id IS NOT NULL;
ALTER TABLE fact_versions ADD CONSTRAINT fact_version_of_account
    FOREIGN KEY (account_id, fact_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE fact_reviews
    ADD CONSTRAINT review_of_old_in_account
    FOREIGN KEY (account_id, old_fact_id) REFERENCES memories (account_id, id) ON DELETE CASCADE,
    ADD CONSTRAINT review_of_new_in_account
    FOREIGN KEY (account_id, new_fact_id) REFERENCES memories (account_id, id) ON DELETE CASCADE;
ALTER TABLE tools ADD CONSTRAINT tool_of_account UNIQUE (account_id, id);
ALTER TABLE conversations ADD CONSTRAINT conversation_of_account UNIQUE (account_id, id);
ALTER TABLE tool_invocations ADD CONSTRAINT invocation_of_tool_in_account
    FOREIGN KEY (account_id, tool_id) REFERENCES tools (account_id, id) ON DELETE CASCADE;
CREATE INDEX invocation_of_tool ON tool_invocations (tool_id);
ALTER TABLE strategy_tools
    ADD CONSTRAINT strategy_tool_of_account
    FOREIGN KEY (account_id, strategy_id) REFERENCES memories (account_id, id) ON DELETE CASCADE,
    ADD CONSTRAINT strategy_tool_in_account
    FOREIGN KEY (account_id, tool_id) REFERENCES tools (account_id, id) ON DELETE CASCADE;
ALTER TABLE strategy_uses
    ADD CONSTRAINT strategy_use_of_account
    FOREIGN KEY (account_id, strategy_id) REFERENCES memories (account_id, id) ON DELETE CASCADE,
    ADD CONSTRAINT strategy_use_in_account
    FOREIGN KEY (account_id, conversation_id) REFERENCES conversations (account_id, id)
    ON DELETE SET NULL (conversation_id);
"""

NO_REFERENCES = """
ALTER TABLE strategy_uses DROP CONSTRAINT strategy_use_of_account, DROP CONSTRAINT strategy_use_in_account;
ALTER TABLE strategy_tools DROP CONSTRAINT strategy_tool_of_account, DROP CONSTRAINT strategy_tool_in_account;
DROP INDEX invocation_of_tool;
ALTER TABLE tool_invocations DROP CONSTRAINT invocation_of_tool_in_account;
ALTER TABLE conversations DROP CONSTRAINT conversation_of_account;
ALTER TABLE tools DROP CONSTRAINT tool_of_account;
ALTER TABLE fact_reviews DROP CONSTRAINT review_of_old_in_account, DROP CONSTRAINT review_of_new_in_account;
ALTER TABLE fact_versions DROP CONSTRAINT fact_version_of_account;
DROP INDEX fact_of_turn;
ALTER TABLE facts DROP CONSTRAINT fact_from_turn;
ALTER TABLE entity_names DROP CONSTRAINT entity_name_of_account;
DROP INDEX entity_merged;
ALTER TABLE entities DROP CONSTRAINT entity_merged_into;
"""

# Two links that close a ring between them may be on their way at once: those of an account wait for each other.
NO_RINGS = """
CREATE FUNCTION memory_refuse_rings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('goals of ' || NEW.account_id, 0));
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
CREATE TRIGGER goal_links_without_rings BEFORE INSERT OR UPDATE OF source_id, target_id, type, account_id
ON memory_links FOR EACH ROW WHEN (NEW.type IN ('SUBGOAL_OF', 'BLOCKED_BY')) EXECUTE FUNCTION memory_refuse_rings();
"""

RINGS = """
DROP TRIGGER goal_links_without_rings ON memory_links;
DROP FUNCTION memory_refuse_rings();
"""

# `retracted_at` alone is written later, and once
UNCHANGING = """
CREATE TRIGGER fact_version_written_once BEFORE UPDATE OF
    fact_id, number, claim, confidence, temporal, valid_from, valid_to, recorded_at, reason, actor
ON fact_versions FOR EACH ROW EXECUTE FUNCTION memory_refuse_change();
CREATE TRIGGER fact_version_closed_once BEFORE UPDATE OF retracted_at ON fact_versions
FOR EACH ROW WHEN (OLD.retracted_at IS NOT NULL) EXECUTE FUNCTION memory_refuse_change();
"""

CHANGING = """
DROP TRIGGER fact_version_closed_once ON fact_versions;
DROP TRIGGER fact_version_written_once ON fact_versions;
"""

# Going back drops what the kinds hold of their own: a memory that is a fact and nothing else is none. And whoever went
# forward again could not learn what such a row stands for.
NO_KNOWLEDGE = """
DELETE FROM facts;
DELETE FROM entities;
DELETE FROM goals;
DELETE FROM strategies;
DELETE FROM memories WHERE kind IN ('fact', 'entity', 'goal', 'strategy');
"""

# what was said before there was extraction is extracted from as well
QUEUE = """
UPDATE conversations SET extract_after = now() WHERE turn_count > 0 AND extract_after IS NULL AND NOT archived;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_knowledge")]

    operations = [
        # run last on the way back, before the tables go
        migrations.RunSQL(migrations.RunSQL.noop, NO_KNOWLEDGE),
        migrations.RunSQL(REFERENCES, NO_REFERENCES),
        migrations.RunSQL(NO_RINGS, RINGS),
        migrations.RunSQL(UNCHANGING, CHANGING),
        migrations.RunSQL(QUEUE, migrations.RunSQL.noop),
    ]

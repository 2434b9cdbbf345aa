"""Derived memories are trusted no more than the least trusted memory that they are derived from.

A link DERIVED_FROM or PROMOTED_FROM lowers the trust of its source to that of its target. A memory whose trust is changed
passes that on over these links, and a turn to the summaries and strategies made of its conversation, which have no links
to turns. What was held down by a memory that is trusted again rises with it. Triggers, row by row within the account, so
that no way to derive something can forget it.
"""

from django.db import migrations

ON_LINK = """
CREATE FUNCTION memory_trust_of_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memories AS derived SET trust = origin.trust FROM memories AS origin
    WHERE derived.account_id = NEW.account_id AND derived.id = NEW.source_id
        AND origin.account_id = NEW.account_id AND origin.id = NEW.target_id AND origin.trust < derived.trust;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_trust_of_target AFTER INSERT ON memory_links
FOR EACH ROW WHEN (NEW.type IN ('DERIVED_FROM', 'PROMOTED_FROM')) EXECUTE FUNCTION memory_trust_of_target();
"""
ON_CHANGE = """
CREATE FUNCTION memory_trust_passed_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memories AS derived SET trust = (
        SELECT min(origin.trust) FROM memory_links AS l
        JOIN memories AS origin ON origin.account_id = l.account_id AND origin.id = l.target_id
        WHERE l.account_id = NEW.account_id AND l.source_id = derived.id AND l.type IN ('DERIVED_FROM', 'PROMOTED_FROM')
    )
    WHERE derived.account_id = NEW.account_id
        AND (derived.trust > NEW.trust OR (derived.trust = OLD.trust AND OLD.trust < NEW.trust))
        AND derived.id IN (
            SELECT source_id FROM memory_links
            WHERE account_id = NEW.account_id AND target_id = NEW.id AND type IN ('DERIVED_FROM', 'PROMOTED_FROM')
        );
    IF NEW.kind = 'turn' AND NEW.trust < OLD.trust THEN
        UPDATE memories SET trust = NEW.trust
        WHERE account_id = NEW.account_id AND conversation_id = NEW.conversation_id AND trust > NEW.trust
            AND ((kind = 'episode' AND source = 'summary') OR (kind = 'strategy' AND source IN ('patterns', 'failures')));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_trust_passed_on AFTER UPDATE OF trust ON memories
FOR EACH ROW WHEN (NEW.trust <> OLD.trust) EXECUTE FUNCTION memory_trust_passed_on();
"""
# each lowered memory passes its trust on by the trigger
STORED = """
UPDATE memories AS derived SET trust = least.trust FROM (
    SELECT l.account_id, l.source_id, min(origin.trust) AS trust FROM memory_links AS l
    JOIN memories AS origin ON origin.account_id = l.account_id AND origin.id = l.target_id
    WHERE l.type IN ('DERIVED_FROM', 'PROMOTED_FROM') AND origin.trust < 1 GROUP BY l.account_id, l.source_id
) AS least
WHERE derived.account_id = least.account_id AND derived.id = least.source_id AND derived.trust > least.trust;
"""
BACK = """
DROP TRIGGER memory_trust_passed_on ON memories;
DROP FUNCTION memory_trust_passed_on();
DROP TRIGGER memory_trust_of_target ON memory_links;
DROP FUNCTION memory_trust_of_target();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0032_folded_words")]

    operations = [
        migrations.RunSQL(ON_LINK + ON_CHANGE, BACK),
        migrations.RunSQL(STORED, migrations.RunSQL.noop),
    ]

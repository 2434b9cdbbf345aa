"""What Django cannot say of evidence: references that stay in the account, and are emptied with what they name."""

from django.db import migrations

REFERENCES = """
ALTER TABLE turn_records ADD CONSTRAINT turn_record_of_account UNIQUE (account_id, id);
ALTER TABLE turn_records
    ADD CONSTRAINT turn_record_for_goal
    FOREIGN KEY (account_id, goal_id) REFERENCES memories (account_id, id) ON DELETE SET NULL (goal_id),
    ADD CONSTRAINT turn_record_in_episode
    FOREIGN KEY (account_id, episode_id) REFERENCES memories (account_id, id) ON DELETE SET NULL (episode_id);
CREATE INDEX turn_record_goal_gone ON turn_records (goal_id) WHERE goal_id IS NOT NULL;
CREATE INDEX turn_record_episode_gone ON turn_records (episode_id) WHERE episode_id IS NOT NULL;
ALTER TABLE work_episodes ADD CONSTRAINT work_episode_for_goal
    FOREIGN KEY (for_goal_id) REFERENCES memories (id) ON DELETE SET NULL;
CREATE INDEX work_episode_of_goal ON work_episodes (for_goal_id) WHERE for_goal_id IS NOT NULL;
ALTER TABLE artifacts
    ADD CONSTRAINT artifact_for_goal
    FOREIGN KEY (for_goal_id) REFERENCES memories (id) ON DELETE SET NULL,
    ADD CONSTRAINT artifact_of_record
    FOREIGN KEY (record_id) REFERENCES turn_records (id) ON DELETE SET NULL;
ALTER TABLE tool_invocations ADD CONSTRAINT invocation_of_record
    FOREIGN KEY (account_id, record_id) REFERENCES turn_records (account_id, id) ON DELETE SET NULL (record_id);
CREATE INDEX invocation_of_record ON tool_invocations (record_id) WHERE record_id IS NOT NULL;
"""

NO_REFERENCES = """
DROP INDEX invocation_of_record;
ALTER TABLE tool_invocations DROP CONSTRAINT invocation_of_record;
ALTER TABLE artifacts DROP CONSTRAINT artifact_of_record, DROP CONSTRAINT artifact_for_goal;
DROP INDEX work_episode_of_goal;
ALTER TABLE work_episodes DROP CONSTRAINT work_episode_for_goal;
DROP INDEX turn_record_episode_gone;
DROP INDEX turn_record_goal_gone;
ALTER TABLE turn_records DROP CONSTRAINT turn_record_in_episode, DROP CONSTRAINT turn_record_for_goal,
    DROP CONSTRAINT turn_record_of_account;
"""

# Going back drops what the kinds hold of their own: see migration 0008.
NO_EVIDENCE = """
DELETE FROM artifacts;
DELETE FROM turn_slots;
DELETE FROM reasoning_traces;
UPDATE turn_records SET episode_id = NULL;
DELETE FROM work_episodes;
DELETE FROM memories WHERE kind IN ('artifact', 'turn_slot', 'work_episode');
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0012_evidence")]

    operations = [
        # run last on the way back, before the tables go
        migrations.RunSQL(migrations.RunSQL.noop, NO_EVIDENCE),
        migrations.RunSQL(REFERENCES, NO_REFERENCES),
    ]

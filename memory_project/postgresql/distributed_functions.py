"""Functions of triggers that Citus refuses, or that do not do their work on a worker, as they are stored instead.

Each is replaced while its body still has the pattern that stands beside it, so that one which a later migration gives a
form for both is left alone.
"""

CHECK_USERS = """
CREATE OR REPLACE FUNCTION memory_check_users() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
BEGIN
    FOR named IN SELECT DISTINCT w.account_id, w.user_id::text FROM written w WHERE w.user_id <> '' LOOP
        PERFORM memory_refuse_if_erased(named.account_id, named.user_id)
        FROM accounts a WHERE a.id = named.account_id AND a.has_erasures;
    END LOOP;
    RETURN NULL;
END $$
"""
"""Checks inserted rows for erased users. The rows of a statement's trigger cannot be joined with a table."""

REFUSE_RINGS = """
CREATE OR REPLACE FUNCTION memory_refuse_rings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('goal links', 0) # hashtextextended(NEW.account_id::text, 0));
    IF EXISTS (
        WITH RECURSIVE ahead AS (
            SELECT NEW.target_id AS id
            UNION
            SELECT l.target_id FROM memory_links l JOIN ahead ON l.source_id = ahead.id
            WHERE l.account_id = NEW.account_id AND l.type = NEW.type
        )
        SELECT FROM ahead WHERE id = NEW.source_id
    ) THEN
        RAISE EXCEPTION 'goals in a ring: constraint "goal_links_without_rings"' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""
"""Refuses goals in a ring. The account's row has a copy on every machine, which a worker would lock over connections of
its own, and wait for itself; its links are all on one machine, where an advisory lock is enough."""

REPLACED_FUNCTIONS = {
    "memory_check_users": ("JOIN accounts", CHECK_USERS),
    "memory_refuse_rings": ("FROM accounts", REFUSE_RINGS),
}
"""The pattern and the new statement of each function."""

FIND_BODY = "SELECT prosrc FROM pg_proc WHERE oid = to_regproc(%s)"

DELEGATED_FUNCTIONS = ("memory_erase_audit_payloads(uuid, uuid[])", "memory_erase_audit_names(uuid, uuid[])")
"""Functions of one account, the argument `account`, that run on its machine: a setting that they make holds there."""

FIND_DELEGATION = """
SELECT 1 FROM pg_dist_object
WHERE classid = 'pg_proc'::regclass AND objid = to_regprocedure(%s) AND distribution_argument_index IS NOT NULL
"""

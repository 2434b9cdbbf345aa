"""What Django cannot say of recall: words that keep their stop words, in the account's language, and counts of them."""

from django.db import migrations

# Snowball's stemmers without lists of stop words: BM25 knows how little a word says that everybody uses, and a question
# like "who is she with?" holds nothing else. English first, since others stem words in Latin letters with it.
LANGUAGES = """
DO $$
DECLARE
    language text;
    other text;
BEGIN
    FOR language IN SELECT cfgname FROM pg_ts_config
        WHERE cfgnamespace = 'pg_catalog'::regnamespace AND cfgname <> 'simple' ORDER BY cfgname <> 'english', cfgname
    LOOP
        EXECUTE format('CREATE TEXT SEARCH DICTIONARY public.%I (TEMPLATE = pg_catalog.snowball, LANGUAGE = %L)',
            'memory_' || language, language);
        EXECUTE format('CREATE TEXT SEARCH CONFIGURATION public.%I (COPY = pg_catalog.%I)',
            'memory_' || language, language);
        FOREACH other IN ARRAY ARRAY['english', language] LOOP
            EXECUTE format('ALTER TEXT SEARCH CONFIGURATION public.%I ALTER MAPPING REPLACE pg_catalog.%I WITH public.%I',
                'memory_' || language, other || '_stem', 'memory_' || other);
        END LOOP;
    END LOOP;
    CREATE TEXT SEARCH CONFIGURATION public.memory_simple (COPY = pg_catalog.simple);
END $$;
"""

NO_LANGUAGES = """
DO $$
DECLARE
    language text;
BEGIN
    FOR language IN SELECT cfgname FROM pg_ts_config
        WHERE cfgnamespace = 'pg_catalog'::regnamespace AND cfgname <> 'simple' ORDER BY cfgname = 'english', cfgname
    LOOP
        EXECUTE format('DROP TEXT SEARCH CONFIGURATION public.%I', 'memory_' || language);
    END LOOP;
    FOR language IN SELECT cfgname FROM pg_ts_config
        WHERE cfgnamespace = 'pg_catalog'::regnamespace AND cfgname <> 'simple'
    LOOP
        EXECUTE format('DROP TEXT SEARCH DICTIONARY public.%I', 'memory_' || language);
    END LOOP;
    DROP TEXT SEARCH CONFIGURATION public.memory_simple;
END $$;
"""

# Han characters and kana have no blanks between words: each stands for one. PostgreSQL's parser takes the square of an
# unbroken run's length (a@1a@1..., a_a_...: minutes for 100,000 characters): longer ones are broken.
WORDS = r"""
DROP INDEX memory_lexemes_gin;
ALTER TABLE memories DROP COLUMN lexemes;
CREATE OR REPLACE FUNCTION memory_lexemes(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(
        '''' || replace(replace(right(account_id::text, 6) || lexeme, '\', '\\'), '''', '''''') || ''':'
        || array_to_string(positions, ','), ' '), '')::tsvector
    FROM unnest(to_tsvector(
        ('public.memory_' || coalesce(nullif(language, ''), 'simple'))::regconfig,
        regexp_replace(CASE WHEN octet_length(body) > length(body) THEN regexp_replace(
            left(body, CASE WHEN octet_length(body) > 2 * length(body) THEN 30000 ELSE 100000 END),
            '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])', ' \1 ', 'g'
        ) ELSE left(body, 100000) END, '(\S{100})', '\1 ', 'g')
    ))
    WHERE octet_length(lexeme) < 2000
$$;
-- how often a lexeme stands in a text: what ts_rank says of one lexeme of weight D is 0.1 / (pi^2/6) * sum of 1/j^2 for
-- j up to that number; unnest would take four times as long. Exact up to the 255 positions that are kept.
CREATE FUNCTION memory_term_frequency(lexemes tsvector, term tsquery) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT round(1 / (1.64493406684822643647 * (1 - 10 * ts_rank(lexemes, term)::float8)) - 0.5)
$$;
CREATE FUNCTION memory_language() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.language := coalesce((SELECT language FROM accounts WHERE id = NEW.account_id), 'simple');
    RETURN NEW;
END $$;
-- of inserts alone: where any trigger runs before updates, one that names all columns locks as if it changed keys
CREATE TRIGGER memory_language BEFORE INSERT ON memories
FOR EACH ROW WHEN (NEW.language = '') EXECUTE FUNCTION memory_language();
ALTER TABLE memories ADD COLUMN lexemes tsvector
    GENERATED ALWAYS AS (memory_lexemes(account_id, language, text)) STORED;
CREATE INDEX memory_lexemes_gin ON memories USING gin (lexemes);
-- room for counts of reads beside the row: an update that moves it enters it into every index anew
ALTER TABLE memories SET (fillfactor = 85);
"""

FORMER_WORDS = """
ALTER TABLE memories RESET (fillfactor);
DROP INDEX memory_lexemes_gin;
ALTER TABLE memories DROP COLUMN lexemes;
DROP TRIGGER memory_language ON memories;
DROP FUNCTION memory_language();
DROP FUNCTION memory_term_frequency(tsvector, tsquery);
CREATE OR REPLACE FUNCTION memory_lexemes(account_id uuid, language text, body text) RETURNS tsvector
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

COUNTS = """
-- no foreign key: it would be checked once a term
CREATE FUNCTION memory_terms_of_account_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memory_terms WHERE account_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_terms_of_account_removed AFTER DELETE ON accounts
FOR EACH ROW EXECUTE FUNCTION memory_terms_of_account_removed();
CREATE FUNCTION memory_terms_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT account_id, '', count(*), sum(token_count) FROM changed
    WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id
    UNION ALL
    SELECT account_id, lexeme, count(*), 0 FROM changed CROSS JOIN LATERAL unnest(lexemes)
    WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id, lexeme;
    RETURN NULL;
END $$;
CREATE FUNCTION memory_terms_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- those of an account that goes as well would have nothing to belong to
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT account_id, term, docs, tokens FROM (
        SELECT account_id, '' AS term, -count(*) AS docs, -sum(token_count) AS tokens FROM changed
        WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id
        UNION ALL
        SELECT account_id, lexeme, -count(*), 0 FROM changed CROSS JOIN LATERAL unnest(lexemes)
        WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id, lexeme
    ) AS gone WHERE EXISTS (SELECT FROM accounts WHERE id = account_id);
    RETURN NULL;
END $$;
CREATE FUNCTION memory_terms_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT account_id, term, sum(docs), sum(tokens) FROM (
        SELECT OLD.account_id, '' AS term, -1 AS docs, -OLD.token_count AS tokens
        WHERE NOT (OLD.archived OR OLD.quarantined OR OLD.buried)
        UNION ALL
        SELECT OLD.account_id, lexeme, -1, 0 FROM unnest(OLD.lexemes)
        WHERE NOT (OLD.archived OR OLD.quarantined OR OLD.buried)
        UNION ALL
        SELECT NEW.account_id, '', 1, NEW.token_count WHERE NOT (NEW.archived OR NEW.quarantined OR NEW.buried)
        UNION ALL
        SELECT NEW.account_id, lexeme, 1, 0 FROM unnest(NEW.lexemes)
        WHERE NOT (NEW.archived OR NEW.quarantined OR NEW.buried)
    ) AS changes GROUP BY account_id, term HAVING sum(docs) <> 0 OR sum(tokens) <> 0
        -- which says that there is something to fold
        OR term = '';
    RETURN NULL;
END $$;
CREATE TRIGGER memory_terms_added AFTER INSERT ON memories
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION memory_terms_added();
CREATE TRIGGER memory_terms_removed AFTER DELETE ON memories
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION memory_terms_removed();
CREATE TRIGGER memory_terms_changed
AFTER UPDATE OF account_id, text, language, token_count, archived, quarantined, buried ON memories
FOR EACH ROW WHEN (
    (OLD.account_id, OLD.text, OLD.language, OLD.token_count, OLD.archived OR OLD.quarantined OR OLD.buried)
    IS DISTINCT FROM
    (NEW.account_id, NEW.text, NEW.language, NEW.token_count, NEW.archived OR NEW.quarantined OR NEW.buried)
) EXECUTE FUNCTION memory_terms_changed();
INSERT INTO memory_terms (account_id, term, docs, tokens)
SELECT account_id, '', count(*), sum(token_count) FROM memories
WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id
UNION ALL
SELECT account_id, lexeme, count(*), 0 FROM memories CROSS JOIN LATERAL unnest(lexemes)
WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id, lexeme;
"""

NO_COUNTS = """
DROP TRIGGER memory_terms_changed ON memories;
DROP TRIGGER memory_terms_removed ON memories;
DROP TRIGGER memory_terms_added ON memories;
DROP FUNCTION memory_terms_changed();
DROP FUNCTION memory_terms_removed();
DROP FUNCTION memory_terms_added();
DROP TRIGGER memory_terms_of_account_removed ON accounts;
DROP FUNCTION memory_terms_of_account_removed();
DELETE FROM memory_terms;
"""

FOLLOW = """
CREATE OR REPLACE FUNCTION memory_vectors_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_vectors SET kind = NEW.kind, agent_id = NEW.agent_id, user_id = NEW.user_id, channel = NEW.channel,
        conversation_id = NEW.conversation_id, context_id = NEW.context_id, event_time = NEW.event_time,
        live = NOT (NEW.archived OR NEW.quarantined OR NEW.buried), expires_at = NEW.expires_at
    WHERE memory_id = NEW.id;
    RETURN NULL;
END $$;
DROP TRIGGER memory_vectors_follow ON memories;
CREATE TRIGGER memory_vectors_follow AFTER UPDATE OF
    kind, agent_id, user_id, channel, conversation_id, context_id, event_time, archived, quarantined, buried, expires_at
ON memories FOR EACH ROW WHEN (
    (OLD.kind, OLD.agent_id, OLD.user_id, OLD.channel, OLD.conversation_id, OLD.context_id, OLD.event_time,
        OLD.archived OR OLD.quarantined OR OLD.buried, OLD.expires_at)
    IS DISTINCT FROM
    (NEW.kind, NEW.agent_id, NEW.user_id, NEW.channel, NEW.conversation_id, NEW.context_id, NEW.event_time,
        NEW.archived OR NEW.quarantined OR NEW.buried, NEW.expires_at)
) EXECUTE FUNCTION memory_vectors_follow();
UPDATE memory_vectors SET event_time = memories.event_time FROM memories WHERE memories.id = memory_id;
"""

FOLLOW_AS_BEFORE = """
UPDATE memory_vectors SET live = true FROM memories
WHERE memories.id = memory_id AND memories.buried AND NOT (memories.archived OR memories.quarantined);
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


class Migration(migrations.Migration):
    dependencies = [("memory", "0009_recall")]

    operations = [
        migrations.RunSQL(LANGUAGES, NO_LANGUAGES),
        migrations.RunSQL(WORDS, FORMER_WORDS),
        migrations.RunSQL(COUNTS, NO_COUNTS),
        migrations.RunSQL(FOLLOW, FOLLOW_AS_BEFORE),
    ]

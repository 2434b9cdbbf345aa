r"""Words without accents and in one form (NFKC), and words of scripts without blanks by single characters and pairs.

The words of stored texts follow, account by account and batch by batch; each batch commits. ASCII texts keep their
words and are not looked at. Meanwhile questions, also those of the former version, ask for words of both forms. A
migration that was stopped goes on: rows that have their new words are left alone. It goes back the same way.
"""

import sys
from typing import Any
from uuid import UUID

from django.db import migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

ROWS_AT_A_TIME = 1_000

# Latin and Greek letters lose their marks, and so do Hebrew and Arabic ones, where marks are vowels that are rarely
# written. Others are letters of their own with their marks (й, が) and are composed again.
FOLDED = r"""
CREATE OR REPLACE FUNCTION memory_folded(body text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(body) = length(body) THEN body ELSE
        replace(replace(replace(replace(replace(replace(translate(
            normalize(regexp_replace(
                normalize(body, NFKD),
                '(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+|[\u0591-\u05bd\u05bf-\u05c2\u05c4\u05c5\u05c7\u064b-\u0655\u0670]',
                '', 'g'
            ), NFKC),
            'ØøŁłĐđĦħıЁё', 'OoLlDdHhiЕе'), 'ß', 'ss'), 'ẞ', 'SS'), 'Æ', 'AE'), 'æ', 'ae'), 'Œ', 'OE'), 'œ', 'oe')
    END
$$;
"""

HAN_AND_KANA = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
# Thai, Lao, Burmese, Khmer: a consonant with the vowel before it, the marks on it, and consonants stacked below it
SYLLABLE = (
    r"[\u0e40-\u0e44\u0ec0-\u0ec4]?[\u0e01-\u0e2e\u0e81-\u0eae\u1000-\u102a\u103f\u1780-\u17b3]"
    r"(?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ecd\u102b-\u1038\u103a-\u103e\u17b4-\u17d1]"
    r"|[\u1039\u17d2][\u1000-\u1021\u1780-\u17a2])*"
)
UNSPACED = rf"[{HAN_AND_KANA}]|{SYLLABLE}"
"""What stands for a word by itself in scripts that are written without blanks."""
HANGUL = r"[\uac00-\ud7a3]"
UNIT = f"(?:{UNSPACED}|{HANGUL})"
"""What forms pairs with its neighbours. Korean has blanks, but words with endings."""
HAS_UNITS = rf"[{HAN_AND_KANA}\u0e01-\u0eae\u1000-\u103f\u1780-\u17b3\uac00-\ud7a3]"
MAX_CHARACTERS_IN_PAIRS = 20_000
"""Together with all other words the pairs of so many characters fit into a tsvector, which holds 1 MB."""

# Words keep the stems of their language, without accents, and their positions. Further forms have no position, so that
# phrases are compared word by word: what the stemmer makes of the text without accents, pairs, Korean syllables.
WIDE = rf"""
CREATE OR REPLACE FUNCTION memory_wide_words(config regconfig, body text) RETURNS TABLE (lexeme text, positions smallint[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = force_generic_plan AS $$
    WITH given AS MATERIALIZED (SELECT normalize(body, NFKC) AS said),
    split AS MATERIALIZED (
        SELECT said, said ~ '{HAS_UNITS}' AS has_units, regexp_replace(CASE WHEN said ~ '{HAS_UNITS}'
            THEN regexp_replace(said, '{UNSPACED}', ' \& ', 'g') ELSE said END, '(\S{{100}})', '\1 ', 'g') AS spaced
        FROM given
    ),
    units AS MATERIALIZED (
        SELECT left(said, {MAX_CHARACTERS_IN_PAIRS}) AS said FROM split WHERE has_units
    )
    SELECT public.memory_folded(word.lexeme), word.positions FROM split, unnest(to_tsvector(config, spaced)) AS word
    UNION ALL
    SELECT word.lexeme, NULL FROM split, unnest(to_tsvector(config, public.memory_folded(spaced))) AS word
    WHERE public.memory_folded(spaced) <> spaced
    UNION ALL
    SELECT found[1], NULL FROM units, regexp_matches(said, '{HANGUL}', 'g') AS found
    UNION ALL
    SELECT found[1], NULL FROM units, regexp_matches(said, '{UNIT}{{2}}', 'g') AS found
    UNION ALL
    -- the pairs in between: without the first unit of each run
    SELECT found[1], NULL FROM units,
        regexp_matches(regexp_replace(said, '({UNIT})({UNIT}*)', ' \2', 'g'), '{UNIT}{{2}}', 'g') AS found
$$;
"""  # noqa: S608 - constants

# planned once in a session: planning takes several times as long as the words of a short text
LEXEMES = r"""
CREATE OR REPLACE FUNCTION {name}(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = force_generic_plan AS $$
    SELECT CASE WHEN octet_length(body) = length(body) THEN (
        SELECT coalesce(string_agg(
            '''' || replace(replace(right(account_id::text, 6) || lexeme, '\', '\\'), '''', '''''') || ''':'
            || array_to_string(positions, ','), ' '), '')::tsvector
        FROM unnest(to_tsvector(
            ('public.memory_' || coalesce(nullif(language, ''), 'simple'))::regconfig,
            regexp_replace(left(body, 100000), '(\S{{100}})', '\1 ', 'g')
        ))
        WHERE octet_length(lexeme) < 2000
    ) ELSE (
        SELECT coalesce(string_agg(
            '''' || replace(replace(right(account_id::text, 6) || lexeme, '\', '\\'), '''', '''''') || ''''
            || coalesce(':' || array_to_string(positions, ','), ''), ' '), '')::tsvector
        FROM public.memory_wide_words(
            ('public.memory_' || coalesce(nullif(language, ''), 'simple'))::regconfig,
            left(body, CASE WHEN octet_length(body) > 2 * length(body) THEN 30000 ELSE 100000 END)
        )
        WHERE octet_length(lexeme) < 2000
    ) END
$$;
"""

FORMER_LEXEMES = r"""
CREATE OR REPLACE FUNCTION {name}(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(
        '''' || replace(replace(right(account_id::text, 6) || lexeme, '\', '\\'), '''', '''''') || ''':'
        || array_to_string(positions, ','), ' '), '')::tsvector
    FROM unnest(to_tsvector(
        ('public.memory_' || coalesce(nullif(language, ''), 'simple'))::regconfig,
        regexp_replace(CASE WHEN octet_length(body) > length(body) THEN regexp_replace(
            left(body, CASE WHEN octet_length(body) > 2 * length(body) THEN 30000 ELSE 100000 END),
            '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])', ' \1 ', 'g'
        ) ELSE left(body, 100000) END, '(\S{{100}})', '\1 ', 'g')
    ))
    WHERE octet_length(lexeme) < 2000
$$;
"""

# the generated column goes on calling the function that is renamed; questions call it by its name. Positions are kept
# by joining the texts, while || would move the second ones
BOTH = r"""
ALTER FUNCTION memory_lexemes(uuid, text, text) RENAME TO memory_stored_lexemes;
{other}
{stored}
CREATE FUNCTION memory_lexemes(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (public.memory_stored_lexemes(account_id, language, body)::text || ' '
        || public.memory_other_lexemes(account_id, language, body)::text)::tsvector
$$;
"""

ONE = """
DROP FUNCTION memory_lexemes(uuid, text, text);
DROP FUNCTION memory_other_lexemes(uuid, text, text);
ALTER FUNCTION memory_stored_lexemes(uuid, text, text) RENAME TO memory_lexemes;
"""

NEXT = "SELECT id FROM memories WHERE account_id = %s AND id > %s ORDER BY id LIMIT %s"

# its own counting, since the trigger counts words only where the text itself has changed
GIVE_WORDS = """
WITH former AS MATERIALIZED (
    SELECT id, lexemes, NOT (archived OR quarantined OR buried) AS counts FROM memories
    WHERE account_id = %(account)s AND id > %(after)s AND id <= %(until)s AND octet_length(text) > length(text)
        AND lexemes IS DISTINCT FROM memory_stored_lexemes(account_id, language, text)
    ORDER BY id FOR NO KEY UPDATE
), given AS (
    UPDATE memories AS m SET text = m.text FROM former WHERE m.account_id = %(account)s AND m.id = former.id
    RETURNING m.lexemes, former.lexemes AS former, former.counts
), counted AS (
    INSERT INTO memory_terms (account_id, term, docs, tokens)
    SELECT %(account)s, term, sum(docs), 0 FROM (
        SELECT lexeme AS term, -1 AS docs FROM given CROSS JOIN LATERAL unnest(former) WHERE counts
        UNION ALL SELECT lexeme, 1 FROM given CROSS JOIN LATERAL unnest(lexemes) WHERE counts
    ) AS changes GROUP BY term HAVING sum(docs) <> 0
)
SELECT count(*) FROM given
"""


def fold_words(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    change_words(apps, editor, stored=LEXEMES, other=FORMER_LEXEMES)


def unfold_words(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    change_words(apps, editor, stored=FORMER_LEXEMES, other=LEXEMES)


def change_words(apps: StateApps, editor: BaseDatabaseSchemaEditor, *, stored: str, other: str) -> None:
    """Have texts stored with the words of `stored`; until all are, questions ask for those of `other` as well."""
    with transaction.atomic(using=editor.connection.alias), editor.connection.cursor() as cursor:
        cursor.execute("SELECT to_regprocedure('memory_stored_lexemes(uuid, text, text)') IS NULL")
        if cursor.fetchone()[0]:
            functions = {"stored": (stored, "memory_stored_lexemes"), "other": (other, "memory_other_lexemes")}
            bodies = {part: body.format(name=name) for part, (body, name) in functions.items()}
            cursor.execute(BOTH.format(**bodies))
    give_words(apps, editor)
    with transaction.atomic(using=editor.connection.alias), editor.connection.cursor() as cursor:
        cursor.execute(ONE)


def give_words(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Give the memories of each account their words, `ROWS_AT_A_TIME` in a transaction, and print how far it is."""
    seen = changed = 0
    with editor.connection.cursor() as cursor:
        for account in apps.get_model("memory", "Account").objects.order_by("id").values_list("id", flat=True):
            after: Any = UUID(int=0)
            while ids := next_ids(cursor, account, after):
                with transaction.atomic(using=editor.connection.alias):
                    cursor.execute(GIVE_WORDS, {"account": account, "after": after, "until": ids[-1]})
                    changed += cursor.fetchone()[0]
                after, seen = ids[-1], seen + len(ids)
                if seen > ROWS_AT_A_TIME:
                    sys.stdout.write(f"\n    {seen:,} memories looked at, {changed:,} with other words")


def next_ids(cursor: Any, account: UUID, after: UUID) -> list[UUID]:
    cursor.execute(NEXT, [account, after, ROWS_AT_A_TIME])
    return [memory_id for (memory_id,) in cursor.fetchall()]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0031_passages")]

    operations = [
        migrations.RunSQL(FOLDED, "DROP FUNCTION IF EXISTS memory_folded(text)"),
        migrations.RunSQL(WIDE, "DROP FUNCTION IF EXISTS memory_wide_words(regconfig, text)"),
        migrations.RunPython(fold_words, unfold_words),
    ]

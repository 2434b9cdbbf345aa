r"""The words of ASCII texts are given their account's prefix all at once, in half the time. The words are the same.

Until now each word was taken out of the vector, escaped and joined again. In the text of a vector of an ASCII text, a
blank and a quotation mark stand before each word and nowhere else: no word has a blank in it. Of texts in other
letters nothing changes.
"""

from importlib import import_module

from django.db import migrations

folded_words = import_module("memory.migrations.0032_folded_words")

# the function that there was goes on as the one for other texts
WIDE = folded_words.LEXEMES.format(name="memory_wide_lexemes")
# of PL/pgSQL, which keeps what it needs for an expression without a query from call to call
LEXEMES = r"""
CREATE OR REPLACE FUNCTION memory_lexemes(account_id uuid, language text, body text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF octet_length(body) <> length(body) THEN
        RETURN public.memory_wide_lexemes(account_id, language, body);
    END IF;
    RETURN replace(
        ' ' || to_tsvector(
            ('public.memory_' || coalesce(nullif(language, ''), 'simple'))::regconfig,
            regexp_replace(left(body, 100000), '(\S{100})', '\1 ', 'g')
        )::text,
        ' ''', ' ''' || right(account_id::text, 6)
    )::tsvector;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0064_forget_requests")]

    operations = [
        migrations.RunSQL(WIDE, "DROP FUNCTION memory_wide_lexemes(uuid, text, text)"),
        migrations.RunSQL(LEXEMES, folded_words.LEXEMES.format(name="memory_lexemes")),
    ]

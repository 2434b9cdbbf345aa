"""Strategies are searched by when they fit and what is done: the memory's text is both, and what is done has a column.

Texts that change with it are embedded anew; until then their vectors serve.
"""

from django.db import migrations, models

# the pattern as `strategy_text` takes it into the text
PATTERN = r"rtrim(regexp_replace(strategies.context_pattern, '^\s*(when\y\s*)?', '', 'i'), E' \t\r\n.:')"

# tokens as `estimate_tokens` estimates them
REWORD = r"""
UPDATE memories SET text = new.text, content_hash = encode(sha256(convert_to(new.text, 'UTF8')), 'hex'),
    token_count = greatest(ceil(octet_length(new.text) / 4.0), regexp_count(new.text, '\w+|[^\w\s]+')),
    version = version + 1, updated_at = now(), embed_after = now(), embed_attempts = 0, embed_error = ''
FROM (SELECT strategies.memory_ptr_id AS id, {text} AS text FROM strategies WHERE {pattern} <> '') AS new
WHERE memories.id = new.id;
"""

DESCRIBE = """
UPDATE strategies SET description = memories.text FROM memories WHERE memories.id = strategies.memory_ptr_id;
"""

BOTH = REWORD.format(pattern=PATTERN, text=f"'When ' || {PATTERN} || ': ' || strategies.description")

TEXT_ALONE = REWORD.format(pattern=PATTERN, text="strategies.description")


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_recall_words")]

    operations = [
        migrations.AddField("strategy", "description", models.TextField(default=""), preserve_default=False),
        migrations.RunSQL(DESCRIBE + BOTH, TEXT_ALONE),
        migrations.AddConstraint(
            "strategy",
            models.CheckConstraint(condition=~models.Q(description=""), name="strategy_has_a_description"),
        ),
    ]

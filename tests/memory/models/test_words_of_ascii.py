"""The words of ASCII texts, which are made in one go, are those that are made one by one."""

import json
import random
from pathlib import Path

import pytest
from django.db import connection

from memory.models.accounts import LANGUAGES
from memory_project.embedded.paths import PROJECT

PREFIX_OF = "00000000-0000-0000-0000-000000{}"
ODD = (
    "",
    " ",
    "it's 'quoted' and ''twice'' \\ back\\slash C:\\files\\it's.txt",
    "<a href=\"x y\" title='z'>link</a> &amp; <!-- a 'comment' -->",
    "ana.lima@example.com https://example.com/a/b?c='d'&e=f#g ftp://x.y/~z'q",
    "/usr/local/bin 'a/b' 1.5e-10 -7 +3 2026-11-30 12:30 a_b a-b-c x@1a@1a@1",
    "a" * 250 + " " + "b'" * 120 + " \t\n\r\x0b\x0c end",
    "".join(map(chr, range(1, 128))),
    "word " * 300,
    "' ' ' :1 'a':1,2 'b':3",
)


def sample_texts() -> list[str]:
    """Return odd texts, those of a sample, and mixtures of their pieces."""
    loaded = json.loads((Path(PROJECT) / "docs" / "sample" / "instructions.json").read_text(encoding="utf-8"))
    texts = [text for text in json.dumps(loaded, ensure_ascii=True).split('"') if len(text) > 10][:500]
    chance, pieces = random.Random(65), [piece for text in (*ODD, *texts) for piece in text.split()]
    mixed = ["".join(chance.choice(pieces) + chance.choice(" '\\.-/") for _ in range(20)) for _ in range(500)]
    return [text for text in (*ODD, *texts, *mixed) if text.isascii()]


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["", *LANGUAGES])
@pytest.mark.parametrize("end", ["a1b2c3", "000000"])
def test_words_made_in_one_go_are_those_made_one_by_one(language: str, end: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE length(memory_lexemes(id, language, text)) > 5),"
            " array_agg(text) FILTER (WHERE memory_lexemes(id, language, text)"
            " IS DISTINCT FROM memory_wide_lexemes(id, language, text))"
            " FROM unnest(%s::text[]) AS text, (VALUES (%s::uuid, %s)) AS of (id, language)",
            [texts := sample_texts(), PREFIX_OF.format(end), language],
        )
        assert cursor.fetchone() == (len(texts), pytest.approx(len(texts), rel=0.2), None)

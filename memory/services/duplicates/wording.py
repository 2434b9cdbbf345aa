"""The wording of a memory: a number that texts which say the same (`duplicate_texts`) have in common, and few others.

It leaves out what they may differ in, and more: whether two do say the same is seen when they are compared. It stands
beside the text that it is of. Whoever changes what says the same has a migration empty the column: what has no wording
is given one by the job `deduplicate`.
"""

from collections.abc import Mapping
from hashlib import blake2b
from uuid import UUID

from django.db import connection

from memory.models.memory import WORDED
from memory.retrieval.selectors.duplicates import LONGEST
from memory.services.duplicates.texts import with_times, words_in
from memory.services.duplicates.words import FILLERS, SYNONYMS

ENDING = "esiy"
"""The letters that an English -s adds, or takes the place of."""

UNWORDED = """
SELECT id, kind, text FROM memories
WHERE wording IS NULL AND kind = ANY (%s) AND (%s::uuid IS NULL OR account_id = %s) LIMIT %s"""

# not where the text has become another meanwhile
PUT = """
UPDATE memories SET wording = put.wording
FROM unnest(%s::uuid[], %s::text[], %s::bigint[]) AS put (id, text, wording)
WHERE memories.id = put.id AND memories.text = put.text"""


def wording_of(kind: str, text: str) -> int | None:
    """Signed, of 64 bits; None for a kind that is not merged."""
    if kind not in WORDED:
        return None
    # as long texts are the same only to the letter
    words = [text] if len(text) > LONGEST else [root_of(word) for word in with_times(tuple(words_in(text)))]
    digest = blake2b("\0".join(word for word in words if word).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def root_of(word: str) -> str:
    """What a word has in common with those that may stand for it; empty for one that may be left out."""
    return "" if word in FILLERS else ROOTS.get(stem(word), stem(word))


def stem(word: str) -> str:
    return word.rstrip(ENDING) or word[0]


def roots() -> Mapping[str, str]:
    """One for the stems of all synonyms of each line, and of the lines that have a stem in common."""
    known: dict[str, str] = {}
    for word, line in SYNONYMS.items():
        one, other = known.setdefault(stem(word), line), known.setdefault(line, line)
        known |= {each: other for each, root in known.items() if root == one}
    return known


ROOTS = roots()


def word_unworded(size: int, *, account_id: UUID | None) -> int:
    """Give so many of the memories a wording that have none; returns how many had none."""
    with connection.cursor() as cursor:
        cursor.execute(UNWORDED, [list(WORDED), account_id, account_id, size])
        rows = cursor.fetchall()
        if rows:
            ids, kinds, texts = zip(*rows, strict=True)
            wordings = list(map(wording_of, kinds, texts))
            cursor.execute(PUT, [list(ids), list(texts), wordings])
        return len(rows)

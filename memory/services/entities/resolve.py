"""Finding the entity that a name stands for: by its exact name or alias, or by a name and meaning nearly the same.

Nearly the same is narrow, since taking two people for one is worse than taking one for two: staff can merge duplicates
(`merge`), but cannot find out afterwards which fact was about whom. Within one type and holder, a name counts as a
misspelling of another only if all of these hold:

- `differs_by_one_letter`: letters and digits are the same in order, but for one letter missing inside one word.
  Digits count ("Room 101"), and so do the first and last letter of a word: endings carry gender and number
  ("Michael", "Michaela"), beginnings distinguish names ("Anna", "Hanna"), and so do letters in the same place ("Alina",
  "Alisa");
- `FUZZY_NAME_SCORE`: their rapidfuzz ratio, 0 to 100, is at least 90. One letter weighs too much in a short name;
- `FUZZY_SIMILARITY`: the cosine of their vectors (name, aliases and description) is at least 0.85. Measured with
  all-MiniLM-L6-v2: "Jon Smith" and "John Smith" 0.86, "Philip Miller" and "Phillip Miller" 0.95, but "Jon Smith" and
  "Joan Smith" 0.66, "Baker Street" and "Barker Street" 0.80; with descriptions of two men "Jon" and "John" 0.48.

Without a vector on both sides nothing is guessed, and names with different first characters are not compared.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Q
from rapidfuzz import fuzz

from memory.errors import TooLarge
from memory.identity import entity_identity, holder_key, normalize_name
from memory.models import Conversation, EntityName, MemoryRow
from memory.models.statements import Embedding, binary_cursor, execute_statement, half_vector
from memory.owner import Owner

FUZZY_NAME_SCORE = 90.0
FUZZY_SIMILARITY = 0.85
MAX_LENGTH_DIFFERENCE = 4
MAX_PROPERTIES_BYTES = 65_536
"""Characters, punctuation and blanks included, by which names may differ in length to be compared."""
MIN_WORD_LETTERS = 3
"""Letters of the shorter word in a pair that differs by one letter."""

DIGITS = re.compile(r"\d+")
# on Latin letters only: in other scripts such marks are vowels
ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
# without signs that distinguish names, such as C++ and C#
BETWEEN_WORDS = re.compile(r"[\s.,;:!?'’\"()/_-]+")

HOLDER_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"

# names are compared first, as that is cheap: vectors only of names with the same first character and similar length
SELECT_SIMILAR_NAMES = """
WITH sought AS MATERIALIZED (
    SELECT number, type, name, left(name, 1) AS begins, length(name) AS letters, vector::halfvec AS vector
    FROM unnest(%s::int[], %s::text[], %s::text[], %s::text[]) AS given (number, type, name, vector)
), alike AS MATERIALIZED (
    SELECT sought.number, sought.vector, n.entity_id, n.name
    FROM memories m JOIN entity_names n ON n.account_id = m.account_id AND n.entity_id = m.id
    JOIN sought ON sought.type = m.type AND sought.begins = left(n.name, 1)
        AND abs(sought.letters - length(n.name)) <= %s
    WHERE m.account_id = %s AND m.kind = 'entity' AND m.user_id = %s AND (m.user_id <> '' OR m.agent_id = %s)
        AND m.channel = ANY(%s) AND NOT m.archived AND NOT m.quarantined
)
SELECT number, entity_id, name FROM (
    SELECT number, entity_id, name, v.vector <=> alike.vector AS distance
    FROM alike JOIN memory_vectors v ON v.account_id = %s AND v.memory_id = alike.entity_id
        AND v.model = %s AND v.width = %s AND v.passage = 0
) AS near
WHERE distance <= %s ORDER BY number, distance, entity_id, name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtName:
    """An unknown name to look for, with its type and the vector of its text."""

    name: str
    type: str
    vector: Embedding


def lock_holder(owner: Owner) -> None:
    """Serialize writers of this holder's knowledge until the transaction ends. Taken before any row is locked."""
    execute_statement(HOLDER_LOCK, [f"knowledge:{owner.account_id}:{holder_key(owner)}"])


def filter_by_holder(owner: Owner) -> Q:
    """Return the condition for rows of the owner's own knowledge (`identity.holder_key`)."""
    return Q(user_id=owner.user_id) if owner.user_id else Q(user_id="", agent_id=owner.agent_id)


def holds_memory(owner: Owner, row: Any) -> bool:
    """Return True if the memory is the owner's knowledge (`identity.holder_key`), or the owner acts for the account."""
    if owner.user_id:
        return bool(row.user_id == owner.user_id)
    return not owner.agent_id or (row.user_id, row.agent_id) == ("", owner.agent_id)


def holder_of_row(row: MemoryRow | Conversation) -> str:
    """Return the holder (`identity.holder_key`) of a memory or conversation."""
    return holder_key(owner_of_row(row))


def check_size_of_properties(properties: dict[str, Any]) -> None:
    """Raise TooLarge for properties of an entity or relationship that are too large, which each write adds to."""
    size_bytes = len(json.dumps(properties, ensure_ascii=False).encode())
    if size_bytes > MAX_PROPERTIES_BYTES:
        message = f"the properties would have {size_bytes} bytes; at most {MAX_PROPERTIES_BYTES} are allowed"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=MAX_PROPERTIES_BYTES)


def owner_of_row(row: MemoryRow | Conversation, *, actor: str = "") -> Owner:
    """Return the holder of a memory or conversation as an owner, in its channel. It joins no conversation."""
    return Owner(
        account_id=row.account_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        channel=row.channel,
        actor=actor,
        joins=False,
    )


def identities_of_names(owner: Owner, *, type: str, names: Iterable[str]) -> list[str]:  # noqa: A002
    """Return the identities of names where the owner reads: for each name in the active channel, then in `_global`."""
    owners = [replace(owner, channel=channel) for channel in owner.channels]
    return [entity_identity(each, type=type, name=name) for name in names for each in owners]


def entity_ids_by_identity(account_id: UUID, identities: Collection[str]) -> dict[str, UUID]:
    """Return the entities that have names with these identities. One statement."""
    rows = EntityName.objects.filter(account_id=account_id, identity__in=set(identities))
    return dict(rows.values_list("identity", "entity_id"))


def find_misspelt_entities(owner: Owner, sought: Sequence[SoughtName], *, model: str) -> list[UUID | None]:
    """Return for each name the entity that it misspells, or None. One statement.

    Entities are of the same type, holder and channels; of several the one nearest in meaning is returned.
    """
    if not sought:
        return []
    columns: list[list[Any]] = [
        list(range(len(sought))),
        [each.type for each in sought],
        [normalize_name(each.name) for each in sought],
        [half_vector(each.vector).to_text() for each in sought],
    ]
    scope = (owner.account_id, owner.user_id, owner.agent_id, list(owner.channels))
    near = (owner.account_id, model, len(sought[0].vector), 1 - FUZZY_SIMILARITY)
    found: list[UUID | None] = [None] * len(sought)
    with binary_cursor() as cursor:
        cursor.execute(SELECT_SIMILAR_NAMES, [*columns, MAX_LENGTH_DIFFERENCE, *scope, *near])
        # nearest first
        for number, entity_id, name in cursor.fetchall():
            if found[number] is None and is_misspelling(sought[number].name, name):
                found[number] = entity_id
    return found


def is_misspelling(name: str, other: str) -> bool:
    """Return True if one name counts as a misspelling of the other, as far as their letters decide it (see above)."""
    return name_similarity(name, other) >= FUZZY_NAME_SCORE and differs_by_one_letter(name, other)


def name_similarity(name: str, other: str) -> float:
    """Return how similar two names are written, from 0 to 100, without accents and punctuation."""
    return fuzz.ratio(" ".join(split_name(name)), " ".join(split_name(other)))


def differs_by_one_letter(name: str, other: str) -> bool:
    """Return True if two names have the same letters and digits, apart from one letter missing inside one word."""
    ours, theirs = split_name(name), split_name(other)
    if DIGITS.findall(" ".join(ours)) != DIGITS.findall(" ".join(theirs)):
        return False
    if "".join(ours) == "".join(theirs):
        return bool(ours)
    if len(ours) != len(theirs):
        return False
    changed = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    return len(changed) == 1 and lacks_inner_letter(*sorted(changed[0], key=len))


def lacks_inner_letter(shorter: str, longer: str) -> bool:
    """Return True if the Latin words differ in one letter only, neither the first nor the last."""
    if len(longer) != len(shorter) + 1 or len(shorter) < MIN_WORD_LETTERS:
        return False
    if not (longer.isascii() and longer.isalpha()):
        return False
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(longer) - 1)) and (
        longer[0] == shorter[0] and longer[-1] == shorter[-1]
    )


def split_name(name: str) -> list[str]:
    """Return the words of a name, without accents on Latin letters and without punctuation between words.

    >>> split_name("José J. García-Ruiz")
    ['jose', 'j', 'garcia', 'ruiz']
    """
    return BETWEEN_WORDS.sub(" ", ACCENTS.sub("", unicodedata.normalize("NFKD", normalize_name(name)))).split()

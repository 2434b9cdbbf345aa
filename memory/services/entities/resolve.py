"""Which entity a name stands for: by its exact name or alias, then by a name and a meaning that are nearly the same.

Nearly the same is narrow, since two who are taken for one are worse than one who is taken for two: staff merge what is
double (`entity_merges`), but nobody can tell later which fact was about whom. Of one type and holder, a name is taken
for another's misspelling only where

- `is_misspelt`: letters and figures are the same in order, but for one letter that is missing inside of one word.
  Figures count ("Room 101"), and so do the first and the last letter of a word: endings carry gender and number
  ("Michael", "Michaela"), beginnings tell names apart ("Anna", "Hanna"), and so do letters in the same place ("Alina",
  "Alisa");
- and `FUZZY_NAME_SCORE`: their rapidfuzz ratio, 0 to 100, is at least 90. A letter weighs too much in a short name;
- and `FUZZY_SIMILARITY`: the cosine of their vectors (name, aliases and description) is at least 0.85. Measured with
  all-MiniLM-L6-v2: "Jon Smith" and "John Smith" 0.86, "Philip Miller" and "Phillip Miller" 0.95, but "Jon Smith" and
  "Joan Smith" 0.66, "Baker Street" and "Barker Street" 0.80; with descriptions of two men "Jon" and "John" 0.48.

Without a vector on both sides there is no guess, and none about names that begin with different characters.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q
from rapidfuzz import fuzz

from memory.identity import entity_identity, holder, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind
from memory.models.binary import Embedding, binary_cursor, half_vector
from memory.owner import Owner

FUZZY_NAME_SCORE = 90.0
FUZZY_SIMILARITY = 0.85
MOST_LETTERS_APART = 4
"""By which names differ in length at most, punctuation and blanks counted, to be compared at all."""
SHORTEST_MISSPELT = 3
"""Letters that a word has at least, of which one may be missing."""

FIGURES = re.compile(r"\d+")
# of Latin letters alone: elsewhere such marks are vowels
ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
# not what tells names apart, such as C++ and C#
BETWEEN_WORDS = re.compile(r"[\s.,;:!?'’\"()/_-]+")

HOLDER_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"

# names first, which are cheap to compare: only of what begins alike and is about as long are vectors looked at
NEARLY = """
WITH sought AS MATERIALIZED (
    SELECT number, type, name, left(name, 1) AS begins, length(name) AS letters, vector::halfvec AS vector
    FROM unnest(%s::int[], %s::text[], %s::text[], %s::text[]) AS given (number, type, name, vector)
), alike AS MATERIALIZED (
    SELECT sought.number, sought.vector, n.entity_id, n.name
    FROM memories m JOIN entities e ON e.memory_ptr_id = m.id
    JOIN entity_names n ON n.entity_id = m.id AND n.account_id = m.account_id
    JOIN sought ON sought.type = e.type AND sought.begins = left(n.name, 1)
        AND abs(sought.letters - length(n.name)) <= %s
    WHERE m.account_id = %s AND m.kind = 'entity' AND m.user_id = %s AND (m.user_id <> '' OR m.agent_id = %s)
        AND m.channel = ANY(%s) AND NOT m.archived AND NOT m.quarantined
)
SELECT number, entity_id, name FROM (
    SELECT number, entity_id, name, v.vector <=> alike.vector AS distance
    FROM alike JOIN memory_vectors v ON v.memory_id = alike.entity_id AND v.model = %s AND v.width = %s
) AS near
WHERE distance <= %s ORDER BY number, distance, entity_id, name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What an unknown name is looked for by: its type, and the vector of its text."""

    name: str
    type: str
    vector: Embedding


def lock_holder(owner: Owner) -> None:
    """Until the transaction ends, nobody else writes what this holder knows. Taken before any row is locked."""
    with connection.cursor() as cursor:
        cursor.execute(HOLDER_LOCK, [f"knowledge:{owner.account_id}:{holder(owner)}"])


def of_holder(owner: Owner) -> Q:
    """The rows of the owner's own knowledge (`identity.holder`)."""
    return Q(user_id=owner.user_id) if owner.user_id else Q(user_id="", agent_id=owner.agent_id)


def holder_of(entity: Entity, *, actor: str = "") -> Owner:
    """Whose entity it is, in the channel that its names are of."""
    return Owner(
        account_id=entity.account_id,
        agent_id=entity.agent_id,
        user_id=entity.user_id,
        channel=entity.channel,
        actor=actor,
    )


def identities_of(owner: Owner, *, type: str, names: Iterable[str]) -> list[str]:  # noqa: A002
    """What names may be stored under where the owner reads, the active channel before `_global` for each."""
    owners = [replace(owner, channel=channel) for channel in owner.channels]
    return [entity_identity(each, type=type, name=name) for name in names for each in owners]


def claims_on(account_id: UUID, identities: Collection[str]) -> dict[str, UUID]:
    """The entities that go by names, by the names' identities. One statement."""
    rows = EntityName.objects.filter(account_id=account_id, identity__in=set(identities))
    return dict(rows.values_list("identity", "entity_id"))


def known_by_names(owner: Owner, names: Collection[str]) -> dict[str, list[Entity]]:
    """The holder's entities of whatever type that go by these names where the owner reads, by normalized name.

    Those of the active channel first. One statement; nothing for names that nobody goes by.
    """
    wanted = {name_digest(owner, name): normalize_name(name) for name in names}
    if not wanted:
        return {}
    rows: Any = Entity.objects.filter(of_holder(owner), account_id=owner.account_id, kind=Kind.ENTITY)
    rows = rows.in_channels(owner).filter(archived=False, quarantined=False, known_names__name_digest__in=list(wanted))
    found: dict[str, list[Entity]] = {}
    by_channel = sorted(
        rows.annotate(digest=F("known_names__name_digest")).order_by("id"),
        key=lambda entity: owner.channels.index(entity.channel),
    )
    for entity in by_channel:
        known = found.setdefault(wanted[entity.digest], [])
        if entity not in known:
            known.append(entity)
    return found


def find_misspelt(owner: Owner, sought: Sequence[Sought], *, model: str) -> list[UUID | None]:
    """The entity of the same type, holder and channels whose name each is taken to be a misspelling of. One statement.

    Of several the one nearest in meaning.
    """
    found: list[UUID | None] = [None] * len(sought)
    for number, entity_id, name in near_in_meaning(owner, sought, model=model):
        if found[number] is None and is_nearly(sought[number].name, name):
            found[number] = entity_id
    return found


def near_in_meaning(owner: Owner, sought: Sequence[Sought], *, model: str) -> list[tuple[int, UUID, str]]:
    """Number, entity and one of its names, for those that begin alike and whose meaning is near, nearest first."""
    if not sought:
        return []
    columns: list[list[Any]] = [
        list(range(len(sought))),
        [each.type for each in sought],
        [normalize_name(each.name) for each in sought],
        [half_vector(each.vector).to_text() for each in sought],
    ]
    holds = (owner.account_id, owner.user_id, owner.agent_id, list(owner.channels))
    near = (model, len(sought[0].vector), 1 - FUZZY_SIMILARITY)
    with binary_cursor() as cursor:
        cursor.execute(NEARLY, [*columns, MOST_LETTERS_APART, *holds, *near])
        return list(cursor.fetchall())


def is_nearly(name: str, other: str) -> bool:
    """Whether one name is taken for a misspelling of the other, as far as names tell (see above)."""
    return name_score(name, other) >= FUZZY_NAME_SCORE and is_misspelt(name, other)


def name_score(name: str, other: str) -> float:
    """How alike two names are written, 0 to 100, whatever accents and punctuation they have."""
    return fuzz.ratio(" ".join(words_of(name)), " ".join(words_of(other)))


def is_misspelt(name: str, other: str) -> bool:
    """Whether two names have the same letters and figures, but for one letter missing inside of one word."""
    ours, theirs = words_of(name), words_of(other)
    if FIGURES.findall(" ".join(ours)) != FIGURES.findall(" ".join(theirs)):
        return False
    if "".join(ours) == "".join(theirs):
        return bool(ours)
    if len(ours) != len(theirs):
        return False
    changed = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    return len(changed) == 1 and lacks_a_letter(*sorted(changed[0], key=len))


def lacks_a_letter(shorter: str, longer: str) -> bool:
    """Whether the words, of Latin letters, differ in one letter alone, which is neither first nor last."""
    if len(longer) != len(shorter) + 1 or len(shorter) < SHORTEST_MISSPELT:
        return False
    if not (longer.isascii() and longer.isalpha()):
        return False
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(longer) - 1)) and (
        longer[0] == shorter[0] and longer[-1] == shorter[-1]
    )


def words_of(name: str) -> list[str]:
    """The words of a name, Latin letters without their accents, and without what stands between words.

    >>> words_of("José J. García-Ruiz")
    ['jose', 'j', 'garcia', 'ruiz']
    """
    return BETWEEN_WORDS.sub(" ", ACCENTS.sub("", unicodedata.normalize("NFKD", normalize_name(name)))).split()

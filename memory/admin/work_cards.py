"""Work episodes as cards, which unfold to what they were made of: an archived one to the merged one, both to turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models.functions import Left
from django.urls import reverse

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.admin.transcripts import Piece, plain
from memory.admin.turn_cards import MARKS, TEXT_CHARACTERS, Sight, tell_level
from memory.models import Link, WorkEpisode
from memory.reasoning import is_deeper
from memory.services.memories.links import DERIVED_FROM, PRODUCED

LINES = 10
MOST_LINKS = 1_000

# what came of a turn says most in a line, else what was done
TURN_LINES = """
SELECT w.id, r.id, r.number, r.status, r.event_time, told.text
FROM unnest(%(ids)s::uuid[], %(logs)s::uuid[], %(firsts)s::int[], %(lasts)s::int[]) AS w (id, log_id, first, last)
CROSS JOIN LATERAL (
    SELECT * FROM turn_records r WHERE r.log_id = w.log_id AND r.number BETWEEN w.first AND w.last
    ORDER BY r.number LIMIT %(lines)s
) r
LEFT JOIN LATERAL (
    SELECT left(m.text, %(characters)s) AS text FROM turn_slots s JOIN memories m ON m.id = s.memory_ptr_id
    WHERE s.record_id = r.id AND s.slot IN ('outcome', 'action') AND NOT m.quarantined
    ORDER BY s.slot = 'outcome' DESC, s.level DESC LIMIT 1
) told ON TRUE
ORDER BY w.id, r.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn in a line."""

    id: UUID
    number: int
    status: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCard:
    """A work episode, ready for a page; `below` is the merged one that an archived one was made of.

    `lines` are its first turns, `line_count` of all, as numbered: one that was deleted since counts.
    """

    id: UUID
    at: datetime
    level: str
    status: str
    numbers: str
    place: str
    page: str
    remarks: Sequence[str]
    said: Piece
    is_hidden: bool
    produced: Sequence[ArtifactCard] = ()
    below: "WorkCard | None" = None
    lines: Sequence[TurnLine] = ()
    line_count: int = 0


def read_work_cards(account_id: UUID, episode_ids: Sequence[UUID], sight: Sight) -> dict[UUID, WorkCard]:
    """By id. Five statements at most, however many there are."""
    if not episode_ids or not sight.episodes:
        return {}
    below = read_below(account_id, episode_ids)
    rows = read_rows(account_id, [*episode_ids, *below.values()])
    chosen = [rows[id_] for id_ in episode_ids if id_ in rows]
    lines = read_lines(chosen) if sight.turns and sight.slots else {}
    produced = read_produced(account_id, episode_ids) if sight.artifacts else {}
    return {
        row.pk: work_card(
            row,
            below=rows.get(below.get(row.pk)),
            lines=lines.get(row.pk, ()),
            produced=produced.get(row.pk, ()),
        )
        for row in chosen
    }


def read_below(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The episode that each was made of, for those that were."""
    links = Link.objects.filter(account_id=account_id, source_id__in=episode_ids, type=DERIVED_FROM)
    found = links.filter(target__kind="work_episode").order_by("id").values_list("source_id", "target_id")
    return dict(found[:MOST_LINKS])


def read_rows(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[Any, Any]:
    objects: Any = WorkEpisode.objects
    rows = objects.filter(account_id=account_id, pk__in=episode_ids).select_related("log", "account")
    lean = rows.defer("text", "metadata", "data", "log__metadata", "log__saved_session")
    return {row.pk: row for row in lean.annotate(beginning=Left("text", TEXT_CHARACTERS + 1))}


def read_lines(rows: Sequence[Any]) -> dict[UUID, list[TurnLine]]:
    """The first LINES turns of each episode."""
    values = {
        "ids": [row.pk for row in rows],
        "logs": [row.log_id for row in rows],
        "firsts": [row.first_number for row in rows],
        "lasts": [row.last_number for row in rows],
    }
    found: dict[UUID, list[TurnLine]] = {}
    with connection.cursor() as cursor:
        cursor.execute(TURN_LINES, {**values, "lines": LINES, "characters": EXCERPT_CHARACTERS + 1})
        for episode_id, record_id, number, status, at, text in cursor.fetchall():
            line = TurnLine(id=record_id, number=number, status=status, at=at, text=shorten(text or ""))
            found.setdefault(episode_id, []).append(line)
    return found


def read_produced(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[UUID, list[ArtifactCard]]:
    links = Link.objects.filter(account_id=account_id, source_id__in=episode_ids, type=PRODUCED)
    ends = list(links.order_by("id").values_list("source_id", "target_id")[:MOST_LINKS])
    cards = read_artifacts(account_id, artifact_ids=[target for _, target in ends]) if ends else {}
    found: dict[UUID, list[ArtifactCard]] = {}
    for episode_id, target_id in ends:
        if target_id in cards:
            found.setdefault(episode_id, []).append(cards[target_id])
    return found


def work_card(
    row: Any, *, below: Any = None, lines: Sequence[TurnLine] = (), produced: Sequence[ArtifactCard] = ()
) -> WorkCard:
    return WorkCard(
        id=row.pk,
        at=row.event_time,
        level=tell_level(row.level),
        status=row.status,
        numbers=tell_numbers(row),
        place=shorten(row.log.title or row.conversation_id),
        page=reverse("admin:memory_conversation_change", args=[row.log_id]),
        remarks=remarks_on(row),
        said=plain(row.beginning, TEXT_CHARACTERS),
        is_hidden=row.quarantined,
        produced=produced,
        below=None if below is None else work_card(below),
        lines=lines,
        line_count=row.last_number - row.first_number + 1,
    )


def tell_numbers(row: Any) -> str:
    if row.first_number == row.last_number:
        return f"turn {row.first_number}"
    return f"turns {row.first_number}–{row.last_number}"


def remarks_on(row: Any) -> list[str]:
    is_deeper_than_told = is_deeper(row.tier, row.account.reasoning_tier)
    return [
        f"{row.token_count:,} tokens of {row.raw_tokens:,}",
        *([f"by {mark_invisible(row.compressor)}"] if row.compressor else []),
        *(["deeper than the account tells"] if is_deeper_than_told else []),
        *(name for name in MARKS if getattr(row, name)),
    ]

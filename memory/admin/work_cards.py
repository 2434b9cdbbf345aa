"""Work episodes as cards, which unfold to what they were made of: an archived one to the merged one, both to turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Left

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.columns import change_url
from memory.admin.memories import MARK_COLUMNS
from memory.admin.text import EXCERPT_CHARACTERS, excerpt_of, mark_invisible
from memory.admin.transcripts import TextBlock, text_block
from memory.admin.turn_cards import (
    CARD_CHARACTERS,
    DEEPER_THAN_POLICY,
    MAX_CARD_LINKS,
    VisibleModels,
    format_level,
    format_range,
)
from memory.models import Link, WorkEpisode
from memory.models.statements import fetch_rows
from memory.reasoning import is_deeper
from memory.services.memories.links import DERIVED_FROM, PRODUCED

MAX_LINES = 10

# the outcome of a turn says most in one line, otherwise its action does
TURN_LINES = """
SELECT w.id, r.id, r.number, r.status, r.event_time, line.text
FROM unnest(%(ids)s::uuid[], %(logs)s::uuid[], %(firsts)s::int[], %(lasts)s::int[]) AS w (id, log_id, first, last)
CROSS JOIN LATERAL (
    SELECT r.id, r.number, r.status, r.event_time FROM turn_records r
    WHERE r.account_id = %(account_id)s AND r.log_id = w.log_id AND r.number BETWEEN w.first AND w.last
    ORDER BY r.number LIMIT %(lines)s
) r
LEFT JOIN LATERAL (
    SELECT left(m.text, %(characters)s) AS text FROM memories m
    WHERE m.account_id = %(account_id)s AND m.kind = 'turn_slot' AND m.record_id = r.id
        AND m.slot IN ('outcome', 'action') AND NOT m.quarantined
    ORDER BY m.slot = 'outcome' DESC, m.level DESC LIMIT 1
) line ON TRUE
ORDER BY w.id, r.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn in one line."""

    id: UUID
    number: int
    status: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCard:
    """A work episode, ready for a page. `source` is the merged episode that an archived one was made of.

    `lines` are its first turns; `line_count` counts all their numbers, including turns that were deleted since.
    """

    id: UUID
    at: datetime
    level: str
    status: str
    numbers: str
    place: str
    page: str
    remarks: Sequence[str]
    text: TextBlock
    is_hidden: bool
    produced: Sequence[ArtifactCard] = ()
    source: "WorkCard | None" = None
    lines: Sequence[TurnLine] = ()
    line_count: int = 0


def read_work_cards(account_id: UUID, episode_ids: Sequence[UUID], visible: VisibleModels) -> dict[UUID, WorkCard]:
    """Return cards by id. Issue at most five statements, however many cards there are."""
    if not episode_ids or not visible.episodes:
        return {}
    sources = read_source_ids(account_id, episode_ids)
    rows = read_episode_rows(account_id, [*episode_ids, *sources.values()])
    chosen = [rows[id_] for id_ in episode_ids if id_ in rows]
    lines = read_turn_lines(account_id, chosen) if visible.turns and visible.slots else {}
    produced = read_produced_artifacts(account_id, episode_ids) if visible.artifacts else {}
    return {
        row.pk: work_card(
            row,
            source=rows.get(sources.get(row.pk)),
            lines=lines.get(row.pk, ()),
            produced=produced.get(row.pk, ()),
        )
        for row in chosen
    }


def read_source_ids(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the id of the episode that each was made of, for those that were made of one."""
    links = Link.objects.filter(account_id=account_id, source_id__in=episode_ids, type=DERIVED_FROM)
    found = links.filter(target__kind="work_episode").order_by("id").values_list("source_id", "target_id")
    return dict(found[:MAX_CARD_LINKS])


def read_episode_rows(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[Any, Any]:
    objects = WorkEpisode.objects
    rows = objects.filter(account_id=account_id, pk__in=episode_ids).select_related("log", "account")
    lean = rows.defer("text", "metadata", "data", "log__metadata", "log__saved_session")
    return {row.pk: row for row in lean.annotate(beginning=Left("text", CARD_CHARACTERS + 1))}


def read_turn_lines(account_id: UUID, rows: Sequence[Any]) -> dict[UUID, list[TurnLine]]:
    """Return the first MAX_LINES turns of each episode."""
    values: dict[str, Any] = {
        "account_id": account_id,
        "ids": [row.pk for row in rows],
        "logs": [row.log_id for row in rows],
        "firsts": [row.first_number for row in rows],
        "lasts": [row.last_number for row in rows],
    }
    found: dict[UUID, list[TurnLine]] = {}
    for episode_id, record_id, number, status, at, text in fetch_rows(
        TURN_LINES, {**values, "lines": MAX_LINES, "characters": EXCERPT_CHARACTERS + 1}
    ):
        line = TurnLine(id=record_id, number=number, status=status, at=at, text=excerpt_of(text or ""))
        found.setdefault(episode_id, []).append(line)
    return found


def read_produced_artifacts(account_id: UUID, episode_ids: Sequence[UUID]) -> dict[UUID, list[ArtifactCard]]:
    links = Link.objects.filter(account_id=account_id, source_id__in=episode_ids, type=PRODUCED)
    ends = list(links.order_by("id").values_list("source_id", "target_id")[:MAX_CARD_LINKS])
    cards = read_artifacts(account_id, artifact_ids=[target for _, target in ends]) if ends else {}
    found: dict[UUID, list[ArtifactCard]] = {}
    for episode_id, target_id in ends:
        if target_id in cards:
            found.setdefault(episode_id, []).append(cards[target_id])
    return found


def work_card(
    row: Any, *, source: Any = None, lines: Sequence[TurnLine] = (), produced: Sequence[ArtifactCard] = ()
) -> WorkCard:
    return WorkCard(
        id=row.pk,
        at=row.event_time,
        level=format_level(row.level),
        status=row.status,
        numbers=format_turn_numbers(row),
        place=excerpt_of(row.log.title or row.conversation_id),
        page=change_url("conversation", row.log_id),
        remarks=episode_remarks(row),
        text=text_block(row.beginning, CARD_CHARACTERS),
        is_hidden=row.quarantined,
        produced=produced,
        source=None if source is None else work_card(source),
        lines=lines,
        line_count=row.last_number - row.first_number + 1,
    )


def format_turn_numbers(row: Any) -> str:
    return format_range("turn", row.first_number, row.last_number)


def episode_remarks(row: Any) -> list[str]:
    return [
        f"{row.token_count:,} tokens of {row.raw_tokens:,}",
        *([f"by {mark_invisible(row.compressor)}"] if row.compressor else []),
        *([DEEPER_THAN_POLICY] if is_deeper(row.tier, row.account.reasoning_tier) else []),
        *(name for name in MARK_COLUMNS if getattr(row, name)),
    ]

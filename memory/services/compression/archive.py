"""The last level: a work episode, long after its goal was closed, reduced to what the goal was, what was decided and
produced, what came of it, and what was corrected. The merged one is archived, and still there to be read."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from memory import conf
from memory.extraction.work_stories import archive_work
from memory.models import CompressionLevel, TurnRecord, WorkEpisode
from memory.owner import Owner
from memory.services.compression.compress import (
    ACTOR,
    NO_FIGURES,
    Stretch,
    Worked,
    archive_sources,
    carry_links,
    has_closed_goal,
    lock_log,
    lock_memories,
    settled_columns,
)
from memory.services.conversations.queue import Outcome, Settled
from memory.services.embedding.embed import embed_texts
from memory.services.memories.links import DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import store_memories

logger = logging.getLogger(__name__)

MERGED, ARCHIVED = CompressionLevel.MERGED, CompressionLevel.ARCHIVED
COPIED = (
    *("kind", "conversation_id", "language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
    *("log_id", "for_goal_id", "first_number", "last_number", "status", "tier", "raw_tokens", "compressor"),
)
"""Of an episode, what the archived one has from it."""


def archive_episodes(stretch: Stretch) -> Worked:
    """Reduce the merged episodes of a stretch that are due."""
    rows: Any = due_episodes(stretch)
    due = list(rows.order_by("id")[: stretch.limit])
    last = due[-1].id if len(due) == stretch.limit else None
    if stretch.dry_run:
        return Worked(examined=len(due), changed=len(due), figures=Counter(), last=last)
    settled = []
    for episode in due:
        settled.append(settle(episode, now=stretch.now))
        stretch.renew()
    return Worked.of(settled, last=last)


def due_episodes(stretch: Stretch) -> QuerySet[WorkEpisode]:
    """Whose goal was closed long ago; without a closed goal, whose last record is so old. Pinned ones stay."""
    oldest = stretch.now - timedelta(days=conf.ARCHIVE_WORK_AFTER_DAYS)
    closed = has_closed_goal("for_goal_id")
    rows: Any = WorkEpisode.objects.filter(
        Q(has_closed_goal("for_goal_id", completed_at__lte=oldest)) | (~Q(closed) & Q(event_time__lte=oldest)),
        level=MERGED,
        archived=False,
        quarantined=False,
        pinned=False,
    )
    if stretch.account_id is not None:
        rows = rows.filter(account_id=stretch.account_id)
    due: QuerySet[WorkEpisode] = rows if stretch.after is None else rows.filter(id__gt=stretch.after)
    return due


def settle(episode: WorkEpisode, *, now: datetime) -> Settled:
    try:
        figures = store_archived(episode, now=now)
    except Exception as err:  # noqa: BLE001 - the outermost loop of the works
        # its words may be the episode's
        logger.error("archiving of work episode %s failed: %s", episode.id, type(err).__name__)
        return Settled(outcome=Outcome.FAILED, figures=NO_FIGURES)
    if figures is None:
        return Settled(outcome=Outcome.OUTDATED, figures=NO_FIGURES)
    return Settled(outcome=Outcome.STORED, figures=figures)


def store_archived(episode: WorkEpisode, *, now: datetime) -> Mapping[str, int] | None:
    """None where the episode has changed since it was read."""
    row = archived_episode(episode)
    # outside the transaction: it may take seconds
    embedded = embed_texts([row.text])
    owner = Owner(account_id=episode.account_id, user_id=episode.user_id, channel=episode.channel, actor=ACTOR)
    with transaction.atomic():
        if not lock_log(episode.log_id) or lock_memories([episode]) is None:
            return None
        store_memories(replace(owner, agent_id=episode.agent_id), [row], embedded=embedded, own={}, now=now)
        insert_links(episode.account_id, [NewLink(source_id=row.id, type=DERIVED_FROM, target_id=episode.id)])
        carry_links(episode.account_id, {episode.id: row.id})
        archive_sources(owner, [episode], conversation_id=episode.conversation_id, now=now)
        TurnRecord.objects.filter(episode=episode).update(episode=row, level=ARCHIVED, **settled_columns(now))
    return {"tokens_before": episode.token_count, "tokens_after": row.token_count, "archived": 1}


def archived_episode(episode: WorkEpisode) -> WorkEpisode:
    """Not stored yet."""
    text, data = archive_work(episode.text, episode.data)
    row = WorkEpisode(text=text, data=data, level=ARCHIVED, **{name: getattr(episode, name) for name in COPIED})
    row.identity = f"{episode.log_id}:{episode.first_number}:{ARCHIVED.value}"
    return row

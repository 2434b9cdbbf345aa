"""The queue of summaries: the conversation's row, due at `summarize_after`, claimed by a lease.

A killed worker's claim runs out, and its stretch is claimed again; what fails pushes its conversation back, twice as
far each time, and the reason stays on the row for staff to see.
"""

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.models import Conversation
from memory.services.conversations import plan_summary

ADVANCED = (
    *("summarized_count", "buffer_from", "summarize_after", "summarize_to"),
    *("summary_lease_until", "summary_attempts", "summary_error"),
)


MOST_ATTEMPTS = 32_767
"""As many as the column counts."""
LONGEST_ERROR = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A conversation under lease, as it was when it was claimed; its next summary goes up to the turn `target`."""

    conversation: Conversation
    target: int
    attempts: int
    claimed_at: datetime
    leased_until: datetime
    began: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        """The time of the claim, and what has passed since."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.began)


def claim_due(*, now: datetime, limit: int, account_id: UUID | None) -> list[Claimed]:
    """Put due conversations under a lease and count the attempt. What another worker is claiming is passed over."""
    due = Conversation.objects.due_for_summary(now)
    if account_id is not None:
        due = due.filter(account_id=account_id)
    leased_until = now + lease()
    with transaction.atomic():
        in_order = due.order_by("summarize_after", "id").defer("saved_session")
        rows = list(in_order.select_for_update(skip_locked=True, no_key=True)[:limit])
        Conversation.objects.filter(id__in=[row.id for row in rows]).update(
            summary_lease_until=leased_until, summary_attempts=Least(F("summary_attempts"), MOST_ATTEMPTS - 1) + 1
        )
    return [
        Claimed(
            conversation=row,
            target=target_of(row),
            attempts=row.summary_attempts + 1,
            claimed_at=now,
            leased_until=leased_until,
        )
        for row in rows
    ]


def lease() -> timedelta:
    return timedelta(seconds=conf.SUMMARY_LEASE_SECONDS)


def target_of(conversation: Conversation) -> int:
    """Up to which turn its next summary goes: as asked for, else all but the last ones."""
    wanted = conversation.summarize_to
    if wanted is None:
        wanted = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    return max(wanted, conversation.summarized_count)


def held(claim: Claimed) -> QuerySet[Conversation]:
    """The row, if the claim still holds."""
    row = claim.conversation
    rows = Conversation.objects.filter(
        id=row.id, summary_lease_until=claim.leased_until, summarized_count=row.summarized_count
    )
    return rows.defer("saved_session")


def renew_lease(claim: Claimed) -> Claimed:
    """A whole lease from now on, once a third of it has passed; a claim that was lost meanwhile stays lost."""
    now = claim.now
    if claim.leased_until - now > lease() * 2 / 3:
        return claim
    held(claim).update(summary_lease_until=now + lease())
    return replace(claim, leased_until=now + lease())


def push_back(claim: Claimed, *, error: str, now: datetime) -> None:
    """Try again later: the base, doubled with each attempt, up to the limit. Leaves alone what others took up since."""
    wait = min(conf.SUMMARY_BACKOFF_SECONDS * 2 ** min(claim.attempts - 1, 20), conf.SUMMARY_BACKOFF_LIMIT_SECONDS)
    held(claim).update(
        summarize_after=now + timedelta(seconds=wait), summary_error=error[:LONGEST_ERROR], summary_lease_until=None
    )


def put_back(claim: Claimed, *, now: datetime) -> None:
    """Due again at once."""
    held(claim).update(summarize_after=now, summary_lease_until=None)


def advance(conversation: Conversation, claim: Claimed, *, stop: int, now: datetime) -> None:
    """The turns before `stop` are in the summary; what is left of the claim, or was asked for meanwhile, is due now."""
    # a summary that was lost is made again from the beginning on
    conversation.summarized_count = max(conversation.summarized_count, stop)
    latest = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    conversation.buffer_from = max(conversation.buffer_from, min(stop, latest))
    conversation.summary_lease_until = None
    conversation.summary_attempts, conversation.summary_error = 0, ""
    wanted = max(claim.target, conversation.summarize_to or 0)
    if wanted > stop:
        conversation.summarize_to, conversation.summarize_after = wanted, now
    else:
        conversation.summarize_to = None
        plan_summary(conversation, now=now)
    conversation.save(update_fields=ADVANCED)

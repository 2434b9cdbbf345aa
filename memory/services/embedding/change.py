"""Changes of the embedding model: requests of operators, their progress, and the switch itself.

The row of `embedding_state` says what is going on. Whoever changes what writers must know takes the lock that each
transaction which stores vectors shares (`memory_note_vector`, migration 0046), so that none is half before and half
after the change. The work is done step by step in `reembed`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import QuerySet

from memory.errors import Conflict, ProviderError, Unprocessable
from memory.models import Memory, ReembedEntry, ServingModelState
from memory.models.embedding_state import STATE_ID
from memory.models.statements import execute_statement, fetch_rows
from memory.models.vectors import MAX_WIDTH
from memory.providers.connections import Deadline
from memory.providers.embeddings import ModelSpec
from memory.services.account_walk import group_by_account
from memory.services.claims import take_shares
from memory.services.embedding.embed import resolve_vector_width
from memory.services.embedding.serving import CACHE, find_configured_model, parse_spec, serialize_spec, use_model

Phase = ServingModelState.Phase

WRITERS_LOCK = (1919249762, 0)
LOCK_WRITERS = "SELECT pg_advisory_xact_lock(%s, %s)"
LOCK_TIMEOUT_MS = 2_000
"""Time for which writers may have to wait for the switch, and the switch for writers."""
MAX_LATE_ROWS = 500
"""Memories without a vector of the next model with which it may begin to serve: they are queued by the switch."""
MAX_ATTEMPTS = 3
"""Failed attempts after which a memory does not keep the next model from serving: it is tried again later."""
STALE_FOR = timedelta(minutes=5)
"""Time after the switch for which a process may still store what it embedded by the former model."""
MAX_COUNTED = 10_000
PROBE_SECONDS = 20.0
OTHER_WIDTH = "SELECT EXISTS (SELECT 1 FROM memory_vectors WHERE model = %s AND width <> %s)"


VECTORS_BY_MODEL = """
SELECT count(*) FILTER (WHERE model = %(serving)s AND passage = 0), count(*) FILTER (WHERE model = %(serving)s),
    count(*) FILTER (WHERE model = %(next)s AND passage = 0)
FROM memory_vectors
"""
ROW_BYTES = 300
"""Size of a vector's row and of its entries in indexes, without the vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEstimate:
    """Numbers of memories to embed and of those that have their vectors already, and the size of the new vectors."""

    to_embed: int
    embedded: int
    megabytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStatus:
    """The models and how far the change is. `left` counts memories that were written since the walk passed them.

    `refused` counts those of which the next model makes no vector, `lacking` those without a vector of the serving
    one. All three counts end at MAX_COUNTED.
    """

    serving: ModelSpec
    next: ModelSpec | None
    former: ModelSpec | None
    configured: ModelSpec | None
    phase: str
    cursor: str
    done: int
    failed: int
    left: int
    refused: int
    lacking: int
    started_at: datetime | None
    switched_at: datetime | None


def read_state() -> ServingModelState | None:
    """Return the row, or None before the job `reembed` first ran."""
    return ServingModelState.objects.filter(id=STATE_ID).first()


def record_serving_model() -> ServingModelState | None:
    """Return the row; if there is none, store the configured model as the one that serves.

    Returns None if the settings configure none that works, or its endpoint does not say how wide its vectors are.
    """
    row, configured = read_state(), find_configured_model()
    if row is not None or configured is None:
        return row
    try:
        model = use_model(configured)
        serving = replace(configured, width=resolve_vector_width(model, Deadline.after(PROBE_SECONDS)))
    except ProviderError:
        return None
    ServingModelState.objects.bulk_create([ServingModelState(serving=serialize_spec(serving))], ignore_conflicts=True)
    CACHE.forget()
    return read_state()


def plan_change(wanted: ModelSpec) -> ModelSpec:
    """Return the model to change to, as `start_change` stores it, after a text was embedded by it.

    Raises Conflict and Unprocessable as `start_change` does, and a ProviderError if the model does not answer.
    """
    state = record_serving_model()
    if state is None:
        raise Unprocessable("The model that serves now is not known: its settings are invalid, or it does not answer")
    model = use_model(wanted)
    width = resolve_vector_width(model, Deadline.after(PROBE_SECONDS))
    model.provider.embed(["ready"], deadline_seconds=PROBE_SECONDS)
    spec = replace(wanted, width=width)
    known = [parse_spec(each) for each in (state.next, state.former, state.serving) if each]
    same = next((each for each in known if each.is_same(spec)), None)
    if same is not None:
        spec = replace(spec, name=same.name)
    elif fetch_rows(OTHER_WIDTH, [spec.name, width])[0][0]:
        spec = replace(spec, name=f"{spec.name}@{width}")
    check_change(state, spec)
    return spec


def check_change(state: ServingModelState, spec: ModelSpec) -> None:
    """Raise Unprocessable for the model that serves, and Conflict while another change is on or not finished."""
    serving = parse_spec(state.serving)
    if spec.is_same(serving):
        raise Unprocessable(f"{serving.describe()} serves already: there is nothing to change")
    if spec.width > MAX_WIDTH:
        raise Unprocessable(f"A vector may have {MAX_WIDTH} dimensions at most, not {spec.width}")
    if state.phase == Phase.ABORT or (state.next and not parse_spec(state.next).is_same(spec)):
        raise Conflict(f"A change to {parse_spec(state.next).describe()} is going on: finish it, or --abort it first")
    if state.phase == Phase.DROP:
        raise Conflict("Vectors of the former model are being dropped: wait for the end of --finish")
    if state.former and not parse_spec(state.former).is_same(spec):
        former = parse_spec(state.former).describe()
        raise Conflict(f"Vectors of {former}, which served before, are still there: drop them by --finish first")


def start_change(spec: ModelSpec, *, now: datetime) -> ServingModelState:
    """Begin to prepare the model, or go on with that. From now on the database queues what is written meanwhile.

    `spec` is what `plan_change` returned. Raises Conflict and Unprocessable as that does.
    """
    with transaction.atomic():
        lock_writers()
        state = ServingModelState.objects.select_for_update().get(id=STATE_ID)
        check_change(state, spec)
        if state.next is None:
            state.next, state.phase, state.cursor = serialize_spec(spec), Phase.WALK, ""
            state.done = state.failed = 0
            state.started_at = now
            state.save()
    CACHE.forget()
    return state


def lock_writers() -> None:
    """Wait for transactions that have stored vectors, and have later ones wait for this one.

    Raises Conflict if that takes longer than LOCK_TIMEOUT_MS.
    """
    try:
        execute_statement(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        execute_statement(LOCK_WRITERS, WRITERS_LOCK)
    except OperationalError as err:
        raise Conflict("A transaction that stores memories takes too long: try again when it has ended") from err


def request_abort() -> ServingModelState:
    """Give up the change: the vectors that were made for it will be dropped. Raises Conflict if there is none."""
    with transaction.atomic():
        lock_writers()
        state = ServingModelState.objects.select_for_update().filter(id=STATE_ID).first()
        if state is None or state.next is None:
            raise Conflict("No change of the embedding model is going on")
        if state.phase != Phase.ABORT:
            state.phase, state.cursor, state.done = Phase.ABORT, "", 0
            state.save()
    CACHE.forget()
    return state


def request_finish() -> ServingModelState:
    """Have the vectors of the former model dropped. There is no way back then. Raises Conflict if there are none."""
    with transaction.atomic():
        state = ServingModelState.objects.select_for_update().filter(id=STATE_ID).first()
        if state is not None and state.next is not None:
            raise Conflict("A change of the embedding model is going on: wait for its end, or --abort it first")
        if state is None or state.former is None:
            raise Conflict("There is no former embedding model whose vectors could be dropped")
        if state.phase != Phase.DROP:
            state.phase, state.cursor, state.done = Phase.DROP, "", 0
            state.save()
    return state


def switch_models(*, now: datetime) -> int | None:
    """Let the next model serve, in one transaction, and return how many memories still lack a vector of it.

    These become due for the job `embed`, and searches say so until then. Returns None, and changes nothing, if there
    are more than MAX_LATE_ROWS of them, or somebody else has locked one. Those that the model has refused do not count:
    `release_refused` takes them off the queue afterwards. Raises Conflict as `lock_writers` does.
    """
    try:
        with transaction.atomic():
            lock_writers()
            state = ServingModelState.objects.select_for_update().get(id=STATE_ID)
            late = read_queue(hopeful_entries(), limit=MAX_LATE_ROWS + 1)
            if state.phase != Phase.SWITCH or len(late) > MAX_LATE_ROWS:
                return None
            queue_late_rows(late, now=now)
            state.former, state.serving, state.next = state.serving, state.next, None
            state.phase, state.cursor, state.switched_at = Phase.IDLE, "", now
            state.save()
    except OperationalError:  # a late row is locked; waiting for it could be a deadlock, as its writer may wait for us
        return None
    finally:
        CACHE.forget()
    return len(late)


def read_queue(entries: "QuerySet[ReembedEntry]", *, limit: int) -> list[ReembedEntry]:
    """Return entries of the queue, due or not."""
    return take_shares(entries, first_entries, limit=limit, account_id=None)


def hopeful_entries() -> "QuerySet[ReembedEntry]":
    """Return the entries of memories that the next model has not refused for good."""
    return ReembedEntry.objects.filter(attempts__lt=MAX_ATTEMPTS)


def release_refused(*, now: datetime) -> int:
    """Make memories that the serving model refused before the switch due for the job `embed`, a bounded number.

    Returns how many. None is left if somebody else has locked one of them: a later call tries again.
    """
    refused = read_queue(ReembedEntry.objects.all(), limit=MAX_LATE_ROWS)
    try:
        with transaction.atomic():
            queue_late_rows(refused, now=now)
    except OperationalError:
        return 0
    return len(refused)


def first_entries(entries: "QuerySet[ReembedEntry]", share: int) -> "QuerySet[ReembedEntry]":
    return entries.order_by("due_at", "id")[:share]


def queue_late_rows(late: Iterable[ReembedEntry], *, now: datetime) -> None:
    """Make the memories due for the serving model, and empty the queue. Blank texts have no vector by any model."""
    due: dict[str, Any] = {"embed_after": now, "embed_attempts": 0, "embed_error": ""}
    for account_id, entries in group_by_account(late).items():
        rows = Memory.objects.filter(account_id=account_id, id__in=[entry.memory_id for entry in entries])
        list(rows.order_by("id").select_for_update(nowait=True).values_list("id"))
        rows.filter(embed_after=None).exclude(text__regex=r"^\s*$").update(**due)
        ReembedEntry.objects.filter(account_id=account_id, id__in=[entry.id for entry in entries]).delete()


def estimate_change(spec: ModelSpec) -> ChangeEstimate:
    """Return what a change would cost. Reads all vectors' rows."""
    state = ServingModelState.objects.get(id=STATE_ID)
    names = {"serving": state.serving["name"], "next": spec.name}
    [(memories, vectors, embedded)] = fetch_rows(VECTORS_BY_MODEL, names)
    row_bytes = 2 * spec.width + ROW_BYTES
    return ChangeEstimate(
        to_embed=max(memories - embedded, 0), embedded=embedded, megabytes=round(vectors * row_bytes / 1e6)
    )


def find_status() -> ChangeStatus | None:
    """Return how far the change is, or None before the job `reembed` first ran."""
    state = read_state()
    if state is None:
        return None
    next_spec, former = (each and parse_spec(each) for each in (state.next, state.former))
    names = ("phase", "cursor", "done", "failed", "started_at", "switched_at")
    return ChangeStatus(
        serving=parse_spec(state.serving),
        next=next_spec,
        former=former,
        configured=find_configured_model(),
        left=len(read_queue(hopeful_entries(), limit=MAX_COUNTED)),
        refused=len(read_queue(ReembedEntry.objects.filter(attempts__gte=MAX_ATTEMPTS), limit=MAX_COUNTED)),
        lacking=Memory.objects.awaiting_embedding()[:MAX_COUNTED].count(),
        **{name: getattr(state, name) for name in names},
    )

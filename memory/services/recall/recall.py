"""Recall (X8, X9, E6): the one way from a question to memories of all kinds, for every edge.

Embeds the question (outside of any transaction), runs the pipeline, and says afterwards what was recalled: `conclude`
counts the reads and writes the audit row, and is called once the answer is on its way.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import numpy as np
from django.db import DatabaseError, transaction

from ledger import store as ledger
from memory import conf
from memory.audit import is_verbose
from memory.errors import Unprocessable
from memory.models import Kind
from memory.models.binary import Embedding
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.providers.embeddings import is_nested
from memory.providers.language_models import Usage, language_model
from memory.providers.rerankers import reranking_provider
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.entries import locate_entries
from memory.retrieval.pipeline import recall as run_pipeline
from memory.retrieval.plans import Moment, Plan
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.readings import HYDE
from memory.retrieval.scopes import check_scopes
from memory.retrieval.techniques import RERANK, choose_plan
from memory.services.audit.log import count_elsewhere, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.embedding.embed import embed_texts
from memory.services.memories.reinforce import reinforce
from memory.services.memories.store import OwnVector
from memory.services.operations.usage import record_usage
from memory.services.recall.search import QUERY_DEADLINE_SECONDS
from memory_project.measures import RECALL_SECONDS
from memory_project.redis import Place
from memory_project.tracing import traced

ITEM_KEY = re.compile(rf"(?:{'|'.join(Kind.values)}):([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


def injected_ids(item_keys: Iterable[str]) -> list[UUID]:
    """The ids in keys of the form `<kind>:<id>`, as `Memory.item_key` writes them."""
    return [UUID(match[1]) for key in item_keys if (match := ITEM_KEY.fullmatch(key))]


logger = logging.getLogger(__name__)

USE = "recall"
EMBEDDING_SHARE = 0.5
"""Of the time that is left: where the embedder takes all of its share, words are looked for in the rest."""
EARLIEST_HOURS = 24 * 366 * 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """What a client asks for. `time_window_hours` is `since`, told from now; `techniques` as in `choose_plan`.

    With `max_tokens` the texts of all results together are estimated to have no more. `deadline` is one that began
    before the recall did; without it `deadline_ms` begin with the recall. A `plan`, which no client can send, takes the
    place of what `techniques` choose.
    """

    query: Query
    techniques: Sequence[str] = ()
    plan: Plan | None = None
    own: OwnVector | None = None
    time_window_hours: float | None = None
    deadline_ms: int | None = None
    deadline: Deadline | None = None
    max_tokens: int | None = None
    suppress_injected: bool = False


@traced("recall", told=lambda bundle: {"results": len(bundle.results)})
def recall(owner: Owner, request: RecallRequest, *, now: datetime) -> Bundle:
    """The memories that answer the question best, with the owner's open goals and its user's profile.

    Three statements at most, none of which writes; one more for results whose texts are long, and one that adds up
    what a language model took, where one was asked. Raises Unprocessable for filters that contradict each other, for
    scopes without what they are of, and for techniques that there are not.
    """
    began = monotonic()
    deadline = deadline_of(request)
    plan = request.plan or choose_plan(request.techniques)
    query = prepare(owner, request, now=now)
    usages: list[Usage] = []
    moment = Moment(
        owner=owner,
        now=now,
        deadline=deadline,
        model=language_model(USE),
        meter=usages.append,
    )
    try:
        bundle = run_pipeline(query, plan=plan, moment=moment, embed=embed_query, reranker=reranking_provider())
    finally:
        note_usage(owner, usages, now=now)
    took = monotonic() - began
    RECALL_SECONDS.observe(took)
    degraded = sorted({*bundle.degraded, *name_unconfigured(request)})
    bundle = replace(bundle, degraded=degraded, took_ms=1_000 * took)
    if request.max_tokens is None:
        return bundle
    return replace(bundle, results=within_tokens(bundle.results, request.max_tokens))


def name_unconfigured(request: RecallRequest) -> list[str]:
    """Techniques that the request names although nothing is configured that could do them."""
    lacking = {HYDE: language_model(USE) is None, RERANK: reranking_provider() is None}
    return [f"{name}_unavailable" for name, is_lacking in lacking.items() if is_lacking and name in request.techniques]


def note_usage(owner: Owner, usages: Sequence[Usage], *, now: datetime) -> None:
    """Add up what the model took, also where the recall failed. A sum that cannot be written costs no answer."""
    if not usages:
        return
    try:
        # a savepoint, within a transaction of the caller's
        with transaction.atomic():
            record_usage(owner.account_id, use=USE, usages=usages, now=now)
    except DatabaseError as err:
        logger.warning("what a language model took in a recall was not recorded: %s", type(err).__name__)


def deadline_of(request: RecallRequest) -> Deadline:
    """The one that it brings, else its own, from now on."""
    deadline_ms = conf.RECALL_DEADLINE_MS if request.deadline_ms is None else request.deadline_ms
    return request.deadline or Deadline.after(deadline_ms / 1_000)


def within_tokens(results: Sequence[Candidate], max_tokens: int) -> list[Candidate]:
    """Those that fit, best first: what is too long for the room that is left makes way for what comes after it."""
    fitting = []
    for result in results:
        if result.token_count <= max_tokens:
            fitting.append(result)
            max_tokens -= result.token_count
    return fitting


def prepare(owner: Owner, request: RecallRequest, *, now: datetime) -> Query:
    """The query with what the request says beside it. Raises Unprocessable."""
    query = request.query
    if request.time_window_hours is not None:
        opens = now - timedelta(hours=min(request.time_window_hours, EARLIEST_HOURS))
        query = replace(query, since=opens if query.since is None else max(query.since, opens))
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Unprocessable("`since` must be before `until`")
    query = narrow_to_slots(query)
    check_scopes(query, has_user=bool(owner.user_id))
    if request.suppress_injected:
        query = replace(query, without=[*query.without, *read_injected(owner, query.conversation_id)])
    if request.own is not None:
        query = with_vector(query, request.own.model, request.own.vector)
    return query


def narrow_to_slots(query: Query) -> Query:
    """Where slots are asked for, nothing else has them. Raises Unprocessable for kinds that leave them out."""
    if not query.slots:
        return query
    if query.kinds and Kind.TURN_SLOT not in query.kinds:
        raise Unprocessable("`slots` are of the kind turn_slot: ask for it, or for no kinds")
    return replace(query, kinds=[Kind.TURN_SLOT])


def read_injected(owner: Owner, conversation_id: str) -> list[UUID]:
    """The memories that the conversation's ledger holds. Raises Unprocessable without a conversation."""
    if not conversation_id:
        raise Unprocessable("`suppress_injected` is about a conversation: name one")
    return injected_ids(ledger.get_all(Place(account_id=owner.account_id, conversation_id=conversation_id)))


def embed_query(query: Query, moment: Moment) -> Query:
    """With the mean direction of the text and what it was expanded to; as it is where the embedder does not answer."""
    texts = [text for text in (query.text, *query.expansions, query.gist) if text.strip()]
    left = moment.deadline.left_seconds()
    if not texts or left <= 0:
        return query
    embedded = embed_texts(texts, deadline_seconds=min(QUERY_DEADLINE_SECONDS, EMBEDDING_SHARE * left))
    if query.text not in embedded.vectors:
        return query
    further = [embedded.vectors[text] for text in query.expansions if text in embedded.vectors]
    if query.gist in embedded.vectors:
        query = replace(query, gist_vector=mean_direction([embedded.vectors[query.gist], *further]))
    return with_vector(query, embedded.model, mean_direction([embedded.vectors[query.text], *further]))


def mean_direction(vectors: Sequence[Embedding]) -> Embedding:
    """Of unit length, unless they cancel each other out."""
    if len(vectors) == 1:
        return vectors[0]
    total: Embedding = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length > 0 else vectors[0]


def with_vector(query: Query, model: str, vector: Embedding) -> Query:
    return replace(query, model=model, vector=vector, is_nested=is_nested(model))


def conclude(owner: Owner, request: RecallRequest, bundle: Bundle, *, now: datetime) -> None:
    """Count the reads of what was recalled, in one statement, and note them where the audit log keeps reads.

    Reads of context entries are in the access log of their contexts, whose lines count them. `target_channels` are
    those that memories came from: more than the active one is a match across channels.
    """
    ids = [result.id for result in bundle.results]
    entries = [result.id for result in bundle.of_kind(Kind.CONTEXT_ENTRY)]
    reinforce(owner, [each for each in ids if each not in entries], now=now)
    log_reads(owner, locate_entries(owner, entries), action=Action.SEARCH, now=now)
    record_read(
        owner,
        memory_type="all",
        affected_ids=ids,
        target_channels=sorted({result.channel for result in bundle.results}),
        query_text=request.query.text,
        result_count=len(ids),
        cross_channel_count=count_elsewhere(owner, [result.channel for result in bundle.results]),
        latency_ms=bundle.took_ms,
        metadata=tell_asked(request, bundle) if is_verbose(owner) else {},
        **conversation_of(request),
    )


def tell_asked(request: RecallRequest, bundle: Bundle) -> dict[str, Any]:
    """What was asked beside the question, and how well each result answers it. No word of a memory."""
    return {
        "kinds": [str(kind) for kind in request.query.kinds],
        "techniques": list(request.techniques),
        "top_k": request.query.top_k,
        "scores": {str(result.id): round(result.score, 4) for result in bundle.results},
    }


def conversation_of(request: RecallRequest) -> dict[str, Any]:
    named = request.query.conversation_id
    return {"conversation_id": named} if named else {}

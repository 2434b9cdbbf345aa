"""Recall (X8, X9, E6): the one way from a question to memories of all kinds, for every edge.

    RecallRequest -> prepare_query -> run_pipeline (embed_query, search, score, select) -> limit_tokens -> Bundle

`recall` writes nothing. Once the answer is on its way, `conclude_recall` counts the reads and writes the audit entry.

A search of one kind of memory, for the edges, embeds the text, searches, and is logged at once (`record_search`).
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
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
from memory.kinds import Kind, all_kinds, spec_of
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.embeddings import is_nested
from memory.providers.language_models import Usage, language_model
from memory.providers.rerankers import reranking_provider
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.confidence import MAX_JUDGED
from memory.retrieval.judging import judge_hits, keep_helpful_hits
from memory.retrieval.lookups import locate_entries
from memory.retrieval.pipeline import run_pipeline
from memory.retrieval.plans import Plan, RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.vector import VECTOR
from memory.retrieval.rewriters.readings import HYDE
from memory.retrieval.scopes import check_scopes
from memory.retrieval.search import (
    MODEL_UNKNOWN,
    EpisodeResults,
    Hit,
    MemoryQuery,
    TurnResults,
    search_episodes,
    search_turns,
)
from memory.retrieval.techniques import RERANK, choose_plan
from memory.services.audit import count_other_channels, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.embedding.embed import embed_questions
from memory.services.embedding.serving import is_model_unannounced
from memory.services.memories.decay import reinforce
from memory.services.memories.store import ClientVector
from memory.services.operations.usage import record_usage
from memory_project.measures import RECALL_SECONDS
from memory_project.postgresql.replicas import PRIMARY, reading_from
from memory_project.redis import ConversationRef
from memory_project.tracing import traced

logger = logging.getLogger(__name__)

QUERY_DEADLINE_SECONDS = 2.0
MODEL_USE = "recall"
MODEL_DIFFERS = "embedding_model_differs"
EMBEDDING_SHARE = 0.5
"""Share of the time left that the embedder may take; the rest is for a search by words if it takes all of that."""
MAX_WINDOW_HOURS = 24 * 366 * 200
ITEM_KEY_PATTERN = re.compile(r"([a-z_]+):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""Ledger keys of memories, `<kind>:<id>`, as `Memory.item_key` writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A question and how to answer it.

    `techniques` are names for `choose_plan`; a `plan`, which no client can send, takes their place. `time_window_hours`
    sets the query's `since` relative to now. `max_tokens` limits the estimated tokens of all results together. The
    recall ends at `deadline`, or `deadline_ms` after it began. `suppress_injected` leaves out memories that the
    conversation's ledger holds.
    """

    query: Query
    techniques: Sequence[str] = ()
    plan: Plan | None = None
    own: ClientVector | None = None
    time_window_hours: float | None = None
    deadline_ms: int | None = None
    deadline: Deadline | None = None
    max_tokens: int | None = None
    suppress_injected: bool = False


@traced("recall", attributes=lambda bundle: {"results": len(bundle.results)})
def recall(owner: Owner, request: RecallRequest, *, now: datetime) -> Bundle:
    """Return the memories that answer the question best, with the owner's open goals and the user's profile.

    Takes at most three statements, none of which writes; one more for results with long texts, and one to record the
    usage of a language model. Raises Unprocessable for filters that contradict each other, for scopes without a
    conversation or user to apply to, for unknown techniques, and for a vector that the techniques do not use.
    """
    began = monotonic()
    plan = request.plan or choose_plan(request.techniques)
    usages: list[Usage] = []
    context = RecallContext(
        owner=owner,
        now=now,
        deadline=deadline_of_request(request),
        model=language_model(MODEL_USE),
        meter=usages.append,
    )
    query = prepare_query(owner, request, now=now)
    if query.vector is not None and not query.text and VECTOR not in plan.retrievers:
        raise Unprocessable("A vector without a text is searched for by the technique `vector` alone: add one of them.")
    try:
        bundle = run_pipeline(query, plan=plan, context=context, embed=embed_query, reranker=reranking_provider())
    finally:
        record_model_usage(owner, usages, now=now)
    seconds = monotonic() - began
    RECALL_SECONDS.observe(seconds)
    results = bundle.results if request.max_tokens is None else limit_tokens(bundle.results, request)
    cut = ["results_truncated"] if bundle.results and not results else []
    degraded = sorted({*bundle.degraded, *cut, *name_unavailable_techniques(request), *model_remarks(request.own)})
    return replace(bundle, results=results, degraded=degraded, took_ms=1_000 * seconds)


def deadline_of_request(request: RecallRequest) -> Deadline:
    """Return the deadline that the request brings, or one that begins now."""
    return request.deadline or start_deadline(request.deadline_ms)


def start_deadline(deadline_ms: int | None) -> Deadline:
    """Return a deadline that begins now. Default: the setting RECALL_DEADLINE_MS."""
    return Deadline.after((conf.RECALL_DEADLINE_MS if deadline_ms is None else deadline_ms) / 1_000)


def prepare_query(owner: Owner, request: RecallRequest, *, now: datetime) -> Query:
    """Return the request's query with its other fields applied. Raises Unprocessable for contradictions."""
    query = request.query
    if request.time_window_hours is not None:
        opens = now - timedelta(hours=min(request.time_window_hours, MAX_WINDOW_HOURS))
        query = replace(query, since=opens if query.since is None else max(query.since, opens))
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Unprocessable("`since` must be before `until`.")
    if query.slots:
        if query.kinds and Kind.TURN_SLOT not in query.kinds:
            raise Unprocessable("`slots` needs the kind turn_slot: add it to `kinds`, or leave `kinds` out.")
        query = replace(query, kinds=[Kind.TURN_SLOT])
    check_scopes(query, has_user=bool(owner.user_id))
    if request.suppress_injected:
        query = replace(query, without=[*query.without, *read_injected_ids(owner, query.conversation_id)])
    if request.own is not None:
        query = with_vector(query, request.own.model, request.own.vector)
    return query


def read_injected_ids(owner: Owner, conversation_id: str) -> list[UUID]:
    """Return the ids of memories in the conversation's ledger. Raises Unprocessable without a conversation."""
    if not conversation_id:
        raise Unprocessable("`suppress_injected` needs a conversation: send `conversation_id`.")
    conversation = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
    kinds = set(all_kinds())
    matches = filter(None, map(ITEM_KEY_PATTERN.fullmatch, ledger.get_all(conversation)))
    return [UUID(match[2]) for match in matches if match[1] in kinds]


def embed_query(query: Query, context: RecallContext) -> Query:
    """Return the query with the mean direction of its text and expansions, and likewise for its gist.

    Returns it unchanged if the embedder does not answer. All texts are embedded in one request, outside of any
    transaction.
    """
    texts = [text for text in (query.text, *query.expansions, query.gist) if text.strip()]
    left = context.deadline.left_seconds()
    if not texts or left <= 0:
        return query
    embedded = embed_questions(texts, deadline_seconds=min(QUERY_DEADLINE_SECONDS, EMBEDDING_SHARE * left))
    if query.text not in embedded.vectors:
        return query
    expansions = [embedded.vectors[text] for text in query.expansions if text in embedded.vectors]
    if query.gist in embedded.vectors:
        query = replace(query, gist_vector=mean_direction([embedded.vectors[query.gist], *expansions]))
    return with_vector(query, embedded.model, mean_direction([embedded.vectors[query.text], *expansions]))


def mean_direction(vectors: Sequence[Embedding]) -> Embedding:
    """Return the unit vector of their sum, or the first one if they cancel each other out."""
    if len(vectors) == 1:
        return vectors[0]
    total: Embedding = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length > 0 else vectors[0]


def with_vector(query: Query, model: str, vector: Embedding) -> Query:
    return replace(query, model=model, vector=vector, is_nested=is_nested(model))


def record_model_usage(owner: Owner, usages: Sequence[Usage], *, now: datetime) -> None:
    """Add up what the language model used, also if the recall failed; a failure to write it costs no answer."""
    if not usages:
        return
    try:
        # a savepoint, in case the caller has a transaction open
        with reading_from(PRIMARY), transaction.atomic():
            record_usage(owner.account_id, use=MODEL_USE, usages=usages, now=now)
    except DatabaseError as err:
        logger.warning("the usage of the language model in a recall was not recorded: %s", type(err).__name__)


def limit_tokens(results: Sequence[Candidate], request: RecallRequest) -> list[Candidate]:
    """Return the results whose snippets, or whole texts, fit, best first; one too long makes way for those after it."""
    fitting, left = [], request.max_tokens or 0
    for result in results:
        tokens = result.token_count if request.query.whole else result.snippet_tokens
        if tokens <= left:
            fitting.append(result)
            left -= tokens
    return fitting


def name_unavailable_techniques(request: RecallRequest) -> list[str]:
    """Return the `degraded` names of techniques that the request names and for which no provider is configured."""
    lacking = {HYDE: language_model(MODEL_USE) is None, RERANK: reranking_provider() is None}
    return [f"{name}_unavailable" for name, is_lacking in lacking.items() if is_lacking and name in request.techniques]


def model_remarks(own: ClientVector | None = None) -> list[str]:
    """Return the `degraded` names of embedding models.

    They are of one that the settings changed without `manage.py reembed`, and of one of which only the query has a
    vector.
    """
    unknown = [MODEL_UNKNOWN] if own is not None and not own.is_comparable else []
    return [MODEL_DIFFERS, *unknown] if is_model_unannounced() else unknown


def conclude_recall(owner: Owner, request: RecallRequest, bundle: Bundle, *, now: datetime) -> None:
    """Count the reads of the results, and log them where the audit level keeps reads.

    `target_channels` of the log entry are those that memories came from: more than the active one is a match across
    channels.
    """
    count_memory_reads(owner, {result.id: result.kind for result in bundle.results}, now=now)
    channels = [result.channel for result in bundle.results]
    record_read(
        owner,
        memory_type="all",
        affected_ids=[result.id for result in bundle.results],
        target_channels=sorted(set(channels)),
        query_text=request.query.text,
        result_count=len(bundle.results),
        cross_channel_count=count_other_channels(owner, channels),
        latency_ms=bundle.took_ms,
        metadata=serialize_request_details(request, bundle) if is_verbose(owner) else {},
        conversation_id=request.query.conversation_id,
    )


def count_memory_reads(owner: Owner, kinds: Mapping[UUID, Kind], *, now: datetime) -> None:
    """Count a read of each memory, in one statement. What its context's access log has is counted from there."""
    logged = [each for each, kind in kinds.items() if spec_of(kind).has_access_log]
    reinforce(owner, [each for each, kind in kinds.items() if not spec_of(kind).has_access_log], now=now)
    log_reads(owner, locate_entries(owner, logged), action=Action.SEARCH, now=now)


def serialize_request_details(request: RecallRequest, bundle: Bundle) -> dict[str, Any]:
    """Return what was asked besides the question, and the score of each result. Holds no word of a memory."""
    return {
        "kinds": [str(kind) for kind in request.query.kinds],
        "techniques": list(request.techniques),
        "top_k": request.query.top_k,
        "scores": {str(result.id): round(result.score, 4) for result in bundle.results},
    }


def search_episodes_by_text(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: ClientVector | None,
    now: datetime,
    min_score: float = 0.0,
) -> EpisodeResults:
    """Return the owner's episodes nearest to `text`, or to the client's own vector, from this confidence on.

    `degraded` says if meaning could not be compared.
    """
    query = embed_search_query(text, top_k=top_k, own=own)
    found = search_episodes(owner, query, now=now)
    hits = [hit for hit in judge_hits(owner, query, found.hits, now=now) if (hit.likelihood or 0.0) >= min_score]
    record_search(owner, text, hits, top_k=top_k)
    return replace(found, hits=hits)


def search_helpful_episodes(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    now: datetime,
    without: Collection[UUID] = (),
    besides: Collection[str] = (),
) -> EpisodeResults:
    """Return the owner's episodes nearest to `text`; none, and `abstained`, if none is likely enough to help.

    `without` are ids not to return, `besides` conversations to skip. `degraded` says if meaning could not be compared.
    """
    query = embed_search_query(text, top_k=max(top_k, MAX_JUDGED), own=None)
    query = replace(query, without=tuple(without), besides=tuple(besides))
    found = search_episodes(owner, query, now=now)
    helpful = keep_helpful_hits(query, judge_hits(owner, query, found.hits, now=now))
    record_search(owner, text, helpful[:top_k], top_k=top_k)
    return replace(found, hits=helpful[:top_k], abstained=bool(found.hits) and not helpful)


def search_turns_by_text(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    time_window_hours: float | None = None,
    own: ClientVector | None = None,
    now: datetime,
) -> TurnResults:
    """Return the turns nearest to `text`, or to the client's own vector, in conversations of the owner's.

    `time_window_hours` ends at `now`. `degraded` says if meaning could not be compared.
    """
    since = None if time_window_hours is None else now - timedelta(hours=time_window_hours)
    query = replace(embed_search_query(text, top_k=top_k, own=own), since=since)
    found = search_turns(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k)
    return found


def embed_search_query(text: str, *, top_k: int, own: ClientVector | None) -> MemoryQuery:
    """Return a query with its vector: the client's, else the embedder's, else none. The one provider call of a read."""
    if own is not None and not own.is_comparable:
        return MemoryQuery(text=text, top_k=top_k, model=own.model, width=0, vector=None, remarks=[MODEL_UNKNOWN])
    if own is not None:
        return MemoryQuery(text=text, top_k=top_k, model=own.model, width=len(own.vector), vector=own.vector)
    remarks = model_remarks()
    embedded = embed_questions([text], deadline_seconds=QUERY_DEADLINE_SECONDS)
    vector: Embedding | None = embedded.vectors.get(text)
    model, width = embedded.model, embedded.width
    return MemoryQuery(text=text, top_k=top_k, model=model, width=width, vector=vector, remarks=remarks)


def record_search(owner: Owner, text: str, found: Sequence[Hit], *, top_k: int, memory_type: str = "episodic") -> None:
    """Log a search where the audit level keeps reads."""
    record_read(
        owner,
        memory_type=memory_type,
        affected_ids=[hit.id for hit in found],
        target_channels=list(owner.channels),
        query_text=text,
        result_count=len(found),
        cross_channel_count=count_other_channels(owner, [hit.channel for hit in found]),
        metadata=serialize_search_details(found, top_k=top_k) if is_verbose(owner) else {},
    )


def serialize_search_details(found: Sequence[Hit], *, top_k: int) -> dict[str, Any]:
    """Return `top_k` and the similarity of each hit; null for hits found by their words."""
    scores = {str(hit.id): hit.similarity and round(hit.similarity, 4) for hit in found}
    return {"top_k": top_k, "scores": scores}

"""The recall pipeline: rewrite, embed, analyze, gather, fuse, score, rerank, select.

It takes at most three statements, and a fourth one if the texts of results are so long that only their beginnings were
read. A technique that fails or comes too late is left out and named in `degraded`: `<technique>_failed`,
`<technique>_deadline`.
"""

import logging
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from operator import attrgetter, contains
from uuid import UUID

from memory.errors import ProviderError
from memory.kinds import Kind, spec_of
from memory.models import Fact
from memory.providers.connections import Deadline
from memory.providers.rerankers import Reranker
from memory.providers.sentences import is_question
from memory.retrieval.candidates import GIVES_ORDERS, Bundle, Candidate, Metric
from memory.retrieval.confidence import MAX_JUDGED, add_confidence, floor_among, may_be_silent
from memory.retrieval.floods import (
    ALIKE,
    ASKS_FOR_VALUE,
    FLOOD_CANDIDATES,
    MAX_FLOOD_ROUNDS,
    MAX_KEPT,
    find_floods,
    has_flood,
    template_key,
)
from memory.retrieval.gathering import GatheredCandidates, candidate_limit, gather_candidates
from memory.retrieval.lookups import load_full_texts, read_links_between
from memory.retrieval.plans import (
    LinkBetween,
    Plan,
    QueryAnalysis,
    RecallContext,
    Retriever,
    RewriteError,
    ScoringContext,
)
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.always import EPISODES
from memory.retrieval.retrievers.around import PASSAGE, PASSAGE_REACH
from memory.retrieval.retrievers.lexical import LEXICAL, are_all_common
from memory.retrieval.retrievers.vector import VECTOR, is_unsupported
from memory.retrieval.selectors import DIVERSITY
from memory.retrieval.snippets import add_snippets
from memory.retrieval.tasks import names_what_is_known

logger = logging.getLogger(__name__)

QueryEmbedder = Callable[[Query, RecallContext], Query]
"""Returns the query with its vector, or the same query if it gets none."""

MAX_LINKED = 100
QUESTION_MARKS = " ?!.…¿¡？。！؟\"'“”„«»"
MAX_REPEAT_DIFFERENCE = 20
"""Blanks and marks that a turn may have more than the question that it repeats."""
MAX_RERANKED = 30
"""The best candidates, which a cross-encoder reads."""
RERANK_SHARE = 0.7
"""Share of the remaining time. The rest is for the later stages; an order that comes too late is worth nothing."""
NO_ANALYSIS = QueryAnalysis()


@dataclass(slots=True, kw_only=True)
class RecallRun:
    """The state of one recall: its plan, its query, and what happened so far."""

    plan: Plan
    context: RecallContext
    query: Query
    analysis: QueryAnalysis = NO_ANALYSIS
    links: Sequence[LinkBetween] = ()
    metrics: list[Metric] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    stages_ms: dict[str, float] = field(default_factory=dict)
    stage_began: float = field(default_factory=time.perf_counter)

    def end_stage(self, name: str) -> None:
        """Record the milliseconds since the end of the former stage."""
        now = time.perf_counter()
        self.stages_ms[name] = round((now - self.stage_began) * 1_000, 3)
        self.stage_began = now

    @property
    def scoring_context(self) -> ScoringContext:
        return ScoringContext(
            owner=self.context.owner,
            query=self.query,
            analysis=self.analysis,
            now=self.context.now,
            links=self.links,
        )

    def record_metric(self, technique: str, started: float, results: int) -> None:
        took_ms = round((time.perf_counter() - started) * 1_000, 3)
        self.metrics.append(Metric(technique=technique, took_ms=took_ms, results=results))

    def record_degraded(self, technique: str, *, is_late: bool = False) -> None:
        """Report that a technique failed or came too late."""
        is_late = is_late or self.context.deadline.left_seconds() <= 0
        self.degraded.append(f"{technique}_deadline" if is_late else f"{technique}_failed")


def run_pipeline(
    query: Query, *, plan: Plan, context: RecallContext, embed: QueryEmbedder, reranker: Reranker | None = None
) -> Bundle:
    """Return the `top_k` memories that answer the question best, of all that the owner sees and the filters allow."""
    run = RecallRun(plan=plan, context=context, query=query)
    rewrite_query(run)
    run.end_stage("rewrite")
    add_query_vector(run, embed)
    run.end_stage("embed")
    run.query = keep_used_signals(run.query, plan)
    started = time.perf_counter()
    run.analysis = analyze_query(context.owner, run.query, context)
    run.record_metric("orientation", started, len(run.analysis.entities))
    run.end_stage("analyze")
    candidates = collect_candidates(run)
    run.end_stage("gather")
    ranked = rank_candidates(run, candidates)
    run.end_stage("rank")
    ranked = rerank_candidates(run, ranked, reranker)
    run.end_stage("rerank")
    ranked = select_candidates(run, ranked)
    add_confidence(ranked, run.scoring_context)
    helpful = keep_helpful(run, ranked)
    abstained, ranked = bool(ranked) and not helpful, helpful
    results = keep_pinned(ranked, run.query.top_k)
    kept = set(map(id, results))
    others = [each for each in ranked if id(each) not in kept]
    episodes = [each for each in others if EPISODES.name in each.ways]
    load_full_texts(context.owner, [*results, *episodes])
    results = put_instructions_last(results)
    add_snippets(results, run.query)
    run.end_stage("select")
    return Bundle(
        results=results,
        goals=run.analysis.goals,
        profile=run.analysis.profile,
        metrics=run.metrics,
        degraded=sorted(set(run.degraded)),
        others=others,
        candidates=len(candidates),
        stages_ms=run.stages_ms,
        whole=run.query.whole,
        abstained=abstained,
    )


def rewrite_query(run: RecallRun) -> None:
    """Pass the question through each rewriter of the plan. A vector without a text has nothing to rewrite."""
    if not run.query.text.strip():
        return
    context = replace(run.context, techniques=frozenset(run.plan.rewriters))
    for name, rewriter in run.plan.rewriters.items():
        started, before = time.perf_counter(), run.query
        try:
            run.query = rewriter(before, context)
        except RewriteError as err:
            logger.warning("recall continues without the model of %s: %s", name, err)
            run.query = err.query
            run.record_degraded(name, is_late=err.is_late)
        except ProviderError as err:
            logger.warning("recall continues without %s: %s", name, err)
            run.record_degraded(name)
        run.record_metric(name, started, int(run.query is not before))


def add_query_vector(run: RecallRun, embed: QueryEmbedder) -> None:
    """Embed the question if the plan searches vectors and the client sent none."""
    if run.query.vector is not None or VECTOR not in run.plan.retrievers:
        return
    started = time.perf_counter()
    run.query = embed(run.query, run.context)
    run.record_metric("embedding", started, int(run.query.vector is not None))
    if run.query.vector is None:
        run.degraded.append("embedder_unavailable")


def keep_used_signals(query: Query, plan: Plan) -> Query:
    """Drop the words or the vector of the query if the plan searches by the other one alone."""
    has_words, has_vectors = LEXICAL in plan.retrievers, VECTOR in plan.retrievers
    if has_vectors and not has_words:
        return replace(query, has_words=False)
    if has_words and not has_vectors:
        return replace(query, vector=None, gist_vector=None)
    return query


def collect_candidates(run: RecallRun) -> Sequence[Candidate]:
    """Return the candidates of all retrievers without the question itself, and report what was degraded."""
    gathered = gather_candidates(run.context.owner, run.query, run.analysis, run.plan.retrievers, run.context)
    run.metrics += gathered.metrics
    run.degraded += [f"{name}_deadline" for name in gathered.dropped]
    if run.analysis.has_pending and run.query.vector is not None:
        run.degraded.append("embedding_pending")
    if run.query.vector is not None and is_unsupported(run.query, run.analysis):
        run.degraded.append("mode_not_supported")
    if LEXICAL in run.plan.retrievers and are_all_common(run.analysis.terms):
        run.degraded.append("common_words")
    candidates = without_floods(run, gathered) if DIVERSITY in run.plan.selectors else gathered.candidates
    return drop_question(candidates, run.query)


def without_floods(run: RecallRun, gathered: GatheredCandidates) -> Sequence[Candidate]:
    """Return the candidates; if a flood filled a retriever, only its best, and what it kept out.

    Two more statements for each round. The signal `alike` has the size of the flood that a candidate is of.
    """
    candidates, sizes, left_out = gathered.candidates, dict[Hashable, int](), list[UUID]()
    began, limit = (
        time.perf_counter(),
        candidate_limit(run.query, run.analysis, [each.name for each in run.plan.retrievers]),
    )
    if not any(metric.results >= limit for metric in gathered.metrics):
        return candidates
    for _ in range(MAX_FLOOD_ROUNDS):
        if not has_flood(candidates) or run.context.deadline.left_seconds() <= 0:
            break
        finding = [each for each in run.plan.retrievers if each.name in (LEXICAL.name, VECTOR.name)]
        wide = gather_again(run, finding, left_out, limit=FLOOD_CANDIDATES)
        floods = find_floods({each.id: each for each in (*candidates, *wide)}.values())
        sizes |= {key: max(len(flood), sizes.get(key, 0)) for key, flood in floods.items()}
        left_out += [each.id for flood in floods.values() for each in flood[MAX_KEPT:] if not each.pinned]
        candidates = gather_again(run, run.plan.retrievers, left_out) or candidates
    for each in candidates if sizes else ():
        if (size := sizes.get(template_key(each))) is not None:
            each.factors[ALIKE] = float(size)
    if left_out:
        run.record_metric("floods", began, len(left_out))
    return candidates


def gather_again(
    run: RecallRun, retrievers: Sequence[Retriever], without: Sequence[UUID], *, limit: int | None = None
) -> Sequence[Candidate]:
    """Return what the retrievers find without these memories."""
    query = replace(run.query, without=[*run.query.without, *without])
    gathered = gather_candidates(run.context.owner, query, run.analysis, retrievers, run.context, limit)
    run.degraded += [f"{name}_deadline" for name in gathered.dropped]
    return gathered.candidates


def drop_question(candidates: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
    """Leave out turns that repeat the question, and turns that were found only because they are next to the last one.

    Only of the active conversation, since an answer stands next to a question that was asked before.
    """
    asked_words = fold_question(query.text)
    if not asked_words:
        return candidates
    least, most = len(asked_words), len(query.text) + MAX_REPEAT_DIFFERENCE
    repeated = [
        each for each in candidates if least <= len(each.text) <= most and repeats_question(each, query, asked_words)
    ]
    if not repeated:
        return candidates
    dropped = {each.id for each in repeated}
    asked = [
        each.index for each in repeated if each.conversation_id == query.conversation_id and each.index is not None
    ]
    latest = max(asked) if asked and query.conversation_id else math.inf
    return [
        each
        for each in candidates
        if each.id not in dropped
        and not (
            each.ways == {PASSAGE.name}
            and each.conversation_id == query.conversation_id
            and each.index is not None
            and abs(each.index - latest) <= PASSAGE_REACH
        )
    ]


def repeats_question(candidate: Candidate, query: Query, asked: str) -> bool:
    """Return True if a turn says what is asked, apart from case, blanks and the marks around it.

    In the active conversation that is any turn that says the same, elsewhere only a question: a statement that equals
    the query is what the client looks for. A long text is compared by its beginning. `asked` is the folded question.
    """
    if candidate.kind != Kind.TURN or fold_question(candidate.text) != asked:
        return False
    is_here = bool(query.conversation_id) and candidate.conversation_id == query.conversation_id
    return is_here or is_question(query.text) or ASKS_FOR_VALUE.match(query.text) is not None


def fold_question(text: str) -> str:
    return " ".join(text[:MAX_QUERY_CHARACTERS].casefold().split()).strip(QUESTION_MARKS)


def rank_candidates(run: RecallRun, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Fuse and score the candidates. Return them best first."""
    started = time.perf_counter()
    run.plan.fuse(candidates, run.scoring_context)
    run.record_metric(run.plan.fusion, started, len(candidates))
    if (run.plan.scorers or run.plan.selectors) and (linked := ids_to_link(run, candidates)):
        started = time.perf_counter()
        run.links = read_links_between(run.context.owner, linked)
        run.record_metric("links", started, len(run.links))
    context, factors = run.scoring_context, [candidate.factors for candidate in candidates]
    for name, scorer in run.plan.scorers.items():
        started = time.perf_counter()
        scorer(candidates, context)
        run.record_metric(name, started, sum(map(contains, factors, repeat(name))))
    return sort_best_first(candidates)


def ids_to_link(run: RecallRun, candidates: Sequence[Candidate]) -> list[UUID]:
    """Return the best candidates, the named entities and the open goals; none if none of them could have links."""
    best = sort_best_first(candidates)[:MAX_LINKED]
    around = [*run.analysis.entities, *(goal.id for goal in run.analysis.goals)]
    if not around and not any(spec_of(candidate.kind).has_links for candidate in best):
        return []
    linked = [*best, *facts_if_superseded(candidates)]
    return list(dict.fromkeys([*(candidate.id for candidate in linked), *around]))


def facts_if_superseded(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return all facts if one is superseded: its successor comes first, however far behind it ranks."""
    facts = [candidate for candidate in candidates if candidate.kind == Kind.FACT]
    return facts if any(fact.status == Fact.Status.SUPERSEDED for fact in facts) else []


def rerank_candidates(run: RecallRun, ranked: list[Candidate], reranker: Reranker | None) -> list[Candidate]:
    """Put the best candidates in the order of the cross-encoder, if there is one and the question has words."""
    if reranker is None or not run.plan.reranks or not ranked or not run.query.text.strip():
        return ranked
    started, head = time.perf_counter(), ranked[:MAX_RERANKED]
    allotted = Deadline.after(RERANK_SHARE * run.context.deadline.left_seconds())
    try:
        scores = reranker.score(run.query.text, [each.text for each in head], deadline=allotted)
    except ProviderError as err:
        logger.warning("recall continues without rerank: %s", err)
        run.record_degraded("rerank", is_late=allotted.left_seconds() <= 0)
        run.record_metric("rerank", started, 0)
        return ranked
    for candidate, score in zip(head, scores, strict=True):
        candidate.factors["rerank"] = score
    in_order = sorted(zip(scores, head, strict=True), key=lambda pair: -pair[0])
    # the same scores in the new order, since later stages compare them
    for score, (_, candidate) in zip(sorted((each.score for each in head), reverse=True), in_order, strict=True):
        candidate.score = score
    run.record_metric("rerank", started, len(head))
    return [candidate for _, candidate in in_order] + ranked[MAX_RERANKED:]


def select_candidates(run: RecallRun, ranked: list[Candidate]) -> list[Candidate]:
    context = run.scoring_context
    for name, selector in run.plan.selectors.items():
        started = time.perf_counter()
        ranked = selector(ranked, context)
        run.record_metric(name, started, len(ranked))
    return ranked


def keep_helpful(run: RecallRun, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that are likely enough to help, and pinned ones. Memories without a vector yet may help."""
    least = run.query.min_score
    if least is not None:
        return [each for each in ranked if each.pinned or each.likelihood >= least]
    if not run.query.has_floor or not may_be_silent(run.query) or names_what_is_known(ranked[:MAX_JUDGED], run.query):
        return list(ranked)
    best = max((1.0 if each.similarity is None else each.likelihood for each in ranked[:MAX_JUDGED]), default=0.0)
    return [each for each in ranked if each.pinned or best >= floor_among(len(ranked))]


def keep_pinned(ranked: Sequence[Candidate], top_k: int) -> list[Candidate]:
    """Return the first `top_k`. The last ones make room for pinned candidates further behind."""
    pinned = [each for each in ranked if each.pinned][:top_k]
    others = [each for each in ranked if not each.pinned][: top_k - len(pinned)]
    kept = {id(each) for each in (*pinned, *others)}
    return [each for each in ranked if id(each) in kept]


def put_instructions_last(results: Sequence[Candidate]) -> list[Candidate]:
    """Put results that give orders to the model behind all others, with a score no greater than theirs."""
    flagged = [each for each in results if each.flags]
    if not flagged:
        return list(results)
    ordered = [*(each for each in results if not each.flags), *flagged]
    for before, each in pairwise(ordered):
        if each.flags and 0 < before.score < each.score:
            each.apply_factor("instruction", before.score / each.score)
    for each in flagged:
        each.add_reason(GIVES_ORDERS)
    return ordered


def sort_best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort by score, then newest first, then by id, so that the same question gets the same answer."""
    return sorted(candidates, key=attrgetter("score", "event_time", "id"), reverse=True)

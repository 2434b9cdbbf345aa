"""The recall pipeline: rewrite, orient, gather, fuse, score, rerank, select. Three statements at most, and one more
where a result's text is so long that candidates came with the beginning of theirs alone.

What fails or comes too late drops out, and is named in `degraded`: `<technique>_failed`, `<technique>_deadline`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from memory.errors import ProviderError
from memory.models import Fact, Kind
from memory.providers.deadlines import Deadline
from memory.providers.rerankers import Reranker
from memory.retrieval.candidates import Bundle, Candidate, Metric
from memory.retrieval.gathering import gather
from memory.retrieval.lexical import are_common
from memory.retrieval.orientation import orient
from memory.retrieval.plans import LinkBetween, Moment, Orientation, Plan, RewriteError, Setting
from memory.retrieval.queries import LONGEST_QUERY, Query
from memory.retrieval.recallers.episodes import EPISODES
from memory.retrieval.recallers.lexical import LEXICAL
from memory.retrieval.recallers.passage import PASSAGE, REACH
from memory.retrieval.recallers.vector import VECTOR
from memory.retrieval.surroundings import read_links
from memory.retrieval.texts import read_whole
from memory.retrieval.vectors import is_unsupported

logger = logging.getLogger(__name__)

Embed = Callable[[Query, Moment], Query]
"""Answers with the query with its vector, or the same where there is none to be had."""

LINKED_KINDS = frozenset({Kind.FACT, Kind.ENTITY, Kind.GOAL, Kind.STRATEGY, Kind.ARTIFACT})
MOST_LINKED = 100
RERANKED = 30
"""The best ones, which a cross-encoder looks at."""
RERANK_SHARE = 0.7
"""Of the time that is left: the rest is for what comes after, and an order that comes too late is worth nothing."""
NOWHERE = Orientation()


@dataclass(slots=True, kw_only=True)
class Run:
    """One recall on its way through its plan, and what happened to it."""

    plan: Plan
    moment: Moment
    query: Query
    orientation: Orientation = NOWHERE
    links: Sequence[LinkBetween] = ()
    metrics: list[Metric] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)

    @property
    def setting(self) -> Setting:
        return Setting(
            owner=self.moment.owner,
            query=self.query,
            orientation=self.orientation,
            now=self.moment.now,
            links=self.links,
        )

    def note(self, technique: str, started: float, results: int) -> None:
        took_ms = round((time.perf_counter() - started) * 1_000, 3)
        self.metrics.append(Metric(technique=technique, took_ms=took_ms, results=results))

    def drop(self, technique: str, *, is_late: bool = False) -> None:
        """It failed, or came too late."""
        is_late = is_late or self.moment.deadline.left_seconds() <= 0
        self.degraded.append(f"{technique}_deadline" if is_late else f"{technique}_failed")


def recall(query: Query, *, plan: Plan, moment: Moment, embed: Embed, reranker: Reranker | None = None) -> Bundle:
    """The `top_k` memories that answer the question best, of all that the owner sees and the filters let through."""
    run = Run(plan=plan, moment=moment, query=query)
    rewrite(run)
    embed_query(run, embed)
    run.query = with_signals(run.query, plan)
    started = time.perf_counter()
    run.orientation = orient(moment.owner, run.query, moment)
    run.note("orientation", started, len(run.orientation.entities))
    ranked = rank(run, collect(run))
    ranked = rerank(run, ranked, reranker)
    ranked = select(run, ranked)
    results = keep_pinned(ranked, run.query.top_k)
    kept = {result.id for result in results}
    others = [each for each in ranked if each.id not in kept]
    asked_for = [*results, *(each for each in others if EPISODES.name in each.ways)]
    read_whole(moment.owner, asked_for)
    return Bundle(
        results=results,
        goals=run.orientation.goals,
        profile=run.orientation.profile,
        metrics=run.metrics,
        degraded=sorted(set(run.degraded)),
        others=others,
    )


def rewrite(run: Run) -> None:
    """What each rewriter makes of the question, in turn."""
    moment = replace(run.moment, techniques=frozenset(run.plan.rewriters))
    for name, rewriter in run.plan.rewriters.items():
        started, before = time.perf_counter(), run.query
        try:
            run.query = rewriter(before, moment)
        except RewriteError as err:
            logger.warning("recall goes on without the model of %s: %s", name, err)
            run.query = err.query
            run.drop(name, is_late=err.is_late)
        except ProviderError as err:
            logger.warning("recall goes on without %s: %s", name, err)
            run.drop(name)
        run.note(name, started, int(run.query is not before))


def embed_query(run: Run, embed: Embed) -> None:
    """Give the question its vector, where a recaller wants one and the client brought none."""
    if run.query.vector is not None or not any(recaller.name == VECTOR.name for recaller in run.plan.recallers):
        return
    started = time.perf_counter()
    run.query = embed(run.query, run.moment)
    run.note("embedding", started, int(run.query.vector is not None))
    if run.query.vector is None:
        run.degraded.append("embedder_unavailable")


def with_signals(query: Query, plan: Plan) -> Query:
    """Candidates are scored by words and by meaning, or by the one of them that alone finds them."""
    names = {recaller.name for recaller in plan.recallers} & {LEXICAL.name, VECTOR.name}
    if names == {VECTOR.name}:
        return replace(query, has_words=False)
    if names == {LEXICAL.name}:
        return replace(query, vector=None, gist_vector=None)
    return query


def collect(run: Run) -> Sequence[Candidate]:
    """The candidates of all recallers."""
    gathered = gather(run.moment.owner, run.query, run.orientation, run.plan.recallers, run.moment)
    run.metrics += gathered.metrics
    run.degraded += [f"{name}_deadline" for name in gathered.dropped]
    if run.orientation.has_pending and run.query.vector is not None:
        run.degraded.append("embedding_pending")
    if run.query.vector is not None and is_unsupported(run.query.mode, is_nested=run.query.is_nested):
        run.degraded.append("mode_not_supported")
    if LEXICAL in run.plan.recallers and are_common(run.orientation.terms):
        run.degraded.append("common_words")
    return leave_out_question(gathered.candidates, run.query)


def leave_out_question(candidates: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
    """Without the question as it was said, and without what was brought for standing beside it alone."""
    asked = [each.index for each in candidates if each.index is not None and is_question(each, query)]
    if not asked:
        return candidates
    beside = {index + step for index in asked for step in range(-REACH, REACH + 1)}
    return [
        each
        for each in candidates
        if not is_question(each, query)
        and not (each.ways == {PASSAGE.name} and each.conversation_id == query.conversation_id and each.index in beside)
    ]


def is_question(candidate: Candidate, query: Query) -> bool:
    """Whether it is the question as it was said in the conversation, which nobody wants to be told.

    What is too long for a question is asked by its beginning.
    """
    is_here = query.skips_question and candidate.conversation_id == query.conversation_id
    if not is_here or candidate.kind != Kind.TURN:
        return False
    said, asked = (text[:LONGEST_QUERY].split() for text in (candidate.text, query.text))
    return said == asked


def rank(run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
    """All of them with their scores, best first."""
    started = time.perf_counter()
    run.plan.fuse(candidates, run.setting)
    run.note(run.plan.fusion, started, len(candidates))
    if (run.plan.scorers or run.plan.selectors) and (linked := linked_ids(run, candidates)):
        started = time.perf_counter()
        run.links = read_links(run.moment.owner, linked)
        run.note("links", started, len(run.links))
    setting = run.setting
    for name, scorer in run.plan.scorers.items():
        started = time.perf_counter()
        scorer(candidates, setting)
        run.note(name, started, sum(name in candidate.signals for candidate in candidates))
    return best_first(candidates)


def linked_ids(run: Run, candidates: Sequence[Candidate]) -> list[UUID]:
    """Of the best candidates, what the question names, and open goals; none where nothing could hang together."""
    best = best_first(candidates)[:MOST_LINKED]
    around = [*run.orientation.entities, *(goal.id for goal in run.orientation.goals)]
    if not around and all(candidate.kind not in LINKED_KINDS for candidate in best):
        return []
    linked = [*best, *among_facts(candidates)]
    return list(dict.fromkeys([*(candidate.id for candidate in linked), *around]))


def among_facts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """All facts, where one was superseded: however far behind its successor is, it goes before it."""
    facts = [candidate for candidate in candidates if candidate.kind == Kind.FACT]
    return facts if any(fact.status == Fact.Status.SUPERSEDED for fact in facts) else []


def rerank(run: Run, ranked: list[Candidate], reranker: Reranker | None) -> list[Candidate]:
    """The best ones in the order of a cross-encoder, before all others; as they are without one, or without words to
    ask it with."""
    if reranker is None or not run.plan.reranks or not ranked or not run.query.text.strip():
        return ranked
    started, head = time.perf_counter(), ranked[:RERANKED]
    allotted = Deadline.after(RERANK_SHARE * run.moment.deadline.left_seconds())
    try:
        scores = reranker.score(run.query.text, [each.text for each in head], deadline=allotted)
    except ProviderError as err:
        logger.warning("recall goes on without rerank: %s", err)
        run.drop("rerank", is_late=allotted.left_seconds() <= 0)
        run.note("rerank", started, 0)
        return ranked
    for candidate, score in zip(head, scores, strict=True):
        candidate.signals["rerank"] = score
    in_order = sorted(zip(scores, head, strict=True), key=lambda pair: -pair[0])
    # scores stay what they are, in the new order: what comes after goes by them
    for score, (_, candidate) in zip(sorted((each.score for each in head), reverse=True), in_order, strict=True):
        candidate.score = score
    run.note("rerank", started, len(head))
    return [candidate for _, candidate in in_order] + ranked[RERANKED:]


def select(run: Run, ranked: list[Candidate]) -> list[Candidate]:
    setting = run.setting
    for name, selector in run.plan.selectors.items():
        started = time.perf_counter()
        ranked = selector(ranked, setting)
        run.note(name, started, len(ranked))
    return ranked


def keep_pinned(ranked: Sequence[Candidate], top_k: int) -> list[Candidate]:
    """The first `top_k`, where the last ones make room for pinned ones that come later."""
    pinned = [each for each in ranked if each.pinned][:top_k]
    others = [each for each in ranked if not each.pinned][: top_k - len(pinned)]
    kept = {each.id for each in (*pinned, *others)}
    return [each for each in ranked if each.id in kept]


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Draws go to what is newer, then to the greater id: the same question is answered alike."""
    return sorted(candidates, key=lambda each: (each.score, each.event_time, each.id), reverse=True)

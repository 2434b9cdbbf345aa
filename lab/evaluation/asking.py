"""Questions asked of what was loaded: through the services behind `/recall` and `/context`, which count no read here.

Asking changes nothing, so that the same questions can be asked again, with other techniques.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lab.evaluation.datasets import Question
from lab.evaluation.loading import Loaded
from memory import conf
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.plans import Plan
from memory.retrieval.queries import Query
from memory.services.prompt_context.build import ContextRequest, gather_context
from memory.services.recall.recall import RecallRequest, recall

CONVERSATION = "evaluation"
"""Where contexts are asked for: a conversation in which nothing was said yet."""
TOP_K = 20
WORDS = 400
CONTEXT_TOKENS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How questions are asked; a plan replaces techniques. No context is asked for with no `context_tokens`."""

    techniques: Sequence[str] = ()
    plan: Plan | None = None
    context_tokens: int = CONTEXT_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one question: ids best first, those that fit into so many words, those whose text is in the context.

    `took_ms` is all of the recall, `embedding_ms` what embedding the question took of it; `worked` are the techniques
    that brought, weighed or changed anything.
    """

    sample: str
    question: Question
    answers: frozenset[UUID]
    ranked: Sequence[UUID]
    within_words: Sequence[UUID]
    within_context: Sequence[UUID]
    took_ms: float
    embedding_ms: float
    degraded: Sequence[str]
    worked: frozenset[str] = frozenset()


def ask_all(loaded: Sequence[Loaded], way: Way) -> Iterator[Answer]:
    """Every question of every sample, in order."""
    for each in loaded:
        for question in each.sample.questions:
            yield ask(each, question, way)


def ask(loaded: Loaded, question: Question, way: Way) -> Answer:
    moment = question.asked_at or loaded.asked_at
    request = RecallRequest(query=Query(text=question.text, top_k=TOP_K), techniques=way.techniques, plan=way.plan)
    started = time.perf_counter()
    bundle = recall(loaded.owner, request, now=moment)
    took_ms = (time.perf_counter() - started) * 1_000
    return Answer(
        sample=loaded.sample.name,
        question=question,
        answers=loaded.sample.answers_of(question),
        ranked=[result.id for result in bundle.results],
        within_words=[result.id for result in first_words([*bundle.results, *bundle.others], WORDS)],
        within_context=ask_for_context(loaded, question, way, now=moment),
        took_ms=took_ms,
        embedding_ms=embedding_ms(bundle),
        degraded=bundle.degraded,
        worked=frozenset(metric.technique for metric in bundle.metrics if metric.results),
    )


def ask_for_context(loaded: Loaded, question: Question, way: Way, *, now: datetime) -> list[UUID]:
    """The memories whose text it holds, what stands around the found ones among them."""
    if not way.context_tokens:
        return []
    query = Query(text=question.text, conversation_id=CONVERSATION, top_k=conf.CONTEXT_RESULTS)
    asked = RecallRequest(query=query, techniques=way.techniques, plan=way.plan)
    request = ContextRequest(asked=asked, max_tokens=way.context_tokens)
    return [item.id for item in gather_context(loaded.owner, request, now=now).items]


def first_words(ranked: Sequence[Candidate], most: int) -> list[Candidate]:
    """The best ones, up to the first that goes beyond so many words."""
    fitting, left = [], most
    for candidate in ranked:
        left -= len(candidate.text.split())
        if left < 0:
            break
        fitting.append(candidate)
    return fitting


def embedding_ms(bundle: Bundle) -> float:
    return sum(metric.took_ms for metric in bundle.metrics if metric.technique == "embedding")

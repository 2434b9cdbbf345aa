"""Questions asked of a loaded sample, through the services behind `/recall` and `/context`, without counting reads.

Asking changes nothing, so that the same questions can be asked again with other techniques.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.loading import Loaded
from memory import conf
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.plans import Plan
from memory.retrieval.queries import Query
from memory.services.prompt_context.build import PromptContextRequest, build_prompt_context
from memory.services.recall.recall import RecallRequest, recall

CONVERSATION = "evaluation"
"""The empty conversation in which contexts are requested."""
TOP_K = 20
WORDS = 400
CONTEXT_TOKENS = 2_000

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, kana and Chinese characters, as a range of a regular expression."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingMode:
    """A way of asking questions. A plan replaces techniques; without `context_tokens` no context is requested."""

    techniques: Sequence[str] = ()
    plan: Plan | None = None
    context_tokens: int = CONTEXT_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResult:
    """The result of one question: ids best first, those within the first words, and those whose text is in the context.

    `took_ms` is the whole recall, `embedding_ms` the part that embedding the question took; `worked` are the techniques
    that found, weighted or changed anything.
    """

    sample: str
    question: SampleQuestion
    answers: frozenset[UUID]
    replaced: frozenset[UUID] = frozenset()
    ranked: Sequence[UUID]
    within_words: Sequence[UUID]
    within_context: Sequence[UUID]
    took_ms: float
    embedding_ms: float
    degraded: Sequence[str]
    worked: frozenset[str] = frozenset()


def ask_all(loaded: Sequence[Loaded], way: AskingMode) -> Iterator[QuestionResult]:
    """Ask every question of every sample, in order."""
    for each in loaded:
        for question in each.sample.questions:
            yield ask(each, question, way)


def ask(loaded: Loaded, question: SampleQuestion, way: AskingMode) -> QuestionResult:
    moment = question.asked_at or loaded.asked_at
    request = RecallRequest(query=Query(text=question.text, top_k=TOP_K), techniques=way.techniques, plan=way.plan)
    started = time.perf_counter()
    bundle = recall(loaded.owner, request, now=moment)
    took_ms = (time.perf_counter() - started) * 1_000
    return QuestionResult(
        sample=loaded.sample.name,
        question=question,
        answers=loaded.sample.ids_of(question.answers),
        replaced=loaded.sample.ids_of(question.replaced),
        ranked=loaded.turns_behind(named_ids(bundle.results)),
        within_words=loaded.turns_behind(named_ids(first_words([*bundle.results, *bundle.others], WORDS))),
        within_context=ask_for_context(loaded, question, way, now=moment),
        took_ms=took_ms,
        embedding_ms=embedding_ms(bundle),
        degraded=bundle.degraded,
        worked=frozenset(metric.technique for metric in bundle.metrics if metric.results),
    )


def ask_for_context(loaded: Loaded, question: SampleQuestion, way: AskingMode, *, now: datetime) -> list[UUID]:
    """Return the memories whose text the context holds, neighbours of the found ones included."""
    if not way.context_tokens:
        return []
    query = Query(text=question.text, conversation_id=CONVERSATION, top_k=conf.CONTEXT_RESULTS)
    asked = RecallRequest(query=query, techniques=way.techniques, plan=way.plan)
    request = PromptContextRequest(recall_request=asked, max_tokens=way.context_tokens)
    return loaded.turns_behind(named_ids(build_prompt_context(loaded.owner, request, now=now).items))


def named_ids(found: Iterable[Candidate]) -> Iterator[UUID]:
    """Yield the ids of what was found, each followed by those of its near-duplicates, which take places of their own.

    A result stands for the memories that it names in `also`: their words are the same.
    """
    for each in found:
        yield each.id
        yield from each.also


def count_words(text: str) -> int:
    """Count words: what blanks separate, and each character of a script that writes none between words.

    >>> count_words("a quiet street"), count_words("我住在上海 now")
    (3, 6)
    """
    return len(_WORD.findall(text))


def first_words(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return the best candidates, up to the first that exceeds `limit` words in total."""
    fitting, left = [], limit
    for candidate in ranked:
        left -= count_words(candidate.text)
        if left < 0:
            break
        fitting.append(candidate)
    return fitting


def embedding_ms(bundle: Bundle) -> float:
    return sum(metric.took_ms for metric in bundle.metrics if metric.technique == "embedding")

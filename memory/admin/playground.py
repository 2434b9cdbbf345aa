"""The playground: a question asked as an agent, with everything that led to the answer. Asking changes nothing.

What it shows is what `/context` would answer: the recall with its signals, what was left out, the time of each stage,
and the packed text. No read is counted, nothing is marked as injected, and no expiry is renewed.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from memory.admin.base import REDIS_IS_DOWN, render_page, staff_owner
from memory.admin.columns import change_url, why_url
from memory.admin.degradations import describe_degradation
from memory.admin.fields import escape_invisible
from memory.admin.playground_form import TECHNIQUES, PlanSettings, PlaygroundForm
from memory.admin.text import error_sentence, excerpt_of, mark_invisible
from memory.errors import MemoryServiceError
from memory.kinds import Kind, spec_of
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.services.prompt_context.build import PromptContext, PromptContextRequest, preview_prompt_context
from memory.services.prompt_context.left_out import OmittedMemory, find_left_out
from memory.services.recall.recall import RecallRequest
from memory_project.http.problems import REDIS_ERRORS
from memory_project.ids import uuid7

MAX_RESULT_CHARACTERS = 700
API_PREFIX = "/api/v1"
NEW_CONVERSATION = "new-conversation"
"""The name of a conversation in the examples for curl and Python, where the form names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCard:
    """A result, ready for the page. `other_rank` is its place in the other plan; None if it has none there."""

    rank: int
    candidate: Candidate
    text: str
    name: str
    url: str
    why_url: str
    correct_url: str
    supersede_url: str
    signals: Sequence[tuple[str, float]]
    is_packed: bool
    other_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedRow:
    """A memory that was left out, with the addresses of its pages."""

    memory: OmittedMemory
    text: str
    name: str
    url: str
    why_url: str
    replaced_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """The time of a stage, and its share of the longest one in percent."""

    name: str
    ms: float
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """Everything that the page shows of the answer to one plan."""

    name: str
    settings: str
    context: PromptContext
    text: str
    results: Sequence[ResultCard]
    left_out: Sequence[OmittedRow]
    stages: Sequence[StageRow]
    total_ms: float
    curl: str
    python: str
    degraded: Sequence[str]


@require_safe
def show_playground(request: HttpRequest) -> HttpResponse:
    """Show the form, and the answer if something was asked."""
    user: Any = request.user
    if not user.has_perm("memory.view_memory"):
        raise PermissionDenied
    form = PlaygroundForm(request, request.GET if "query" in request.GET else None, initial=request.GET.dict())
    answers: list[PlanAnswer] = []
    if form.is_bound and form.is_valid():
        try:
            answers = answer_plans(request, form)
        except MemoryServiceError as err:
            form.add_error(None, error_sentence(err))
        except REDIS_ERRORS:
            form.add_error(None, REDIS_IS_DOWN.partition(".")[0] + ".")
    may_change = user.has_perm("memory.change_memory")
    return render_page(
        request, "playground.html", "Playground",
        form=form, answers=answers, techniques=TECHNIQUES, may_change=may_change,
    )  # fmt: skip


def answer_plans(request: HttpRequest, form: PlaygroundForm) -> list[PlanAnswer]:
    """Return the answer to each plan, all at the same time and with the same owner."""
    asked, now, plans = form.cleaned_data, datetime.now(UTC), form.plans()
    owner = staff_owner(
        request,
        asked["account"].pk,
        agent_id=asked["agent"],
        user_id=asked["user"],
        channel=asked["channel"] or GLOBAL_CHANNEL,
    )
    user: Any = request.user
    may_see_working = user.has_perm("memory.view_workingmemoryaccount")
    contexts = [
        preview_prompt_context(owner, context_request(asked, plan, may_see_working=may_see_working), now=now)
        for plan in plans
    ]
    answers = []
    for number, (plan, found) in enumerate(zip(plans, contexts, strict=True)):
        other = contexts[1 - number].bundle.results if len(contexts) > 1 else []
        ranks = {each.id: rank for rank, each in enumerate(other, 1)}
        body = request_body(asked, plan)
        answers.append(
            PlanAnswer(
                name="AB"[number],
                settings=describe_plan(plan),
                context=found,
                text=mark_invisible(found.context),
                results=result_cards(found, ranks),
                left_out=[omitted_row(each) for each in find_left_out(owner, found, now=now)],
                stages=stage_rows(found),
                total_ms=round(sum(found.usage.stages_ms.values()), 1),
                curl=format_curl(request.build_absolute_uri(f"{API_PREFIX}/context"), body),
                python=format_python(request.build_absolute_uri(API_PREFIX), body),
                degraded=[describe_degradation(name) for name in found.degraded],
            )
        )
    return answers


def context_request(asked: Mapping[str, Any], plan: PlanSettings, *, may_see_working: bool) -> PromptContextRequest:
    """Return the request of `/context` for the cleaned form and a plan."""
    query = Query(
        text=asked["query"],
        top_k=asked["top_k"],
        # the name of a new conversation is of no other
        conversation_id=asked["conversation"] or f"playground-{uuid7()}",
        posture=plan.posture,
        mode=plan.mode,
        as_of=asked["as_of"],
    )
    recalled = RecallRequest(query=query, techniques=plan.techniques, suppress_injected=asked["ledger"] != "show")
    return PromptContextRequest(
        recall_request=recalled,
        max_tokens=asked["max_tokens"],
        working_fields=None if may_see_working else [],
    )


def describe_plan(plan: PlanSettings) -> str:
    mode = f", mode {plan.mode.value}" if plan.mode else ""
    techniques = ", ".join(plan.techniques) or "all techniques of the settings"
    return f"posture {plan.posture.value.replace('_', ' ')}{mode}, {techniques}"


def result_cards(found: PromptContext, other_ranks: Mapping[UUID, int]) -> list[ResultCard]:
    packed = {item.id for item in found.items}
    return [
        result_card(each, rank, is_packed=each.id in packed, other_rank=other_ranks.get(each.id))
        for rank, each in enumerate(found.bundle.results, 1)
    ]


def result_card(result: Candidate, rank: int, *, is_packed: bool, other_rank: int | None) -> ResultCard:
    spec = spec_of(result.kind)
    url = change_url(spec.admin_page, result.id)
    text = result.snippet or result.text
    return ResultCard(
        rank=rank,
        candidate=result,
        text=mark_invisible(text[:MAX_RESULT_CHARACTERS]) + ("…" if len(text) > MAX_RESULT_CHARACTERS else ""),
        name=spec.label,
        url=url,
        why_url=why_url(result.id),
        correct_url=f"{url}#id_text",
        supersede_url=f"{url}#id_supersede_claim" if result.kind == Kind.FACT else "",
        signals=sorted(result.signals.items()),
        is_packed=is_packed,
        other_rank=other_rank,
    )


def omitted_row(memory: OmittedMemory) -> OmittedRow:
    spec = spec_of(memory.kind)
    return OmittedRow(
        memory=replace(
            memory,
            reasons=[replace(each, detail=excerpt_of(each.detail, characters=300)) for each in memory.reasons],
        ),
        text=excerpt_of(memory.text, characters=200),
        name=spec.label,
        url=change_url(spec.admin_page, memory.id),
        why_url=why_url(memory.id),
        replaced_url=why_url(memory.replaced_by) if memory.replaced_by else "",
    )


def stage_rows(found: PromptContext) -> list[StageRow]:
    stages = found.usage.stages_ms
    longest = max(stages.values(), default=0.0) or 1.0
    return [StageRow(name=name, ms=round(ms, 1), percent=round(100 * ms / longest, 1)) for name, ms in stages.items()]


def request_body(asked: Mapping[str, Any], plan: PlanSettings) -> dict[str, Any]:
    """Return the body of `POST /context` for the cleaned form and one of its plans."""
    body: dict[str, Any] = {
        "agent_id": asked["agent"],
        "user_id": asked["user"],
        "channel": "" if asked["channel"] == GLOBAL_CHANNEL else asked["channel"],
        "conversation_id": asked["conversation"] or NEW_CONVERSATION,
        "query": asked["query"],
        "max_tokens": asked["max_tokens"],
        "top_k": asked["top_k"],
        "as_of": asked["as_of"].isoformat() if asked["as_of"] else "",
        "posture": plan.posture.value,
        "mode": plan.mode.value if plan.mode else "",
        "techniques": list(plan.techniques),
        "suppress_injected": asked["ledger"] != "show",
        "explain": True,
    }
    return {name: value for name, value in body.items() if value not in ("", [])}


def format_curl(url: str, body: Mapping[str, Any]) -> str:
    """Return the request as a command for a shell."""
    sent = escape_invisible(json.dumps(body, ensure_ascii=False, indent=2))
    lines = [
        f"curl -sS {shlex.quote(url)}",
        '-H "Authorization: Bearer $AGENT_MEMORY_API_KEY"',
        '-H "Content-Type: application/json"',
        f"-d {shlex.quote(sent)}",
    ]
    return " \\\n  ".join(lines)


def format_python(base_url: str, body: Mapping[str, Any]) -> str:
    """Return the request as code for the Python client, which reads the key from the environment."""
    binding = {"base_url": base_url, **{name: body[name] for name in ("agent_id", "user_id") if name in body}}
    own = ("conversation_id", "query", *binding)
    options = {name: value for name, value in body.items() if name not in own}
    arguments = ", ".join(f"{name}={value!r}" for name, value in binding.items())
    return "\n".join(
        [
            "from agent_memory_client import Client",
            "",
            "# the key is read from AGENT_MEMORY_API_KEY",
            f"memory = Client({arguments})",
            "answer = memory.context(",
            f"    {body['conversation_id']!r},",
            f"    {body['query']!r},",
            *(f"    {name}={value!r}," for name, value in options.items()),
            ")",
            "print(answer.context)",
        ]
    )


app_name = "playground"
urlpatterns = [path("", admin.site.admin_view(show_playground), name="page")]

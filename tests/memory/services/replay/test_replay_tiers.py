"""Tests that no answer has deeper reasoning than was stored, than the account allows, and than was asked for."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Forbidden, Unprocessable
from memory.models import Account, TurnRecord
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper, shallowest
from memory.retrieval.queries import Posture, Query
from memory.services.prompt_context.build import PromptContextRequest, build_prompt_context
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.read import get_record
from memory.services.replay.candidates import DEEP_POSTURES, ReplayRequest
from memory.services.replay.replay import replay
from memory.services.resume.resume import ResumeRequest, resume_work
from memory_project.ids import uuid7
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, allow, merge, thought
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

NONE, SUMMARY, RATIONALE_TIER, RAW = ReasoningTier
TELLTALES = {"Zinnia": RAW, "freeze": RATIONALE_TIER, "roses": SUMMARY, "sloth": SUMMARY}
"""Words that stand nowhere but in a reasoning, and the shallowest tier that contains them."""
WORDS = f"{' '.join(TELLTALES)} planted"

tiers = st.sampled_from(ReasoningTier)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A record as it was posted, the policy then, whether it was merged since, and the policy now."""

    has_trace: bool
    has_rationale: bool
    has_summary: bool
    is_merged: bool
    policy_then: ReasoningTier
    policy_now: ReasoningTier

    @property
    def stored(self) -> ReasoningTier:
        posted = {RAW: self.has_trace, RATIONALE_TIER: self.has_rationale, SUMMARY: self.has_summary, NONE: True}
        kept = [tier for tier, is_there in posted.items() if is_there and not is_deeper(tier, self.policy_then)]
        # a rationale that is not kept leaves a summary
        kept += [shallowest(SUMMARY, self.policy_then)] if self.has_rationale else []
        return max(kept, key=lambda tier: DEPTHS[tier])


cases = st.builds(
    Case,
    has_trace=st.booleans(),
    has_rationale=st.booleans(),
    has_summary=st.booleans(),
    is_merged=st.booleans(),
    policy_then=tiers,
    policy_now=tiers,
)
asked = st.builds(
    ReplayRequest,
    tier=tiers,
    posture=st.sampled_from(Posture),
    has_scope=st.booleans(),
    max_tokens=st.sampled_from([50, 800]),
)


def record_case(case: Case) -> tuple[Owner, TurnRecord]:
    """Record the case in an account of its own, and set the policy of now."""
    owner = Owner(account_id=Account.objects.create(name=str(uuid7())).id, agent_id="assistant")
    allow(owner, case.policy_then)
    goal = aim(owner, "Have a garden.")
    record = thought(
        owner,
        trace="Zinnia thought." * case.has_trace,
        rationale=RATIONALE if case.has_rationale else None,
        summary="A sloth." * case.has_summary,
        fields={"goal_id": goal.id},
    )
    if case.is_merged:
        merge(owner, goal, [record.id])
    allow(owner, case.policy_now)
    record.refresh_from_db()
    return owner, record


def find_too_deep_words(text: str, limit: ReasoningTier) -> list[str]:
    return [word for word, tier in TELLTALES.items() if word in text and is_deeper(tier, limit)]


@examples(30)
@given(case=cases, request=asked, target=st.sampled_from(["goal_id", "record_id", "episode_id", "decision"]))
def test_a_replay_is_never_deeper_than_stored_allowed_or_asked_for(
    case: Case, request: ReplayRequest, target: str
) -> None:
    owner, record = record_case(case)
    is_open = request.has_scope and request.posture in DEEP_POSTURES
    limit = shallowest(case.stored, case.policy_now, request.tier, RAW if is_open else RATIONALE_TIER)

    try:
        found = replay(owner, name_target(request, target, record), now=NOW)
    except (Forbidden, Unprocessable):
        assert request.tier == RAW
        assert not is_open
        return

    assert not is_deeper(found.tier, limit)
    assert find_too_deep_words(" ".join(item.text for item in found.items), limit) == []
    assert not is_deeper(found.allowed, case.policy_now)
    assert found.tokens <= request.max_tokens


def name_target(request: ReplayRequest, target: str, record: TurnRecord) -> ReplayRequest:
    values = {"goal_id": record.goal_id, "record_id": record.id, "episode_id": record.episode_id, "decision": WORDS}
    # of a record that is not merged there is no episode
    target = target if values[target] is not None else "record_id"
    fields = {name: getattr(request, name) for name in ("tier", "posture", "has_scope", "max_tokens")}
    return ReplayRequest(**{target: values[target]}, **fields)  # type: ignore[arg-type]


@examples(15)
@given(case=cases)
def test_other_views_of_a_record_are_never_deeper_than_stored_or_allowed(case: Case) -> None:
    owner, record = record_case(case)
    limit = shallowest(case.stored, case.policy_now, RATIONALE_TIER)
    query = Query(text=WORDS, conversation_id="chat-1", top_k=50)

    views = [get_record(owner, record.id, level=level, now=NOW)[0] for level in (None, 0)]
    found = recall(owner, RecallRequest(query=query), now=NOW)
    packet = resume_work(owner, ResumeRequest(conversation_id="chat-1", wants_replay=True), now=NOW)
    laid_out = build_prompt_context(owner, PromptContextRequest(recall_request=RecallRequest(query=query)), now=NOW)

    slots = [f"{slot.text} {slot.data}" for view in views for slot in view.slots]
    text = " ".join([*slots, *(each.text for each in found.results), laid_out.context, packet.text])
    assert find_too_deep_words(text, limit) == []
    assert not any(is_deeper(view.tier, shallowest(case.stored, case.policy_now)) for view in views)

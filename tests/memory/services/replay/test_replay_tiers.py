"""No answer tells more of a reasoning than was stored, than the account allows, than was asked for: for any record, any
policies then and now, and any request."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import Forbidden, Unprocessable
from memory.models import Account, TurnRecord
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper, shallowest
from memory.retrieval.queries import Posture, Query
from memory.services.prompt_context.build import ContextRequest, gather_context
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.view import get_record
from memory.services.replay.replay import DEEP_POSTURES, ReplayRequest, replay
from memory.services.resume.resume import ResumeRequest, resume_work
from memory_project.ids import uuid7
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, allow, merge, thought

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

NONE, SUMMARY, RATIONALE_TIER, RAW = ReasoningTier
TELLTALES = {"Zinnia": RAW, "freeze": RATIONALE_TIER, "roses": SUMMARY, "sloth": SUMMARY}
"""Words that stand nowhere but in a reasoning, and the shallowest tier that tells them."""
WORDS = f"{' '.join(TELLTALES)} planted"

tiers = st.sampled_from(ReasoningTier)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A record as it was posted, under which policy, whether it was merged since, and the policy now."""

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


def set_up(case: Case) -> tuple[Owner, TurnRecord]:
    """In an account of its own, under the policy of now."""
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


def too_deep(text: str, limit: ReasoningTier) -> list[str]:
    return [word for word, tier in TELLTALES.items() if word in text and is_deeper(tier, limit)]


@settings(max_examples=30)
@given(case=cases, request=asked, target=st.sampled_from(["goal_id", "record_id", "episode_id", "decision"]))
def test_a_replay_is_never_deeper_than_stored_allowed_or_asked_for(
    case: Case, request: ReplayRequest, target: str
) -> None:
    owner, record = set_up(case)
    is_open = request.has_scope and request.posture in DEEP_POSTURES
    limit = shallowest(case.stored, case.policy_now, request.tier, RAW if is_open else RATIONALE_TIER)

    try:
        found = replay(owner, named(request, target, record), now=NOW)
    except (Forbidden, Unprocessable):
        assert request.tier == RAW
        assert not is_open
        return

    assert not is_deeper(found.tier, limit)
    assert too_deep(" ".join(piece.text for piece in found.pieces), limit) == []
    assert not is_deeper(found.allowed, case.policy_now)
    assert found.tokens <= request.max_tokens


def named(request: ReplayRequest, target: str, record: TurnRecord) -> ReplayRequest:
    values = {"goal_id": record.goal_id, "record_id": record.id, "episode_id": record.episode_id, "decision": WORDS}
    # of a record that is not merged there is no episode
    target = target if values[target] is not None else "record_id"
    fields = {name: getattr(request, name) for name in ("tier", "posture", "has_scope", "max_tokens")}
    return ReplayRequest(**{target: values[target]}, **fields)  # type: ignore[arg-type]


@settings(max_examples=15)
@given(case=cases)
def test_what_else_tells_of_a_record_is_never_deeper_than_stored_or_allowed(case: Case) -> None:
    owner, record = set_up(case)
    limit = shallowest(case.stored, case.policy_now, RATIONALE_TIER)
    query = Query(text=WORDS, conversation_id="chat-1", top_k=50)

    views = [get_record(owner, record.id, level=level, now=NOW)[0] for level in (None, 0)]
    found = recall(owner, RecallRequest(query=query), now=NOW)
    packet = resume_work(owner, ResumeRequest(conversation_id="chat-1", wants_replay=True), now=NOW)
    laid_out = gather_context(owner, ContextRequest(asked=RecallRequest(query=query)), now=NOW)

    slots = [f"{slot.text} {slot.data}" for view in views for slot in view.slots]
    told = " ".join([*slots, *(each.text for each in found.results), laid_out.context, packet.text])
    assert too_deep(told, limit) == []
    assert not any(is_deeper(view.tier, shallowest(case.stored, case.policy_now)) for view in views)

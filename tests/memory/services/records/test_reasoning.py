"""What is kept of a reasoning, and what may be told of what was kept: never more than the account allows."""

from itertools import product

import pytest

from memory.extraction.turn_slots import Point, Rationale, Reasoning
from memory.models import TurnSlot
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.records.reasoning import (
    KeptReasoning,
    ReasoningPolicy,
    ToldSlot,
    keep_reasoning,
    told_slots,
    told_tier,
    within_policy,
)

NONE, SUMMARY, RATIONALE, TRACE = ReasoningTier
POINTS = Rationale(
    decisions=[Point(what="water at dawn", why="the sun burns")],
    rejected=[Point(what="water at noon")],
    blockers=[Point(what="the hose leaks")],
)
TOLD = Reasoning(tier=TRACE, trace="Hm, noon? No.", rationale=POINTS, summary="Water early.")


def keep(reasoning: Reasoning, tier: ReasoningTier, trace_tokens: int = 1_000) -> KeptReasoning:
    return keep_reasoning(reasoning, ReasoningPolicy(tier=tier, trace_tokens=trace_tokens))


def slot_of(reasoning: Reasoning, tier: ReasoningTier = TRACE) -> TurnSlot:
    kept = keep(reasoning, tier)
    return TurnSlot(slot="reasoning", text=kept.text, data=dict(kept.data), tier=kept.told_tier.value)


@pytest.mark.parametrize(
    ("policy", "kept", "told", "reason"),
    [
        (TRACE, TRACE, RATIONALE, ""),
        (RATIONALE, RATIONALE, RATIONALE, "policy"),
        (SUMMARY, SUMMARY, SUMMARY, "policy"),
        (NONE, NONE, NONE, "policy"),
    ],
)
def test_no_deeper_tier_is_kept_than_the_account_allows(
    policy: ReasoningTier, kept: ReasoningTier, told: ReasoningTier, reason: str
) -> None:
    result = keep(TOLD, policy)

    assert (result.posted, result.tier, result.told_tier, result.reason) == (TRACE, kept, told, reason)
    assert bool(result.trace) is (kept == TRACE)


def test_a_trace_above_the_budget_is_not_kept_and_what_stands_beside_it_is() -> None:
    kept = keep(TOLD, TRACE, trace_tokens=1)

    assert (kept.tier, kept.reason, kept.trace) == (RATIONALE, "budget", "")
    assert kept.text.startswith("Water early.")


def test_nothing_is_made_out_of_a_trace_that_is_not_kept() -> None:
    kept = keep(Reasoning(tier=TRACE, trace="Hm, noon? No."), RATIONALE)

    assert (kept.tier, kept.text, dict(kept.data), kept.trace) == (NONE, "", {}, "")


def test_a_rationale_that_may_not_be_kept_leaves_its_decisions_in_a_line() -> None:
    kept = keep(Reasoning(tier=RATIONALE, rationale=POINTS), SUMMARY)

    assert kept.text == "Decided: water at dawn (because the sun burns)"
    assert kept.data == {"summary": kept.text}


def test_what_prints_a_reasoning_prints_no_trace() -> None:
    assert "noon? No" not in repr(TOLD) + repr(keep(TOLD, TRACE))


@pytest.mark.parametrize(("kept", "now"), list(product(ReasoningTier, ReasoningTier)), ids=str)
def test_what_is_told_is_no_deeper_than_what_is_kept_or_allowed_now(kept: ReasoningTier, now: ReasoningTier) -> None:
    row = slot_of(TOLD, kept)

    told = within_policy(row, now)

    if told is not None and told.text:
        assert not is_deeper(told.tier, kept)
        assert not is_deeper(told.tier, now)
        assert ("the hose leaks" in told.text + str(told.data)) is (told.tier == RATIONALE)
    assert told_tier(kept, told, now) in (NONE, SUMMARY, RATIONALE) or TRACE == kept == now


def test_of_a_rationale_that_may_not_be_told_any_more_its_summary_is_told() -> None:
    told = within_policy(slot_of(TOLD), SUMMARY)

    assert told is not None
    assert (told.text, told.data, told.tier) == ("Water early.", {"summary": "Water early."}, SUMMARY)


def test_a_rationale_is_told_as_it_would_have_been_kept() -> None:
    reasoning = Reasoning(tier=RATIONALE, rationale=POINTS)

    told, kept = within_policy(slot_of(reasoning), SUMMARY), keep(reasoning, SUMMARY)

    assert told is not None
    assert (told.text, told.data) == (kept.text, kept.data)


def test_a_rationale_whose_data_is_gone_is_not_told_under_a_lower_policy() -> None:
    row = TurnSlot(slot="reasoning", text="Corrected by hand.", data={}, tier=RATIONALE.value)

    assert within_policy(row, SUMMARY) is None
    assert within_policy(row, RATIONALE) == ToldSlot(row=row, text=row.text, data={}, tier=RATIONALE.value)


def test_what_is_no_reasoning_is_told_whatever_the_policy_is() -> None:
    row = TurnSlot(slot="action", text="Watered.", data={"calls": [{"tool": "hose"}]})

    assert told_slots([row, slot_of(TOLD)], NONE) == [ToldSlot(row=row, text="Watered.", data=row.data, tier="")]

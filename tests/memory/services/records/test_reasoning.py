"""The reasoning that is kept, and the part of it that is shown: never more than the account allows."""

from itertools import product

import pytest

from memory.extraction.turn_slots import Point, Rationale, Reasoning
from memory.models import TurnSlot
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.records.reasoning import (
    KeptReasoning,
    ReasoningPolicy,
    RedactedSlot,
    keep_reasoning,
    redact_slot,
    redact_slots,
    visible_tier,
)

NONE, SUMMARY, RATIONALE, TRACE = ReasoningTier
POINTS = Rationale(
    decisions=[Point(what="water at dawn", why="the sun burns")],
    rejected=[Point(what="water at noon")],
    blockers=[Point(what="the hose leaks")],
)
POSTED = Reasoning(tier=TRACE, trace="Hm, noon? No.", rationale=POINTS, summary="Water early.")


def keep(reasoning: Reasoning, tier: ReasoningTier, trace_tokens: int = 1_000) -> KeptReasoning:
    return keep_reasoning(reasoning, ReasoningPolicy(tier=tier, trace_tokens=trace_tokens))


def slot_of(reasoning: Reasoning, tier: ReasoningTier = TRACE) -> TurnSlot:
    kept = keep(reasoning, tier)
    return TurnSlot(slot="reasoning", text=kept.text, data=dict(kept.data), tier=kept.slot_tier.value)


@pytest.mark.parametrize(
    ("policy", "kept", "slot_tier", "reason"),
    [
        (TRACE, TRACE, RATIONALE, ""),
        (RATIONALE, RATIONALE, RATIONALE, "policy"),
        (SUMMARY, SUMMARY, SUMMARY, "policy"),
        (NONE, NONE, NONE, "policy"),
    ],
)
def test_no_deeper_tier_is_kept_than_the_account_allows(
    policy: ReasoningTier, kept: ReasoningTier, slot_tier: ReasoningTier, reason: str
) -> None:
    result = keep(POSTED, policy)

    assert (result.posted, result.tier, result.slot_tier, result.reason) == (TRACE, kept, slot_tier, reason)
    assert bool(result.trace) is (kept == TRACE)


def test_a_trace_above_the_budget_is_dropped_and_the_rest_is_kept() -> None:
    kept = keep(POSTED, TRACE, trace_tokens=1)

    assert (kept.tier, kept.reason, kept.trace) == (RATIONALE, "budget", "")
    assert kept.text.startswith("Water early.")


def test_nothing_is_derived_from_a_trace_that_is_not_kept() -> None:
    kept = keep(Reasoning(tier=TRACE, trace="Hm, noon? No."), RATIONALE)

    assert (kept.tier, kept.text, dict(kept.data), kept.trace) == (NONE, "", {}, "")


def test_a_rationale_that_may_not_be_kept_leaves_its_decisions_in_a_line() -> None:
    kept = keep(Reasoning(tier=RATIONALE, rationale=POINTS), SUMMARY)

    assert kept.text == "Decided: water at dawn (because the sun burns)"
    assert kept.data == {"summary": kept.text}


def test_the_repr_of_a_reasoning_has_no_trace() -> None:
    assert "noon? No" not in repr(POSTED) + repr(keep(POSTED, TRACE))


@pytest.mark.parametrize(("kept", "now"), list(product(ReasoningTier, ReasoningTier)), ids=str)
def test_the_visible_tier_is_no_deeper_than_kept_or_allowed_now(kept: ReasoningTier, now: ReasoningTier) -> None:
    row = slot_of(POSTED, kept)

    slot_tier = redact_slot(row, now)

    if slot_tier is not None and slot_tier.text:
        assert not is_deeper(slot_tier.tier, kept)
        assert not is_deeper(slot_tier.tier, now)
        assert ("the hose leaks" in slot_tier.text + str(slot_tier.data)) is (slot_tier.tier == RATIONALE)
    assert visible_tier(kept, slot_tier, now) in (NONE, SUMMARY, RATIONALE) or TRACE == kept == now


def test_a_withheld_rationale_leaves_its_summary() -> None:
    slot_tier = redact_slot(slot_of(POSTED), SUMMARY)

    assert slot_tier is not None
    assert (slot_tier.text, slot_tier.data, slot_tier.tier) == ("Water early.", {"summary": "Water early."}, SUMMARY)


def test_a_rationale_is_redacted_as_it_would_have_been_kept() -> None:
    reasoning = Reasoning(tier=RATIONALE, rationale=POINTS)

    slot_tier, kept = redact_slot(slot_of(reasoning), SUMMARY), keep(reasoning, SUMMARY)

    assert slot_tier is not None
    assert (slot_tier.text, slot_tier.data) == (kept.text, kept.data)


def test_a_rationale_without_data_is_withheld_under_a_lower_policy() -> None:
    row = TurnSlot(slot="reasoning", text="Corrected by hand.", data={}, tier=RATIONALE.value)

    assert redact_slot(row, SUMMARY) is None
    assert redact_slot(row, RATIONALE) == RedactedSlot(row=row, text=row.text, data={}, tier=RATIONALE.value)


def test_other_slots_are_shown_whatever_the_policy_is() -> None:
    row = TurnSlot(slot="action", text="Watered.", data={"calls": [{"tool": "hose"}]})

    assert redact_slots([row, slot_of(POSTED)], NONE) == [
        RedactedSlot(row=row, text="Watered.", data=row.data, tier="")
    ]

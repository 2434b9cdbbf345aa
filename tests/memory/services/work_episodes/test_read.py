"""Work episodes: listed, redacted to the policy, expanded; for those who take part."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound
from memory.extraction.turn_slots import Action, Observation, Point, Rationale, Reasoning, Slots
from memory.models import Account, Memory, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.work_episodes import read as work_episodes
from memory.services.work_episodes.read import (
    redacted_view,
    view_work_episode,
    visible_work_episodes,
)
from tests.memory.episodes import NOW
from tests.memory.records import add_record
from tests.memory.work_episodes import DATA, TEXT, archived, merged, shortened

pytestmark = pytest.mark.django_db

REASONED = Slots(
    observation=Observation(text="The roses hang their heads."),
    reasoning=Reasoning(
        tier=ReasoningTier.STRUCTURED_RATIONALE,
        rationale=Rationale(decisions=(Point(what="Water them daily."),)),
        summary="They are dry.",
    ),
    action=Action(text="Watered the roses."),
)


def episode_of(owner: Owner, records: int = 1, **fields: Any) -> WorkEpisode:
    return merged(owner, [add_record(owner, slots=REASONED).record for _ in range(records)], **fields)


def texts(owner: Owner, episode: WorkEpisode, level: int) -> list[list[str]]:
    expanded = view_work_episode(owner, episode.id, level=level, now=NOW)
    return [[slot.text for slot in each.slots] for each in expanded.records]


def allow(owner: Owner, tier: ReasoningTier) -> None:
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=tier)


def test_an_episode_is_shown_as_it_is(owner: Owner) -> None:
    episode = episode_of(owner)

    view = view_work_episode(owner, episode.id, now=NOW)

    assert (view.view.text, view.view.data, view.view.tier) == (TEXT, DATA, ReasoningTier.STRUCTURED_RATIONALE)
    assert (view.derived_from, view.records, view.truncated) == (None, [], False)


def test_only_the_current_level_is_listed_and_the_former_can_be_read(owner: Owner) -> None:
    former = episode_of(owner)
    latter = archived(owner, former)

    assert list(visible_work_episodes(owner, now=NOW)) == [latter]
    assert view_work_episode(owner, latter.id, now=NOW).derived_from == former.id
    assert view_work_episode(owner, former.id, now=NOW).view.episode.level == 2
    assert texts(owner, latter, 0) == texts(owner, former, 0) != []


@pytest.mark.parametrize("level", [0, 1])
def test_an_episode_is_expanded_to_its_former_slots(owner: Owner, level: int) -> None:
    recorded = add_record(owner, slots=REASONED)
    for slot in recorded.slots:
        if slot.slot == "action":
            shortened(owner, slot, "Watered.")
        if slot.slot == "observation":
            # would not have been shorter
            rows = TurnSlot.objects
            rows.filter(pk=slot.pk).update(level=1)
    episode = merged(owner, [recorded.record])

    ((observation, reasoning, action),) = texts(owner, episode, level)

    assert observation == "The roses hang their heads."
    assert reasoning.startswith("They are dry.")
    assert action == ("Watered the roses." if level == 0 else "Watered.")


def test_records_come_in_their_order_and_others_not_at_all(owner: Owner) -> None:
    records = [add_record(owner).record for _ in range(4)]
    episode = merged(owner, records[1:3])

    expanded = view_work_episode(owner, episode.id, level=0, now=NOW)

    assert [each.record.number for each in expanded.records] == [1, 2]


def test_an_expansion_is_cut_at_its_limit(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_episodes, "MAX_RECORDS", 2)

    for records in (2, 3):
        expanded = view_work_episode(owner, episode_of(owner, records).id, level=0, now=NOW)
        assert (len(expanded.records), expanded.truncated) == (2, records == 3)


def test_a_quarantined_slot_is_left_out(owner: Owner) -> None:
    episode = episode_of(owner)
    rows = TurnSlot.objects
    Memory.objects.filter(id=rows.get(slot="reasoning").id).update(quarantined=True)

    assert texts(owner, episode, 0) == [["The roses hang their heads.", "Watered the roses."]]


@pytest.mark.parametrize(
    ("tier", "names", "reasoning"),
    [
        (ReasoningTier.RAW_TRACE, set(DATA), "They are dry.\nDecided: Water them daily."),
        (ReasoningTier.STRUCTURED_RATIONALE, set(DATA), "They are dry.\nDecided: Water them daily."),
        (ReasoningTier.DECISION_SUMMARY, set(DATA) - {"rejected"}, "They are dry."),
        (ReasoningTier.NONE, {"goal", "produced", "tools", "outcome"}, None),
    ],
)
def test_no_more_is_shown_than_the_account_allows_now(
    owner: Owner, tier: ReasoningTier, names: set[str], reasoning: str | None
) -> None:
    episode = episode_of(owner)
    allow(owner, tier)

    expanded = view_work_episode(owner, episode.id, level=0, now=NOW)

    shown = [slot.text for slot in expanded.records[0].slots if slot.row.slot == "reasoning"]
    assert set(expanded.view.data) == names
    assert ("Water them daily." in expanded.view.text) == ("decisions" in names)
    assert "too late" not in expanded.view.text
    assert shown == ([reasoning] if reasoning else [])


def test_an_episode_of_which_nothing_may_be_shown_has_no_text(owner: Owner) -> None:
    view = redacted_view(episode_of(owner, data={"rejected": ["Cut them."]}), ReasoningTier.NONE)

    assert (view.text, dict(view.data), view.tier) == ("", {}, ReasoningTier.NONE)


def test_an_agent_that_takes_no_part_finds_none(owner: Owner, stranger: Account) -> None:
    episode = episode_of(owner)

    for other in (replace(owner, agent_id="colleague", user_id="ana"), Owner(account_id=stranger.id)):
        assert not visible_work_episodes(other, now=NOW)
        with pytest.raises(NotFound):
            view_work_episode(other, episode.id, level=0, now=NOW)


def test_a_quarantined_episode_is_not_found(owner: Owner) -> None:
    episode = episode_of(owner)
    Memory.objects.filter(id=episode.id).update(quarantined=True)

    with pytest.raises(NotFound):
        view_work_episode(owner, episode.id, now=NOW)


def test_expanding_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for records in (1, 5):
        episode = episode_of(owner, records)
        with django_assert_num_queries(5):
            view_work_episode(owner, episode.id, level=0, now=NOW)
    with django_assert_num_queries(3):
        view_work_episode(owner, episode.id, now=NOW)

"""Work episodes in the admin: each opens with its outcome and with pages of the turns it was merged from."""

from typing import Any

import pytest
from django.test import Client

from memory.admin import work_episodes
from memory.models import TurnRecord, WorkEpisode
from memory.owner import Owner
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.stories import archive, merge, whole_slots


@pytest.fixture
def records(owner: Owner) -> list[TurnRecord]:
    return [add_record(owner, slots=whole_slots(f"pump {number}")).record for number in range(5)]


@pytest.fixture
def episode(owner: Owner, records: list[TurnRecord]) -> WorkEpisode:
    data = {"decisions": ["replace it", "at once"], "goal": "Mend the pump.", "corrections": []}
    return merge(owner, aim(owner), records, data=data)


def numbers(client: Client, episode: WorkEpisode, **query: Any) -> list[int]:
    response = client.get(page_url("workepisode", episode.pk), query)
    return [turn.number for turn in response.context["turns"]]


def test_an_episodes_page_shows_its_outcome_and_its_turns(staff: Client, episode: WorkEpisode) -> None:
    page = shown(staff.get(page_url("workepisode", episode.pk)))

    for text in ("Turns 0–4 of chat-1", "The pump was replaced.", "<li>at once</li>", "Mend the pump.", "extractive",
                 "Ordered pump 3.", "Decided: replace pump 4"):  # fmt: skip
        assert text in page


def test_the_turns_of_an_episode_are_paginated(
    staff: Client, episode: WorkEpisode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_episodes, "PAGE_TURNS", 2)

    assert [numbers(staff, episode, p=page) for page in (0, 1, 2, 3, "x")] == [[0, 1], [2, 3], [4], [], [0, 1]]
    middle = shown(staff.get(page_url("workepisode", episode.pk), {"p": 1}))
    assert '?p=0#turns" rel="prev"' in middle
    assert '?p=2#turns" rel="next"' in middle


def test_a_page_costs_as_many_queries_for_many_turns_as_for_few(
    staff: Client, owner: Owner, episode: WorkEpisode
) -> None:
    few = merge(owner, None, [add_record(owner, "short", slots=whole_slots()).record])

    costs = [queries_of(staff, page_url("workepisode", each.pk)) for each in (few, episode)]

    assert costs[0] == costs[1] <= 16


def test_an_archived_episode_links_to_the_merged_one(staff: Client, owner: Owner, episode: WorkEpisode) -> None:
    page = shown(staff.get(page_url("workepisode", archive(owner, episode).pk)))

    assert "Pump replaced." in page
    assert "The pump was replaced." in page
    assert page_url("workepisode", episode.pk) in page


def test_an_episode_is_corrected_and_marked(staff: Client, episode: WorkEpisode) -> None:
    url = page_url("workepisode", episode.pk)

    staff.post(url, form_values(staff.get(url)) | {"text": "The valve was replaced."})
    choose(staff, list_url("workepisode"), "pin", episode.pk)

    episode.refresh_from_db()
    assert (episode.text, episode.data, episode.pinned) == ("The valve was replaced.", {}, True)


def test_episodes_are_listed_by_level_status_and_words(staff: Client, owner: Owner, episode: WorkEpisode) -> None:
    later = archive(owner, episode)

    found = [
        [row.pk for row in staff.get(list_url("workepisode", **query)).context["cl"].result_list]
        for query in ({"level__exact": 3}, {"status__exact": "failed"}, {"q": "pump"})
    ]

    assert found == [[later.pk], [], [later.pk, episode.pk]]


def test_an_episode_shows_its_turns_only_with_permission_to_view_turns(newcomer: Client, episode: WorkEpisode) -> None:
    allow("newcomer", "view_workepisode")

    page = shown(newcomer.get(page_url("workepisode", episode.pk)))

    assert "The pump was replaced." in page
    assert "Ordered pump" not in page
    assert newcomer.post(page_url("workepisode", episode.pk), {"text": "x"}).status_code == 403

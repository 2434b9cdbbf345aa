"""Completed goals teach strategies, also where a conversation states no outcome."""

from collections import Counter
from datetime import timedelta

import pytest

from memory.models import Conversation, Strategy, StrategyUse
from memory.owner import Owner
from memory.services.account_walk import Batch
from memory.services.conversations.end import end_conversation
from memory.services.custody.conversations import erase_conversation
from memory.services.strategies.patterns import PatternResults, extract_patterns
from memory.services.strategies.sources import next_conversation_sources, next_goal_sources
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.services.strategies.test_patterns import (
    LATER,
    REPORT,
    call,
    counts,
    look,
    looked_at,
    others_beside,
    work_for,
)
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_a_goal_learns_from_its_holders_calls_only(owner: Owner) -> None:
    for mine, other in others_beside(owner):
        goal, place = aim(mine), f"c-{mine.user_id}"
        work_for(mine, goal, place, "buy", "dig")
        add_record(mine, place, goal_id=goal.pk, invocations=call(other, place, "spy", "steal"))
        finish(mine, goal)
        lonely = aim(mine, "Feed the cat.")
        add_record(mine, place, goal_id=lonely.pk, invocations=call(other, place))
        finish(mine, lonely)

    assert look() == Counter(strategies_learnt=2, nothing_to_learn=2)

    rows = Strategy.objects.order_by("pk")
    assert [(each.user_id, each.tool_sequence) for each in rows] == [("", ["buy", "dig"]), ("ana", ["buy", "dig"])]


def test_a_completed_goal_teaches_where_no_outcome_was_stated(owner: Owner) -> None:
    goal = aim(owner, "Plant the roses.")
    for place, names in {"c1": ("buy", "dig"), "c2": ("dig", "plant")}.items():
        work_for(owner, goal, place, *names)
    end_conversation(owner, "c1", outcome="", now=NOW)
    finish(owner, goal)

    assert look() == Counter(strategies_learnt=1, nothing_to_learn=1)

    strategy = Strategy.objects.get()
    assert (strategy.context_pattern, strategy.tool_sequence) == ("Plant the roses.", ["buy", "dig", "plant"])
    assert strategy.metadata == {"learnt_from": {"goal_id": str(goal.pk)}}
    last = Conversation.objects.get(conversation_id="c2")
    assert StrategyUse.objects.get().conversation_id == last.pk
    end_conversation(owner, "c2", outcome="success", now=LATER + timedelta(hours=1))
    assert (look(LATER + timedelta(hours=2)), counts()) == (Counter(nothing_to_learn=1), {"Plant the roses.": (1, 0)})


def test_each_goal_of_a_conversation_teaches_its_own_strategy(owner: Owner) -> None:
    roses, cat = aim(owner, "Plant the roses."), aim(owner, "Feed the cat.")
    say(owner, turn(REPORT))
    for goal in (roses, cat):
        work_for(owner, goal)
    call(owner, "c1", "open", "close")
    end_conversation(owner, "c1", outcome="success", now=NOW)
    finish(owner, roses)

    assert look() == Counter(strategies_learnt=3, nothing_to_learn=1)

    assert counts() == {"Plant the roses.": (1, 0), "Feed the cat.": (1, 0), REPORT: (1, 0)}


def test_open_and_abandoned_goals_teach_nothing(owner: Owner) -> None:
    kept, left = aim(owner, "Plant the roses."), aim(owner, "Feed the cat.")
    work_for(owner, kept)
    work_for(owner, left)
    finish(owner, left, status="abandoned")
    end_conversation(owner, "c1", outcome="", now=NOW)

    assert (look(), looked_at()) == (Counter(nothing_to_learn=1), True)


def test_a_conversation_without_an_outcome_waits_for_its_goals(owner: Owner) -> None:
    goal = aim(owner)
    work_for(owner, goal)
    finish(owner, goal)
    end_conversation(owner, "c1", outcome="", now=NOW)

    done = extract_patterns(next_conversation_sources(Batch(size=10), now=LATER).rows, now=LATER, renew=lambda: None)

    assert (done, looked_at()) == (PatternResults(marked=0, failed=0, figures=Counter()), False)


def test_a_goal_teaches_nothing_if_its_conversation_was_erased_since_it_was_read(owner: Owner) -> None:
    goal = aim(owner, "Plant the roses.")
    work_for(owner, goal, "c1", "dig", "plant")
    finish(owner, goal)
    read = next_goal_sources(Batch(size=10), now=LATER).rows
    erase_conversation(owner, "c1", now=LATER)

    extract_patterns(read, now=LATER, renew=lambda: None)

    assert not Strategy.objects.exists()
    assert look() == Counter(nothing_to_learn=1)

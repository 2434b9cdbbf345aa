"""Recall as all edges have it: what is let through and what is not, in how many statements."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import store as ledger
from memory.errors import Unprocessable
from memory.models import Account, Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Posture, Query, Scope
from memory.services.facts.supersede import correct_fact, reject_fact, supersede_fact
from memory.services.memories.store import OwnVector
from memory.services.recall.recall import RecallRequest, conclude, recall
from memory_project.redis import Place
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import MODEL, NOTHING, NOW, direction, draft, store
from tests.memory.facts import day, fact_draft, know
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUESTION = "Where is the archive?"
OWN = OwnVector(model=MODEL, vector=direction(0))


def request(*, techniques: tuple[str, ...] = (), own: OwnVector | None = OWN, **fields: Any) -> RecallRequest:
    """`fields` are those of the query, or of the request."""
    of_request = {name: fields.pop(name) for name in list(fields) if name in RecallRequest.__dataclass_fields__}
    query = Query(**{"text": QUESTION} | fields)
    return RecallRequest(query=query, techniques=techniques, own=own, **of_request)


def ask(owner: Owner, **fields: Any) -> Bundle:
    return recall(owner, request(**fields), now=NOW)


def texts(owner: Owner, **fields: Any) -> set[str]:
    return {result.text for result in ask(owner, **fields).results}


def archive_said(owner: Owner, words: str = "The archive is here", **fields: Any) -> Memory:
    return say(owner, turn(words, angle=0.1), **fields).turns[0]


def statements(owner: Owner, asked: RecallRequest) -> int:
    with CaptureQueriesContext(connection) as captured:
        recall(owner, asked, now=NOW)
    return len(captured)


def test_a_recall_of_turns_takes_two_statements(owner: Owner) -> None:
    archive_said(owner)

    assert statements(owner, request(kinds=[Kind.TURN])) == 2


def test_a_recall_of_everything_takes_three_at_most(owner: Owner) -> None:
    archive_said(owner)
    know(owner, "The archive is in Berlin.", angle=0.2)
    store(owner, draft("They moved the archive.", angle=0.3))
    ledger.mark(Place(account_id=owner.account_id, conversation_id="c1"), "skill:search")
    asked = request(conversation_id="c1", posture=Posture.RESUME, as_of=NOW, known_at=NOW, suppress_injected=True)

    assert statements(replace(owner, user_id="ana", channel="atlas"), asked) <= 3
    assert statements(owner, request()) == 3


def test_an_owner_without_memories_takes_two(owner: Owner) -> None:
    assert statements(owner, request()) == 2


def test_kinds_filter(owner: Owner) -> None:
    archive_said(owner)
    know(owner, "The archive is in Berlin.", angle=0.2)

    assert texts(owner, kinds=[Kind.FACT]) == {"The archive is in Berlin."}
    assert texts(owner, kinds=[Kind.TURN]) == {"The archive is here"}
    assert len(texts(owner)) == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"since": day(-1)}, {"noon", "late"}),
        ({"until": NOW}, {"old"}),
        ({"since": NOW, "until": NOW + timedelta(seconds=1)}, {"noon"}),
        ({"time_window_hours": 2.0}, {"noon", "late"}),
        ({"time_window_hours": 100.0, "since": NOW}, {"noon", "late"}),
        ({"time_window_hours": 1e300}, {"old", "noon", "late"}),
    ],
)
def test_times_filter_from_the_first_moment_to_before_the_last(
    owner: Owner, asked: dict[str, Any], found: set[str]
) -> None:
    for words, at in (("old", day(-3)), ("noon", NOW), ("late", NOW + timedelta(minutes=4))):
        say(owner, turn(words, angle=0.1, timestamp=at))

    assert texts(owner, **asked) == found


@pytest.mark.parametrize(
    "asked",
    [
        {"since": NOW, "until": NOW},
        {"since": NOW, "until": day(-1)},
        {"until": day(-1), "time_window_hours": 1.0},
        {"scopes": [Scope.SESSION]},
        {"scopes": [Scope.PROFILE]},
        {"suppress_injected": True},
        {"techniques": ("oracle",)},
    ],
    ids=[
        "no span",
        "an empty span",
        "a window after the end",
        "no conversation",
        "no user",
        "no ledger",
        "no technique",
    ],
)
def test_what_nothing_can_answer_is_refused(owner: Owner, asked: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        ask(owner, **asked)


def test_contexts_and_their_types_filter(owner: Owner) -> None:
    archive_said(owner)
    notes, plans = context_of(owner), context_of(owner, "plans")
    keep(owner, notes, entry("The archive, noted", angle=0.1))
    keep(owner, plans, entry("The archive, planned", angle=0.1, entry_type="decision"))

    assert texts(owner, contexts=[notes.id]) == {"The archive, noted"}
    assert texts(owner, types=["decision"]) == {"The archive, planned"}
    assert texts(owner, contexts=[notes.id], types=["decision"]) == set()


def test_confidence_filters_facts_and_nothing_else(owner: Owner) -> None:
    archive_said(owner)
    know(owner, "The archive is in Berlin.", angle=0.2, confidence=0.9)
    know(owner, "The archive is in Bern.", angle=0.2, confidence=0.4)

    assert texts(owner, min_confidence=0.5) == {"The archive is here", "The archive is in Berlin."}


def test_a_superseded_fact_is_recalled_of_the_time_when_it_was_true(owner: Owner) -> None:
    old = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9), valid_from=day(-9))
    new = fact_draft("The archive is in Bern.", angle=0.1, valid_from=day(-2))
    supersede_fact(owner, old.id, new, embedded=NOTHING, now=day(-2))

    assert texts(owner) == {"The archive is in Bern."}
    assert texts(owner, as_of=day(-5)) == {"The archive is in Berlin."}
    assert texts(owner, as_of=day(-20)) == set()


def test_a_corrected_fact_is_told_as_it_was_believed_then(owner: Owner) -> None:
    fact = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9), confidence=0.6)
    changes = {"claim": "The archive is in Bern.", "confidence": 0.9}
    correct_fact(owner, fact.id, changes=changes, embedded=NOTHING, own=OWN, now=day(-2))

    assert texts(owner) == {"The archive is in Bern."}
    [then] = ask(owner, known_at=day(-5)).results
    assert (then.text, then.confidence, then.id) == ("The archive is in Berlin.", 0.6, fact.id)
    assert texts(owner, known_at=day(-20)) == set()


def test_a_rejected_fact_is_recalled_of_the_time_when_it_was_believed(owner: Owner) -> None:
    fact = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9))
    reject_fact(owner, fact.id, now=day(-2))

    assert texts(owner) == set()
    assert texts(owner, known_at=day(-5)) == {"The archive is in Berlin."}


@pytest.mark.parametrize(
    "change",
    [{"buried": True}, {"quarantined": True}, {"archived": True}, {"expires_at": NOW}],
    ids=["buried", "quarantined", "archived", "expired"],
)
@pytest.mark.parametrize("is_pinned", [False, True], ids=["", "pinned"])
def test_what_is_out_of_sight_is_out_of_every_recall(owner: Owner, change: dict[str, Any], is_pinned: bool) -> None:
    hidden = archive_said(owner)
    Memory.objects.filter(id=hidden.id).update(**change, pinned=is_pinned)

    assert texts(owner) == set()


def test_what_is_pinned_is_in_every_recall_that_may_see_it(owner: Owner, stranger: Account) -> None:
    pinned = say(owner, turn("Never restart on Fridays", angle=3.0)).turns[0]
    say(owner, *(turn(f"The archive, part {number}", angle=0.1) for number in range(5)))
    Memory.objects.filter(id=pinned.id).update(pinned=True)

    assert "Never restart on Fridays" in texts(owner, top_k=1)
    assert texts(Owner(account_id=stranger.id, agent_id="assistant")) == set()
    assert "Never restart on Fridays" not in texts(owner, kinds=[Kind.FACT])


def test_with_a_user_nothing_of_another_is_recalled(owner: Owner) -> None:
    for user_id in ("", "ana", "ben"):
        know(replace(owner, user_id=user_id), f"The archive of <{user_id}>", angle=0.1)

    assert texts(replace(owner, user_id="ana")) == {"The archive of <>", "The archive of <ana>"}


def test_the_active_channel_and_the_global_one_are_searched_together(owner: Owner) -> None:
    for channel in ("_global", "atlas", "other"):
        know(replace(owner, channel=channel), f"The archive of {channel}", angle=0.1)

    assert texts(replace(owner, channel="atlas")) == {"The archive of _global", "The archive of atlas"}
    assert texts(owner) == {"The archive of _global"}


def test_strangers_and_agents_that_take_no_part_are_answered_with_nothing(owner: Owner, stranger: Account) -> None:
    archive_said(owner)
    store(owner, draft("They moved the archive.", angle=0.1))
    know(owner, "The archive is in Berlin.", angle=0.1)

    for other in (replace(owner, agent_id="second"), replace(owner, account_id=stranger.id)):
        assert texts(other, as_of=NOW, known_at=NOW) == set()


def test_what_the_ledger_holds_is_left_out_where_asked_for(owner: Owner) -> None:
    injected, other = archive_said(owner), archive_said(owner, "The archive moved")
    place = Place(account_id=owner.account_id, conversation_id="c1")
    ledger.mark(place, injected.item_key)

    assert texts(owner, conversation_id="c1", suppress_injected=True) == {other.text}
    assert texts(owner, conversation_id="c1") == {injected.text, other.text}
    assert texts(owner, conversation_id="c2", suppress_injected=True) == {injected.text, other.text}


def test_what_is_to_be_left_out_is(owner: Owner) -> None:
    one, other = archive_said(owner), archive_said(owner, "The archive moved")

    assert texts(owner, without=[one.id]) == {other.text}


def test_each_step_tells_what_it_took(owner: Owner) -> None:
    archive_said(owner)

    told = [metric.technique for metric in ask(owner).metrics]

    steps = ["names", "orientation", "lexical", "vector", "passage", "learned", "kind_weight", "recency", "duplicates"]
    assert [step for step in told if step in steps] == steps


def test_techniques_that_nothing_is_configured_for_are_told_where_they_are_named(owner: Owner) -> None:
    archive_said(owner)

    assert ask(owner).degraded == []
    assert ask(owner, techniques=("hyde", "rerank")).degraded == ["hyde_unavailable", "rerank_unavailable"]


def test_near_duplicates_come_once_and_are_told(owner: Owner) -> None:
    ids = {archive_said(owner, words).id for words in ("The archive is here", "the archive is here!")}

    [result] = ask(owner).results
    assert {result.id, *result.also} == ids
    assert len(ask(owner, techniques=("-duplicates",)).results) == 2


def test_concluding_takes_one_statement_and_one_more_where_reads_are_kept(owner: Owner) -> None:
    archive_said(owner)
    bundle = ask(owner)

    with CaptureQueriesContext(connection) as captured:
        conclude(owner, request(), bundle, now=NOW)

    assert len(captured) == 1
    assert Memory.objects.get().access_count == 1

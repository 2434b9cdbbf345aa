"""Tests for recall: what the filters let through, and the number of statements."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import store as ledger
from memory.errors import Unprocessable
from memory.models import Account, Kind, Memory, MemoryRow
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Posture, Query, Scope
from memory.services.facts.supersede import correct_fact, reject_fact, supersede_fact
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, conclude_recall, recall
from memory_project.redis import ConversationRef
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import MODEL, NOTHING, NOW, direction, draft, store
from tests.memory.facts import day, fact_draft, know
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUESTION = "Where is the archive?"
OWN = ClientVector(model=MODEL, vector=direction(0))


def make_request(*, techniques: tuple[str, ...] = (), own: ClientVector | None = OWN, **fields: Any) -> RecallRequest:
    """Return a request; `fields` are those of the query, or of the request."""
    of_request = {name: fields.pop(name) for name in list(fields) if name in RecallRequest.__dataclass_fields__}
    query = Query(**{"text": QUESTION} | fields)
    return RecallRequest(query=query, techniques=techniques, own=own, **of_request)


def run_recall(owner: Owner, **fields: Any) -> Bundle:
    return recall(owner, make_request(**fields), now=NOW)


def recalled_texts(owner: Owner, **fields: Any) -> set[str]:
    return {result.text for result in run_recall(owner, **fields).results}


def say_archive(owner: Owner, words: str = "The archive is here", **fields: Any) -> MemoryRow:
    return say(owner, turn(words, angle=0.1), **fields).turns[0]


def count_statements(owner: Owner, asked: RecallRequest) -> int:
    with CaptureQueriesContext(connection) as captured:
        recall(owner, asked, now=NOW)
    return len(captured)


def test_a_recall_of_turns_takes_two_statements(owner: Owner) -> None:
    say_archive(owner)

    assert count_statements(owner, make_request(kinds=[Kind.TURN])) == 2


def test_a_recall_of_everything_takes_at_most_three_statements(owner: Owner) -> None:
    say_archive(owner)
    know(owner, "The archive is in Berlin.", angle=0.2)
    store(owner, draft("They moved the archive.", angle=0.3))
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), "skill:search")
    asked = make_request(conversation_id="c1", posture=Posture.RESUME, as_of=NOW, known_at=NOW, suppress_injected=True)

    assert count_statements(replace(owner, user_id="ana", channel="atlas"), asked) <= 3
    assert count_statements(owner, make_request()) == 3


def test_a_recall_without_memories_takes_two_statements(owner: Owner) -> None:
    assert count_statements(owner, make_request()) == 2


def test_kinds_filter_the_results(owner: Owner) -> None:
    say_archive(owner)
    know(owner, "The archive is in Berlin.", angle=0.2)

    assert recalled_texts(owner, kinds=[Kind.FACT]) == {"The archive is in Berlin."}
    assert recalled_texts(owner, kinds=[Kind.TURN]) == {"The archive is here"}
    assert len(recalled_texts(owner)) == 2


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
def test_times_filter_from_since_to_before_until(owner: Owner, asked: dict[str, Any], found: set[str]) -> None:
    for words, at in (("old", day(-3)), ("noon", NOW), ("late", NOW + timedelta(minutes=4))):
        say(owner, turn(words, angle=0.1, timestamp=at))

    assert recalled_texts(owner, **asked) == found


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
def test_contradictory_requests_are_refused(owner: Owner, asked: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        run_recall(owner, **asked)


def test_contexts_and_their_types_filter(owner: Owner) -> None:
    say_archive(owner)
    notes, plans = context_of(owner), context_of(owner, "plans")
    keep(owner, notes, entry("The archive, noted", angle=0.1))
    keep(owner, plans, entry("The archive, planned", angle=0.1, entry_type="decision"))

    assert recalled_texts(owner, contexts=[notes.id]) == {"The archive, noted"}
    assert recalled_texts(owner, types=["decision"]) == {"The archive, planned"}
    assert recalled_texts(owner, contexts=[notes.id], types=["decision"]) == set()


def test_confidence_filters_facts_and_nothing_else(owner: Owner) -> None:
    say_archive(owner)
    know(owner, "The archive is in Berlin.", angle=0.2, confidence=0.9)
    know(owner, "The archive is in Bern.", angle=0.2, confidence=0.4)

    assert recalled_texts(owner, min_confidence=0.5) == {"The archive is here", "The archive is in Berlin."}


def test_a_superseded_fact_is_recalled_as_of_the_time_when_it_was_true(owner: Owner) -> None:
    old = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9), valid_from=day(-9))
    new = fact_draft("The archive is in Bern.", angle=0.1, valid_from=day(-2))
    supersede_fact(owner, old.id, new, embedded=NOTHING, now=day(-2))

    assert recalled_texts(owner) == {"The archive is in Bern."}
    assert recalled_texts(owner, as_of=day(-5)) == {"The archive is in Berlin."}
    assert recalled_texts(owner, as_of=day(-20)) == set()


def test_a_corrected_fact_is_recalled_as_it_was_believed_then(owner: Owner) -> None:
    fact = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9), confidence=0.6)
    changes = {"claim": "The archive is in Bern.", "confidence": 0.9}
    correct_fact(owner, fact.id, changes=changes, embedded=NOTHING, own=OWN, now=day(-2))

    assert recalled_texts(owner) == {"The archive is in Bern."}
    [then] = run_recall(owner, known_at=day(-5)).results
    assert (then.text, then.confidence, then.id) == ("The archive is in Berlin.", 0.6, fact.id)
    assert recalled_texts(owner, known_at=day(-20)) == set()


def test_a_rejected_fact_is_recalled_as_known_when_it_was_believed(owner: Owner) -> None:
    fact = know(owner, "The archive is in Berlin.", angle=0.1, now=day(-9))
    reject_fact(owner, fact.id, now=day(-2))

    assert recalled_texts(owner) == set()
    assert recalled_texts(owner, known_at=day(-5)) == {"The archive is in Berlin."}


@pytest.mark.parametrize(
    "change",
    [{"buried": True}, {"quarantined": True}, {"archived": True}, {"expires_at": NOW}],
    ids=["buried", "quarantined", "archived", "expired"],
)
@pytest.mark.parametrize("is_pinned", [False, True], ids=["", "pinned"])
def test_hidden_memories_are_never_recalled(owner: Owner, change: dict[str, Any], is_pinned: bool) -> None:
    hidden = say_archive(owner)
    Memory.objects.filter(id=hidden.id).update(**change, pinned=is_pinned)

    assert recalled_texts(owner) == set()


def test_pinned_memories_are_in_every_recall_that_may_see_them(owner: Owner, stranger: Account) -> None:
    pinned = say(owner, turn("Never restart on Fridays", angle=3.0)).turns[0]
    say(owner, *(turn(f"The archive, part {number}", angle=0.1) for number in range(5)))
    Memory.objects.filter(id=pinned.id).update(pinned=True)

    assert "Never restart on Fridays" in recalled_texts(owner, top_k=1)
    assert recalled_texts(Owner(account_id=stranger.id, agent_id="assistant")) == set()
    assert "Never restart on Fridays" not in recalled_texts(owner, kinds=[Kind.FACT])


def test_memories_of_other_users_are_not_recalled(owner: Owner) -> None:
    for user_id in ("", "ana", "ben"):
        know(replace(owner, user_id=user_id), f"The archive of <{user_id}>", angle=0.1)

    assert recalled_texts(replace(owner, user_id="ana")) == {"The archive of <>", "The archive of <ana>"}


def test_the_active_channel_and_the_global_one_are_searched_together(owner: Owner) -> None:
    for channel in ("_global", "atlas", "other"):
        know(replace(owner, channel=channel), f"The archive of {channel}", angle=0.1)

    assert recalled_texts(replace(owner, channel="atlas")) == {"The archive of _global", "The archive of atlas"}
    assert recalled_texts(owner) == {"The archive of _global"}


def test_other_accounts_and_agents_recall_nothing(owner: Owner, stranger: Account) -> None:
    say_archive(owner)
    store(owner, draft("They moved the archive.", angle=0.1))
    know(owner, "The archive is in Berlin.", angle=0.1)

    for other in (replace(owner, agent_id="second"), replace(owner, account_id=stranger.id)):
        assert recalled_texts(other, as_of=NOW, known_at=NOW) == set()


def test_suppress_injected_omits_items_in_the_ledger(owner: Owner) -> None:
    injected, other = say_archive(owner), say_archive(owner, "The archive moved")
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")
    ledger.mark(place, injected.item_key)

    assert recalled_texts(owner, conversation_id="c1", suppress_injected=True) == {other.text}
    assert recalled_texts(owner, conversation_id="c1") == {injected.text, other.text}
    assert recalled_texts(owner, conversation_id="c2", suppress_injected=True) == {injected.text, other.text}


def test_recall_omits_excluded_ids(owner: Owner) -> None:
    one, other = say_archive(owner), say_archive(owner, "The archive moved")

    assert recalled_texts(owner, without=[one.id]) == {other.text}


@pytest.mark.parametrize("kind", list(Kind))
def test_an_account_recalls_each_kind_by_itself(account: Account, kind: Kind) -> None:
    assert recalled_texts(Owner(account_id=account.id), kinds=[kind]) == set()


def test_each_step_has_a_metric(owner: Owner) -> None:
    say_archive(owner)

    techniques = [metric.technique for metric in run_recall(owner).metrics]

    steps = ["names", "orientation", "lexical", "vector", "passage", "learned", "kind_weight", "recency", "duplicates"]
    assert [step for step in techniques if step in steps] == steps


def test_requested_techniques_without_a_provider_degrade(owner: Owner) -> None:
    say_archive(owner)

    assert run_recall(owner).degraded == []
    assert run_recall(owner, techniques=("hyde", "rerank")).degraded == ["hyde_unavailable", "rerank_unavailable"]


def test_near_duplicates_are_returned_once_with_the_ids_of_the_others(owner: Owner) -> None:
    ids = {say_archive(owner, words).id for words in ("The archive is here", "the archive is here!")}

    [result] = run_recall(owner).results
    assert {result.id, *result.also} == ids
    assert len(run_recall(owner, techniques=("-duplicates",)).results) == 2


def test_concluding_takes_one_statement(owner: Owner) -> None:
    say_archive(owner)
    bundle = run_recall(owner)

    with CaptureQueriesContext(connection) as captured:
        conclude_recall(owner, make_request(), bundle, now=NOW)

    assert len(captured) == 1
    assert Memory.objects.get().access_count == 1

"""Globalizing a fact: it becomes known in every channel, for the same holder, with its evidence."""

from dataclasses import replace

import pytest

from memory.errors import Conflict
from memory.models import AuditEntry, Fact, Link, Participant
from memory.owner import Owner
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.store import read_fact_history
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING
from tests.memory.facts import CLAIM, claims, day, know, reread
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def of_ana(owner: Owner) -> Owner:
    return replace(owner, user_id="ana")


def promote(owner: Owner, fact: Fact) -> Fact:
    return globalize_fact(owner, fact.id, reason="everybody asks", embedded=NOTHING, now=day(1))


def test_globalizing_copies_a_fact_with_its_links(of_ana: Owner) -> None:
    atlas = replace(of_ana, channel="atlas")
    ana, source = entity_of(atlas, "Ana"), say(atlas, turn("I live in Berlin.")).turns[0]
    fact = know(atlas, entity_ids=[ana.id], turn_ids=[source.id], confidence=0.9, valid_from=day(-1))

    copy = promote(atlas, fact)

    assert (copy.user_id, copy.agent_id, copy.channel) == ("ana", "assistant", "_global")
    assert (copy.text, copy.confidence, copy.valid_from, copy.source_turn_id) == (CLAIM, 0.9, day(-1), source.id)
    history = read_fact_history(reread(of_ana, copy))
    assert (history.entities, history.turns, history.promoted_from) == ([ana.id], [source.id], [fact.id])
    assert [version.reason for version in history.versions] == ["promoted"]
    assert Link.objects.get(type="PROMOTED_FROM").properties == {"reason": "everybody asks"}
    assert (claims(of_ana, now=day(1)), reread(of_ana, fact).status) == ([CLAIM], "active")


def test_globalizing_is_audited_with_its_figures(owner: Owner) -> None:
    atlas = replace(owner, channel="atlas")
    source = [say(atlas, turn("Berlin."), conversation_id=name).turns[0].id for name in ("c1", "c2")]
    fact = know(atlas, turn_ids=source, confidence=0.9)

    copy = promote(atlas, fact)

    entry = AuditEntry.objects.get(operation="promote")
    assert entry.affected_ids == [str(copy.id), str(fact.id)]
    assert (entry.promoted_from_channel, entry.target_channels) == ("atlas", ["_global"])
    assert (entry.promotion_confidence, entry.promotion_access_count) == (0.9, 0)
    assert entry.promotion_conversation_count == 2


def test_a_fact_that_global_knows_is_linked_and_confirmed(owner: Owner) -> None:
    known, fact = know(owner, confidence=0.5), know(replace(owner, channel="atlas"), confidence=0.9)

    for _ in range(2):
        assert promote(owner, fact).id == known.id

    assert (reread(owner, known).confidence, read_fact_history(known).promoted_from) == (0.9, [fact.id])
    assert Fact.objects.count() == 2


def test_a_global_fact_cannot_be_globalized(owner: Owner) -> None:
    fact = know(owner)

    with pytest.raises(Conflict, match="in _global already"):
        promote(owner, fact)


def test_globalizing_does_not_make_an_agent_a_participant_of_the_conversation(of_ana: Owner) -> None:
    source = say(of_ana, turn("I live in Berlin.")).turns[0]
    fact = know(replace(of_ana, channel="atlas"), turn_ids=[source.id])

    promote(replace(of_ana, agent_id="colleague"), fact)

    assert not Participant.objects.filter(agent_id="colleague").exists()

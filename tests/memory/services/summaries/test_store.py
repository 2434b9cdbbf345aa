"""Storing episodes: row, vector, participant and audit entry together; pending without a vector; never twice."""

from dataclasses import replace

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Unprocessable, WrongVectorWidth
from memory.models import Account, Agent, AuditEntry, EpisodicMemory, Link, Memory, Participant, Vector
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector, validate_vector
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.memory.episodes import MODEL, NOW, WIDTH, direction, draft, store

pytestmark = pytest.mark.django_db


def test_an_episode_is_stored_with_all_documented_fields(owner: Owner) -> None:
    wanted = EpisodeDraft(
        conversation_id="c1",
        summary="Filed the exception",
        key_decisions=["file it"],
        entities_mentioned=[{"type": "well", "name": "2H"}],
        tools_called=["file_form"],
    )

    stored = EpisodicMemory.objects.get(id=store(replace(owner, user_id="ana"), wanted)[0].id)

    assert (stored.agent_id, stored.user_id, stored.conversation_id) == (owner.agent_id, "ana", "c1")
    assert (stored.text, stored.key_decisions, stored.tools_called) == (
        "Filed the exception",
        ["file it"],
        ["file_form"],
    )
    assert stored.entities_mentioned == [{"type": "well", "name": "2H"}]


def test_the_first_write_creates_agent_and_participant(owner: Owner) -> None:
    store(owner, draft("first", conversation_id="c1"), draft("second", conversation_id="c1"))

    assert list(Agent.objects.values_list("agent_id", flat=True)) == [owner.agent_id]
    assert list(Participant.objects.values_list("conversation_id", "agent_id")) == [("c1", owner.agent_id)]


def test_the_write_is_audited_with_it_or_not_at_all(owner: Owner) -> None:
    with transaction.atomic():
        store(owner, draft("lost"))
        transaction.set_rollback(True)

    stored = store(owner, draft("kept"))[0]

    entry = AuditEntry.objects.get()
    assert (entry.operation, entry.memory_type, entry.affected_ids) == ("store", "episodic", [str(stored.id)])
    assert (entry.conversation_id, entry.agent_id) == ("c1", owner.agent_id)


def test_the_same_identity_is_stored_once(owner: Owner) -> None:
    again = replace(draft("said once"), identity="conversation:c1")

    first, second = store(owner, again), store(owner, replace(again, id=EpisodicMemory().id))

    assert (len(first), len(second), EpisodicMemory.objects.count()) == (1, 0, 1)


def test_a_row_without_a_vector_is_queued_and_one_with_is_not(owner: Owner) -> None:
    embedded = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={"known": direction(0)})

    store_episodes(owner, drafts=[draft("known"), draft("unknown")], embedded=embedded, now=NOW)

    queued = Memory.objects.awaiting_embedding()
    assert [(row.text, row.embed_after) for row in queued] == [("unknown", NOW)]
    assert Vector.objects.get().memory.text == "known"


def test_a_vector_of_another_model_is_kept_and_the_row_embedded_as_well(owner: Owner) -> None:
    foreign = replace(draft("theirs"), own=ClientVector(model="theirs", vector=direction(0)))

    row = store(owner, foreign)[0]

    assert Vector.objects.get().model == "theirs"
    assert row.embed_after == NOW


def test_a_vector_follows_its_memory(owner: Owner) -> None:
    row = store(owner, draft("moved", angle=0.1))[0]

    Memory.objects.filter(id=row.id).update(user_id="ana", channel="garden", archived=True)

    assert Vector.objects.values_list("user_id", "channel", "live").get() == ("ana", "garden", False)


def test_deleting_an_episode_removes_its_vectors_and_links(owner: Owner) -> None:
    gone, kept = store(owner, draft("gone", angle=0.1), draft("kept", angle=0.2))
    Link.objects.create(account_id=owner.account_id, source_id=gone.id, target_id=kept.id, type="ABOUT")

    EpisodicMemory.objects.get(id=gone.id).delete()

    assert [row.text for row in Memory.objects.all()] == ["kept"]
    assert (Vector.objects.count(), Link.objects.count()) == (1, 0)


def test_no_link_and_no_vector_crosses_accounts(owner: Owner) -> None:
    stranger = Owner(account_id=Account.objects.create(name="strangers").id, agent_id="theirs")
    mine, theirs = store(owner, draft("mine"))[0], store(stranger, draft("theirs"))[0]

    with pytest.raises(IntegrityError):
        Link.objects.create(account_id=owner.account_id, source_id=mine.id, target_id=theirs.id, type="ABOUT")


def test_a_vector_of_the_wrong_width_is_refused_with_both_widths(owner: Owner) -> None:
    store(owner, draft("first of its model", angle=0.1))

    with pytest.raises(WrongVectorWidth, match=r"5 dimensions; vectors of test-model have 8"):
        validate_vector(owner, model=MODEL, vector=direction(0, width=5))


def test_a_vector_without_a_direction_is_refused(owner: Owner) -> None:
    with pytest.raises(Unprocessable, match="no direction"):
        validate_vector(owner, model=MODEL, vector=direction(0) * 0)


def test_a_clients_vector_is_made_unit_length(owner: Owner) -> None:
    admitted = validate_vector(owner, model=MODEL, vector=direction(0.5) * 1e30)

    np.testing.assert_allclose(admitted.vector, direction(0.5), atol=1e-6)


@pytest.mark.parametrize("rows", [1, 40])
def test_storing_costs_the_same_statements_for_one_and_for_many(
    owner: Owner, rows: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    # texts of one word state nothing that may replace another
    drafts = [draft(f"number-{number}", angle=number / 100) for number in range(rows)]

    # parents, children, vectors, agent and participant, audit entry
    with django_assert_num_queries(4):
        store(owner, *drafts)

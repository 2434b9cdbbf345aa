"""Artifacts: stored, stored again, revised; linked with what produced them; visible and changeable per owner."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, NotFound, Unprocessable
from memory.extraction.turn_slots import Observation, Slots
from memory.models import Account, Artifact, AuditEntry, Link, Memory
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.services.artifacts.read import artifact_description, artifacts_in_channels, find_artifact
from memory.services.artifacts.store import ArtifactDraft, complete_draft, store_artifact
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.artifacts import keep, kept, stored
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import know
from tests.memory.goals import aim
from tests.memory.records import add_record

NOBODY = UUID(int=7)
"""The id of nothing, the same in every process that collects these tests."""

LATER = NOW + timedelta(days=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(owner: Owner) -> Owner:
    """Return the agent acting for a user."""
    return replace(owner, user_id="ana")


def uris(owner: Owner) -> list[str]:
    return [row.uri for row in artifacts_in_channels(owner, now=NOW).order_by("id")]


def links() -> set[tuple[UUID, str, UUID]]:
    return set(Link.objects.values_list("source_id", "type", "target_id"))


def test_an_artifact_is_stored_with_all_its_fields(owner: Owner) -> None:
    made = kept(owner, title="Roses", description="How to\nwater them.", type="document", digest="sha256:1", label="v1")

    found = find_artifact(owner, made.id, now=NOW)

    assert found.text == "Roses\ndocs/roses.md\nHow to\nwater them."
    assert (found.title, artifact_description(found), found.artifact_type) == (
        "Roses",
        "How to\nwater them.",
        "document",
    )
    assert (found.digest, found.label, found.revision, found.is_latest) == ("sha256:1", "v1", 1, True)
    assert (found.version, found.item_key) == (1, f"artifact:{made.id}")


@pytest.mark.parametrize(
    "again", [{}, {"digest": "sha256:1"}, {"label": "v1"}, {"digest": "sha256:1", "label": "v1", "title": "Tulips"}]
)
def test_a_repeated_draft_changes_nothing(owner: Owner, again: dict[str, Any]) -> None:
    first = kept(owner, title="Roses", digest="sha256:1", label="v1")

    second = keep(owner, now=LATER, **again)

    assert (second.is_new, second.artifact.id, second.artifact.version) == (False, first.id, 1)
    assert (stored(first).text, Artifact.objects.count()) == ("Roses\ndocs/roses.md", 1)


def test_a_repeated_draft_fills_missing_fields(owner: Owner) -> None:
    goal = aim(owner)
    first = kept(owner, title="Roses")

    again = keep(owner, description="Water them.", digest="sha256:1", type="page", metadata={"a": 1}, goal_id=goal.id)

    row = stored(first)
    assert (again.is_new, row.version, row.text) == (False, 2, "Roses\ndocs/roses.md\nWater them.")
    assert (row.digest, row.artifact_type, row.metadata, row.for_goal_id) == ("sha256:1", "page", {"a": 1}, goal.id)
    assert links() == {(first.id, "WORKS_ON", goal.id)}


@pytest.mark.parametrize("other", [{"digest": "sha256:2"}, {"label": "v2"}, {"digest": "sha256:2", "label": "v1"}])
def test_another_digest_or_label_is_the_next_revision(owner: Owner, other: dict[str, Any]) -> None:
    first = kept(owner, title="Roses", description="Water them.", type="page", digest="sha256:1", label="v1")

    second = keep(owner, now=LATER, **other)

    former, latest = stored(first), stored(second.artifact)
    assert (second.is_new, latest.revision, latest.is_latest, latest.text) == (True, 2, True, former.text)
    assert (former.revision, former.is_latest, former.version, former.digest) == (1, False, 2, "sha256:1")
    assert links() == {(latest.id, "SUPERSEDES", former.id)}


def test_a_former_digest_is_a_revision_of_its_own(owner: Owner) -> None:
    revisions = [kept(owner, digest=digest).revision for digest in ("sha256:1", "sha256:2", "sha256:1")]

    assert revisions == [1, 2, 3]
    assert Artifact.objects.filter(is_latest=True).count() == 1


def test_complete_draft_gives_the_text_of_an_artifact_before_it_is_stored(owner: Owner, ana: Owner) -> None:
    kept(owner, title="Roses", digest="sha256:1")
    draft = ArtifactDraft(uri="docs/roses.md", description="Water them.", digest="sha256:2")

    assert complete_draft(owner, draft).text == "Roses\ndocs/roses.md\nWater them."
    assert complete_draft(ana, draft).text == "docs/roses.md\nWater them."


def test_holders_and_channels_have_artifacts_of_their_own(owner: Owner, ana: Owner, stranger: Account) -> None:
    holders = (owner, ana, replace(owner, channel="garden"), replace(owner, agent_id="colleague"))

    assert all(keep(each).is_new for each in (*holders, Owner(account_id=stranger.id)))
    assert not keep(replace(ana, agent_id="colleague")).is_new


def test_artifacts_are_visible_to_their_agent_their_user_and_the_account(
    owner: Owner, ana: Owner, stranger: Account
) -> None:
    kept(owner, "nobody's")
    kept(ana, "Ana's")
    colleague = replace(owner, agent_id="colleague")

    assert uris(owner) == uris(replace(owner, agent_id="")) == uris(ana) == ["nobody's", "Ana's"]
    assert uris(replace(colleague, user_id="ana")) == ["Ana's"]
    assert uris(replace(owner, user_id="ben")) == ["nobody's"]
    assert uris(colleague) == uris(Owner(account_id=stranger.id)) == []


def test_the_turn_that_produced_it_and_its_goal_are_linked(owner: Owner) -> None:
    goal, fact = aim(owner), know(owner, "Roses need water.")
    done = add_record(owner, goal_id=goal.id)
    action = next(slot for slot in done.slots if slot.slot == "action")
    source = kept(owner, "docs/source.md")
    Link.objects.all().delete()

    made = kept(owner, record_id=done.record.id, about=[fact.id], derived_from=[source.id])

    assert (made.source_record_id, made.conversation_id, made.for_goal_id) == (done.record.id, "chat-1", goal.id)
    assert links() == {
        (action.id, "PRODUCED", made.id),
        (made.id, "WORKS_ON", goal.id),
        (made.id, "ABOUT", fact.id),
        (made.id, "DERIVED_FROM", source.id),
    }


def test_the_next_revision_is_for_the_goal_of_the_former_unless_it_names_another(owner: Owner) -> None:
    goal, other = aim(owner), aim(owner, "Plant tulips.")
    kept(owner, digest="sha256:1", goal_id=goal.id)

    assert kept(owner, digest="sha256:2").for_goal_id == goal.id
    assert kept(owner, digest="sha256:3", goal_id=other.id).for_goal_id == other.id


def test_a_record_without_an_action_links_the_slot_that_it_has(owner: Owner) -> None:
    seen = add_record(owner, slots=Slots(observation=Observation(text="A bud.")))

    made = kept(owner, record_id=seen.record.id)

    assert links() == {(seen.slots[0].id, "PRODUCED", made.id)}


def test_a_later_turn_that_names_it_is_linked_and_the_first_stays(owner: Owner) -> None:
    first, second = add_record(owner), add_record(owner)
    made = kept(owner, record_id=first.record.id)

    again = kept(owner, record_id=second.record.id)

    assert (again.id, stored(made).source_record_id, Link.objects.filter(type="PRODUCED").count()) == (
        made.id,
        first.record.id,
        2,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"uri": "javascript:alert(1)"},
        {"uri": ""},
        {"title": "two\nlines"},
        {"title": "x" * 501},
        {"type": "x" * 51},
        {"digest": "x" * 201},
        {"label": "x" * 101},
        {"description": "a\x00b"},
        {"about": [NOBODY] * 101},
        {"about": [NOBODY]},
        {"derived_from": [NOBODY]},
        {"goal_id": NOBODY},
        {"record_id": NOBODY},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_an_invalid_draft_is_refused_and_nothing_is_stored(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        kept(owner, **fields)

    assert not Artifact.objects.exists()


def test_references_must_be_of_the_right_kind(owner: Owner) -> None:
    goal, other = aim(owner), kept(owner, "other")

    for fields in ({"goal_id": other.id}, {"derived_from": [goal.id]}):
        with pytest.raises(Unprocessable, match="must name artifacts"):
            kept(owner, **fields)


def test_memories_that_the_agent_does_not_see_are_not_linked(owner: Owner, stranger: Account) -> None:
    colleague = replace(owner, agent_id="colleague")
    theirs = kept(colleague, "theirs")
    record = add_record(colleague).record

    for fields in ({"about": [theirs.id]}, {"derived_from": [theirs.id]}, {"record_id": record.id}):
        for other in (owner, Owner(account_id=stranger.id)):
            with pytest.raises(Unprocessable):
                kept(other, "mine", **fields)

    assert not Link.objects.filter(type__in=("ABOUT", "DERIVED_FROM")).exists()


def test_a_records_goal_that_the_agent_does_not_see_is_left_out(owner: Owner) -> None:
    colleague = replace(owner, agent_id="colleague")
    record = add_record(colleague, goal_id=aim(colleague).id).record
    insert_participants(owner, conversation_ids=["chat-1"])

    assert kept(owner, record_id=record.id).for_goal_id is None


def test_an_artifact_derived_from_itself_is_refused(owner: Owner) -> None:
    first = kept(owner, "first")
    second = kept(owner, "second", derived_from=[first.id])
    third = kept(owner, "third", derived_from=[second.id])

    for origin in (first, second, third):
        with pytest.raises(Unprocessable, match="from itself"):
            kept(owner, "first", derived_from=[origin.id])


def test_a_quarantined_artifact_takes_no_changes(owner: Owner) -> None:
    Memory.objects.filter(id=kept(owner).id).update(quarantined=True)

    with pytest.raises(Conflict, match="quarantined"):
        kept(owner, digest="sha256:2")


def test_an_archived_or_expired_artifact_becomes_live_again(owner: Owner) -> None:
    first = kept(owner)
    Memory.objects.filter(id=first.id).update(archived=True, expires_at=NOW)

    keep(owner, now=LATER)

    assert find_artifact(owner, first.id, now=LATER).version == 2


def test_a_text_that_staff_gave_it_stays(owner: Owner) -> None:
    first = kept(owner, title="Roses")
    Memory.objects.filter(id=first.id).update(text="Something else.")

    again = keep(owner, title="Roses", digest="sha256:1")

    assert (again.is_new, stored(first).text) == (False, "Something else.")
    assert artifact_description(stored(first)) == "Something else."


def test_changes_of_artifacts_are_audited(owner: Owner) -> None:
    kept(owner)
    kept(owner)
    kept(owner, title="Roses")
    kept(owner, digest="sha256:1")

    assert list(AuditEntry.objects.order_by("id").values_list("operation", flat=True)) == ["store", "update", "update"]
    assert all("roses" not in str(entry.metadata).casefold() for entry in AuditEntry.objects.all())


def test_an_artifact_of_another_account_is_not_found(owner: Owner, stranger: Account) -> None:
    made = kept(owner)

    for other in (Owner(account_id=stranger.id), replace(owner, agent_id="colleague")):
        with pytest.raises(NotFound):
            find_artifact(other, made.id, now=NOW)


def test_storing_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = aim(owner)
    record = add_record(owner, goal_id=goal.id).record
    ends = {"record_id": record.id, "about": [goal.id]}

    def store(most: int, **fields: Any) -> None:
        draft = ArtifactDraft(uri="docs/roses.md", **fields)
        with django_assert_num_queries(most):
            store_artifact(owner, draft, embedded=NOTHING, now=NOW)

    store(11, digest="sha256:1", **ends)
    store(9, digest="sha256:1", **ends)
    store(13, digest="sha256:2", **ends)
    store(6, digest="sha256:2")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("digest", "has_former"), [("sha256:1", False), ("sha256:2", True)])
def test_concurrent_drafts_make_one_revision_or_two_in_sequence(
    owner: Owner, start_concurrently: Start, digest: str, has_former: bool
) -> None:
    if has_former:
        kept(owner, digest="sha256:0")
    with transaction.atomic():
        first = kept(owner, digest="sha256:1")
        beside = start_concurrently(lambda: kept(owner, digest=digest))
    second = beside.result(PATIENCE_SECONDS)

    rows = Artifact.objects
    revisions = list(rows.order_by("revision").values_list("revision", "is_latest"))
    assert (second.id == first.id) == (digest == "sha256:1")  # type: ignore[attr-defined]
    assert revisions == [(number, number == len(revisions)) for number in range(1, len(revisions) + 1)]

"""User profiles (X7): how a user wants to be served, by the user's id, whichever agent of the account asks or writes.

What a client sets is set by hand. What extraction learns is beside it, with where it comes from, and takes the place of
what was learnt before, never of what was set by hand.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.errors import Conflict, NotFound, StaleVersion, TooLarge, Unprocessable
from memory.models import UserProfile
from memory.owner import Owner
from memory.services.accounts.access import Versions, check_version
from memory.services.accounts.register import note_agent
from memory.services.conversations.lifecycle import LONGEST_ID, is_id
from memory.tiers.json_documents import check_part, comparable_json, measure

DOCUMENTS = ("preferences", "communication_style", "metadata")
COLUMNS = (*DOCUMENTS, "expertise_areas", "provenance")

LARGEST_DOCUMENT = 65_536
"""Bytes of each of DOCUMENTS, as compact JSON."""

MOST_AREAS = 200
LONGEST_AREA = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChanges:
    """New values by name for each document, None deletes the name; `expertise_areas` whole. What is None stays."""

    preferences: Mapping[str, Any] | None = None
    expertise_areas: Sequence[str] | None = None
    communication_style: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None

    def apply(self, profile: UserProfile) -> None:
        for name in DOCUMENTS:
            changes: Mapping[str, Any] | None = getattr(self, name)
            if changes is not None:
                setattr(profile, name, with_changes(getattr(profile, name), changes))
        if self.expertise_areas is not None:
            profile.expertise_areas = list(self.expertise_areas)
        by_hand = self.preferences or {}
        profile.provenance = {name: known for name, known in profile.provenance.items() if name not in by_hand}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A profile after a write, and whether that made it."""

    profile: UserProfile
    is_new: bool


def with_changes(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The document with these values by name; None deletes a name."""
    return {name: value for name, value in (dict(document) | dict(changes)).items() if value is not None}


def get_profile(owner: Owner, user_id: str) -> UserProfile:
    """Raises NotFound."""
    profile = look_up_profile(owner, user_id)
    if profile is None:
        raise NotFound("no such profile")
    return profile


def look_up_profile(owner: Owner, user_id: str) -> UserProfile | None:
    """For who can do without one."""
    return UserProfile.objects.filter(account_id=owner.account_id, user_id=user_id).first()


def update_profile(
    owner: Owner, user_id: str, changes: ProfileChanges, *, expected: Versions = None, now: datetime
) -> UserProfile:
    """`write_profile`, for who does not ask whether it is new."""
    return write_profile(owner, user_id, changes, expected=expected, now=now).profile


def write_profile(
    owner: Owner, user_id: str, changes: ProfileChanges, *, expected: Versions = None, now: datetime
) -> Written:
    """Change a profile by name, making it where there is none. What says the same, changes nothing.

    Raises StaleVersion (where there is none as well), TooLarge for a document, Unprocessable, Conflict where it is
    deleted at the same time.
    """
    check_areas(changes.expertise_areas or ())
    return change_profile(owner, user_id, changes.apply, expected=expected, now=now)


def check_areas(areas: Sequence[str]) -> None:
    """Raises Unprocessable."""
    if len(areas) > MOST_AREAS or any(not 1 <= len(area) <= LONGEST_AREA for area in areas):
        raise Unprocessable(f"expertise areas are {MOST_AREAS} texts of {LONGEST_AREA} characters, at most")


def change_profile(
    owner: Owner, user_id: str, change: Callable[[UserProfile], None], *, expected: Versions, now: datetime
) -> Written:
    """Lock the profile, or make it, and change it: of two that make it at once, one changes what the other made."""
    if not is_id(user_id):
        raise Unprocessable(f"a profile is a user's, whose id has 1 to {LONGEST_ID} characters")
    with transaction.atomic():
        profile = lock_profile(owner, user_id)
        if profile is None and expected is not None:
            raise StaleVersion("there is no profile of this user")
        if profile is None:
            profile = UserProfile(account_id=owner.account_id, user_id=user_id, created_at=now, updated_at=now)
            change(profile)
            check_profile(profile)
            UserProfile.objects.bulk_create([profile], ignore_conflicts=True)
            stored = lock_profile(owner, user_id)
            if stored is not None and stored.id == profile.id:
                record_profile(owner, "create", stored)
                return Written(profile=stored, is_new=True)
            if stored is None:
                raise Conflict("the profile was deleted at the same time")
            profile = stored
        check_version(profile.version, expected, row_id=profile.id)
        apply_change(owner, profile, change, now=now)
    return Written(profile=profile, is_new=False)


def apply_change(owner: Owner, profile: UserProfile, change: Callable[[UserProfile], None], *, now: datetime) -> None:
    """To a locked profile; nothing is stored where it says the same."""
    before = said_by(profile)
    change(profile)
    check_profile(profile)
    if said_by(profile) == before:
        return
    profile.version, profile.updated_at = profile.version + 1, now
    profile.save(update_fields=[*COLUMNS, "version", "updated_at"])
    record_profile(owner, "update", profile)


def said_by(profile: UserProfile) -> str:
    return comparable_json({name: getattr(profile, name) for name in COLUMNS})


def lock_profile(owner: Owner, user_id: str) -> UserProfile | None:
    rows = UserProfile.objects.filter(account_id=owner.account_id, user_id=user_id)
    return rows.select_for_update(no_key=True).first()


def check_profile(profile: UserProfile) -> None:
    """Raises TooLarge, Unprocessable for what the database does not store."""
    for name in DOCUMENTS:
        check_part(getattr(profile, name))
        measure(getattr(profile, name), limit_bytes=LARGEST_DOCUMENT)
    check_part(profile.expertise_areas)


def delete_profile(owner: Owner, user_id: str, *, expected: Versions = None, now: datetime) -> None:
    """Raises NotFound, StaleVersion."""
    with transaction.atomic():
        profile = lock_profile(owner, user_id)
        if profile is None:
            raise NotFound("no such profile")
        check_version(profile.version, expected, row_id=profile.id)
        record_profile(owner, "delete", profile)
        profile.delete()


def learn_preferences(
    owner: Owner, user_id: str, preferences: Mapping[str, Any], *, provenance: Mapping[str, Any], now: datetime
) -> list[str]:
    """Add what was found out of a user's preferences, by topic; the topics that were taken over, in order.

    Passed over is a topic that a client has set by hand (it has a value and no provenance), one that was learnt from
    something said later, and one for which the document has no room. `provenance` has `fact_id`, `turn_ids`, and `at`
    (ISO 8601), when it was said. In the caller's transaction where there is one. Raises Unprocessable.
    """
    found = {topic: value for topic, value in preferences.items() if value is not None}
    taken: list[str] = []

    def learn(profile: UserProfile) -> None:
        taken.clear()
        for said, value in found.items():
            topic = known_as(profile, said)
            if may_learn(profile, topic, provenance) and has_room(profile, topic, value):
                profile.preferences = {**profile.preferences, topic: value}
                profile.provenance = {**profile.provenance, topic: dict(provenance)}
                taken.append(topic)

    if found:
        change_profile(owner, user_id, learn, expected=None, now=now)
    return taken


def known_as(profile: UserProfile, topic: str) -> str:
    """The topic as the profile writes it already: case makes no other one."""
    same = (known for known in profile.preferences if known.casefold() == topic.casefold())
    return next(same, topic)


def forget_preferences(owner: Owner, user_id: str, *, fact_ids: Collection[UUID], now: datetime) -> None:
    """Take out what was learnt from facts that are believed no longer. In the caller's transaction."""
    profile = lock_profile(owner, user_id) if user_id else None
    if profile is None:
        return
    told = {str(fact_id) for fact_id in fact_ids}

    def forget(profile: UserProfile) -> None:
        topics = {topic for topic, known in profile.provenance.items() if known.get("fact_id") in told}
        profile.preferences = {topic: value for topic, value in profile.preferences.items() if topic not in topics}
        profile.provenance = {topic: known for topic, known in profile.provenance.items() if topic not in topics}

    apply_change(owner, profile, forget, now=now)


def may_learn(profile: UserProfile, topic: str, provenance: Mapping[str, Any]) -> bool:
    """Whether the topic is new, or was learnt from something that was said no later."""
    if topic not in profile.preferences:
        return True
    known = profile.provenance.get(topic)
    return known is not None and datetime.fromisoformat(known["at"]) <= datetime.fromisoformat(provenance["at"])


def has_room(profile: UserProfile, topic: str, value: Any) -> bool:
    try:
        measure({**profile.preferences, topic: value}, limit_bytes=LARGEST_DOCUMENT)
    except TooLarge:
        return False
    return True


def record_profile(owner: Owner, operation: str, profile: UserProfile) -> None:
    note_agent(owner.account_id, owner.agent_id)
    of_user = replace(owner, user_id=profile.user_id)
    record(of_user, operation=operation, memory_type="profile", affected_ids=[profile.id])

"""User profiles (X7): how a user wants to be served, stored by user id and shared by all agents of the account.

`get_profile` and `find_profile` read; `write_profile` and `delete_profile` write what clients set by
hand. Extraction adds preferences with `learn_preferences`, with their provenance: they replace what was learned before,
never what was set by hand. `forget_preferences` removes what was learned from facts that ended or are not believed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.errors import Conflict, StaleVersion, TooLarge, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Fact, UserProfile
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.accounts.register import register_agent
from memory.services.conversations.lifecycle import MAX_ID_CHARACTERS, is_valid_id
from memory.services.custody.marks import refuse_erased_user
from memory.services.custody.traces import erase_traces_of_rows
from memory.tiers.json_documents import check_storable, comparable_json, measure_document

DOCUMENTS = ("preferences", "communication_style", "metadata")
COLUMNS = (*DOCUMENTS, "expertise_areas", "provenance")

MAX_DOCUMENT_BYTES = 65_536
"""Bytes of each of DOCUMENTS, as compact JSON."""

MAX_EXPERTISE_AREAS = 200
MAX_AREA_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChanges:
    """New values by name for each document, where None deletes a name; all of `expertise_areas`. None keeps a field."""

    preferences: Mapping[str, Any] | None = None
    expertise_areas: Sequence[str] | None = None
    communication_style: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None

    def apply(self, profile: UserProfile) -> None:
        for name in DOCUMENTS:
            changes: Mapping[str, Any] | None = getattr(self, name)
            if changes is not None:
                values = getattr(profile, name) | dict(changes)
                setattr(profile, name, {key: value for key, value in values.items() if value is not None})
        if self.expertise_areas is not None:
            profile.expertise_areas = list(self.expertise_areas)
        by_hand = self.preferences or {}
        profile.provenance = {name: known for name, known in profile.provenance.items() if name not in by_hand}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenProfile:
    """A profile after a write. `is_new` is True if the write created it."""

    profile: UserProfile
    is_new: bool


def get_profile(owner: Owner, user_id: str) -> UserProfile:
    return require_found(find_profile(owner, user_id), "profile")


def find_profile(owner: Owner, user_id: str) -> UserProfile | None:
    """Return the profile, or None."""
    return UserProfile.objects.filter(account_id=owner.account_id, user_id=user_id).first()


def read_preferences(owner: Owner) -> dict[str, Any]:
    """Return the preferences of the owner's user by topic in lower case. No statement without a user."""
    profile = find_profile(owner, owner.user_id) if owner.user_id else None
    return {topic.casefold(): value for topic, value in profile.preferences.items()} if profile else {}


@masks_secrets
def write_profile(
    owner: Owner, user_id: str, changes: ProfileChanges, *, expected: ExpectedVersions = None, now: datetime
) -> WrittenProfile:
    """Change a profile by name, creating it where there is none. Equal values change nothing.

    Raises StaleVersion (also where there is none), TooLarge for a document, Unprocessable, Conflict where it is deleted
    at the same time.
    """
    areas = changes.expertise_areas or ()
    if len(areas) > MAX_EXPERTISE_AREAS or any(not 1 <= len(area) <= MAX_AREA_CHARACTERS for area in areas):
        raise Unprocessable(
            f"expertise_areas must be at most {MAX_EXPERTISE_AREAS} texts of 1 to {MAX_AREA_CHARACTERS} characters"
        )
    return change_profile(owner, user_id, changes.apply, expected=expected, now=now)


def change_profile(
    owner: Owner, user_id: str, change: Callable[[UserProfile], None], *, expected: ExpectedVersions, now: datetime
) -> WrittenProfile:
    """Lock the profile, or create it, and change it. Of two that create it, the second changes what the first did."""
    if not is_valid_id(user_id):
        raise Unprocessable(f"a profile belongs to a user, whose id must have 1 to {MAX_ID_CHARACTERS} characters")
    with transaction.atomic():
        profile = lock_profile(owner, user_id)
        if profile is None and expected is not None:
            raise StaleVersion("this user has no profile")
        if profile is None:
            refuse_erased_user(owner.account_id, user_id)
            profile = UserProfile(account_id=owner.account_id, user_id=user_id, created_at=now, updated_at=now)
            change(profile)
            check_profile(profile)
            UserProfile.objects.bulk_create([profile], ignore_conflicts=True)
            stored = lock_profile(owner, user_id)
            if stored is not None and stored.id == profile.id:
                record_profile(owner, "create", stored)
                return WrittenProfile(profile=stored, is_new=True)
            if stored is None:
                raise Conflict("the profile was deleted at the same time: try again")
            profile = stored
        check_version(profile.version, expected, row_id=profile.id)
        apply_change(owner, profile, change, now=now)
    return WrittenProfile(profile=profile, is_new=False)


def apply_change(owner: Owner, profile: UserProfile, change: Callable[[UserProfile], None], *, now: datetime) -> None:
    """Change a locked profile; nothing is stored where its content stays the same."""
    before = profile_content(profile)
    change(profile)
    check_profile(profile)
    if profile_content(profile) == before:
        return
    profile.version, profile.updated_at = profile.version + 1, now
    profile.save(update_fields=[*COLUMNS, "version", "updated_at"])
    record_profile(owner, "update", profile)


def profile_content(profile: UserProfile) -> str:
    return comparable_json({name: getattr(profile, name) for name in COLUMNS})


def lock_profile(owner: Owner, user_id: str) -> UserProfile | None:
    rows = UserProfile.objects.filter(account_id=owner.account_id, user_id=user_id)
    return rows.select_for_update(no_key=True).first()


def check_profile(profile: UserProfile) -> None:
    """Raise TooLarge or Unprocessable for content that cannot be stored."""
    for name in DOCUMENTS:
        check_storable(getattr(profile, name))
        measure_document(getattr(profile, name), limit_bytes=MAX_DOCUMENT_BYTES)
    check_storable(profile.expertise_areas)


def delete_profile(owner: Owner, user_id: str, *, expected: ExpectedVersions = None, now: datetime) -> None:
    """Delete a profile. Raises NotFound, StaleVersion."""
    with transaction.atomic():
        profile = require_found(lock_profile(owner, user_id), "profile")
        check_version(profile.version, expected, row_id=profile.id)
        erase_traces_of_rows(owner, [profile.id], quoted_in=quotes_profile(user_id), since=profile.created_at)
        record_profile(owner, "delete", profile)
        profile.delete()


def quotes_profile(user_id: str) -> Q:
    """Return the condition of kept answers that may quote the user's profile: of profiles, recalls and contexts."""
    quotes = Q(body__contains='"preferences":') | Q(body__contains='"profile"') | Q(body__contains="[User Profile]")
    return Q(user_id=user_id) & quotes


@masks_secrets
def learn_preferences(
    owner: Owner, user_id: str, preferences: Mapping[str, Any], *, provenance: Mapping[str, Any], now: datetime
) -> list[str]:
    """Add learned preferences by topic, and return the topics that were stored, in order.

    Skipped is a topic that a client has set by hand (it has a value and no provenance), one that was learned from
    something said later, and one for which the document has no room. `provenance` holds `fact_id`, `turn_ids` and `at`
    (ISO 8601), the time when it was said. Joins the caller's transaction, if any. Raises Unprocessable.
    """
    found = {topic: value for topic, value in preferences.items() if value is not None}
    stored: list[str] = []

    def learn(profile: UserProfile) -> None:
        stored.clear()
        for given, value in found.items():
            # as the profile writes it already, whatever its case
            topic = next((known for known in profile.preferences if known.casefold() == given.casefold()), given)
            if may_learn_topic(profile, topic, provenance) and has_room_for_topic(profile, topic, value):
                profile.preferences = {**profile.preferences, topic: value}
                profile.provenance = {**profile.provenance, topic: dict(provenance)}
                stored.append(topic)

    if found:
        change_profile(owner, user_id, learn, expected=None, now=now)
    return stored


class OfUser(Protocol):
    """A fact, or what is known of it."""

    @property
    def id(self) -> UUID: ...
    @property
    def user_id(self) -> str: ...


def forget_preferences(owner: Owner, facts: Iterable[OfUser], *, now: datetime) -> None:
    """Remove what was learned from these facts, in the caller's transaction: they ended, or are no longer believed.

    Locks the profiles that name one of them alone: whoever changes a fact has locked it before.
    """
    by_user: defaultdict[str, set[str]] = defaultdict(set)
    for fact in facts:
        by_user[fact.user_id].add(str(fact.id))
    rows = UserProfile.objects.filter(account_id=owner.account_id, user_id__in=by_user.keys() - {""})
    for profile in rows.order_by("user_id") if by_user.keys() - {""} else ():
        if find_topics(profile, by_user[profile.user_id]):
            forget_topics(owner, profile.user_id, by_user[profile.user_id], now=now)


def find_topics(profile: UserProfile, fact_ids: Collection[str]) -> set[str]:
    """Return the topics that were learned from these facts."""
    return {topic for topic, known in profile.provenance.items() if known.get("fact_id") in fact_ids}


def forget_topics(owner: Owner, user_id: str, fact_ids: Collection[str], *, now: datetime) -> None:
    """Lock a profile, if it is still there, and remove what was learned from these facts."""
    profile = lock_profile(owner, user_id)
    if profile is None:
        return

    def forget(profile: UserProfile) -> None:
        topics = find_topics(profile, fact_ids)
        profile.preferences = {topic: value for topic, value in profile.preferences.items() if topic not in topics}
        profile.provenance = {topic: known for topic, known in profile.provenance.items() if topic not in topics}

    apply_change(owner, profile, forget, now=now)


def forget_ended_preferences(owner: Owner, *, now: datetime) -> None:
    """Remove what the owner's user was said to prefer by facts that were superseded, in the caller's transaction."""
    profile = find_profile(owner, owner.user_id) if owner.user_id else None
    fact_ids = [known["fact_id"] for known in profile.provenance.values() if known.get("fact_id")] if profile else []
    if fact_ids:
        ended = Fact.objects.filter(account_id=owner.account_id, id__in=fact_ids, status=Fact.Status.SUPERSEDED)
        forget_topics(owner, owner.user_id, {str(fact_id) for fact_id in ended.values_list("id", flat=True)}, now=now)


def may_learn_topic(profile: UserProfile, topic: str, provenance: Mapping[str, Any]) -> bool:
    """Return True if the topic is new, or was learned from something said no later."""
    if topic not in profile.preferences:
        return True
    known = profile.provenance.get(topic)
    return known is not None and datetime.fromisoformat(known["at"]) <= datetime.fromisoformat(provenance["at"])


def has_room_for_topic(profile: UserProfile, topic: str, value: Any) -> bool:
    try:
        measure_document({**profile.preferences, topic: value}, limit_bytes=MAX_DOCUMENT_BYTES)
    except TooLarge:
        return False
    return True


def record_profile(owner: Owner, operation: str, profile: UserProfile) -> None:
    register_agent(owner.account_id, owner.agent_id)
    of_user = replace(owner, user_id=profile.user_id)
    record_audit(of_user, operation=operation, memory_type="profile", affected_ids=[profile.id])

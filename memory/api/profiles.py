"""`/profiles/{user_id}`: a user's preferences, expertise and communication style, for all agents."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import IdList, Metadata, NonBlankText, TextList, draft_fields
from memory.api.views import OwnerViewSet
from memory.models import UserProfile
from memory.owner import Owner
from memory.services.profiles import (
    MAX_AREA_CHARACTERS,
    MAX_EXPERTISE_AREAS,
    ProfileChanges,
    delete_profile,
    get_profile,
    write_profile,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId

BY_NAME_HELP = "New values by name. Null deletes a name; names that are left out stay."


class ProfileQuery(ActingFields):
    user_id = ExternalId(required=False, help_text="User. Must equal the one in the path.")


class ProfileChange(ProfileQuery):
    preferences = Metadata(required=False, help_text=BY_NAME_HELP)
    expertise_areas = BoundedList(
        child=NonBlankText(max_length=MAX_AREA_CHARACTERS),
        max_length=MAX_EXPERTISE_AREAS,
        required=False,
        help_text="All areas of expertise. Replaces the present ones.",
    )
    communication_style = Metadata(required=False, help_text=BY_NAME_HELP)
    metadata = Metadata(required=False, help_text=BY_NAME_HELP)


class ProfileSource(serializers.Serializer[Any]):
    fact_id = serializers.UUIDField(allow_null=True, help_text="Fact that states the preference. Null: none.")
    turn_ids = IdList(help_text="Turns in which it was said.")
    at = serializers.DateTimeField(help_text="Time when it was said.")


class ProfileAnswer(AnswerSerializer):
    columns = columns_of(UserProfile, "user_id preferences communication_style metadata created_at updated_at")
    expertise_areas = TextList()
    provenance = serializers.DictField(
        child=ProfileSource(), help_text="Sources of learned preferences; others were set."
    )
    version = serializers.IntegerField(help_text="Increases by one with each change.")


class Profiles(OwnerViewSet):
    """Every agent of the account reads and writes the profiles of all of its users."""

    for_users = True
    bodies = {"partial_update": ProfileChange}
    queries = {"retrieve": ProfileQuery, "destroy": ProfileQuery}
    answer = ProfileAnswer
    statuses = {"partial_update": (201, 200)}
    conditional = frozenset({"retrieve", "partial_update", "destroy"})

    def retrieve(self, request: Request, user_id: str) -> Response:
        """Return a user's profile."""
        profile = get_profile(self.owner_for(user_id, self.query()), user_id)
        return self.respond_profile(profile, status=200)

    def partial_update(self, request: Request, user_id: str) -> Response:
        """Change the given fields. The first write creates the profile (201); equal values change nothing.

        A preference that is set here is no longer changed by what is said in conversations. 413 for a document that is
        too large.
        """
        body = self.body()
        owner = self.owner_for(user_id, body)
        changes = ProfileChanges(**draft_fields(ProfileChanges, body))
        written = write_profile(owner, user_id, changes, expected=self.expected_versions(), now=timezone.now())
        return self.respond_profile(written.profile, status=201 if written.is_new else 200)

    def destroy(self, request: Request, user_id: str) -> Response:
        """Delete a user's profile."""
        owner = self.owner_for(user_id, self.query())
        delete_profile(owner, user_id, expected=self.expected_versions(), now=timezone.now())
        return Response(status=204)

    def owner_for(self, user_id: str, named: Mapping[str, Any]) -> Owner:
        """Return the owner for the user in the path. Raises a 400 problem if the request names another user as well."""
        if named.get("user_id", user_id) != user_id:
            raise serializers.ValidationError({"user_id": ["Must equal the user in the path, or be left out."]})
        return self.owner({**named, "user_id": user_id})

    def respond_profile(self, profile: UserProfile, *, status: int) -> Response:
        # a new profile may follow a deleted one of the same user
        return self.respond_with_etag(profile, row_id=profile.id, status=status)

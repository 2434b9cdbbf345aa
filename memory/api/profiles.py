"""`/profiles/{user_id}`: how a user wants to be served, whichever agent asks."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Metadata, Prose
from memory.api.views import OwnerViewSet
from memory.models import UserProfile
from memory.owner import Owner
from memory.services.profiles import (
    DOCUMENTS,
    LONGEST_AREA,
    MOST_AREAS,
    ProfileChanges,
    delete_profile,
    get_profile,
    write_profile,
)
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId

BY_NAME = "New values by name; null deletes a name, what is not named stays."


class ProfileQuery(ActingFields):
    user_id = ExternalId(required=False, help_text="As in the path, if at all.")


class ProfileChange(ProfileQuery):
    preferences = Metadata(required=False, help_text=BY_NAME)
    expertise_areas = BoundedList(
        child=Prose(max_length=LONGEST_AREA),
        max_length=MOST_AREAS,
        required=False,
        help_text="In place of what there is.",
    )
    communication_style = Metadata(required=False, help_text=BY_NAME)
    metadata = Metadata(required=False, help_text=BY_NAME)


class ProfileSource(serializers.Serializer[Any]):
    fact_id = serializers.UUIDField(allow_null=True, help_text="The fact that says so; null for none.")
    turn_ids = serializers.ListField(child=serializers.UUIDField(), help_text="Where it was said.")
    at = serializers.DateTimeField(help_text="When it was said.")


class ProfileAnswer(serializers.Serializer[Any]):
    user_id = serializers.CharField()
    preferences = serializers.DictField()
    expertise_areas = serializers.ListField(child=serializers.CharField())
    communication_style = serializers.DictField()
    metadata = serializers.DictField()
    provenance = serializers.DictField(
        child=ProfileSource(), help_text="By preference, where it was learnt; the others were set by hand."
    )
    version = serializers.IntegerField(help_text="One more with each change.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


COLUMNS = ("user_id", *DOCUMENTS, "expertise_areas", "provenance", "version", "created_at", "updated_at")


def represent_profile(profile: UserProfile) -> dict[str, Any]:
    return {name: getattr(profile, name) for name in COLUMNS}


class Profiles(OwnerViewSet):
    """Every agent of the account reads and writes the profiles of all its users."""

    bodies = {"partial_update": ProfileChange}
    queries = {"retrieve": ProfileQuery, "destroy": ProfileQuery}
    answers = {"retrieve": ProfileAnswer, "partial_update": ProfileAnswer}
    statuses = {"partial_update": (201, 200), "destroy": 204}
    conditional = frozenset({"retrieve", "partial_update", "destroy"})

    def retrieve(self, request: Request, user_id: str) -> Response:
        return self.shown(get_profile(self.owner_of(user_id, self.query()), user_id))

    def partial_update(self, request: Request, user_id: str) -> Response:
        """Made by the first write (201). What says the same changes nothing. 413 for a document that is too large.

        A preference that is set here is set by hand: what conversations say of it, changes it no more.
        """
        body = self.body()
        owner = self.owner_of(user_id, body)
        names = (*DOCUMENTS, "expertise_areas")
        changes = ProfileChanges(**{name: body[name] for name in names if name in body})
        written = write_profile(owner, user_id, changes, expected=self.expected(), now=timezone.now())
        return self.shown(written.profile, status=201 if written.is_new else 200)

    def destroy(self, request: Request, user_id: str) -> Response:
        owner = self.owner_of(user_id, self.query())
        delete_profile(owner, user_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)

    def owner_of(self, user_id: str, named: Mapping[str, Any]) -> Owner:
        """The path says who the user is. Raises a 400 problem where the request names another one as well."""
        if named.get("user_id", user_id) != user_id:
            raise serializers.ValidationError({"user_id": ["Not the user of the path."]})
        return self.owner({**named, "user_id": user_id})

    def shown(self, profile: UserProfile, *, status: int = 200) -> Response:
        return self.versioned(represent_profile(profile), version=profile.version, row_id=profile.id, status=status)

"""`/subjects/{user_id}`: erase all that is known of a user. `/erasures`: erase by filter; progress and receipts."""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django_filters import ChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import AwareDateTimeField, Counts, IdList, JsonObject, QueryFlag, draft_fields
from memory.api.filters import RowFilter
from memory.api.views import OwnerViewSet
from memory.errors import Forbidden
from memory.models import Erasure
from memory.owner import Owner
from memory.services.custody.single import preview_conversation, preview_memory
from memory.services.custody.subjects import (
    ERASE_JOB,
    MAX_REASON_CHARACTERS,
    ErasureFilter,
    find_erasure,
    find_subject,
    preview_filter,
    preview_subject,
    readmit_user,
    request_filter,
    request_subject,
    verify_receipt,
)
from memory.tasks import notify_job_worker
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, Flag, StrictSerializer, Text

ANSWERED_SCOPES = [(scope.value, scope.label) for scope in (Erasure.Scope.SUBJECT, Erasure.Scope.FILTER)]
"""The keys of an account that is being deleted are revoked, so nobody asks about that."""


Reason = partial(
    Text,
    required=False,
    allow_blank=True,
    max_length=MAX_REASON_CHARACTERS,
    help_text="Reason, which stays in the receipt. It must not name the user.",
)
"""The reason of an erasure."""


class SubjectQuery(StrictSerializer):
    reason = Reason()

    dry_run = QueryFlag(
        default=False, help_text="Only `false`: GET of the same path counts what would be erased, and changes nothing."
    )

    def validate_dry_run(self, wanted: bool) -> bool:
        if wanted:
            instead = "GET /subjects/{user_id} counts what would be erased, and changes nothing."
            raise serializers.ValidationError(f"Erasing a user has no dry run: {instead}")
        return wanted


class FilterBody(ActingFields):
    user_id = ExternalId(required=False, help_text="Limit to memories of this user.")
    channel = ExternalId(required=False, help_text="Limit to memories of this channel.")
    before = AwareDateTimeField(required=False, help_text="Limit to memories whose `event_time` is before this time.")
    reason = Reason()
    dry_run = Flag(default=False, help_text="True to only count what would be erased.")


class ReceiptBody(StrictSerializer):
    receipt = JsonObject(help_text="The receipt, as `GET /erasures/{erasure_id}` returned it.")
    signature = ExternalId(help_text="Its signature.")


class VerdictAnswer(AnswerSerializer):
    valid = serializers.BooleanField(help_text="True if this installation signed exactly this receipt.")


class ErasureAnswer(AnswerSerializer):
    columns = columns_of(Erasure, "id status reason requested_by requested_at started_at completed_at")
    scope = serializers.ChoiceField(ANSWERED_SCOPES)
    lifted_at = serializers.DateTimeField(
        allow_null=True, help_text="Time from which the user may be written to again. Null: not allowed."
    )
    step = serializers.CharField(help_text="Step that is being done. Empty: none, until the next pass.")
    passes = serializers.IntegerField(help_text="Number of passes over all stores. The last one finds nothing.")
    counts = Counts(help_text="Numbers of things erased so far, by kind of memory or store.")
    receipt = serializers.DictField(allow_null=True, help_text="The receipt. Null until the erasure is completed.")
    signature = serializers.CharField(help_text="Signature of the receipt by the installation's key.")


class FilterAnswer(AnswerSerializer):
    counts = Counts(
        help_text="Numbers of memories that the filter finds, by kind. What was derived from them alone goes as well."
    )
    erasure = ErasureAnswer(allow_null=True, help_text="The erasure that was queued. Null for a dry run.")


class SubjectAnswer(AnswerSerializer):
    counts = Counts(help_text="Numbers of rows that belong to the user or name it, by table. Redis is not counted.")


class Subjects(OwnerViewSet):
    """Users whose data can be erased as a whole. Keys that are bound to an agent cannot do this."""

    operation_ids = {"latest": "get_subject_erasure"}
    queries = {"destroy": SubjectQuery}
    bodies = {"readmit": StrictSerializer}
    answers = {"retrieve": SubjectAnswer, "destroy": ErasureAnswer, "latest": ErasureAnswer}
    statuses = {"destroy": 202, "readmit": 204}
    problems = {"readmit": (409,)}
    scopes = dict.fromkeys(("retrieve", "destroy", "latest", "readmit"), "operate")
    not_audited = frozenset({"retrieve", "latest"})

    def retrieve(self, request: Request, user_id: str) -> Response:
        """Count what erasing the user would erase or change. Changes nothing."""
        return self.respond(None, {"counts": preview_subject(account_owner(self), user_id)})

    def destroy(self, request: Request, user_id: str) -> Response:
        """Erase all that is known of the user, in every store.

        From now on everything that names the user is refused with 409, until the mark is lifted. A job erases; the
        answer's `id` leads to the progress and the receipt. If the user is being erased already, that erasure is
        returned. GET of the same path counts what would be erased.
        """
        owner, reason = account_owner(self), self.query().get("reason", "")

        def write() -> Response:
            erasure = request_subject(owner, user_id, reason=reason, now=timezone.now())
            transaction.on_commit(lambda: notify_job_worker(ERASE_JOB))
            return self.respond(erasure)

        return self.write_once(write)

    def latest(self, request: Request, user_id: str) -> Response:
        """Return the latest erasure of the user."""
        return self.respond(find_subject(account_owner(self), user_id))

    def readmit(self, request: Request, user_id: str) -> Response:
        """Lift the mark of an erased user that has come back. 409 while the erasure is going on."""
        readmit_user(account_owner(self), user_id, now=timezone.now())
        return Response(status=204)


def account_owner(view: OwnerViewSet) -> Owner:
    """Return the account as the owner. Raises Forbidden for a key that is bound to an agent."""
    owner = view.owner()
    if owner.agent_id:
        raise Forbidden("a key that is bound to an agent cannot erase users or read receipts")
    return owner


class PreviewQuery(ActingFields):
    memory_id = serializers.UUIDField(required=False, help_text="A turn, episode, fact, or other memory.")
    conversation_id = ExternalId(required=False, help_text="A conversation.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len({"memory_id", "conversation_id"} & attrs.keys()) != 1:
            raise serializers.ValidationError({"memory_id": ["Send either `memory_id` or `conversation_id`."]})
        return attrs


class ErasurePreviewAnswer(AnswerSerializer):
    counts = Counts(help_text="Numbers of memories that are deleted as such, by kind.")
    derived = Counts(help_text="Numbers of memories that go as well, as they were derived from these alone, by kind.")
    derived_ids = IdList(help_text="The first 100 of the derived memories that the agent sees.")


class ErasurePreviews(OwnerViewSet):
    """Previews of deletions."""

    operation_ids = {"retrieve": "preview_erasure"}
    for_users = True
    queries = {"retrieve": PreviewQuery}
    problems = {"retrieve": (404,)}
    answer = ErasurePreviewAnswer

    def retrieve(self, request: Request) -> Response:
        """Say what deleting a conversation, turn, episode, fact or other memory would erase. Changes nothing.

        A turn stays as an empty place in its conversation. A fact is erased by DELETE with `erase=true` alone.
        """
        query = self.query()
        owner = self.owner(query)
        if "memory_id" in query:
            return self.respond(preview_memory(owner, query["memory_id"]))
        return self.respond(preview_conversation(owner, query["conversation_id"]))


class ErasureFilterSet(RowFilter):
    status = ChoiceFilter(choices=Erasure.Status.choices)
    scope = ChoiceFilter(choices=ANSWERED_SCOPES)


class Erasures(OwnerViewSet):
    """Erasures of users and of filters, and their receipts."""

    bodies = {"create": FilterBody, "verify": ReceiptBody}
    answer = ErasureAnswer
    answers = {"create": FilterAnswer, "verify": VerdictAnswer}
    statuses = {"create": (202, 200)}
    scopes = dict.fromkeys(("list", "retrieve", "create", "verify"), "operate")
    not_audited = frozenset({"list", "retrieve"})
    filterset_class = ErasureFilterSet
    queryset = Erasure.objects.none()

    def list(self, request: Request) -> Response:
        """List erasures, latest first."""
        return self.respond_page(Erasure.objects.in_account(self.credential.account_id))

    def retrieve(self, request: Request, erasure_id: UUID) -> Response:
        """Return an erasure, with its receipt once it is completed."""
        return self.respond(find_erasure(account_owner(self), erasure_id))

    def create(self, request: Request) -> Response:
        """Erase the memories that a filter finds, with what was derived from them alone.

        202 with the counts of now, and a job erases; 200 for a dry run. At least one of `user_id`, `channel` and
        `before` is needed. With `agent_id`, only what this agent may change. Entries of contexts and learnings belong
        to their contexts and stay.
        """
        body = self.body()
        owner = self.owner({name: body[name] for name in ("agent_id",) if name in body})
        wanted = ErasureFilter(**draft_fields(ErasureFilter, body))

        def write() -> Response:
            counts = preview_filter(owner, wanted)
            if body["dry_run"]:
                return self.respond(None, {"counts": counts, "erasure": None}, status=200)
            erasure = request_filter(owner, wanted, reason=body.get("reason", ""), now=timezone.now())
            transaction.on_commit(lambda: notify_job_worker(ERASE_JOB))
            return self.respond(None, {"counts": counts, "erasure": ErasureAnswer.serialize(erasure)}, status=202)

        return self.write_once(write)

    def verify(self, request: Request) -> Response:
        """Say whether a receipt is one of this account that the installation signed, and unchanged."""
        body = self.body()
        return self.respond(None, {"valid": verify_receipt(account_owner(self), body["receipt"], body["signature"])})

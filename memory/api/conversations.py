"""`/conversations`: what is kept of each, and its life from the first write to the end of its session."""

from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from django.db import transaction
from django.utils import timezone
from django_filters import CharFilter, FilterSet, TypedChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Metadata, OwnerFields
from memory.api.jobs import RunAccepted
from memory.api.views import OwnerViewSet
from memory.models import Conversation, Participant
from memory.owner import Owner
from memory.services.conversations.lifecycle import (
    Opening,
    change_conversation,
    create_conversation,
    end_conversation,
    find_conversation,
)
from memory.services.extraction.extract import request_extraction
from memory.services.operations.jobs import request_run
from memory.services.sessions.hybrid import MemoryManager
from memory.services.summaries.summarize import request_summary
from memory.tasks import nudge_job, run_soon
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import ActingFields, ExternalId, Text

LONGEST_TITLE = 200
SUMMARIZE = "summarize"
CONSOLIDATE = "consolidate"
"""The jobs."""
STATES = ["none", "queued", "failing", "parked"]
TOLD_STATES = (
    "What is `failing` is tried again by itself. What failed too often is `parked`: it waits, with all that is said "
    "later, until somebody asks for it."
)


class Ask(Protocol):
    def __call__(self, owner: Owner, conversation_id: str, *, now: datetime) -> Conversation: ...


class NewConversation(OwnerFields):
    conversation_id = ExternalId(required=False, help_text="Made, where you name none.")
    title = Text(required=False, max_length=LONGEST_TITLE, allow_blank=True)
    continues = ExternalId(required=False, help_text="The conversation that it resumes.")
    metadata = Metadata(required=False)


class ConversationChange(ActingFields):
    title = Text(required=False, max_length=LONGEST_TITLE, allow_blank=True)
    continues = ExternalId(required=False, allow_blank=True, help_text="Empty for none.")
    metadata = Metadata(required=False, help_text="In place of what there is.")


class Ending(ActingFields):
    outcome = serializers.ChoiceField(
        Conversation.Outcome.choices,
        required=False,
        help_text="Replaces an earlier one; strategies are learnt from it.",
    )


class ListedConversation(serializers.Serializer[Any]):
    conversation_id = serializers.CharField()
    agent_id = serializers.CharField(help_text="Who began it; empty for the account.")
    user_id = serializers.CharField(help_text="Of its first write.")
    channel = serializers.CharField(help_text="Of its first write.")
    title = serializers.CharField()
    continues = serializers.CharField(help_text="The conversation that it resumes; empty for none.")
    metadata = serializers.DictField()
    outcome = serializers.ChoiceField([*Conversation.Outcome.choices, ("", "")])
    started_at = serializers.DateTimeField()
    last_turn_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null again once a turn reopened it.")
    archived = serializers.BooleanField()
    turn_count = serializers.IntegerField()
    summarized_count = serializers.IntegerField(help_text="The turns below this index are in the summary.")
    summary = serializers.ChoiceField(STATES, help_text=f"What is to be done. {TOLD_STATES}")
    summary_error = serializers.CharField(help_text="Empty unless the last attempt failed.")
    extracted_count = serializers.IntegerField(help_text="Turns below this index were looked through for knowledge.")
    consolidated_at = serializers.DateTimeField(allow_null=True, help_text="Null while turns are left.")
    extraction = serializers.ChoiceField(STATES, help_text=f"What is to be looked through. {TOLD_STATES}")
    extract_error = serializers.CharField(help_text="Empty unless the last attempt failed.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ConversationAnswer(ListedConversation):
    participants = serializers.ListField(
        child=serializers.CharField(), help_text="The agents that wrote into it, and may therefore read it."
    )


class SavedAnswer(serializers.Serializer[Any]):
    conversation_id = serializers.CharField()
    saved_at = serializers.DateTimeField()
    turn_count = serializers.IntegerField()


class EndedAnswer(serializers.Serializer[Any]):
    conversation_id = serializers.CharField()
    status = serializers.CharField(help_text="`ended`.")
    ended_at = serializers.DateTimeField()
    outcome = serializers.ChoiceField([*Conversation.Outcome.choices, ("", "")])
    summary = serializers.CharField(help_text="`queued`, or `none` where it is too short or summarized already.")
    cleared = serializers.BooleanField(help_text="False where Redis gave no answer: it is cleared within minutes.")


COLUMNS = (
    *("conversation_id", "agent_id", "user_id", "channel", "title", "continues", "metadata", "outcome"),
    *("started_at", "last_turn_at", "ended_at", "archived", "turn_count", "summarized_count", "summary_error"),
    *("extracted_count", "consolidated_at", "extract_error"),
    *("created_at", "updated_at"),
)


def represent_conversation(conversation: Conversation) -> dict[str, Any]:
    columns = {name: getattr(conversation, name) for name in COLUMNS}
    return columns | {"summary": tell_summary(conversation), "extraction": tell_extraction(conversation)}


def represent_with_participants(conversation: Conversation) -> dict[str, Any]:
    of_it = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    agents = of_it.order_by("agent_id").values_list("agent_id", flat=True)
    return represent_conversation(conversation) | {"participants": list(agents)}


def tell_summary(conversation: Conversation) -> str:
    if conversation.summary_parked_at is not None:
        return "parked"
    return "failing" if conversation.summary_error else queued_or_none(conversation)


def tell_extraction(conversation: Conversation) -> str:
    if conversation.extract_parked_at is not None:
        return "parked"
    if conversation.extract_after is None:
        return "none"
    return "failing" if conversation.extract_error else "queued"


def queued_or_none(conversation: Conversation) -> str:
    """An idle conversation's may come without anybody's asking; it is not queued before it is due."""
    due = conversation.summarize_after
    asked = conversation.summarize_to is not None or conversation.summary_lease_until is not None
    return "queued" if due is not None and (asked or due <= timezone.now()) else "none"


def yes_or_no(**options: Any) -> Any:
    """A filter that refuses what is neither `true` nor `false`, which the library's own would pass over."""
    choices = (("true", "true"), ("false", "false"))
    return TypedChoiceFilter(choices=choices, coerce=lambda text: text == "true", **options)


class ConversationFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    user_id = CharFilter(max_length=LONGEST_ID, strip=False)
    channel = CharFilter(max_length=LONGEST_ID, strip=False)
    continues = CharFilter(max_length=LONGEST_ID, strip=False)
    archived = yes_or_no()
    ended = yes_or_no(field_name="ended_at", lookup_expr="isnull", exclude=True)


class Conversations(OwnerViewSet):
    """Made here, or by their first write. An agent sees those into which it wrote; without one, a key sees all."""

    bodies = {"create": NewConversation, "partial_update": ConversationChange}
    queries = {"list": ActingFields, "retrieve": ActingFields}
    answers = {
        "list": ListedConversation,
        "create": ConversationAnswer,
        "retrieve": ConversationAnswer,
        "partial_update": ConversationAnswer,
    }
    statuses = {"create": 201}
    filterset_class = ConversationFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Conversation.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first."""
        rows = Conversation.objects.visible_to(self.owner(self.query())).defer("saved_session")
        return self.page(rows, represent_conversation)

    def create(self, request: Request) -> Response:
        """Its user and channel stay what they are here. 409 when the account has a conversation of this id."""
        body = self.body()
        owner, conversation_id = self.agent_owner(body), body.get("conversation_id") or str(uuid4())
        opening = Opening(**{name: body[name] for name in ("title", "continues", "metadata") if name in body})

        def write() -> Response:
            created = create_conversation(owner, conversation_id, opening=opening, now=timezone.now())
            return Response(represent_with_participants(created), status=201)

        return self.once(write)

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        return Response(represent_with_participants(find_conversation(self.owner(self.query()), conversation_id)))

    def partial_update(self, request: Request, conversation_id: str) -> Response:
        """Give it another title, other metadata, another conversation that it resumes."""
        body = self.body()
        owner = self.owner(body)
        changes = {name: value for name, value in body.items() if name != "agent_id"}
        changed = change_conversation(owner, conversation_id, changes=changes, now=timezone.now())
        return Response(represent_with_participants(changed))


class ConversationLives(OwnerViewSet):
    """What is done with a session as a whole."""

    bodies = {"summarize": ActingFields, "consolidate": ActingFields, "save": ActingFields, "end": Ending}
    answers = {"summarize": RunAccepted, "consolidate": RunAccepted, "save": SavedAnswer, "end": EndedAnswer}
    statuses = {"summarize": 202, "consolidate": 202}

    def summarize(self, request: Request, conversation_id: str) -> Response:
        """Ask for a summary of everything said so far. Where that is in the summary already, the job has no work.

        One that is parked after too many failures is tried again.
        `/jobs/{job_id}` says how far it is (scope operate), the conversation's `summary` and `summarized_count` too.
        """
        owner = self.owner(self.body())

        return self.once(lambda: self.accept(owner, conversation_id, ask=request_summary, job=SUMMARIZE))

    def consolidate(self, request: Request, conversation_id: str) -> Response:
        """Have entities, facts and relationships extracted now from what nobody looked through yet.

        What is parked after too many failures is tried again.
        `/jobs/{job_id}` says how far it is (scope operate), the conversation's `extracted_count` too.
        """
        owner = self.owner(self.body())
        return self.once(lambda: self.accept(owner, conversation_id, ask=request_extraction, job=CONSOLIDATE))

    def accept(self, owner: Owner, conversation_id: str, *, ask: Ask, job: str) -> Response:
        """Mark the row as asked for, and queue a run of the job that looks at it."""
        ask(owner, conversation_id, now=timezone.now())
        run = request_run(owner, job=job)
        transaction.on_commit(lambda: nudge_job(job))
        return Response({"job_id": str(run.id), "status": run.status}, status=202)

    def save(self, request: Request, conversation_id: str) -> Response:
        """Keep the session's goal, thoughts and values in the database, from where they come back if Redis loses them.

        Turns need no saving: they are in the log.
        """
        owner = self.owner(self.body())

        def write() -> Response:
            saved = MemoryManager(owner).save_memory(conversation_id, now=timezone.now())
            return Response(
                {"conversation_id": conversation_id, "saved_at": saved.saved_at, "turn_count": saved.turn_count}
            )

        return self.once(write)

    def end(self, request: Request, conversation_id: str) -> Response:
        """End the session: its summary is queued where it is long enough; session, working memory and ledger cleared.

        Ending twice is ending once. A turn that is posted later reopens the conversation.
        """
        body = self.body()
        # not in `once`: Redis is cleared after the commit, and done again it is done once
        ended = end_conversation(self.owner(body), conversation_id, outcome=body.get("outcome", ""), now=timezone.now())
        if queued_or_none(ended) == "queued":
            run_soon(SUMMARIZE)
        return Response(
            {
                "conversation_id": conversation_id,
                "status": "ended",
                "ended_at": ended.ended_at,
                "outcome": ended.outcome,
                "summary": queued_or_none(ended),
                "cleared": ended.cleared_at is not None,
            }
        )

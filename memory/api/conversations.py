"""`/conversations`: conversations from their first write to the end of their session, and their participants."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from django.db import transaction
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import EventTime, Metadata, OwnerFields, TextList, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter, boolean_filter
from memory.api.jobs import RunAccepted
from memory.api.views import OwnerViewSet
from memory.models import Conversation, Participant
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import (
    ConversationDefaults,
    change_conversation,
    create_conversation,
    find_conversation,
)
from memory.services.conversations.lineage import LineageStep, read_conversation_lineage
from memory.services.conversations.participants import add_participant, list_participants, remove_participant
from memory.services.conversations.staff_edits import unarchive_conversation
from memory.services.custody.conversations import erase_conversation
from memory.services.extraction.extract import request_extraction
from memory.services.operations.jobs import request_run
from memory.services.sessions import MemoryManager
from memory.services.summaries.summarize import request_session_summary
from memory.tasks import notify_job_worker, run_soon
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, Text

MAX_TITLE_CHARACTERS = 200
SUMMARIZE_JOB = "summarize"
EXTRACTION_JOB = "extract_knowledge"
STATES = ["none", "queued", "failing", "parked"]
STATES_HELP = (
    "`failing` work is retried automatically. Work that failed too often is `parked`: it waits, with everything said "
    "later, until it is requested."
)
END_STATUSES = ["ended", "left"]
OUTCOMES = [*Conversation.Outcome.choices, ("", "")]


class WorkRequest(Protocol):
    """A service that marks a conversation's row as due for a job."""

    def __call__(self, owner: Owner, conversation_id: str, *, now: datetime) -> Conversation: ...


class NewConversation(OwnerFields):
    conversation_id = ExternalId(required=False, help_text="Id of the conversation. Default: a new UUID.")
    title = Text(required=False, max_length=MAX_TITLE_CHARACTERS, allow_blank=True, help_text="Title, for people.")
    continues = ExternalId(required=False, help_text="Conversation that this one resumes.")
    metadata = Metadata(required=False, help_text="Facts of your own about the conversation.")


class ConversationChange(ActingFields):
    title = Text(required=False, max_length=MAX_TITLE_CHARACTERS, allow_blank=True, help_text="Title, for people.")
    continues = ExternalId(required=False, allow_blank=True, help_text="Conversation that it resumes. Empty: none.")
    metadata = Metadata(required=False, help_text="Facts of your own. Replaces the present ones.")


class ConversationEnd(ActingFields):
    outcome = serializers.ChoiceField(
        Conversation.Outcome.choices,
        required=False,
        help_text="Outcome of the work, from which strategies are learned. Replaces an earlier one.",
    )
    event_time = EventTime("Time when it ended, at most 5 minutes in the future. Default: now, or the time it ended.")


class ListedConversation(AnswerSerializer):
    columns = columns_of(
        Conversation, "conversation_id title metadata started_at last_turn_at archived turn_count created_at updated_at"
    )
    agent_id = serializers.CharField(help_text="Agent that started it. Empty: it was started for the account.")
    user_id = serializers.CharField(help_text="User of its first write.")
    channel = serializers.CharField(help_text="Channel of its first write.")
    continues = serializers.CharField(help_text="Conversation that it resumes. Empty: none.")
    outcome = serializers.ChoiceField(OUTCOMES)
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null if not ended, or reopened by a turn.")
    summarized_count = serializers.IntegerField(help_text="Turns with an index below this are in the summary.")
    summary = serializers.BooleanField(help_text="True if there is a summary of its earlier turns.")
    summary_state = serializers.ChoiceField(STATES, help_text=f"State of the next summary. {STATES_HELP}")
    summary_error = serializers.CharField(help_text="Error of the last attempt to summarize. Empty: none.")
    extracted_count = serializers.IntegerField(help_text="Turns with an index below this were searched for knowledge.")
    consolidated_at = serializers.DateTimeField(allow_null=True, help_text="Null while turns are left to search.")
    extraction = serializers.ChoiceField(STATES, help_text=f"State of the extraction of knowledge. {STATES_HELP}")
    extract_error = serializers.CharField(help_text="Error of the last attempt to extract. Empty: none.")

    @staticmethod
    def compute_summary(conversation: Conversation) -> bool:
        return conversation.summarized_count > 0

    @staticmethod
    def compute_summary_state(conversation: Conversation) -> str:
        if conversation.summary_parked_at is not None:
            return "parked"
        return "failing" if conversation.summary_error else queue_state_of_summary(conversation)

    @staticmethod
    def compute_extraction(conversation: Conversation) -> str:
        if conversation.extract_parked_at is not None:
            return "parked"
        if conversation.extract_after is None:
            return "none"
        return "failing" if conversation.extract_error else "queued"


class ConversationAnswer(ListedConversation):
    participants = TextList(help_text="Agents that wrote into it, and may therefore read it.")

    @staticmethod
    def compute_participants(conversation: Conversation) -> Sequence[str]:
        participants = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
        return list(participants.order_by("agent_id").values_list("agent_id", flat=True))


class SavedAnswer(AnswerSerializer):
    conversation_id = serializers.CharField()
    saved_at = serializers.DateTimeField()
    turn_count = serializers.IntegerField()


class EndedAnswer(AnswerSerializer):
    conversation_id = serializers.CharField()
    status = serializers.ChoiceField(
        END_STATUSES, help_text="`left` if the key's agent did not open the conversation: it goes on."
    )
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null if it goes on.")
    outcome = serializers.ChoiceField(OUTCOMES)
    summary = serializers.BooleanField(help_text="True if there is a summary of its turns already.")
    summary_state = serializers.CharField(help_text="`queued`, or `none` if it is too short or already summarized.")
    cleared = serializers.BooleanField(
        help_text="False if Redis did not answer: the session is cleared within minutes."
    )

    @staticmethod
    def compute_summary(conversation: Conversation) -> bool:
        return conversation.summarized_count > 0

    @staticmethod
    def compute_summary_state(conversation: Conversation) -> str:
        return queue_state_of_summary(conversation)

    @staticmethod
    def compute_cleared(conversation: Conversation) -> bool:
        return conversation.cleared_at is not None


def queue_state_of_summary(conversation: Conversation) -> str:
    """Return `queued` or `none`. Summaries of idle conversations come unrequested; they are not queued before due."""
    due = conversation.summarize_after
    requested = conversation.summarize_to is not None or conversation.summary_lease_until is not None
    return "queued" if due is not None and (requested or due <= timezone.now()) else "none"


class ConversationFilter(RowFilter):
    user_id = TextFilter()
    channel = TextFilter()
    continues = TextFilter()
    archived = boolean_filter()
    ended = boolean_filter(field_name="ended_at", lookup_expr="isnull", exclude=True)


class Conversations(OwnerViewSet):
    """Conversations are created here, or by their first write.

    An agent sees those that it wrote into. Without an agent, a key sees all of the account's.
    """

    for_users = True
    bodies = {"create": NewConversation, "partial_update": ConversationChange}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answer = ConversationAnswer
    answers = {"list": ListedConversation}
    filterset_class = ConversationFilter
    queryset = Conversation.objects.none()

    def list(self, request: Request) -> Response:
        """List conversations, latest first."""
        return self.respond_page(Conversation.objects.visible_to(self.owner(self.query())).defer("saved_session"))

    def create(self, request: Request) -> Response:
        """Create a conversation. Its user and channel are fixed. 409 if the account has one of this id."""
        body = self.body()
        owner, conversation_id = self.agent_owner(body), body.get("conversation_id") or str(uuid4())
        defaults = ConversationDefaults(**draft_fields(ConversationDefaults, body))
        return self.write_row(create_conversation, owner, conversation_id, defaults=defaults, now=timezone.now())

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Return a conversation with its participants."""
        return self.respond(find_conversation(self.owner(self.query()), conversation_id))

    def partial_update(self, request: Request, conversation_id: str) -> Response:
        """Change the title, the metadata, or the conversation that this one resumes."""
        body = self.body()
        owner, changes = self.owner(body), changed_fields(body)
        return self.respond(change_conversation(owner, conversation_id, changes=changes, now=timezone.now()))

    def destroy(self, request: Request, conversation_id: str) -> Response:
        """Erase a conversation with all that it holds, its live side, and what was derived from that alone.

        Notes, and facts and other knowledge that were stored as such, stay where they name it: GET `/memories` with its
        `conversation_id` lists them, and DELETE `/memories/{memory_id}` deletes one.
        403 for an agent that did not start it. If it is interrupted, writes to the conversation are refused with 409,
        and another DELETE continues.
        """
        erase_conversation(self.owner(self.query()), conversation_id, now=timezone.now())
        return Response(status=204)


class ConversationLives(OwnerViewSet):
    """Operations on a conversation's session as a whole."""

    operation_ids = {"consolidate": "extract_knowledge"}
    for_users = True
    bodies = {
        **dict.fromkeys(("summarize", "consolidate", "save", "unarchive"), ActingFields),
        "end": ConversationEnd,
    }
    answer = RunAccepted
    answers = {"save": SavedAnswer, "end": EndedAnswer, "unarchive": ConversationAnswer}
    statuses = {"summarize": 202, "consolidate": 202}

    def summarize(self, request: Request, conversation_id: str) -> Response:
        """Request a summary of everything but the last ten messages, which stay in the session as they are.

        Does nothing if there is nothing else to summarize. An ended conversation is summarized as a whole. A summary
        that is parked after too many failures is tried again. `/jobs/{job_id}` (scope operate) shows the progress, as
        do `summary_state` and `summarized_count` of the conversation.
        """
        return self.accept(conversation_id, request_work=request_session_summary, job=SUMMARIZE_JOB)

    def consolidate(self, request: Request, conversation_id: str) -> Response:
        """Extract entities, facts and relationships now from the turns that were not searched for them yet.

        An extraction that is parked after too many failures is tried again. `/jobs/{job_id}` (scope operate) shows the
        progress, as does `extracted_count` of the conversation.
        """
        return self.accept(conversation_id, request_work=request_extraction, job=EXTRACTION_JOB)

    def accept(self, conversation_id: str, *, request_work: WorkRequest, job: str) -> Response:
        """Mark the row as due, and queue a run of the job that processes it."""
        owner = self.owner(self.body())

        def write() -> Response:
            request_work(owner, conversation_id, now=timezone.now())
            run = request_run(owner, job=job, max_per_hour=conf.JOB_RUNS_PER_HOUR)
            transaction.on_commit(lambda: notify_job_worker(job))
            return self.respond(run)

        return self.write_once(write)

    def save(self, request: Request, conversation_id: str) -> Response:
        """Save the session's goal, thoughts and values to the database, from where they return if Redis loses them.

        Turns need no saving: they are in the log.
        """
        manager = MemoryManager(self.owner(self.body()))
        return self.write_once(lambda: self.respond(manager.save_memory(conversation_id, now=timezone.now())))

    def unarchive(self, request: Request, conversation_id: str) -> Response:
        """Bring an archived conversation and all of its turns back, as if it had been written to now.

        Does nothing to a conversation that is not archived.
        """
        owner = self.owner(self.body())

        def write() -> Response:
            if find_conversation(owner, conversation_id).archived:
                unarchive_conversation(owner, conversation_id, now=timezone.now())
            return self.respond(find_conversation(owner, conversation_id))

        return self.write_once(write)

    def end(self, request: Request, conversation_id: str) -> Response:
        """End the session. Queues extraction and, if it is long, a summary; clears session, working memory and ledger.

        `extracted_count` shows how far its turns were searched for knowledge. Turns of a conversation that nobody ends
        are searched within 15 minutes.

        Ending twice has the effect of ending once. A later turn reopens the conversation. 422 for an end before the
        last turn. A key of an agent that did not open the conversation clears only the agent's own working memory: the
        conversation goes on, and 403 answers an `outcome` or `event_time`.
        """
        body = self.body()
        owner, end = self.owner(body), {"outcome": "", **changed_fields(body)}
        # not in `write_once`: Redis is cleared after the commit, and clearing twice has the effect of clearing once
        ended = end_conversation(owner, conversation_id, **end, now=timezone.now())
        if queue_state_of_summary(ended) == "queued":
            run_soon(SUMMARIZE_JOB)
        has_left = owner.is_guest_of(ended.agent_id)
        if not has_left and ended.extract_after is not None:
            run_soon(EXTRACTION_JOB)
        return self.respond(ended, {"status": "left", "cleared": True} if has_left else {"status": "ended"})


class RelatedConversation(AnswerSerializer):
    columns = columns_of(Conversation, "conversation_id title started_at last_turn_at ended_at turn_count")
    step = serializers.IntegerField(help_text="Distance from the conversation asked for. Negative: it came before.")
    continues = serializers.CharField(help_text="Conversation that it resumes. Empty: none.")
    outcome = serializers.ChoiceField(OUTCOMES)


class ConversationLineageAnswer(AnswerSerializer):
    conversation = RelatedConversation()
    earlier = RelatedConversation(many=True, help_text="Conversations that it resumes, nearest first.")
    later = RelatedConversation(many=True, help_text="Conversations that resume it, nearest first.")
    truncated = serializers.BooleanField(help_text="True if there are more in either direction.")


def serialize_related(related: LineageStep) -> dict[str, Any]:
    return RelatedConversation.serialize(related.conversation, {"step": related.step})


class ConversationLineages(OwnerViewSet):
    """The lineage of a conversation in which the agent takes part."""

    for_users = True
    queries = {"retrieve": ActingFields}
    answers = {"retrieve": ConversationLineageAnswer}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Return the lineage: up to 200 conversations in each direction.

        Only conversations in which the agent takes part are listed. The chain continues beyond one that is left out.
        """
        found = read_conversation_lineage(self.owner(self.query()), conversation_id)
        return self.respond(
            found,
            {
                "conversation": RelatedConversation.serialize(found.conversation, {"step": 0}),
                "earlier": [*map(serialize_related, found.earlier)],
                "later": [*map(serialize_related, found.later)],
            },
        )


class NewParticipant(ActingFields):
    participant_id = ExternalId(help_text="Agent that is to take part.")


class ParticipantAnswer(AnswerSerializer):
    agent_id = serializers.CharField(help_text="Agent that takes part.")
    created_at = serializers.DateTimeField(help_text="Time since which it takes part.")


class Participants(OwnerViewSet):
    """A key that is bound to an agent takes part where the agent opened the conversation, or was added here.

    The agent that opened the conversation and keys of no agent add and remove participants; 403 for other agents.
    """

    for_users = True
    operation_ids = {"create": "add_participant", "destroy": "remove_participant"}
    bodies = {"create": NewParticipant}
    queries = {"list": ActingFields, "destroy": ActingFields}
    answer = ParticipantAnswer

    def list(self, request: Request, conversation_id: str) -> Response:
        """List the agents that take part, latest first."""
        return self.respond_page(list_participants(self.owner(self.query()), conversation_id))

    def create(self, request: Request, conversation_id: str) -> Response:
        """Let an agent read the conversation and write into it. Adding it twice changes nothing."""
        body, owner = self.body_and_owner()
        return self.write_row(add_participant, owner, conversation_id, agent_id=body["participant_id"])

    def destroy(self, request: Request, conversation_id: str, participant_id: str) -> Response:
        """Stop an agent from reading the conversation. 422 for the agent that opened it."""
        remove_participant(self.owner(self.query()), conversation_id, agent_id=participant_id)
        return Response(status=204)

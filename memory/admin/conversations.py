"""Conversations, which open as a transcript with their live data and actions next to it, and their participants."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from memory.admin.base import REDIS_IS_DOWN, AuditedAdmin, read_number, staff_owner
from memory.admin.columns import MINUTE, agent_column, column
from memory.admin.conversation_sidebar import (
    format_progress,
    format_state,
    list_properties,
    read_episodes,
    read_lineage,
    read_live_data,
    read_participants,
    read_records,
)
from memory.admin.conversation_timeline import show_timeline
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, JSONObjectField
from memory.admin.filters import ConditionFilter
from memory.admin.object_actions import ObjectAction, ObjectActionAdmin
from memory.admin.text import excerpt_of, mark_invisible
from memory.admin.transcripts import choose_window, read_transcript
from memory.models import Conversation, Kind, Memory, Participant
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import change_conversation
from memory.services.conversations.queue import EXTRACTION, SUMMARIES
from memory.services.conversations.staff_edits import (
    EXTRACTION_JOB,
    SUMMARIZE_JOB,
    archive_conversation,
    delete_conversation,
    delete_conversation_and_episodes,
    request_extraction_as_staff,
    request_summary_as_staff,
    retry_failed,
    retry_summary,
    set_legal_hold,
    unarchive_conversation,
)
from memory.tasks import notify_job_worker, run_soon
from memory_project.admin_lists import AccountFilter
from memory_project.http.problems import REDIS_ERRORS
from memory_project.staff import StaffGroup

MAX_TITLE_CHARACTERS = 200


class CorrectForm(forms.Form):
    title = forms.CharField(
        max_length=MAX_TITLE_CHARACTERS, required=False, strip=False, widget=forms.TextInput(attrs={"dir": "auto"})
    )
    metadata = JSONObjectField(required=False, label="Metadata as JSON")


class EndForm(forms.Form):
    outcome = forms.ChoiceField(required=False, choices=[("", "no outcome"), *Conversation.Outcome.choices])


def correct(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    changes = {name: value for name, value in data.items() if value != getattr(conversation, name)}
    if not changes:
        return "Nothing to save: title and metadata are the same."
    change_conversation(owner, conversation.conversation_id, changes=changes, now=datetime.now(UTC))
    return f"Saved: {', '.join(sorted(changes))}."


def end(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    ended = end_conversation(owner, conversation.conversation_id, outcome=data["outcome"], now=datetime.now(UTC))
    if ended.summarize_to is not None:
        run_soon(SUMMARIZE_JOB)
    if ended.cleared_at is None:
        return "The conversation is ended. Redis does not answer: its live data is cleared as soon as Redis does."
    return "The conversation is ended. Its session, working memory and ledger are cleared."


def summarize(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    requested = request_summary_as_staff(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(notify_job_worker, SUMMARIZE_JOB))
    is_queued = requested.summarize_to is not None
    return "A summary of all turns is queued." if is_queued else "The summary covers all turns already."


def retry(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    retry_summary(owner, conversation.conversation_id, now=datetime.now(UTC))
    transaction.on_commit(partial(notify_job_worker, SUMMARIZE_JOB))
    return "The summary is queued and tried again now."


def extract(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    requested = request_extraction_as_staff(owner, conversation.conversation_id, now=datetime.now(UTC))
    if requested.extracted_count == requested.turn_count:
        return "Knowledge was already extracted from all turns."
    run_soon(EXTRACTION_JOB)
    return "Extraction from the remaining turns is queued."


def archive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    archive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "The conversation and its turns are archived: they can be read, but searches no longer find them."


def unarchive(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    unarchive_conversation(owner, conversation.conversation_id, now=datetime.now(UTC))
    return "The conversation and its turns are no longer archived."


def keep(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    set_legal_hold(owner, conversation.conversation_id, value=True)
    return "Retention deletes nothing of this conversation from now on."


def release(owner: Owner, conversation: Conversation, data: dict[str, Any]) -> str:
    set_legal_hold(owner, conversation.conversation_id, value=False)
    return "The legal hold is lifted."


CONVERSATION_ACTIONS = {
    "correct": ObjectAction(run=correct, form=CorrectForm),
    "end": ObjectAction(run=end, form=EndForm),
    "summarize": ObjectAction(run=summarize),
    "retry": ObjectAction(run=retry),
    "extract": ObjectAction(run=extract),
    "archive": ObjectAction(run=archive),
    "unarchive": ObjectAction(run=unarchive),
    "legal_hold": ObjectAction(run=keep),
    "lift_legal_hold": ObjectAction(run=release),
}


class ParticipantForm(forms.ModelForm):  # type: ignore[type-arg]
    conversation_id = ExternalIdField()
    agent_id = ExternalIdField()


@admin.register(Participant)
class ParticipantAdmin(ListExportAdmin, AuditedAdmin):
    """The pages of participants: added to let an agent read a conversation, deleted to stop it."""

    memory_type = "participant"
    changed_by = StaffGroup.OPERATOR
    form = ParticipantForm
    list_display = ("conversation_id", "agent_id", "account", "created_at")
    list_filter = (AccountFilter,)
    search_fields = ("conversation_id__exact", "agent_id__exact")
    search_help_text = "Search for a complete conversation or agent."
    autocomplete_fields = ("account",)
    fields = ("account", "conversation_id", "agent_id")
    allow_change = False


class StateFilter(ConditionFilter):
    title = "state"
    parameter_name = "state"
    options = {"open": ("Open", Q(ended_at=None)), "ended": ("Ended", Q(ended_at__isnull=False))}


class SummaryFilter(ConditionFilter):
    title = "summary"
    parameter_name = "summary"
    options = {
        "none": ("None", Q(summarized_count=0)),
        "queued": ("Queued", Q(summarize_after__isnull=False)),
        "failing": ("Failing", ~Q(summary_error="") & Q(summary_parked_at=None)),
        "parked": ("Parked", Q(summary_parked_at__isnull=False)),
    }


class ExtractionFilter(ConditionFilter):
    """A filter by the state of turns from which no knowledge was extracted yet."""

    title = "extraction"
    parameter_name = "extraction"
    options = {
        "waiting": ("Waiting", Q(extract_after__isnull=False)),
        "failing": ("Failing", Q(extract_after__isnull=False) & ~Q(extract_error="")),
        "parked": ("Parked", Q(extract_parked_at__isnull=False)),
    }


def name_conversation(conversation: Conversation) -> str:
    if not conversation.title:
        return excerpt_of(conversation.conversation_id)
    return f"{excerpt_of(conversation.title)} ({excerpt_of(conversation.conversation_id)})"


def rows_to_change(owner: Owner, row_ids: Sequence[UUID]) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(account_id=owner.account_id, pk__in=row_ids)
    return rows.defer("metadata", "saved_session").order_by("-pk")


def extract_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Request the extraction of the turns that remain in each conversation."""

    def request(row: Conversation) -> bool:
        requested = request_extraction_as_staff(owner, row.conversation_id, now=now)
        return requested.extracted_count < requested.turn_count

    done = change_each(rows_to_change(owner, row_ids), request)
    if done.changed:
        run_soon(EXTRACTION_JOB)
    return done


def retry_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Queue again what failed in each conversation, or is parked."""
    jobs: set[str] = set()

    def retry_one(row: Conversation) -> bool:
        failed = retry_failed(owner, row, now=now)
        jobs.update(failed)
        return bool(failed)

    done = change_each(rows_to_change(owner, row_ids), retry_one)
    for job in sorted(jobs):
        run_soon(job)
    return done


@admin.register(Conversation)
class ConversationAdmin(ListExportAdmin, ObjectActionAdmin):
    """The pages of conversations, which agents start. Turns are corrected on pages of their own."""

    list_display = ("named", "account", "started_by", "user_and_channel", "turns", "state", "summary", "extraction")
    list_filter = (AccountFilter, StateFilter, "archived", SummaryFilter, ExtractionFilter)
    search_fields = ("conversation_id",)
    search_help_text = "Search for a complete conversation, user, or agent that takes part."
    bulk_deletion = False
    bulk_actions = (
        BulkAction(
            name="extract",
            label="Extract knowledge from selected conversations now",
            done="Queued for extraction:",
            apply=extract_rows,
        ),
        BulkAction(
            name="try_again", label="Retry what failed or is parked", done="Queued once more:", apply=retry_rows
        ),
    )
    row_pages = {"timeline": show_timeline}
    object_actions = CONVERSATION_ACTIONS
    delete_confirmation_template = "admin/memory/conversation/delete_confirmation.html"
    allow_add = False

    named = column("Conversation", name_conversation)
    started_by = agent_column("Started by")
    user_and_channel = column(
        "User, channel", lambda row: mark_invisible(", ".join(filter(None, [row.user_id, row.channel])))
    )
    turns = column(
        "Turns", lambda row: f"{row.turn_count}, last {row.last_turn_at:{MINUTE}}" if row.last_turn_at else "0"
    )
    state = column("State", format_state)
    summary = column("Summary", lambda row: format_progress(row, SUMMARIES, datetime.now(UTC)))
    extraction = column("Extraction", lambda row: format_progress(row, EXTRACTION, datetime.now(UTC)))

    def name_row(self, row: Any) -> str:
        return name_conversation(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        return super().get_queryset(request).defer("metadata", "saved_session")

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        participants = Participant.objects.filter(
            account_id=OuterRef("account_id"), conversation_id=OuterRef("conversation_id"), agent_id=search_term
        )
        named = Q(conversation_id=search_term) | Q(user_id=search_term) | Q(agent_id=search_term)
        return named | Exists(participants)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the transcript and the forms of the actions, instead of a form."""
        conversation = self.find_row(request, object_id)
        failed: forms.Form | None = None
        if request.method == "POST":
            failed = self.perform_action(request, conversation)
            if failed is None:
                return HttpResponseRedirect(request.get_full_path())
            conversation.refresh_from_db()
        heading = mark_invisible(conversation.title or conversation.conversation_id)
        context = describe_transcript(request, conversation) | describe_sidebar(request, conversation)
        context["action_forms"] = {
            **self.action_forms(None),
            "correct": failed if isinstance(failed, CorrectForm) else correction_form(conversation),
        }
        return self.render_page(
            request,
            "conversation/transcript.html",
            heading,
            **context,
            heading=heading,
            conversation=conversation,
            failed_form=failed,
            is_failing=bool(conversation.summary_error),
            may_write=self.has_change_permission(request, conversation),
            may_delete=self.has_delete_permission(request, conversation),
        )

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        conversation = self.find_row(request, object_id)
        may_delete_episodes = request.user.has_perm("memory.delete_episodicmemory")
        episode_count = find_episodes(conversation).count() if may_delete_episodes else 0
        try:
            return super().delete_view(request, object_id, {**(extra_context or {}), "episode_count": episode_count})
        except REDIS_ERRORS:
            self.message_user(request, REDIS_IS_DOWN, messages.ERROR)
            return HttpResponseRedirect(request.path)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        named = [
            f"{mark_invisible(row.conversation_id)}, its {row.turn_count} turns with their vectors and links, "
            "its structured turns and work episodes, the input and output of tools in it, its participants, "
            "and its live data"
            for row in objs
        ]
        return named, {"turns": sum(row.turn_count for row in objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        owner = staff_owner(request, obj.account_id)
        if "episodes" not in request.POST:
            delete_conversation(owner, obj.conversation_id)
        elif request.user.has_perm("memory.delete_episodicmemory"):
            delete_conversation_and_episodes(owner, obj.conversation_id)
        else:
            raise PermissionDenied


def correction_form(conversation: Conversation) -> CorrectForm:
    initial = {"title": conversation.title, "metadata": conversation.metadata}
    return CorrectForm(initial=initial, auto_id="id_correct_%s")


def describe_transcript(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """Return the turns and the structured turns of the page, each only if the user may look at them."""
    start, turn = (read_number(request.GET.get(name, "")) for name in ("from", "turn"))
    window = choose_window(conversation, start=start, turn=turn)
    may_read, may_see_records = (request.user.has_perm(f"memory.view_{model}") for model in ("turn", "turnrecord"))
    return {
        "window": window,
        "may_read": may_read,
        "turns": read_transcript(conversation, window) if may_read else [],
        "last_summarized": conversation.summarized_count - 1,
        "may_see_records": may_see_records,
        "records": read_records(conversation, window) if may_see_records else [],
    }


def describe_sidebar(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """Return the sections of the sidebar, each only with the permission for its own pages."""
    episodes, working, ledger, memories = (
        request.user.has_perm(f"memory.view_{model}")
        for model in ("episodicmemory", "workingmemoryaccount", "ledgeraccount", "memory")
    )
    return {
        "properties": list_properties(conversation, datetime.now(UTC)),
        "lineage": read_lineage(conversation),
        "participants": read_participants(conversation),
        "may_see_episodes": episodes,
        "episodes": read_episodes(conversation) if episodes else [],
        "may_see_working": working,
        "may_see_ledger": ledger,
        "live": read_live_data(conversation, working=working, ledger=ledger, memories=memories),
        "working_url": live_page_url("workingmemoryaccount", conversation),
        "ledger_url": live_page_url("ledgeraccount", conversation),
    }


def live_page_url(model: str, conversation: Conversation) -> str:
    page = reverse(f"admin:memory_{model}_conversation", args=[conversation.account_id])
    return f"{page}?{urlencode({'conversation': conversation.conversation_id})}"


def find_episodes(conversation: Conversation) -> QuerySet[Memory]:
    owner = Owner(account_id=conversation.account_id)
    return Memory.objects.visible_to(owner, Kind.EPISODE).in_conversation(conversation.conversation_id)

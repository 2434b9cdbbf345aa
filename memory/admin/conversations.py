"""Conversations, each opening as a transcript with its surroundings, and who takes part in them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from memory.admin.base import REDIS_IS_DOWN, AuditedAdmin, BoundedAdmin, staff_owner
from memory.admin.conversation_actions import DEEDS, CorrectForm, EndForm
from memory.admin.fields import ExternalIdField
from memory.admin.surroundings import (
    read_episodes,
    read_lineage,
    read_live_side,
    read_participants,
    read_records,
    tell_facts,
    tell_progress,
    tell_state,
)
from memory.admin.text import mark_invisible, shorten
from memory.admin.transcripts import Window, choose_window, read_turns
from memory.errors import MemoryServiceError
from memory.models import Conversation, Kind, Memory, Participant
from memory.owner import Owner
from memory.services.conversations.queue import EXTRACTION, SUMMARIES
from memory.services.conversations.staff_edits import (
    CONSOLIDATE,
    ask_for_extraction,
    delete_conversation,
    delete_conversation_and_episodes,
    retry_failed,
)
from memory.tasks import run_soon
from memory_project.admin_lists import AccountFilter
from memory_project.http.problems import REDIS_ERRORS


class ParticipantForm(forms.ModelForm):  # type: ignore[type-arg]
    conversation_id = ExternalIdField()
    agent_id = ExternalIdField()


@admin.register(Participant)
class ParticipantAdmin(AuditedAdmin):
    """Added to let an agent read, deleted to stop it; there is nothing to change."""

    memory_type = "participant"
    form = ParticipantForm
    list_display = ("conversation_id", "agent_id", "account", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("conversation_id__exact", "agent_id__exact")
    search_help_text = "A conversation or an agent, in full."
    autocomplete_fields = ("account",)
    fields = ("account", "conversation_id", "agent_id")

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return (("open", "Open"), ("ended", "Ended"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("open", "ended"):
            return queryset
        return queryset.filter(ended_at__isnull=self.value() == "open")


class SummaryFilter(admin.SimpleListFilter):
    title = "summary"
    parameter_name = "summary"
    conditions = {
        "none": Q(summarized_count=0),
        "queued": Q(summarize_after__isnull=False),
        "failing": ~Q(summary_error="") & Q(summary_parked_at=None),
        "parked": Q(summary_parked_at__isnull=False),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(name, name.capitalize()) for name in self.conditions]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = self.conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class ExtractionFilter(admin.SimpleListFilter):
    """By what is still to be looked through for knowledge."""

    title = "extraction"
    parameter_name = "extraction"
    conditions = {
        "waiting": Q(extract_after__isnull=False),
        "failing": Q(extract_after__isnull=False) & ~Q(extract_error=""),
        "parked": Q(extract_parked_at__isnull=False),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(name, name.capitalize()) for name in self.conditions]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = self.conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


@admin.register(Conversation)
class ConversationAdmin(BoundedAdmin):
    """Began by agents, never here. Turns are read in the transcript, and corrected on pages of their own."""

    list_display = ("named", "account", "began_by", "user_and_channel", "turns", "state", "summary", "extraction")
    list_filter = (AccountFilter, StateFilter, "archived", SummaryFilter, ExtractionFilter)
    list_select_related = ("account",)
    search_fields = ("conversation_id",)
    search_help_text = "A conversation, a user or an agent that takes part, in full."
    actions = ("extract", "try_again")
    delete_confirmation_template = "admin/memory/conversation/delete_confirmation.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> Any:
        """Without the action that deletes: conversations are erased one by one."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.action(description="Extract from selected conversations now", permissions=["change"])
    def extract(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        queued = 0
        for row in queryset.only("account_id", "conversation_id"):
            owner = staff_owner(request, row.account_id)
            asked = ask_for_extraction(owner, row.conversation_id, now=datetime.now(UTC))
            if asked.extracted_count < asked.turn_count:
                self.log_change(request, row, "extract")
                queued += 1
        if queued:
            run_soon(CONSOLIDATE)
        self.message_user(request, f"Queued for extraction: {queued}.", messages.SUCCESS)

    @admin.action(description="Try again what failed or is parked", permissions=["change"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        jobs: set[str] = set()
        retried = 0
        for row in queryset.defer("metadata", "saved_session"):
            done = retry_failed(staff_owner(request, row.account_id), row, now=datetime.now(UTC))
            if done:
                self.log_change(request, row, "try again")
                retried += 1
            jobs |= done
        for job in sorted(jobs):
            run_soon(job)
        self.message_user(request, f"Queued once more: {retried}.", messages.SUCCESS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        return super().get_queryset(request).defer("metadata", "saved_session")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        part = Participant.objects.filter(
            account_id=OuterRef("account_id"), conversation_id=OuterRef("conversation_id"), agent_id=search_term
        )
        named = Q(conversation_id=search_term) | Q(user_id=search_term) | Q(agent_id=search_term)
        return queryset.filter(named | Exists(part)), False

    @admin.display(description="Conversation")
    def named(self, conversation: Conversation) -> str:
        if not conversation.title:
            return shorten(conversation.conversation_id)
        return f"{shorten(conversation.title)} ({shorten(conversation.conversation_id)})"

    @admin.display(description="Began by")
    def began_by(self, conversation: Conversation) -> str:
        return mark_invisible(conversation.agent_id) or "the account"

    @admin.display(description="User, channel")
    def user_and_channel(self, conversation: Conversation) -> str:
        return mark_invisible(", ".join(filter(None, [conversation.user_id, conversation.channel])))

    @admin.display(description="Turns")
    def turns(self, conversation: Conversation) -> str:
        last = conversation.last_turn_at
        return f"{conversation.turn_count}, last {last:%Y-%m-%d %H:%M}" if last else "0"

    @admin.display(description="State")
    def state(self, conversation: Conversation) -> str:
        return tell_state(conversation)

    @admin.display(description="Summary")
    def summary(self, conversation: Conversation) -> str:
        return tell_progress(conversation, SUMMARIES, datetime.now(UTC))

    @admin.display(description="Extraction")
    def extraction(self, conversation: Conversation) -> str:
        return tell_progress(conversation, EXTRACTION, datetime.now(UTC))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Instead of a form: the transcript, and forms for what may be done."""
        conversation = self.find_conversation(request, object_id)
        tried: forms.Form | None = None
        if request.method == "POST":
            tried = self.act(request, conversation)
            if tried is None:
                return HttpResponseRedirect(request.get_full_path())
            conversation.refresh_from_db()
        return TemplateResponse(
            request, "admin/memory/conversation/transcript.html", self.describe(request, conversation, tried)
        )

    def find_conversation(self, request: HttpRequest, object_id: str) -> Conversation:
        conversation: Conversation | None = self.get_object(request, object_id)
        if not self.has_view_permission(request, conversation):
            raise PermissionDenied
        if conversation is None:
            raise Http404("no such conversation")
        return conversation

    def act(self, request: HttpRequest, conversation: Conversation) -> forms.Form | None:
        """Do what was posted. Answers the form when there is something to mend in it, after saying what."""
        if not self.has_change_permission(request, conversation):
            raise PermissionDenied
        action = request.POST.get("action", "")
        if action not in DEEDS:
            raise Http404
        deed = DEEDS[action]
        form = deed.form(request.POST)
        if not form.is_valid():
            return form
        try:
            done = deed.run(staff_owner(request, conversation.account_id), conversation, form.cleaned_data)
        except MemoryServiceError as err:
            form.add_error(None, f"{str(err)[:1].upper()}{str(err)[1:]}.")
            return form
        self.log_change(request, conversation, action)
        self.message_user(request, done, messages.SUCCESS)
        return None

    def describe(self, request: HttpRequest, conversation: Conversation, tried: forms.Form | None) -> dict[str, Any]:
        corrected = tried if isinstance(tried, CorrectForm) else CorrectForm.of(conversation)
        heading = mark_invisible(conversation.title or conversation.conversation_id)
        transcript = describe_transcript(request, conversation)
        return {
            **self.admin_site.each_context(request),
            **transcript,
            **describe_surroundings(request, conversation),
            **describe_records(request, conversation, transcript["window"]),
            "opts": self.opts,
            "title": heading,
            "heading": heading,
            "conversation": conversation,
            "tried": tried,
            "correct_form": corrected,
            "end_form": EndForm(),
            "is_failing": bool(conversation.summary_error),
            "may_write": self.has_change_permission(request, conversation),
            "may_delete": self.has_delete_permission(request, conversation),
        }

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        conversation = self.find_conversation(request, object_id)
        episodes = episodes_of(conversation) if self.may_delete_episodes(request) else None
        context = {**(extra_context or {}), "episode_count": episodes.count() if episodes is not None else 0}
        try:
            return super().delete_view(request, object_id, context)
        except REDIS_ERRORS:
            self.message_user(request, REDIS_IS_DOWN, messages.ERROR)
            return HttpResponseRedirect(request.path)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        named = [
            f"{mark_invisible(row.conversation_id)}, its {row.turn_count} turns with their vectors and links, "
            "its structured turns and work episodes, what tools were given and gave back in it, who takes part, "
            "and its live side"
            for row in objs
        ]
        return named, {"turns": sum(row.turn_count for row in objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        owner = staff_owner(request, obj.account_id)
        if "episodes" not in request.POST:
            delete_conversation(owner, obj.conversation_id)
        elif self.may_delete_episodes(request):
            delete_conversation_and_episodes(owner, obj.conversation_id)
        else:
            raise PermissionDenied

    def may_delete_episodes(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memory.delete_episodicmemory")


def describe_transcript(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    window = choose_window(conversation, start=read_number(request, "from"), turn=read_number(request, "turn"))
    may_read = request.user.has_perm("memory.view_turn")
    return {
        "window": window,
        "may_read": may_read,
        "turns": read_turns(conversation, window) if may_read else [],
        "last_summarized": conversation.summarized_count - 1,
    }


def describe_records(request: HttpRequest, conversation: Conversation, window: Window) -> dict[str, Any]:
    may_see = request.user.has_perm("memory.view_turnrecord")
    return {"may_see_records": may_see, "records": read_records(conversation, window) if may_see else []}


def describe_surroundings(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """Each section by the permission for the pages of its own that it has."""
    user = request.user
    episodes, working, ledger = (
        user.has_perm(f"memory.view_{model}") for model in ("episodicmemory", "workingmemoryaccount", "ledgeraccount")
    )
    return {
        "facts": tell_facts(conversation, datetime.now(UTC)),
        "lineage": read_lineage(conversation),
        "participants": read_participants(conversation),
        "may_see_episodes": episodes,
        "episodes": read_episodes(conversation) if episodes else [],
        "may_see_working": working,
        "may_see_ledger": ledger,
        "live": read_live_side(conversation, working=working, ledger=ledger),
        "working_url": live_page("workingmemoryaccount", conversation),
        "ledger_url": live_page("ledgeraccount", conversation),
    }


def live_page(model: str, conversation: Conversation) -> str:
    page = reverse(f"admin:memory_{model}_conversation", args=[conversation.account_id])
    return f"{page}?{urlencode({'conversation': conversation.conversation_id})}"


def episodes_of(conversation: Conversation) -> QuerySet[Memory]:
    owner = Owner(account_id=conversation.account_id)
    return Memory.objects.visible_to(owner, Kind.EPISODE).in_conversation(conversation.conversation_id)


def read_number(request: HttpRequest, name: str) -> int | None:
    """A number of the address; None where there is none, and for nonsense."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

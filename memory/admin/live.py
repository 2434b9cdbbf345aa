"""Pages for what lives in Redis, an account at a time: which conversations have it, and one conversation's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin
from memory.admin.fields import ExternalIdField
from memory.errors import MemoryServiceError
from memory.models import Account
from memory_project.redis import Place

MOST_SCANS = 20
ENOUGH_CONVERSATIONS = 50
MOST_ROWS = 100

Scan = Callable[[UUID, int], tuple[list[str], int]]


class ConversationForm(forms.Form):
    """Which conversation to open."""

    conversation = ExternalIdField(label="Open a conversation")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPage:
    """Some conversations, and where to go on; cursor 0 is the end."""

    conversation_ids: list[str]
    cursor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where conversations are found, and what there is to do about one: its rows, each action's form and its deed.

    A deed answers the sentence to show. It may raise ValueError and MemoryServiceError, whose messages are shown.
    """

    scan: Scan
    rows: Callable[[Place], list[Any]]
    row_name: Callable[[Any], str]
    forms: Mapping[str, type[forms.Form]]
    deeds: Mapping[str, Callable[[HttpRequest, Place, dict[str, Any]], str]]


def collect_page(scan: Scan, account_id: UUID, cursor: int) -> ScanPage:
    """SCAN pages may be empty: go on until there is enough to show, but not for ever."""
    found: dict[str, None] = {}
    for _ in range(MOST_SCANS):
        conversation_ids, cursor = scan(account_id, cursor)
        found |= dict.fromkeys(conversation_ids)
        if not cursor or len(found) >= ENOUGH_CONVERSATIONS:
            break
    return ScanPage(conversation_ids=sorted(found), cursor=cursor)


class LivePages(BoundedAdmin):
    """The list of accounts, each the door to its conversations.

    Looking needs the view permission of the proxy, writing its change permission.
    """

    desk: ClassVar[Desk]
    list_display = ("name", "conversations")
    list_display_links = None
    search_fields = ("name",)
    ordering = ("name", "pk")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    @admin.display(description="Conversations")
    def conversations(self, account: Account) -> SafeString:
        return format_html('<a href="{}">Conversations of {}</a>', self.address("change", account.id), account.name)

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_conversation"
        view = self.admin_site.admin_view(self.conversation_view)
        return [path("<path:object_id>/conversation/", view, name=name), *super().get_urls()]

    def address(self, page: str, account_id: UUID, **query: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        address = reverse(name, args=[account_id])
        return f"{address}?{urlencode(query)}" if query else address

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Instead of a form over the account: its conversations, a page at a time."""
        account = self.find_account(request, object_id)
        form = ConversationForm(request.GET if "conversation" in request.GET else None)
        if form.is_valid():
            chosen = form.cleaned_data["conversation"]
            return HttpResponseRedirect(self.address("conversation", account.id, conversation=chosen))
        return self.unless_redis_is_down(request, lambda: self.list_conversations(request, account, form))

    def list_conversations(self, request: HttpRequest, account: Account, form: ConversationForm) -> HttpResponse:
        page = collect_page(self.desk.scan, account.id, read_cursor(request))
        found = [
            (conversation_id, self.address("conversation", account.id, conversation=conversation_id))
            for conversation_id in page.conversation_ids
        ]
        context = {"form": form, "found": found, "cursor": page.cursor, "began": not read_cursor(request)}
        return self.answer(request, account, "conversations", context)

    def conversation_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        account = self.find_account(request, object_id)
        form = ConversationForm(request.GET)
        if not form.is_valid():
            return HttpResponseRedirect(self.address("change", account.id))
        place = Place(account_id=account.id, conversation_id=form.cleaned_data["conversation"])
        return self.unless_redis_is_down(request, lambda: self.answer_conversation(request, account, place))

    def answer_conversation(self, request: HttpRequest, account: Account, place: Place) -> HttpResponse:
        tried: forms.Form | None = None
        if request.method == "POST":
            tried = self.act(request, account, place)
            if tried is None:
                return HttpResponseRedirect(request.get_full_path())
        wanted = request.GET.get("named", "")
        rows = [row for row in self.desk.rows(place) if wanted in self.desk.row_name(row)]
        context = {
            "place": place,
            "rows": rows[:MOST_ROWS],
            "row_count": len(rows),
            "named": wanted,
            "tried": tried,
            "form": self.desk.forms["add"](),
            "may_write": self.has_change_permission(request),
        }
        shown = {"title": f"{str(self.opts.verbose_name).capitalize()} of {place.conversation_id}"}
        return self.answer(request, account, self.opts.model_name or "", shown | context)

    def act(self, request: HttpRequest, account: Account, place: Place) -> forms.Form | None:
        """Do what was posted. Answers the form when there is something to mend in it, after saying what."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        action = request.POST.get("action", "")
        if action not in self.desk.deeds:
            raise Http404
        form = self.desk.forms[action](request.POST)
        if not form.is_valid():
            return form
        try:
            done = self.desk.deeds[action](request, place, form.cleaned_data)
        except (ValueError, MemoryServiceError) as err:
            form.add_error(None, f"{str(err)[:1].upper()}{str(err)[1:]}.")
            return form
        self.log_change(request, account, f"{action} in {place.conversation_id}")
        self.message_user(request, done, messages.SUCCESS)
        return None

    def find_account(self, request: HttpRequest, object_id: str) -> Account:
        account: Account | None = self.get_object(request, object_id)
        if not self.has_view_permission(request, account):
            raise PermissionDenied
        if account is None:
            raise Http404("no such account")
        return account

    def answer(self, request: HttpRequest, account: Account, page: str, context: dict[str, Any]) -> HttpResponse:
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "account": account,
            "account_url": self.address("change", account.id),
            "title": f"{str(self.opts.verbose_name).capitalize()} of {account.name}",
        }
        return TemplateResponse(request, f"admin/memory/live/{page}.html", {**shared, **context})


def read_cursor(request: HttpRequest) -> int:
    """Where to go on; from the start for nonsense. Redis takes 64 bits."""
    text = request.GET.get("cursor", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0

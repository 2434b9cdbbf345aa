"""Pages of what lives in Redis, one account at a time: working memory and injection ledger of conversations."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.forms.fields import InvalidJSONInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from ledger import store
from ledger.models import ITEM_KEY_LENGTH, VALUE_LENGTH
from memory import conf
from memory.admin.base import read_number, staff_owner
from memory.admin.fields import ExternalIdField, JSONValueField
from memory.admin.object_actions import EmptyForm, ObjectAction, ObjectActionAdmin
from memory.admin.text import mark_invisible
from memory.errors import MemoryServiceError, NotFound, TooLarge
from memory.models import Account, Conversation, LedgerAccount, WorkingMemoryAccount
from memory.owner import Owner
from memory.services.working_memory import (
    clear_working_memory,
    correct_field,
    correct_session_value,
    delete_field,
    delete_session_value,
    evict_item,
    mark_item,
)
from memory.tiers import working
from memory.tiers.agent_working import MAX_TTL_SECONDS
from memory.tiers.base import MAX_NAME_CHARACTERS, from_json
from memory.tiers.named_values import whole_seconds
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import session_ref
from memory.tiers.working import stored_fields
from memory_project.redis import ConversationRef, read_stored_conversations, scan_conversations
from memory_project.staff import visible_accounts

MAX_SCANS = 20
ENOUGH_ROWS = 50
MAX_ROWS = 100
MAX_WITHOUT_LIVE_DATA = 20
EMPTY_BOX = InvalidJSONInput("")
"""What a box for JSON shows before anything is typed, which is neither null nor an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRow:
    """A stored value: JSON to edit, or a text. `ttl_seconds` is set if the value expires by itself."""

    name: str
    value: str
    writer: str = ""
    ttl_seconds: int | None = None

    @property
    def shown_name(self) -> str:
        return mark_invisible(self.name)

    @property
    def shown_value(self) -> str:
        return mark_invisible(self.value)

    @property
    def shown_writer(self) -> str:
        return mark_invisible(self.writer)


def json_box(json: Any) -> str:
    """Return a value as it is shown in a box to edit."""
    return str(JSONValueField().prepare_value(json))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """A row of a list of what is stored: the address of its page, how much it holds, and when all of it expires."""

    name: str
    url: str
    size: int
    ttl_seconds: int | None
    beginning: str = ""

    @property
    def shown_name(self) -> str:
        return mark_invisible(self.name)

    @property
    def expires_in(self) -> str:
        return show_expiry(self.ttl_seconds)


def show_expiry(ttl_seconds: int | None) -> str:
    """Return the time after which all of it is gone, unless it is used: "6 days, 23:59:58"."""
    return "never" if ttl_seconds is None else str(timedelta(seconds=ttl_seconds))


class ConversationForm(forms.Form):
    conversation = ExternalIdField(label="Open a conversation")


class LiveAdmin(ObjectActionAdmin):
    """A list of accounts, which lead to what they have in Redis. The permissions are those of the proxy model."""

    contents: ClassVar[str]
    """The name of what an account leads to."""
    refusals = (ValueError, MemoryServiceError)
    list_display = ("name", "rows")
    list_display_links = None
    list_select_related = False
    counted_row, counted_rows = "account", "accounts"
    search_fields = ("name",)
    search_help_text = "Search for words of the name of an account."
    ordering = ("name", "pk")
    allow_add = allow_delete = False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the account's page at once to those who see one account, such as the chosen one."""
        visible = visible_accounts(request)
        if visible is not None and len(visible) == 1 and not request.GET and request.method == "GET":
            return HttpResponseRedirect(self.page_url("change", next(iter(visible))))
        return super().changelist_view(request, extra_context)

    @admin.display(description="Contents")
    def rows(self, account: Account) -> SafeString:
        url = self.page_url("change", account.id)
        return format_html('<a href="{}">{} of {}</a>', url, self.contents, account.name)

    def page_url(self, page: str, account_id: UUID, **query: Any) -> str:
        address = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=[account_id])
        return f"{address}?{urlencode(query)}" if query else address

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List what the account has, a page at a time, instead of a form."""
        account = self.find_row(request, object_id)
        return self.unless_redis_is_down(request, lambda: self.show_account(request, account))

    def show_account(self, request: HttpRequest, account: Account) -> HttpResponse:
        raise NotImplementedError

    def render_account_page(
        self, request: HttpRequest, account: Account, page: str, subject: str, context: dict[str, Any]
    ) -> HttpResponse:
        title = f"{str(self.opts.verbose_name).capitalize()} of {subject}"
        context |= {"account": account, "account_url": self.page_url("change", account.id), "contents": self.contents}
        return self.render_page(request, f"live/{page}.html", title, **context)


class ConversationsAdmin(LiveAdmin):
    """Accounts which lead to their conversations."""

    key_name: ClassVar[str]
    """The name of the key of a conversation, which is a hash (`memory_project.redis.KEY_PATTERNS`)."""
    contents = "Conversations"

    def read_rows(self, ref: ConversationRef) -> list[LiveRow]:
        raise NotImplementedError

    def further_context(self, ref: ConversationRef, named: str) -> dict[str, Any]:
        """Return what else the page of a conversation shows of what has this text in its name."""
        return {}

    def show_account(self, request: HttpRequest, account: Account) -> HttpResponse:
        form = ConversationForm(request.GET if "conversation" in request.GET else None)
        if form.is_valid():
            chosen = form.cleaned_data["conversation"]
            return HttpResponseRedirect(self.page_url("conversation", account.id, conversation=chosen))
        return self.list_conversations(request, account, form)

    def list_conversations(self, request: HttpRequest, account: Account, form: ConversationForm) -> HttpResponse:
        scan = partial(scan_conversations, self.key_name, account_id=account.id)
        conversation_ids, context = collect_page(request, scan)
        rows = [
            ListedRow(
                name=stored.conversation_id,
                url=self.page_url("conversation", account.id, conversation=stored.conversation_id),
                size=stored.entries,
                ttl_seconds=stored.ttl_seconds,
            )
            for stored in read_stored_conversations(self.key_name, account.id, conversation_ids)
        ]
        stored = []
        is_whole = context["is_first_page"] and not (context["cursor"] or context["named"])
        if is_whole and request.user.has_perm("memory.view_conversation"):
            stored = self.list_without_live_data(account, conversation_ids)
        context |= {"form": form, "rows": rows, "stored": stored, "noun": str(self.opts.verbose_name)}
        return self.render_account_page(request, account, "conversations", account.name, context)

    def list_without_live_data(self, account: Account, conversation_ids: list[str]) -> list[tuple[str, str]]:
        """Return the latest conversations for which nothing is stored in Redis, with the addresses of their pages."""
        others = Conversation.objects.filter(account_id=account.id).exclude(conversation_id__in=conversation_ids)
        latest = others.order_by("-id").values_list("conversation_id", flat=True)[:MAX_WITHOUT_LIVE_DATA]
        return [(mark_invisible(id_), self.page_url("conversation", account.id, conversation=id_)) for id_ in latest]

    def conversation_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        account = self.find_row(request, object_id)
        form = ConversationForm(request.GET)
        if not form.is_valid():
            return HttpResponseRedirect(self.page_url("change", account.id))
        ref = ConversationRef(account_id=account.id, conversation_id=form.cleaned_data["conversation"])
        return self.unless_redis_is_down(request, lambda: self.show_conversation(request, account, ref))

    row_pages = {"conversation": conversation_view}

    def show_conversation(self, request: HttpRequest, account: Account, ref: ConversationRef) -> HttpResponse:
        failed: forms.Form | None = None
        if request.method == "POST":
            owner, suffix = staff_owner(request, account.id), f" in {ref.conversation_id}"
            failed = self.perform_action(request, account, target=ref, owner=owner, log_suffix=suffix)
            if failed is None:
                return HttpResponseRedirect(request.get_full_path())
        wanted = request.GET.get("named", "")
        rows = [row for row in self.read_rows(ref) if wanted in row.name]
        stored = read_stored_conversations(self.key_name, ref.account_id, [ref.conversation_id])
        add_form = self.object_actions["add"].form
        shown_id = mark_invisible(ref.conversation_id)
        context = {
            "ref": ref,
            "shown_id": shown_id,
            "place": {"conversation": ref.conversation_id},
            "rows": rows[:MAX_ROWS],
            "row_count": len(rows),
            "named": wanted,
            "expires_in": next((show_expiry(each.ttl_seconds) for each in stored), ""),
            "form": failed if isinstance(failed, add_form) else add_form(),
            "may_write": self.has_change_permission(request),
            **self.further_context(ref, wanted),
        }
        page = self.opts.model_name or ""
        return self.render_account_page(request, account, page, shown_id, context)


def collect_page(request: HttpRequest, scan: Callable[..., tuple[list[str], int]]) -> tuple[list[str], dict[str, Any]]:
    """Return the sorted names of the page that the address asks for, and the context of `live/list_page.html`.

    Pages of a scan may be empty, so several are read, but not all.
    """
    named, began = request.GET.get("named", "")[:MAX_NAME_CHARACTERS], read_cursor(request)
    found, cursor = set[str](), began
    for _ in range(MAX_SCANS):
        page, cursor = scan(cursor=cursor, containing=named)
        found |= set(page)
        if not cursor or len(found) >= ENOUGH_ROWS:
            break
    next_page = urlencode({"cursor": str(cursor), "named": named})
    return sorted(found), {"named": named, "is_first_page": not began, "cursor": cursor, "next_page": next_page}


def read_cursor(request: HttpRequest) -> int:
    """Return the cursor in the address, or 0 for nonsense. Redis takes 64 bits."""
    return read_number(request.GET.get("cursor", ""), max_digits=19) or 0


WIDE_BOX = forms.TextInput(attrs={"size": 60})


class NameForm(forms.Form):
    name = forms.CharField(max_length=MAX_NAME_CHARACTERS, strip=False, widget=WIDE_BOX)


class ValueForm(NameForm):
    value = JSONValueField(label="Value as JSON", initial=EMPTY_BOX)
    ttl_seconds = forms.IntegerField(
        label="Seconds to live", min_value=1, max_value=MAX_TTL_SECONDS, initial=conf.AGENT_MEMORY_TTL_SECONDS
    )


class FieldNameForm(NameForm):
    """The name of a field and its writer; no agent means the account itself."""

    field_order = ("agent",)
    agent = ExternalIdField(required=False, help_text="If it is empty, the account writes the field.")


class FieldForm(FieldNameForm):
    value = JSONValueField(label="Value as JSON", initial=EMPTY_BOX)


def save_field(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    try:
        correct_field(
            replace(owner, agent_id=data["agent"]), ref.conversation_id, name=data["name"], value=data["value"]
        )
    except TooLarge as err:
        if not err.facts["stored"]:
            raise
        return f"Saved {mark_invisible(data['name'])}, but {err}."
    return f"Saved {mark_invisible(data['name'])}."


def remove_field(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    delete_field(replace(owner, agent_id=data["agent"]), ref.conversation_id, name=data["name"])
    return f"Deleted {mark_invisible(data['name'])}."


def clear_fields(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    clear_working_memory(owner, ref.conversation_id)
    return "Deleted all fields."


def describe_deletion(name: str, was_there: bool) -> str:
    return f"Deleted {mark_invisible(name)}." if was_there else "The value was gone already."


def find_conversation(ref: ConversationRef) -> Conversation | None:
    """Return the row, without which it is not known where the values of the session are."""
    rows = Conversation.objects.filter(account_id=ref.account_id, conversation_id=ref.conversation_id)
    return rows.defer("metadata", "saved_session").first()


def save_session_value(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    if (conversation := find_conversation(ref)) is None:
        raise NotFound("there is no such conversation any more")
    name, ttl_seconds = data["name"], data["ttl_seconds"]
    correct_session_value(owner, conversation, name=name, value=data["value"], ttl_seconds=ttl_seconds)
    return f"Saved {mark_invisible(name)}, which expires in {ttl_seconds} seconds."


def remove_session_value(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    conversation = find_conversation(ref)
    was_there = conversation is not None and delete_session_value(owner, conversation, name=data["name"])
    return describe_deletion(data["name"], was_there)


def read_session_values(conversation: Conversation) -> list[LiveRow]:
    return [
        LiveRow(name=stored.name, value=json_box(from_json(stored.json)), ttl_seconds=whole_seconds(stored.ttl_ms))
        for stored in SessionMemory(session_ref(conversation)).stored_values()
    ]


@admin.register(WorkingMemoryAccount)
class WorkingMemoryAccountAdmin(ConversationsAdmin):
    """Working memory: fields with their writers, corrected as JSON and deleted one by one or all."""

    key_name = working.KEY_NAME
    object_actions = {
        "add": ObjectAction(run=save_field, form=FieldForm),
        "save": ObjectAction(run=save_field, form=FieldForm),
        "delete": ObjectAction(run=remove_field, form=FieldNameForm),
        "clear": ObjectAction(run=clear_fields, form=EmptyForm),
        "save_session_value": ObjectAction(run=save_session_value, form=ValueForm),
        "delete_session_value": ObjectAction(run=remove_session_value, form=NameForm),
    }

    def read_rows(self, ref: ConversationRef) -> list[LiveRow]:
        return [
            LiveRow(name=field.name, value=json_box(from_json(field.json)), writer=field.agent_id)
            for field in stored_fields(ref)
        ]

    def further_context(self, ref: ConversationRef, named: str) -> dict[str, Any]:
        """Return the values of the session, which a conversation has from its first call on."""
        conversation = find_conversation(ref)
        if conversation is None:
            return {"has_session": False}
        rows = [row for row in read_session_values(conversation) if named in row.name]
        return {
            "has_session": True,
            "session_rows": rows[:MAX_ROWS],
            "session_row_count": len(rows),
            "session_form": ValueForm(auto_id="id_session_%s", initial={"ttl_seconds": conf.SESSION_VALUE_TTL_SECONDS}),
        }


class ItemForm(NameForm):
    name = forms.CharField(max_length=ITEM_KEY_LENGTH, strip=False, widget=WIDE_BOX, label="Item key")


class MarkForm(ItemForm):
    value = forms.CharField(max_length=VALUE_LENGTH, strip=False, initial=store.DEFAULT_VALUE)


def mark_injected(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    marked = mark_item(owner, ref.conversation_id, item_key=data["name"], value=data["value"])
    done = f"Marked {data['name']}." if marked.first else f"The item was marked before, as {marked.value}."
    return mark_invisible(done)


def evict_from_ledger(owner: Owner, ref: ConversationRef, data: dict[str, Any]) -> str:
    was_marked = evict_item(owner, ref.conversation_id, item_key=data["name"])
    done = f"Evicted {data['name']}: it may be injected again." if was_marked else "The item was not in the ledger."
    return mark_invisible(done)


@admin.register(LedgerAccount)
class LedgerAccountAdmin(ConversationsAdmin):
    """The ledger: what was injected, to mark and to evict. Its journal has a list of its own."""

    key_name = store.KEY_NAME
    object_actions = {
        "add": ObjectAction(run=mark_injected, form=MarkForm),
        "evict": ObjectAction(run=evict_from_ledger, form=ItemForm),
    }

    def read_rows(self, ref: ConversationRef) -> list[LiveRow]:
        return [LiveRow(name=key, value=value) for key, value in sorted(store.get_all(ref).items())]

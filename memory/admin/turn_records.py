"""Structured turns and their slots: a record opens as a card, a slot as other memories do."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, describe_deletion, staff_owner
from memory.admin.deeds import DeedPages
from memory.admin.documents import show_json
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.admin.turn_cards import Sight, read_turn_cards, tell_level
from memory.models import TurnRecord, TurnSlot
from memory.retrieval.words import with_words
from memory.services.records.record import delete_record
from memory_project.admin_lists import AccountFilter, chosen_account, read_uuid


@admin.register(TurnRecord)
class TurnRecordAdmin(DeedPages, BoundedAdmin):
    """Recorded by agents. What a turn says is corrected on the pages of its slots."""

    change_form_template = "admin/memory/turnrecord/change_form.html"
    list_display = (
        "named", "status", "of_goal", "by_agent", "reasoning_tier", "how_far", "sizes", "at", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", "level", "reasoning_tier")
    list_select_related = ("account",)
    search_fields = ("id",)
    search_help_text = "Words of its slots; or an id, a conversation, an agent or a user, in full."
    fields = (
        "conversation_page", "number", "client_id", "status", "of_goal", "of_episode", "reasoning_tier", "how_far",
        "sizes", "by_agent", "by_user", "in_channel", "at", "told_metadata", "version", "account", "created_at",
        "updated_at", "id",
    )  # fmt: skip
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_record(staff_owner(request, obj.account_id), obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for record in queryset:
            self.delete_model(request, record)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "and its slots at every level, its raw trace; messages, tools' uses and artifacts stay"
        return describe_deletion((f"turn {row.number} of {shorten(row.conversation_id)}" for row in objs), also)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TurnRecord]:
        rows: QuerySet[TurnRecord] = super().get_queryset(request)
        is_list = request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
        return rows.defer("metadata") if is_list else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By words of the slots, whose conversation and agent are the record's."""
        if not search_term.strip():
            return queryset, False
        record_id = read_uuid(search_term)
        if record_id is not None:
            return queryset.filter(id=record_id), False
        slots: Any = TurnSlot.objects
        found = slots.filter(with_words(search_term, account_id=chosen_account(request)))
        return queryset.filter(pk__in=found.values("record_id")), False

    def heading(self, row: Any) -> str:
        return f"Turn {row.number} of {shorten(row.conversation_id)}"

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        cards = read_turn_cards(row.account_id, [row.pk], Sight.of(request))
        return {"card": cards.get(row.pk)}

    @admin.display(description="Turn")
    def named(self, record: TurnRecord) -> str:
        return f"{shorten(record.conversation_id)}, turn {record.number}"

    @admin.display(description="Conversation")
    def conversation_page(self, record: TurnRecord) -> SafeString:
        url = reverse("admin:memory_conversation_change", args=[record.log_id])
        return format_html('<a href="{}">{}</a>', url, mark_invisible(record.conversation_id))

    @admin.display(description="Goal")
    def of_goal(self, record: TurnRecord) -> SafeString | str:
        return link_to("goal", record.goal_id, name="its goal")

    @admin.display(description="Work episode")
    def of_episode(self, record: TurnRecord) -> SafeString | str:
        return link_to("workepisode", record.episode_id, name="its episode")

    @admin.display(description="Agent")
    def by_agent(self, record: TurnRecord) -> str:
        return mark_invisible(record.agent_id) or "the account"

    @admin.display(description="User")
    def by_user(self, record: TurnRecord) -> str:
        return mark_invisible(record.user_id) or "-"

    @admin.display(description="Channel")
    def in_channel(self, record: TurnRecord) -> str:
        return mark_invisible(record.channel)

    @admin.display(description="Compressed")
    def how_far(self, record: TurnRecord) -> str:
        return tell_level(record.level)

    @admin.display(description="Tokens")
    def sizes(self, record: TurnRecord) -> str:
        return f"{record.tokens:,} of {record.raw_tokens:,}"

    @admin.display(description="Time")
    def at(self, record: TurnRecord) -> str:
        return f"{record.event_time:%Y-%m-%d %H:%M} UTC"

    @admin.display(description="Metadata")
    def told_metadata(self, record: TurnRecord) -> SafeString:
        return show_json(record.metadata)


class PlacedMemoryForm(MemoryForm):
    """Of a memory whose user and channel are those of the work that it belongs to."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]


@admin.register(TurnSlot)
class TurnSlotAdmin(MemoryPages):
    """What one slot of a turn says. Found by words; corrected, marked and erased like any memory."""

    form = PlacedMemoryForm
    list_display = (
        "excerpt", "slot", "told_tier", "how_far", "state", "of_record", "agent_id", "conversation_id", "event_time",
        "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "slot", "level", "tier", *MemoryPages.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "data")
    correctable = ("text", "event_time", "expires_at", "salience", "trust", "source", "metadata")
    shown = (
        "of_record", "slot", "told_tier", "provenance", "how_far", "told_data", "user_id", "channel",
        *MemoryPages.shown,
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="Turn")
    def of_record(self, slot: TurnSlot) -> SafeString | str:
        return link_to("turnrecord", slot.record_id, name="its turn")

    @admin.display(description="Reasoning")
    def told_tier(self, slot: TurnSlot) -> str:
        return slot.tier.replace("_", " ") or "-"

    @admin.display(description="Compressed")
    def how_far(self, slot: TurnSlot) -> str:
        return tell_level(slot.level)

    @admin.display(description="Beyond words")
    def told_data(self, slot: TurnSlot) -> SafeString:
        return show_json(slot.data)


def link_to(model: str, row_id: object, *, name: str) -> SafeString | str:
    """To a row's page; a dash for none."""
    if row_id is None:
        return "-"
    return format_html('<a href="{}">{}</a>', reverse(f"admin:memory_{model}_change", args=[row_id]), name)

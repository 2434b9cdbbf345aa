"""Structured turns, which open as cards, and their slots, which open like other memories."""

from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from memory.admin.columns import agent_column, column, json_column, link_column, row_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.memories import LONG_COLUMNS, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.text import excerpt_of, mark_invisible
from memory.admin.turn_cards import VisibleModels, format_level, read_turn_cards
from memory.models import TurnRecord, TurnSlot
from memory.owner import Owner
from memory.retrieval.retrievers.lexical import has_words_or_ids
from memory.services.records.record import delete_record
from memory_project.admin_lists import AccountFilter, chosen_account


@admin.register(TurnRecord)
class TurnRecordAdmin(ListExportAdmin):
    """The pages of structured turns, which agents record. Their texts are corrected on the pages of their slots."""

    change_form_template = "admin/memory/turnrecord/change_form.html"
    list_display = (
        "named", "status", "goal_page", "agent", "reasoning_tier", "compression", "sizes", "time", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", "level", "reasoning_tier")
    search_fields = id_search_fields = ("id",)
    search_help_text = "Search for words of the slots, or for a complete id, conversation, agent or user."
    fields = readonly_fields = (
        "conversation_page", "number", "client_id", "status", "goal_page", "episode_page", "reasoning_tier",
        "compression", "sizes", "agent", "user", "channel_text", "time", "metadata_json", "version", "account",
        "created_at", "updated_at", "id",
    )  # fmt: skip
    long_columns = ("metadata",)
    allow_add = allow_change = False
    deletion_note = (
        "Their slots at every level and their raw traces are deleted too. Messages, uses of tools and artifacts stay."
    )

    named = column("Turn", lambda record: f"{excerpt_of(record.conversation_id)}, turn {record.number}")
    conversation_page = column(
        "Conversation", lambda record: row_link("conversation", record.log_id, mark_invisible(record.conversation_id))
    )
    goal_page = link_column("Goal", "goal", "goal_id", "Open the goal")
    episode_page = link_column("Work episode", "workepisode", "episode_id", "Open the work episode")
    agent = agent_column()
    user = text_column("User", "user_id")
    channel_text = text_column("Channel", "channel")
    compression = column("Compression", lambda record: format_level(record.level))
    sizes = column("Tokens", lambda record: f"{record.tokens:,} of {record.raw_tokens:,}")
    time = column("Time", lambda record: f"{record.event_time:%Y-%m-%d %H:%M} UTC")
    metadata_json = json_column("Metadata", "metadata")

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_record(owner, row.pk)

    def name_row(self, row: Any) -> str:
        return f"turn {row.number} of {excerpt_of(row.conversation_id)}"

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        """Search the words of the slots, which have the record's conversation and agent."""
        found = TurnSlot.objects.filter(has_words_or_ids(search_term, account_id=chosen_account(request)))
        return super().search_condition(request, search_term) or Q(pk__in=found.values("record_id"))

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        cards = read_turn_cards(row.account_id, [row.pk], VisibleModels.of(request))
        return {"subtitle": f"Turn {row.number} of {excerpt_of(row.conversation_id)}", "card": cards.get(row.pk)}


@admin.register(TurnSlot)
class TurnSlotAdmin(MemoryKindAdmin):
    """The pages of single slots, which are found, corrected, marked and erased like any memory."""

    form = OwnedMemoryForm
    list_display = (
        "excerpt", "slot", "tier_text", "compression", "state", "record_page", "agent_id", "conversation_id",
        "event_time", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "slot", "level", "tier", *MemoryKindAdmin.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "data")
    editable_fields = ("text", "event_time", "expires_at", "salience", "trust", "source", "metadata")
    detail_fields = (
        "record_page", "slot", "tier_text", "provenance", "compression", "data_json", "user_id", "channel",
        *MemoryKindAdmin.detail_fields,
    )  # fmt: skip
    allow_add = False

    record_page = link_column("Turn", "turnrecord", "record_id", "Open the turn")
    tier_text = column("Reasoning", lambda slot: slot.tier.replace("_", " ") or "-")
    compression = column("Compression", lambda slot: format_level(slot.level))
    data_json = json_column("Data", "data")

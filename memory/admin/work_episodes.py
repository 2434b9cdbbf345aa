"""Work episodes, which open with the turns that they were made of."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.columns import column, link_column, text_column
from memory.admin.goals import read_page
from memory.admin.memories import LONG_COLUMNS, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.text import excerpt_of, mark_invisible, render_json
from memory.admin.turn_cards import TurnCard, VisibleModels, format_level, read_turn_cards
from memory.admin.work_cards import format_turn_numbers, read_work_cards
from memory.models import TurnRecord, WorkEpisode
from memory.services.work_episodes.read import texts_in_data
from memory_project.admin_lists import AccountFilter

PAGE_TURNS = 20
MAX_TEXTS = 200


def render_data(episode: WorkEpisode) -> SafeString | str:
    parts = [(name.replace("_", " ").capitalize(), render_data_value(value)) for name, value in episode.data.items()]
    return format_html_join("", "<div><strong>{}</strong> {}</div>", parts) or "none"


def render_data_value(value: Any) -> SafeString | str:
    """Render a text, a list of texts or of outcomes with how each ended, or any other value as JSON."""
    if isinstance(value, str):
        return mark_invisible(value) or "-"
    if isinstance(value, list) and len(texts := texts_in_data(value)) == len(value):
        rows = ((mark_invisible(text),) for text in texts[:MAX_TEXTS])
        return format_html("<ul>{}</ul>", format_html_join("", "<li>{}</li>", rows)) if value else "-"
    return render_json(value)


@admin.register(WorkEpisode)
class WorkEpisodeAdmin(MemoryKindAdmin):
    """The pages of work episodes. Compression makes them of turns, which are archived then and stay readable."""

    form = OwnedMemoryForm
    change_form_template = "admin/memory/workepisode/change_form.html"
    list_display = (
        "excerpt", "status", "compression", "turns", "sizes", "state", "goal_page", "agent_id", "conversation_id",
        "event_time", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "level", "status", *MemoryKindAdmin.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "data")
    editable_fields = ("text", "event_time", "expires_at", "salience", "trust", "source", "metadata")
    detail_fields = (
        "status", "compression", "tier", "turns", "goal_page", "data_parts", "sizes", "compressor_name", "user_id",
        "channel", *MemoryKindAdmin.detail_fields,
    )  # fmt: skip
    allow_add = False

    goal_page = link_column("Goal", "goal", "for_goal_id", "Open the goal")
    compression = column("Compression", lambda episode: format_level(episode.level))
    turns = column("Turns", format_turn_numbers)
    sizes = column("Tokens", lambda episode: f"{episode.token_count:,} of {episode.raw_tokens:,}")
    compressor_name = text_column("Made by", "compressor", empty="unknown")
    data_parts = column("Structured content", render_data)

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        visible, page = VisibleModels.of(request), read_page(request)
        cards = read_turn_page(row, visible, page=page) if visible.turns else []
        return {
            "subtitle": f"{format_turn_numbers(row).capitalize()} of {excerpt_of(row.conversation_id)}",
            "work": read_work_cards(row.account_id, [row.pk], visible).get(row.pk),
            "turns": cards[:PAGE_TURNS],
            "page": page,
            "has_more": len(cards) > PAGE_TURNS,
        }


def read_turn_page(episode: WorkEpisode, visible: VisibleModels, *, page: int) -> list[TurnCard]:
    """Return the turns of a page, and one more if more follow, in order."""
    numbers = (episode.first_number, episode.last_number)
    rows = TurnRecord.objects.filter(log_id=episode.log_id, number__range=numbers).order_by("number")
    start = page * PAGE_TURNS
    ids = list(rows.values_list("pk", flat=True)[start : start + PAGE_TURNS + 1])
    cards = read_turn_cards(episode.account_id, ids, visible)
    return [cards[id_] for id_ in ids if id_ in cards]

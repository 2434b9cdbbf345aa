"""Work episodes: as memories are; each opens with what it was made of, turn by turn."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.deeds import DeedPages
from memory.admin.documents import show_json
from memory.admin.goals import read_page
from memory.admin.memories import LONG_COLUMNS, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.admin.turn_cards import Sight, TurnCard, read_turn_cards, tell_level
from memory.admin.turn_records import PlacedMemoryForm, link_to
from memory.admin.work_cards import read_work_cards, tell_numbers
from memory.models import TurnRecord, WorkEpisode
from memory.services.work_episodes.read import said_in
from memory_project.admin_lists import AccountFilter

PAGE_TURNS = 20
MOST_POINTS = 200


@admin.register(WorkEpisode)
class WorkEpisodeAdmin(DeedPages, MemoryPages):
    """Made by compression, of turns that are archived then, and still there."""

    form = PlacedMemoryForm
    change_form_template = "admin/memory/workepisode/change_form.html"
    list_display = (
        "excerpt", "status", "how_far", "turns", "sizes", "state", "of_goal", "agent_id", "conversation_id",
        "event_time", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, "level", "status", *MemoryPages.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "data")
    correctable = ("text", "event_time", "expires_at", "salience", "trust", "source", "metadata")
    shown = (
        "status", "how_far", "tier", "turns", "of_goal", "points", "sizes", "made_by", "user_id", "channel",
        *MemoryPages.shown,
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def heading(self, row: Any) -> str:
        return f"{tell_numbers(row).capitalize()} of {shorten(row.conversation_id)}"

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        sight, page = Sight.of(request), read_page(request)
        cards = read_turns(row, sight, page=page) if sight.turns else []
        work = read_work_cards(row.account_id, [row.pk], sight).get(row.pk)
        return {"work": work, "turns": cards[:PAGE_TURNS], "page": page, "has_more": len(cards) > PAGE_TURNS}

    @admin.display(description="Goal")
    def of_goal(self, episode: WorkEpisode) -> SafeString | str:
        return link_to("goal", episode.for_goal_id, name="its goal")

    @admin.display(description="Compressed")
    def how_far(self, episode: WorkEpisode) -> str:
        return tell_level(episode.level)

    @admin.display(description="Turns")
    def turns(self, episode: WorkEpisode) -> str:
        return tell_numbers(episode)

    @admin.display(description="Tokens")
    def sizes(self, episode: WorkEpisode) -> str:
        return f"{episode.token_count:,} of {episode.raw_tokens:,}"

    @admin.display(description="Made by")
    def made_by(self, episode: WorkEpisode) -> str:
        return mark_invisible(episode.compressor) or "nobody said"

    @admin.display(description="What it came to")
    def points(self, episode: WorkEpisode) -> SafeString | str:
        told = [(name.replace("_", " ").capitalize(), tell_points(value)) for name, value in episode.data.items()]
        return format_html_join("", "<div><strong>{}</strong> {}</div>", told) or "nothing beyond its text"


def tell_points(value: Any) -> SafeString | str:
    """A text, or a list of texts, or of outcomes with how each ended; JSON where it is none of these."""
    if isinstance(value, str):
        return mark_invisible(value) or "-"
    if isinstance(value, list) and len(texts := said_in(value)) == len(value):
        rows = ((mark_invisible(text),) for text in texts[:MOST_POINTS])
        return format_html("<ul>{}</ul>", format_html_join("", "<li>{}</li>", rows)) if value else "-"
    return show_json(value)


def read_turns(episode: WorkEpisode, sight: Sight, *, page: int) -> list[TurnCard]:
    """A page of what it was made of and one, in order."""
    rows = TurnRecord.objects.filter(
        log_id=episode.log_id, number__range=(episode.first_number, episode.last_number)
    ).order_by("number")
    start = page * PAGE_TURNS
    ids = list(rows.values_list("pk", flat=True)[start : start + PAGE_TURNS + 1])
    cards = read_turn_cards(episode.account_id, ids, sight)
    return [cards[id_] for id_ in ids if id_ in cards]

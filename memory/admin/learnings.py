"""Learnings: with their score and the votes behind it."""

from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest

from memory.admin.base import MAX_INLINE_ROWS, Inline, ReadOnlyAdmin, staff_owner
from memory.admin.columns import column, link_column, list_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.memories import MemoryKindAdmin
from memory.admin.text import mark_invisible
from memory.models import Learning, LearningVote
from memory.owner import Owner
from memory.services.learnings import delete_vote
from memory_project.admin_lists import AccountFilter


class VoteInline(Inline):
    """The votes of agents, of which staff may delete some."""

    model = LearningVote
    fields = readonly_fields = ("agent", "helpful", "created_at", "updated_at")
    extra = 0
    verbose_name_plural = "votes"
    ordering = ("agent_id",)
    agent = text_column("Agent", "agent_id")

    def has_add_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False


@admin.register(Learning)
class LearningAdmin(MemoryKindAdmin):
    """The pages of learnings, which agents publish to a team."""

    list_display = ("excerpt", "team", "score_text", "votes", *MemoryKindAdmin.list_display[1:5], "event_time")
    detail_fields = ("team", "score_text", "votes", "all_votes", *MemoryKindAdmin.detail_fields)
    inlines = (VoteInline,)
    allow_add = False

    team = column("Team", lambda learning: mark_invisible(getattr(learning, "team_name", None) or "") or "deleted")
    score_text = column("Score", lambda learning: f"{learning.score:.3f}")
    votes = column("Votes", lambda learning: f"{learning.helpful_count} helpful, {learning.unhelpful_count} not")
    all_votes = column(
        "All votes",
        lambda row: list_link("learningvote", "Votes on this learning", account=row.account_id, q=row.pk),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Learning]:
        rows: QuerySet[Learning] = super().get_queryset(request)
        return rows.annotate(team_name=F("context__team__name"))

    def get_inlines(self, request: HttpRequest, obj: Any | None) -> Any:
        is_popular = obj is not None and obj.helpful_count + obj.unhelpful_count > MAX_INLINE_ROWS
        return () if is_popular else self.inlines

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        for vote in formset.deleted_objects:
            delete_vote(staff_owner(request, vote.account_id), vote.pk)


@admin.register(LearningVote)
class LearningVoteAdmin(ListExportAdmin, ReadOnlyAdmin):
    """The votes of agents. Staff may delete a vote, but not change it."""

    list_display = ("agent", "helpful", "learning_page", "account", "updated_at")
    list_filter = (AccountFilter, "helpful")
    search_fields = ("agent_id__exact",)
    search_help_text = "Search for a complete agent, or for the id of a learning."
    id_search_fields = ("learning_id",)
    fields = ("agent", "helpful", "learning_page", "account", "created_at", "updated_at", "id")
    allow_delete = True
    deletion_note = ""

    agent = text_column("Agent", "agent_id")
    learning_page = link_column("Learning", "learning", "learning_id")

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_vote(owner, row.pk)

"""Learnings: as memories are, with how they served those who used them; and the votes that say so."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin, describe_deletion, staff_owner
from memory.admin.memories import MemoryPages
from memory.admin.text import mark_invisible
from memory.models import Learning, LearningVote
from memory.services.learnings.publish import delete_vote
from memory_project.admin_lists import AccountFilter, read_uuid

if TYPE_CHECKING:
    Inline = admin.TabularInline[Any, Any]
else:
    Inline = admin.TabularInline

MOST_INLINE_VOTES = 100


class VoteInline(Inline):
    """Cast by agents; staff may take one away."""

    model = LearningVote
    fields = readonly_fields = ("by_agent", "helpful", "created_at", "updated_at")
    extra = 0
    verbose_name_plural = "votes"
    ordering = ("agent_id",)

    def has_add_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    @admin.display(description="Agent")
    def by_agent(self, vote: LearningVote) -> str:
        return mark_invisible(vote.agent_id)


@admin.register(Learning)
class LearningAdmin(MemoryPages):
    """Published by agents, to a team."""

    list_display = ("excerpt", "team", "scored", "votes", *MemoryPages.list_display[1:5], "event_time")
    shown = ("team", "scored", "votes", "all_votes", *MemoryPages.shown)
    inlines = (VoteInline,)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Learning]:
        rows: QuerySet[Learning] = super().get_queryset(request)
        return rows.annotate(team_name=F("context__team__name"))

    def get_inlines(self, request: HttpRequest, obj: Any | None) -> Any:
        """Many votes have a list of their own: a form takes only so many fields."""
        is_popular = obj is not None and obj.helpful_count + obj.unhelpful_count > MOST_INLINE_VOTES
        return () if is_popular else self.inlines

    @admin.display(description="Team")
    def team(self, learning: Learning) -> str:
        return mark_invisible(getattr(learning, "team_name", None) or "") or "a team that is gone"

    @admin.display(description="Score")
    def scored(self, learning: Learning) -> str:
        return f"{learning.score:.3f}"

    @admin.display(description="Votes")
    def votes(self, learning: Learning) -> str:
        return f"{learning.helpful_count} helpful, {learning.unhelpful_count} not"

    @admin.display(description="All votes")
    def all_votes(self, learning: Learning) -> SafeString:
        query = urlencode({"account": str(learning.account_id), "q": str(learning.pk)})
        url = reverse("admin:memory_learningvote_changelist")
        return format_html('<a href="{}?{}">The list of them</a>', url, query)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        for vote in formset.deleted_objects:
            delete_vote(staff_owner(request, vote.account_id), vote.pk)


@admin.register(LearningVote)
class LearningVoteAdmin(ReadOnlyAdmin):
    """An agent's vote is its own: taken away, never changed."""

    list_display = ("by_agent", "helpful", "on_learning", "account", "updated_at")
    list_filter = (AccountFilter, "helpful")
    list_select_related = ("account",)
    search_fields = ("agent_id__exact",)
    search_help_text = "An agent, in full, or the id of a learning."
    fields = ("by_agent", "helpful", "on_learning", "account", "created_at", "updated_at", "id")

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return bool(request.user.has_perm("memory.delete_learningvote"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        learning_id = read_uuid(search_term)
        if learning_id is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(learning_id=learning_id), False

    @admin.display(description="Agent")
    def by_agent(self, vote: LearningVote) -> str:
        return mark_invisible(vote.agent_id)

    @admin.display(description="Learning")
    def on_learning(self, vote: LearningVote) -> SafeString:
        url = reverse("admin:memory_learning_change", args=[vote.learning_id])
        return format_html('<a href="{}">{}</a>', url, vote.learning_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_vote(staff_owner(request, obj.account_id), obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for vote in queryset:
            self.delete_model(request, vote)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs)

"""Episodes: as memories are, and found by meaning from their list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, FloatField, IntegerField, QuerySet, Value, When
from django.http import HttpRequest

from memory.admin.base import staff_owner
from memory.admin.fields import ExternalIdField, JSONListField
from memory.admin.memories import LONG_COLUMNS, LeanChangeList, MemoryForm, MemoryPages
from memory.models import Account, EpisodicMemory
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.episodes import search_episodes
from memory.retrieval.search import Found, MemoryQuery
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory_project.admin_lists import chosen_account

MOST_FOUND = 50
LONGEST_QUESTION = 2_000
DETAILS = ("key_decisions", "entities_mentioned", "tools_called")
MEANING = ("meaning", "meaning_agent", "meaning_user", "meaning_channel")

DEGRADED = {
    "embedder_unavailable": "The embedder gives no answer: found by words, not by meaning.",
    "embedding_pending": "Some still wait for their vector: those are found by words.",
}


class MeaningForm(forms.Form):
    """A question and who asks it. The account is the list's own filter."""

    meaning = forms.CharField(max_length=LONGEST_QUESTION, label="By meaning")
    meaning_agent = ExternalIdField(required=False, label="as agent")
    meaning_user = ExternalIdField(required=False, label="about user")
    meaning_channel = ExternalIdField(required=False, label="in channel", initial=GLOBAL_CHANNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a question found: similarity by id, best first (None: by words), and what to say about it."""

    similarities: dict[UUID, float | None]
    remarks: Sequence[str]


Search = Callable[..., Found[Any]]
"""Of one kind of memories, such as `search_episodes`."""


def answer_question(
    request: HttpRequest, form: MeaningForm, account_id: UUID, *, search: Search, now: datetime
) -> Answer:
    """Search as the chosen agent, or for the account."""
    asked = form.cleaned_data
    embedded = embed_texts([asked["meaning"]])
    owner = staff_owner(
        request,
        account_id,
        agent_id=asked["meaning_agent"],
        user_id=asked["meaning_user"],
        channel=asked["meaning_channel"] or GLOBAL_CHANNEL,
    )
    found = search(owner, make_query(asked["meaning"], embedded), now=now)
    return Answer(similarities={hit.id: hit.similarity for hit in found.hits}, remarks=name_remarks(found))


def make_query(text: str, embedded: Embedded) -> MemoryQuery:
    return MemoryQuery(
        text=text,
        top_k=MOST_FOUND,
        model=embedded.model,
        width=embedded.width,
        vector=embedded.vectors.get(text),
    )


def name_remarks(found: Found[Any]) -> list[str]:
    remarks = [DEGRADED.get(code, code) for code in found.degraded]
    if len(found.hits) == MOST_FOUND:
        remarks.append(f"These are the {MOST_FOUND} nearest.")
    return remarks


class MeaningChangeList(LeanChangeList):
    """The list, or with a question what answers it, best first. Other filters then narrow what was found.

    A kind says by which `search` its memories are found.
    """

    search: ClassVar[Search]
    meaning_form: MeaningForm
    answer: Answer | None = None
    refusal = ""

    def get_filters_params(self, params: Any = None) -> Any:
        return {name: value for name, value in super().get_filters_params(params).items() if name not in MEANING}

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        asked = request.GET if request.GET.get("meaning", "").strip() else None
        self.meaning_form = MeaningForm(asked)
        self.accounts = Account.objects.order_by("name").values_list("id", "name")[:MOST_FOUND]
        if asked is None or not self.meaning_form.is_valid():
            return rows
        account_id = chosen_account(request)
        if account_id is None:
            self.refusal = "Choose an account: meaning is searched within one."
            return rows.none()
        form, search = self.meaning_form, type(self).search
        self.answer = answer_question(request, form, account_id, search=search, now=datetime.now(UTC))
        return rank_rows(rows, self.answer.similarities)


def rank_rows(rows: QuerySet[Any], similarities: dict[UUID, float | None]) -> QuerySet[Any]:
    """Those of the rows that were found, in the order they were found in."""
    places = [When(pk=id_, then=Value(place)) for place, id_ in enumerate(similarities)]
    values = [When(pk=id_, then=Value(value)) for id_, value in similarities.items() if value is not None]
    found: QuerySet[Any] = (
        rows.filter(pk__in=list(similarities))
        .annotate(
            place=Case(*places, default=Value(MOST_FOUND), output_field=IntegerField()),
            similarity=Case(*values, default=Value(None), output_field=FloatField()),
        )
        .order_by("place", "pk")
    )
    return found


class EpisodeChangeList(MeaningChangeList):
    search = staticmethod(search_episodes)


class EpisodeForm(MemoryForm):
    agent_id = ExternalIdField(required=False, label="Agent")
    conversation_id = ExternalIdField(label="Conversation")
    key_decisions = JSONListField(required=False)
    entities_mentioned = JSONListField(required=False)
    tools_called = JSONListField(required=False)


@admin.register(EpisodicMemory)
class EpisodicMemoryAdmin(MemoryPages):
    """One may be added: it is stored without its vector and waits for the job that embeds, like any other."""

    form = EpisodeForm
    change_list_template = "admin/memory/episodicmemory/change_list.html"
    list_display = ("excerpt", "similarity", *MemoryPages.list_display[1:])
    autocomplete_fields = ("account",)
    long_columns = (*LONG_COLUMNS, *DETAILS)
    correctable = (*MemoryPages.correctable, *DETAILS)
    added_fields = ("account", "agent_id", "user_id", "channel", "conversation_id", "text", "event_time", *DETAILS)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return EpisodeChangeList

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": (*self.added_fields, "metadata")}),)
        return super().get_fieldsets(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        return () if obj is None else self.shown

    @admin.display(description="Similarity")
    def similarity(self, episode: EpisodicMemory) -> str:
        similarity = getattr(episode, "similarity", None)
        return "" if similarity is None else f"{similarity:.3f}"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        owner = staff_owner(request, obj.account_id, agent_id=obj.agent_id, user_id=obj.user_id, channel=obj.channel)
        draft = EpisodeDraft(
            id=obj.id,
            conversation_id=obj.conversation_id,
            summary=obj.text,
            event_time=obj.event_time,
            source="staff",
            metadata=obj.metadata,
            **{name: form.cleaned_data[name] for name in DETAILS},
        )
        store_episodes(owner, drafts=[draft], embedded=NOT_YET, now=datetime.now(UTC))


NOT_YET = Embedded(model="", width=0, vectors={})
"""The page saves in a transaction, where nothing is embedded: the row waits in the queue."""

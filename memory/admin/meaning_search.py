"""Search by meaning in the list of one kind of memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, FloatField, IntegerField, QuerySet, Value, When
from django.http import HttpRequest

from memory.admin.base import LeanChangeList, staff_owner
from memory.admin.columns import column
from memory.admin.fields import ExternalIdField
from memory.admin.memories import MemoryKindAdmin
from memory.models import Account
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.search import MemoryQuery, SearchResults
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory_project.admin_lists import chosen_account

MAX_FOUND = 50
MAX_QUESTION_CHARACTERS = 2_000
PARAMETERS = ("meaning", "meaning_agent", "meaning_user", "meaning_channel")

DEGRADED = {
    "embedder_unavailable": "The embedder does not answer. The results were found by words, not by meaning.",
    "embedding_pending": "Some memories still wait for their vector. They were found by words.",
}

NOT_YET_EMBEDDED = EmbeddedTexts(model="", width=0, vectors={})
"""Vectors for a page that saves in a transaction, where nothing may be embedded: the row waits for the job."""


class MeaningForm(forms.Form):
    """A question, and for which agent, user and channel it is asked. The account is the list's own filter."""

    meaning = forms.CharField(max_length=MAX_QUESTION_CHARACTERS, label="By meaning")
    meaning_agent = ExternalIdField(required=False, label="as agent")
    meaning_user = ExternalIdField(required=False, label="about user")
    meaning_channel = ExternalIdField(required=False, label="in channel", initial=GLOBAL_CHANNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningAnswer:
    """The similarity of what was found by id, best first (None: found by words), and remarks to show with it."""

    similarities: dict[UUID, float | None]
    remarks: Sequence[str]


def answer_question(
    request: HttpRequest,
    asked: dict[str, Any],
    account_id: UUID,
    *,
    search: Callable[..., SearchResults[Any]],
    now: datetime,
) -> MeaningAnswer:
    """Search as the given agent, or for the account if none is given."""
    text = asked["meaning"]
    embedded = embed_texts([text])
    owner = staff_owner(
        request,
        account_id,
        agent_id=asked["meaning_agent"],
        user_id=asked["meaning_user"],
        channel=asked["meaning_channel"] or GLOBAL_CHANNEL,
    )
    vector = embedded.vectors.get(text)
    query = MemoryQuery(text=text, top_k=MAX_FOUND, model=embedded.model, width=embedded.width, vector=vector)
    found = search(owner, query, now=now)
    remarks = [DEGRADED.get(code, code) for code in found.degraded]
    if len(found.hits) == MAX_FOUND:
        remarks.append(f"Only the {MAX_FOUND} most similar memories are shown.")
    return MeaningAnswer(similarities={hit.id: hit.similarity for hit in found.hits}, remarks=remarks)


class MeaningChangeList(LeanChangeList):
    """The list; or, with a question, the memories that answer it, best first. Other filters then apply to those."""

    meaning_form: MeaningForm
    answer: MeaningAnswer | None = None
    refusal = ""

    def get_filters_params(self, params: Any = None) -> Any:
        return {name: value for name, value in super().get_filters_params(params).items() if name not in PARAMETERS}

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        is_asked = request.GET.get("meaning", "").strip()
        self.meaning_form = MeaningForm(request.GET if is_asked else None)
        self.accounts = Account.objects.order_by("name").values_list("id", "name")[:MAX_FOUND]
        if not is_asked or not self.meaning_form.is_valid():
            return rows
        account_id = chosen_account(request)
        if account_id is None:
            self.refusal = "Choose an account: a search by meaning looks within one account."
            return rows.none()
        pages: Any = self.model_admin
        asked, search = self.meaning_form.cleaned_data, pages.meaning_search
        self.answer = answer_question(request, asked, account_id, search=search, now=datetime.now(UTC))
        return rank_rows(rows, self.answer.similarities)


def rank_rows(rows: QuerySet[Any], similarities: dict[UUID, float | None]) -> QuerySet[Any]:
    """Return those of the rows that were found, in the order in which they were found."""
    ranks = [When(pk=id_, then=Value(rank)) for rank, id_ in enumerate(similarities)]
    values = [When(pk=id_, then=Value(value)) for id_, value in similarities.items() if value is not None]
    found: QuerySet[Any] = (
        rows.filter(pk__in=list(similarities))
        .annotate(
            rank=Case(*ranks, default=Value(MAX_FOUND), output_field=IntegerField()),
            similarity=Case(*values, default=Value(None), output_field=FloatField()),
        )
        .order_by("rank", "pk")
    )
    return found


def format_similarity(memory: Any) -> str:
    similarity = getattr(memory, "similarity", None)
    return "" if similarity is None else f"{similarity:.3f}"


class MeaningSearchAdmin(MemoryKindAdmin):
    """Pages of a kind whose list can be searched by meaning. The similarity is shown if something was asked."""

    change_list_template = "admin/memory/episodicmemory/change_list.html"
    meaning_search: ClassVar[Callable[..., SearchResults[Any]]]
    """The search of the kind, such as `search_facts`, as a static method."""
    similarity = column("Similarity", format_similarity)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return MeaningChangeList

    def get_list_display(self, request: HttpRequest) -> Any:
        first, *others = super().get_list_display(request)
        return (first, "similarity", *others) if request.GET.get("meaning", "").strip() else (first, *others)

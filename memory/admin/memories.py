"""Memories of every kind: found by words, some by meaning, corrected and marked through services, deleted."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, FloatField, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import VersionedForm, staff_owner
from memory.admin.beliefs import belief_marks, fact_columns
from memory.admin.boosts import BOOST
from memory.admin.change_lists import LeanChangeList
from memory.admin.columns import DAY, column, excerpt_column, list_link, row_link
from memory.admin.degradations import describe_degradation
from memory.admin.deletions import count_deleted_with
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, JSONObjectField, PlainTextField
from memory.admin.filters import UserFilter, VectorFilter
from memory.admin.graph_pages import show_graph
from memory.admin.provenance import show_provenance
from memory.admin.text import excerpt_of, format_decayed, list_invisible, text_excerpt
from memory.kinds import kinds_where
from memory.models import Account, Kind, Link, Memory, MemoryRow, Vector
from memory.models.memory import model_of
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.retrieval.retrievers.lexical import has_words_or_ids
from memory.retrieval.search import MemoryQuery, SearchResults
from memory.services.bulk.actions import Apply, BulkAction, BulkResult, change_each, change_memories
from memory.services.duplicates.merge import undo_merge
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.memories.correct import MARKS, correct_memory, delete_memories, mark_memories, queue_for_embedding
from memory.services.memories.links import DUPLICATE_OF, NOT_DUPLICATE_OF
from memory_project.admin_lists import AccountFilter, chosen_account
from memory_project.staff import limit_rows

MERGED_MODELS: frozenset[type[MemoryRow]] = frozenset({Memory, *map(model_of, kinds_where(lambda spec: spec.merging))})
"""Models whose pages show merges and offer to undo them."""

MAX_MERGES = 20

RELATIONS = {
    (DUPLICATE_OF, True): "Merged into",
    (DUPLICATE_OF, False): "Replaces the duplicate",
    (NOT_DUPLICATE_OF, True): "Kept apart from",
    (NOT_DUPLICATE_OF, False): "Kept apart from",
}
"""Relations of a memory to another one, by type of link and whether the link goes out."""


def render_merges(memory: MemoryRow) -> SafeString | str:
    """Render the merges of a memory, latest first.

    The other memories are of the same kind: a user who may read this one may read them.
    """
    links = Link.objects.filter(Q(source_id=memory.pk) | Q(target_id=memory.pk), account_id=memory.account_id)
    rows = links.filter(type__in=(DUPLICATE_OF, NOT_DUPLICATE_OF)).order_by("-id")
    columns: list[Any] = ["type", "source_id", "target_id", "weight", "created_at"]
    columns += [text_excerpt("source__text"), text_excerpt("target__text")]
    lines = [merge_line(memory, row) for row in rows.values_list(*columns)[:MAX_MERGES]]
    return format_html_join("", "<p>{}</p>", ((line,) for line in lines)) or "none"


def merge_line(memory: MemoryRow, row: tuple[Any, ...]) -> SafeString:
    type_, source_id, target_id, similarity, made_at, source_text, target_text = row
    is_out = source_id == memory.pk
    other_id, text = (target_id, target_text) if is_out else (source_id, source_text)
    details = f", similarity {similarity:.3f}, {made_at:{DAY}}" if type_ == DUPLICATE_OF else ""
    link = row_link("memory", other_id, other_id)
    return format_html("{} {} <bdi>{}</bdi>{}", RELATIONS[type_, is_out], link, excerpt_of(text), details)


MARK_COLUMNS = ("archived", "quarantined", "pinned", "buried")
"""Columns that the marks of `memory.services.memories.correct` set."""

LONG_COLUMNS = ("text", "metadata")
MAX_VECTORS_SHOWN = 20


class MemoryForm(VersionedForm):
    """The fields of a memory that staff may correct."""

    text = PlainTextField()
    user_id = ExternalIdField(required=False, label="User")
    channel = ExternalIdField(initial="_global")
    metadata = JSONObjectField(required=False, initial=dict)

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if not text.strip():
            raise forms.ValidationError("A memory must have a text.")
        return text


class OwnedMemoryForm(MemoryForm):
    """The form of a memory whose user and channel cannot be changed."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]


def mark_rows(mark: str) -> Apply:
    """Return what sets or removes a mark on memories."""

    def apply(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
        return change_memories(owner, row_ids, lambda ids: mark_memories(owner, ids, mark=mark, now=now))

    return apply


def embed_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    found = Memory.objects.visible_to(owner).filter(id__in=row_ids).order_by("id").values_list("id", flat=True)
    ids = list(found)
    queue_for_embedding(owner, ids, now=now)
    return BulkResult(changed=ids)


def undo_merges(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Make the memories live again, with their counts. They are not merged into the same ones again."""
    rows = Memory.objects.visible_to(owner).filter(id__in=row_ids).only("id", "account_id").order_by("-pk")
    return change_each(rows, lambda row: undo_merge(owner, row.pk, now=now))


OPPOSITES = {"archive": "unarchive", "quarantine": "release", "pin": "unpin", "bury": "unbury"}
OPPOSITES |= {mark: opposite for opposite, mark in OPPOSITES.items()}

MARK_ACTIONS = tuple(
    BulkAction(
        name=mark,
        label=f"{mark.capitalize()} selected %(verbose_name_plural)s",
        done="Changed",
        apply=mark_rows(mark),
        undo=mark_rows(OPPOSITES[mark]),
    )
    for mark in MARKS
)
EMBED = BulkAction(
    name="embed",
    label="Embed selected %(verbose_name_plural)s again",
    done="Queued for embedding:",
    apply=embed_rows,
    explanation="Their vectors stay until new ones replace them.",
)
UNDO_MERGE = BulkAction(
    name="undo_merge",
    label="Undo the merge of selected %(verbose_name_plural)s",
    done="Made live again:",
    apply=undo_merges,
)


class MemoryKindAdmin(ListExportAdmin):
    """Base class for the list and the pages of one kind of memory."""

    form: Any = MemoryForm
    list_display: Any = (
        "excerpt", "account", "agent_id", "conversation_id", "state", "event_time", "user_id", "channel",
    )  # fmt: skip
    list_filter: ClassVar[Any] = (AccountFilter, *MARK_COLUMNS, "has_secret", VectorFilter)
    search_fields = id_search_fields = ("id",)
    search_help_text = "Search for words of the text, or for a complete id, conversation, agent or user."
    long_columns: ClassVar[tuple[str, ...]] = LONG_COLUMNS
    list_annotations = {"text_excerpt": text_excerpt("text")}
    deletion_note = "Their vectors and links are deleted too."
    editable_fields: ClassVar[tuple[str, ...]] = (
        "text", "user_id", "channel", "event_time", "expires_at", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    added_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the form for a new row, if staff may add one."""
    service_fields: ClassVar[Collection[str]] = ()
    """Editable fields that the kind's own service corrects."""
    detail_fields: ClassVar[tuple[str, ...]] = (
        "account", "kind", "agent_id", "conversation_id", "state", "invisible", "embedding", "links", "merges",
        "identity", "token_count", "current_salience", "access_count", "last_accessed", "version", "created_at",
        "updated_at", "id",
    )  # fmt: skip

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None and self.added_fields:
            return ((None, {"fields": self.added_fields}),)
        return (
            ("Content", {"fields": (*self.editable_fields, "seen_version")}),
            ("Details", {"fields": self.get_readonly_fields(request, obj)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        if obj is None and self.added_fields:
            return ()
        return tuple(name for name in self.detail_fields if name != "merges" or self.model in MERGED_MODELS)

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        """Search by words within the chosen account, or within all. The texts themselves are never scanned."""
        found_by_id = super().search_condition(request, search_term)
        return found_by_id or has_words_or_ids(search_term, account_id=chosen_account(request))

    excerpt = excerpt_column("Text", "text_excerpt", empty="")
    invisible = column("Invisible characters", lambda memory: list_invisible(memory.text) or "none")
    current_salience = column(
        "Salience",
        lambda memory: format_decayed(memory.salience, base=memory.base_salience, faded=memory.faded_salience),
        ordering="salience",
    )
    links = column("Links", lambda memory: list_link("link", "Links of this memory", q=memory.id))
    merges = column("Merged duplicates", render_merges)

    @admin.display(description="State")
    def state(self, memory: Any) -> str:
        marks = [*belief_marks(memory), *(name for name in MARK_COLUMNS if getattr(memory, name))]
        if memory.embed_after is not None:
            marks.append("waiting for embedding")
        return ", ".join(marks) or "live"

    @admin.display(description="Embedding")
    def embedding(self, memory: MemoryRow) -> str:
        vectors = Vector.objects.whole().filter(account_id=memory.account_id, memory_id=memory.id)
        found = vectors.order_by("model").values_list("model", "width")
        named = [f"{model} ({width})" for model, width in found[:MAX_VECTORS_SHOWN]]
        if memory.embed_after is not None:
            named.append(f"due {memory.embed_after:%Y-%m-%d %H:%M} UTC {memory.embed_error}".strip())
        return ", ".join(named) or "none"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in self.editable_fields}
        own = {name: changes.pop(name) for name in self.service_fields if name in changes}
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        version = form.cleaned_data["seen_version"] or 0
        if changes:
            correct_memory(owner, obj.pk, changes=changes, version=version, now=now)
            version += 1
        if own:
            self.correct_in_service(owner, obj.pk, own, version=version, now=now)

    def correct_in_service(
        self, owner: Owner, memory_id: UUID, changes: dict[str, Any], *, version: int, now: datetime
    ) -> None:
        """Correct some of the `service_fields`."""
        raise NotImplementedError

    def name_row(self, row: Any) -> str:
        # lists do not read the texts
        text = getattr(row, "text_excerpt", "") if "text" in row.get_deferred_fields() else row.text
        return excerpt_of(text) or str(row)

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_memories(owner, [row.pk], now=datetime.now(UTC))

    def delete_rows(self, owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
        return change_memories(owner, row_ids, lambda ids: delete_memories(owner, ids, now=now))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        named, counts, permissions, _ = super().get_deleted_objects(objs, request)
        if len(objs) == 1:
            counts |= count_deleted_with(objs[0])
        # a conversation without one of its turns would have a gap
        turns = [str(row) for row in objs if row.kind == Kind.TURN]
        return named, counts, permissions, turns

    def find_bulk_actions(self) -> Sequence[BulkAction]:
        is_merged = self.model in MERGED_MODELS
        own = (*super().find_bulk_actions(), EMBED, *(MARK_ACTIONS if self.allow_change else ()))
        return (*own, UNDO_MERGE) if is_merged and self.allow_change else own


@admin.register(Memory)
class MemoryAdmin(MemoryKindAdmin):
    """Memories of all kinds in one list. Each kind is added through its own service."""

    list_display = ("excerpt", "kind", *MemoryKindAdmin.list_display[1:])
    list_filter = ("kind", *MemoryKindAdmin.list_filter, UserFilter)
    list_annotations = {**MemoryKindAdmin.list_annotations, **fact_columns()}
    bulk_actions = (BOOST,)
    row_pages = {"graph": show_graph, "why": show_provenance}
    allow_add = False


MAX_FOUND = 50
MAX_QUESTION_CHARACTERS = 2_000
PARAMETERS = ("meaning", "meaning_agent", "meaning_user", "meaning_channel")

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
    remarks = [describe_degradation(code) for code in found.degraded]
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
        self.accounts = (
            limit_rows(Account.objects.all(), request).order_by("name").values_list("id", "name")[:MAX_FOUND]
        )
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

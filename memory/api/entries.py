"""`/contexts/{context_id}/entries` and `/entries/{entry_id}`: what contexts hold, each in all its versions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entry_drafts import (
    ENTRY_TYPES,
    LONGEST_KEY,
    MEMORY_TYPES,
    OWN_MODEL,
    OWN_VECTOR,
    SOURCE_TYPES,
    NewContent,
    NewEntries,
    Restoring,
    Weighing,
    drafts_of,
    edit_of,
    editor_of,
)
from memory.api.episodic import MAX_TOP_K, own_vector
from memory.api.fields import Degraded, OwnerFields, Prose
from memory.api.recall_fields import Techniques
from memory.api.vectors import EmbeddingField
from memory.api.views import ConcludedResponse, OwnerViewSet
from memory.models import ContextEntry, ContextEntryVersion
from memory.models.entries import effective_relevance
from memory.owner import Owner
from memory.retrieval.entries import EntryHit
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.entries import (
    boost_importance,
    entries_of_context,
    entry_versions,
    find_entry,
    find_version,
    reduce_importance,
    remove_entry,
    restore_version,
    store_entries,
    touched,
    update_content,
)
from memory.services.contexts.keys import keyed_identity
from memory.services.contexts.manage import find_context
from memory.services.contexts.search import EntryQuestion, note_search, recall_entries
from memory.services.embedding.embed import embed_texts
from memory.services.recall.search import LONGEST_QUERY
from memory.tiers.access_log import Touched
from memory_project.http.conditional import etag_of
from memory_project.http.pagination import Scored
from memory_project.http.serializers import ActingFields, ExternalId, WholeNumber

BY_RELEVANCE = Scored(name="relevance", score=effective_relevance)


class EntriesQuery(ActingFields):
    ordering = serializers.ChoiceField(
        ["newest", "relevance"], default="newest", help_text="`relevance`: by effective relevance, greatest first."
    )


class EntrySearch(OwnerFields):
    query = Prose(max_length=LONGEST_QUERY)
    top_k = WholeNumber(default=10, min_value=1, max_value=MAX_TOP_K)
    techniques = Techniques(required=False)
    query_embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)


class ContextEntryAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    context_id = serializers.UUIDField()
    agent_id = serializers.CharField(help_text="Who stored it; empty for the account.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    key = serializers.CharField(help_text="Empty for none.")
    content = serializers.CharField()
    value = serializers.JSONField(allow_null=True, help_text="Null where the content is all there is.")
    entry_type = serializers.ChoiceField(ENTRY_TYPES)
    source_type = serializers.ChoiceField(SOURCE_TYPES)
    memory_type = serializers.ChoiceField(MEMORY_TYPES)
    importance = serializers.FloatField()
    confidence = serializers.FloatField()
    version = serializers.IntegerField(help_text="Of its content. The ETag counts other changes, too.")
    metadata = serializers.DictField()
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class FoundEntry(ContextEntryAnswer):
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null without a vector.")
    score = serializers.FloatField(help_text="By which they are ordered; comparable within one answer only.")
    reasons = serializers.ListField(child=serializers.CharField(), help_text="What speaks for it, for people.")


class EntryAnswer(ContextEntryAnswer):
    effective_relevance_score = serializers.FloatField(help_text="Of importance, confidence and recency.")
    previous_version = serializers.IntegerField(
        allow_null=True, help_text="One less, if any: staff may have forgotten it."
    )
    source = serializers.CharField()  # type: ignore[assignment]  # DRF takes it out of the class
    updated_at = serializers.DateTimeField()
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class EntriesAnswer(serializers.Serializer[Any]):
    entries = EntryAnswer(many=True, help_text="In the order in which they were sent.")


ONE_OR_MANY: Any = PolymorphicProxySerializer(
    component_name="StoredEntries", serializers=[EntryAnswer, EntriesAnswer], resource_type_field_name=None
)


class FoundEntries(serializers.Serializer[Any]):
    results = FoundEntry(many=True)
    degraded = Degraded()


class VersionAnswer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="From 1 on.")
    previous_version = serializers.IntegerField(allow_null=True, help_text="Null for the first that is kept.")
    content = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    editor = serializers.CharField()
    restored_from = serializers.IntegerField(allow_null=True, help_text="The version whose content it brought back.")
    created_at = serializers.DateTimeField()


SHARED_COLUMNS = (
    *("item_key", "context_id", "agent_id", "user_id", "channel", "key", "value", "entry_type", "source_type"),
    *("memory_type", "importance", "confidence", "metadata", "event_time", "created_at"),
)


def represent_entry(entry: ContextEntry, *, now: datetime) -> dict[str, Any]:
    # in a list by relevance the score by which it has its place
    score = getattr(entry, BY_RELEVANCE.name, None)
    number = entry.content_version
    return {name: getattr(entry, name) for name in SHARED_COLUMNS} | {
        "id": str(entry.id),
        "content": entry.text,
        "version": number,
        "previous_version": number - 1 if number > 1 else None,
        "effective_relevance_score": entry.effective_relevance_score(now) if score is None else score,
        "source": entry.source,
        "updated_at": entry.updated_at,
        "embedding": "stored" if entry.embed_after is None else "pending",
    }


def represent_hit(hit: EntryHit) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in SHARED_COLUMNS} | {
        "id": str(hit.id),
        "content": hit.content,
        "version": hit.content_version,
        "similarity": hit.similarity,
        "score": hit.score,
        "reasons": list(hit.reasons),
    }


def represent_version(version: ContextEntryVersion) -> dict[str, Any]:
    columns = {name: getattr(version, name) for name in ("content", "value", "editor", "restored_from", "created_at")}
    # they are numbered without gaps
    previous = None if version.previous_version_id is None else version.number - 1
    return columns | {"version": version.number, "previous_version": previous}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Entries that are read at a moment, to be in the access log."""

    now: datetime = field(default_factory=timezone.now)
    touched: list[Touched] = field(default_factory=list)

    def represent(self, entry: ContextEntry) -> dict[str, Any]:
        self.touched.append(touched(entry))
        return represent_entry(entry, now=self.now)


class EntryFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    entry_type = ChoiceFilter(choices=ENTRY_TYPES)
    source_type = ChoiceFilter(choices=SOURCE_TYPES)
    memory_type = ChoiceFilter(choices=MEMORY_TYPES)
    key = CharFilter(max_length=LONGEST_KEY, strip=False, method="of_key")

    def of_key(self, rows: QuerySet[ContextEntry], _name: str, key: str) -> QuerySet[ContextEntry]:
        """By the index of identities, however many entries the context has."""
        context_id: UUID = self.request.parser_context["kwargs"]["context_id"]
        return rows.filter(identity=keyed_identity(context_id, key), key=key)


class EntryViewSet(OwnerViewSet):
    """Actions that answer one entry, with its ETag."""

    def log(self, owner: Owner, reads: Sequence[Touched], *, now: datetime) -> None:
        """Log that these entries, by context and id, were read: a HEAD reads nothing."""
        if self.request.method != "HEAD":
            log_reads(owner, reads, action=Action.READ, now=now)

    def shown(self, entry: ContextEntry, *, status: int = 200) -> Response:
        return self.versioned(represent_entry(entry, now=timezone.now()), version=entry.version, status=status)


class ContextEntries(EntryViewSet):
    """Whoever may read the context reads its entries, and the same of writing; 409 while it is archived."""

    bodies = {"create": NewEntries}
    queries = {"list": EntriesQuery}
    answers = {
        "list": EntryAnswer,
        "create": ONE_OR_MANY,
    }
    statuses = {"create": 201}
    filterset_class = EntryFilter
    # for the description of the filters alone: rows come from `list`
    queryset = ContextEntry.objects.none()

    def list(self, request: Request, context_id: UUID) -> Response:
        """Newest first. By relevance, scores of all pages are of the first one's moment; an entry that is read or
        written between two pages moves, and may be on both or on none.
        """
        query, reading = self.query(), Reading()
        owner = self.owner(query)
        if query["ordering"] == "relevance":
            self.scored = BY_RELEVANCE
        page = self.page(entries_of_context(owner, context_id, now=reading.now), reading.represent)
        self.log(owner, reading.touched, now=reading.now)
        return page

    def create(self, request: Request, context_id: UUID) -> Response:
        """Store one entry, or up to 1,000 as `entries`, all or none.

        Under a key that is taken it is that entry's next version, if content or value are others. Types, weights and
        metadata (whole) are replaced by those that are sent. Of a key that is given twice, the last counts.

        Vectors are made for the first 200 texts before the answer, the rest follows soon.
        """
        body = self.body()
        owner = self.owner(body)
        drafts = drafts_of(owner, body.get("entries", [body]))
        embedded = embed_texts([draft.text for draft in drafts if draft.own is None])

        def write() -> Response:
            now, editor = timezone.now(), editor_of(owner, {})
            stored = store_entries(owner, context_id, drafts=drafts, embedded=embedded, editor=editor, now=now)
            if "entries" in body:
                return Response({"entries": [represent_entry(entry, now=now) for entry in stored]}, status=201)
            return self.shown(stored[0], status=201)

        return self.once(write)


def answer_search(owner: Owner, body: dict[str, Any], *, contexts: Collection[UUID], now: datetime) -> Response:
    """What the entries of these contexts answer to a checked EntrySearch; nothing of none. Noted once it is sent."""
    own = own_vector(owner, body, "query_embedding")
    if not contexts:
        return Response({"results": [], "degraded": []})
    asked = EntryQuestion(
        text=body["query"], top_k=body["top_k"], own=own, contexts=contexts, techniques=body.get("techniques", [])
    )
    found = recall_entries(owner, asked, now=now)
    return ConcludedResponse(
        {"results": [represent_hit(hit) for hit in found.hits], "degraded": list(found.degraded)},
        conclude=partial(note_search, owner, asked, found, now=now),
    )


class EntrySearches(OwnerViewSet):
    """By words and by meaning, as /recall does."""

    bodies = {"search": EntrySearch}
    answers = {"search": FoundEntries}
    scopes = {"search": "read"}
    rate_class = "retrieval"

    def search(self, request: Request, context_id: UUID) -> Response:
        """The context's entries that answer the query best; none, while it is archived."""
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        find_context(owner, context_id)
        return answer_search(owner, body, contexts=[context_id], now=now)


class Entries(EntryViewSet):
    """404 for who may not read its context, 403 for writes of who may no more than that."""

    bodies = {"partial_update": NewContent, "boost": Weighing, "reduce": Weighing}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answers = {
        "retrieve": EntryAnswer,
        "partial_update": EntryAnswer,
        "boost": EntryAnswer,
        "reduce": EntryAnswer,
    }
    statuses = {"destroy": 204}
    problems = {"destroy": (409,)}
    conditional = frozenset({"partial_update", "destroy", "boost", "reduce"})

    def retrieve(self, request: Request, entry_id: UUID) -> Response:
        owner, now = self.owner(self.query()), timezone.now()
        entry = find_entry(owner, entry_id, now=now)
        self.log(owner, [touched(entry)], now=now)
        # never 304: its score fades, and its vector may come, under the same ETag
        return Response(represent_entry(entry, now=now), headers={"ETag": etag_of(entry.version)})

    def partial_update(self, request: Request, entry_id: UUID) -> Response:
        """Its next version; the same content again is none. The one before stays under `/versions`."""
        body = self.body()
        owner, expected = self.owner(body), self.expected()
        edit = edit_of(owner, body)
        embedded = embed_texts([] if edit.own else [edit.content])
        return self.shown(
            update_content(owner, entry_id, edit=edit, embedded=embedded, expected=expected, now=timezone.now())
        )

    def destroy(self, request: Request, entry_id: UUID) -> Response:
        """Out of reads and searches. Restoring a snapshot brings it back, and so does storing its key again."""
        remove_entry(self.owner(self.query()), entry_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)

    def boost(self, request: Request, entry_id: UUID) -> Response:
        """Make it more important, up to 1."""
        body, expected = self.body(), self.expected()
        owner, by = self.owner(body), body["by"]
        return self.once(
            lambda: self.shown(boost_importance(owner, entry_id, by=by, expected=expected, now=timezone.now()))
        )

    def reduce(self, request: Request, entry_id: UUID) -> Response:
        """Make it less important, down to 0."""
        body, expected = self.body(), self.expected()
        owner, by = self.owner(body), body["by"]
        return self.once(
            lambda: self.shown(reduce_importance(owner, entry_id, by=by, expected=expected, now=timezone.now()))
        )


class EntryVersions(EntryViewSet):
    """What an entry said, and who said it."""

    bodies = {"restore": Restoring}
    queries = {"list": ActingFields}
    answers = {"list": VersionAnswer, "restore": EntryAnswer}
    conditional = frozenset({"restore"})
    ordering = ("number",)

    def list(self, request: Request, entry_id: UUID) -> Response:
        """First version first, the present one last."""
        owner, now = self.owner(self.query()), timezone.now()
        entry = find_entry(owner, entry_id, now=now)
        page = self.page(entry_versions(entry), represent_version)
        self.log(owner, [touched(entry)], now=now)
        return page

    def restore(self, request: Request, entry_id: UUID, number: int) -> Response:
        """Bring its content back, as the next version. What it says already changes nothing."""
        body = self.body()
        owner, expected = self.owner(body), self.expected()
        version = find_version(owner, entry_id, number, now=timezone.now())
        embedded = embed_texts([version.content])

        def write() -> Response:
            now, editor = timezone.now(), editor_of(owner, body)
            return self.shown(
                restore_version(owner, version, embedded=embedded, editor=editor, expected=expected, now=now)
            )

        return self.once(write)

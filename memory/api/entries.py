"""`/contexts/{context_id}/entries` and `/entries/{entry_id}`: the entries of persistent contexts, with all versions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import ChoiceFilter
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entry_drafts import (
    ENTRY_TYPES,
    MAX_KEY_CHARACTERS,
    MEMORY_TYPES,
    SOURCE_TYPES,
    ImportanceChange,
    NewContent,
    NewEntries,
    VersionToRestore,
    choose_editor,
    edit_from_body,
    entry_drafts_from_body,
)
from memory.api.fields import (
    Degraded,
    EmbeddingState,
    Fraction,
    MemoryFields,
    OwnerFields,
    QuestionText,
    Similarity,
    TextList,
    TopK,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.recall import Techniques, UsageAnswer
from memory.api.snippets import SnippetFields, SnippetOptions
from memory.api.vectors import QUERY_HELP, QuestionFields, read_vector
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.models import ContextEntry, ContextEntryVersion, Kind
from memory.models.entries import effective_relevance
from memory.owner import Owner
from memory.retrieval.kind_searches import EntryHit
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.retrieval.search import SearchResults
from memory.services.contexts.access_log import Action, entry_reference, log_reads
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
    update_entry_content,
)
from memory.services.contexts.manage import find_context, keyed_identity
from memory.services.contexts.search import EntryQuestion, recall_entries, record_entry_search
from memory.services.duplicates.resolve import survivors_condition
from memory.services.embedding.embed import embed_texts
from memory.tiers.access_log import EntryReference
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.pagination import ScoreOrdering
from memory_project.http.serializers import ActingFields

BY_RELEVANCE = ScoreOrdering(name="relevance", score=effective_relevance)


class EntriesQuery(ActingFields):
    ordering = serializers.ChoiceField(
        ["newest", "relevance"],
        default="newest",
        help_text="`newest`: latest first. `relevance`: greatest effective relevance first.",
    )


class EntrySearch(OwnerFields, QuestionFields, SnippetOptions):
    query = QuestionText(required=False, max_length=MAX_QUERY_CHARACTERS, help_text=QUERY_HELP)
    top_k = TopK()
    techniques = Techniques()
    min_score = Fraction(
        required=False,
        help_text="Least likelihood that a result helps, from 0 to 1: what `/recall` answers as `confidence`, not the "
        "`confidence` of the entry. Default: none.",
    )


class ContextEntryAnswer(MemoryFields):
    context_id = serializers.UUIDField()
    key = serializers.CharField(help_text="Unique name in the context. Empty: none.")
    content = serializers.CharField()
    value = serializers.JSONField(allow_null=True, help_text="Null if there is nothing but the content.")
    importance = serializers.FloatField(help_text="Importance from 0 to 1.")
    confidence = serializers.FloatField(help_text="Confidence from 0 to 1.")
    version = serializers.IntegerField(source="content_version", help_text="Counts changes of the content only.")
    columns = columns_of(ContextEntry, "entry_type source_type memory_type metadata event_time created_at")


class FoundEntry(SnippetFields, ContextEntryAnswer):
    content = serializers.CharField(help_text="The content, or the snippet of a longer one, unless `whole`.")
    truncated = serializers.BooleanField(help_text="True if `content` is not the whole content.")
    similarity = Similarity()
    score = serializers.FloatField(help_text="Results are ordered by it. Comparable within one answer only.")
    reasons = TextList(help_text="Why it was found, for people.")


class EntryAnswer(ContextEntryAnswer):
    content = serializers.CharField(source="text")
    effective_relevance_score = serializers.FloatField(help_text="Importance, confidence and recency, from 0 to 1.")
    previous_version = serializers.IntegerField(allow_null=True, help_text="Version before; staff may have deleted it.")
    embedding = EmbeddingState()
    columns = columns_of(ContextEntry, "source updated_at")

    @staticmethod
    def compute_previous_version(entry: ContextEntry) -> int | None:
        return entry.content_version - 1 if entry.content_version > 1 else None


class EntriesAnswer(AnswerSerializer):
    entries = EntryAnswer(many=True, help_text="The entries in the order in which they were sent.")


ONE_OR_MANY: Any = PolymorphicProxySerializer(
    component_name="StoredEntries", serializers=[EntryAnswer, EntriesAnswer], resource_type_field_name=None
)


class FoundEntries(AnswerSerializer):
    results = FoundEntry(many=True, source="hits", help_text="Best first.")
    degraded = Degraded()
    usage = UsageAnswer()


class VersionAnswer(AnswerSerializer):
    version = serializers.IntegerField(source="number", help_text="Number of the version, from 1.")
    previous_version = serializers.IntegerField(allow_null=True, help_text="Null for the first version that is kept.")
    restored_from = serializers.IntegerField(allow_null=True, help_text="Version whose content this one brought back.")
    columns = columns_of(ContextEntryVersion, "content value editor created_at")

    @staticmethod
    def compute_previous_version(version: ContextEntryVersion) -> int | None:
        # versions are numbered without gaps
        return None if version.previous_version_id is None else version.number - 1


def relevance_at(entry: ContextEntry, now: datetime) -> dict[str, float]:
    """Return the score of an entry at a time. In a list by relevance, it is the score that determined its place."""
    score = getattr(entry, BY_RELEVANCE.name, None)
    return {"effective_relevance_score": entry.effective_relevance_score(now) if score is None else score}


def serialize_entry(entry: ContextEntry, *, now: datetime) -> dict[str, Any]:
    return EntryAnswer.serialize(entry, relevance_at(entry, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReads:
    """Entries that are read at one time, collected for the access log."""

    now: datetime = field(default_factory=timezone.now)
    references: list[EntryReference] = field(default_factory=list)

    def serialize(self, entry: ContextEntry) -> dict[str, Any]:
        self.references.append(entry_reference(entry))
        return serialize_entry(entry, now=self.now)


class ContextEntryFilter(RowFilter):
    entry_type = ChoiceFilter(choices=ENTRY_TYPES)
    source_type = ChoiceFilter(choices=SOURCE_TYPES)
    memory_type = ChoiceFilter(choices=MEMORY_TYPES)
    key = TextFilter(max_length=MAX_KEY_CHARACTERS, method="filter_key")

    def filter_key(self, rows: QuerySet[ContextEntry], _name: str, key: str) -> QuerySet[ContextEntry]:
        """Use the index of identities, which is fast however many entries the context has. Aliases are keys, too."""
        context_id: UUID = self.request.parser_context["kwargs"]["context_id"]
        identity = keyed_identity(context_id, key)
        merged = survivors_condition(Owner(account_id=self.request.auth.account_id), Kind.CONTEXT_ENTRY, [identity])
        return rows.filter(Q(identity=identity, key=key) | Q(merged))


class EntryViewSet(OwnerViewSet):
    """Base of views that read or answer entries."""

    def log_reads(self, owner: Owner, reads: Sequence[EntryReference], *, now: datetime) -> None:
        """Log reads of these entries, by context and id. A HEAD reads nothing."""
        if self.request.method != "HEAD":
            log_reads(owner, reads, action=Action.READ, now=now)

    def answer_row(self, row: ContextEntry) -> Response:
        return self.respond_with_etag(row, relevance_at(row, timezone.now()))


class ContextEntries(EntryViewSet):
    """The entries of a context, for agents that may read it, or write to it. 409 for writes while it is archived."""

    operation_ids = {"create": "add_context_entries"}
    bodies = {"create": NewEntries}
    queries = {"list": EntriesQuery}
    answers = {"list": EntryAnswer, "create": ONE_OR_MANY}
    filterset_class = ContextEntryFilter
    queryset = ContextEntry.objects.none()

    @property
    def answer_shape(self) -> type[AnswerSerializer]:
        return EntryAnswer

    def list(self, request: Request, context_id: UUID) -> Response:
        """List entries, latest first.

        By relevance, the scores of all pages are computed for the time of the first page. An entry that is read or
        written between two pages moves, and may be on both or on neither.
        """
        query, reads = self.query(), EntryReads()
        owner = self.owner(query)
        if query["ordering"] == "relevance":
            self.scored = BY_RELEVANCE
        page = self.respond_page(entries_of_context(owner, context_id, now=reads.now), reads.serialize)
        self.log_reads(owner, reads.references, now=reads.now)
        return page

    def create(self, request: Request, context_id: UUID) -> Response:
        """Store one entry, or up to 1,000 as `entries`: all or none.

        An entry under a key that exists becomes that entry's next version, if its content or value differs. Types,
        weights and metadata (as a whole) are replaced by those that are sent.

        Vectors are made for the first 200 texts before the answer, the others soon after.
        """
        body, owner = self.body_and_owner()
        drafts = entry_drafts_from_body(owner, body.get("entries", [body]))
        embedded = embed_texts([draft.text for draft in drafts if draft.own is None])

        def write() -> Response:
            now, editor = timezone.now(), choose_editor(owner, {})
            stored = store_entries(owner, context_id, drafts=drafts, embedded=embedded, editor=editor, now=now)
            if "entries" in body:
                return Response({"entries": [serialize_entry(entry, now=now) for entry in stored]}, status=201)
            return self.answer_row(stored[0])

        return self.write_once(write)


def respond_entry_search(owner: Owner, body: dict[str, Any], *, contexts: Collection[UUID], now: datetime) -> Response:
    """Answer a checked EntrySearch from the entries of these contexts. Records the search after the response."""
    own = read_vector(owner, body, "query_embedding")
    if not contexts:
        return Response(FoundEntries.serialize(SearchResults(hits=[], degraded=[])))
    asked = EntryQuestion(
        text=body.get("query", ""),
        top_k=body["top_k"],
        own=own,
        contexts=contexts,
        techniques=body.get("techniques", []),
        max_snippet_tokens=body["max_snippet_tokens"],
        whole=body["whole"],
        min_score=body.get("min_score"),
    )
    found = recall_entries(owner, asked, now=now)
    results = [serialize_hit(hit, is_whole=body["whole"]) for hit in found.hits]
    usage = found.usage.with_whole_texts() if body["whole"] else found.usage
    return FollowUpResponse(
        FoundEntries.serialize(found, {"results": results, "usage": UsageAnswer.serialize(usage)}),
        follow_up=partial(record_entry_search, owner, asked, found, now=now),
    )


def serialize_hit(hit: EntryHit, *, is_whole: bool) -> dict[str, Any]:
    content = hit.content if is_whole else hit.snippet
    return FoundEntry.serialize(hit, {"content": content, "truncated": len(content) < len(hit.content)})


class EntrySearches(OwnerViewSet):
    """Search by words and by meaning, as `/recall` does."""

    operation_ids = {"search": "search_context_entries"}
    bodies = {"search": EntrySearch}
    answers = {"search": FoundEntries}
    scopes = {"search": "read"}
    replica_reads = frozenset({"search"})
    rate_class = "retrieval"

    def search(self, request: Request, context_id: UUID) -> Response:
        """Find the entries of the context that answer the query best. An archived context has no results."""
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        find_context(owner, context_id)
        return respond_entry_search(owner, body, contexts=[context_id], now=now)


class Entries(EntryViewSet):
    """One entry. 404 for agents that may not read its context, 403 for writes of agents that may only read it."""

    bodies = {"partial_update": NewContent, "boost": ImportanceChange, "reduce": ImportanceChange}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answer = EntryAnswer
    # `retrieve` is missing: the score fades, and the vector may be made, under the same ETag
    conditional = frozenset({"partial_update", "destroy", "boost", "reduce"})

    def retrieve(self, request: Request, entry_id: UUID) -> Response:
        """Return an entry with its present version."""
        owner, now = self.owner(self.query()), timezone.now()
        entry = find_entry(owner, entry_id, now=now)
        self.log_reads(owner, [entry_reference(entry)], now=now)
        return self.respond_with_etag(entry, relevance_at(entry, now))

    def partial_update(self, request: Request, entry_id: UUID) -> Response:
        """Store new content as the next version; equal content makes none. Earlier ones are under `/versions`."""
        body = self.body()
        owner, expected = self.owner(body), self.expected_versions()
        edit = edit_from_body(owner, body)
        embedded = embed_texts([] if edit.own else [edit.content])
        return self.answer_row(
            update_entry_content(owner, entry_id, edit=edit, embedded=embedded, expected=expected, now=timezone.now())
        )

    def destroy(self, request: Request, entry_id: UUID) -> Response:
        """Remove an entry from reads and searches. Restoring a snapshot, or storing its key again, brings it back."""
        owner, expected = self.owner(self.query()), self.expected_versions()
        remove_entry(owner, entry_id, expected=expected, now=timezone.now())
        return Response(status=204)

    def boost(self, request: Request, entry_id: UUID) -> Response:
        """Increase the importance, up to 1."""
        body, expected = self.body(), self.expected_versions()
        owner, by = self.owner(body), body["by"]
        return self.write_row(boost_importance, owner, entry_id, by=by, expected=expected, now=timezone.now())

    def reduce(self, request: Request, entry_id: UUID) -> Response:
        """Decrease the importance, down to 0."""
        body, expected = self.body(), self.expected_versions()
        owner, by = self.owner(body), body["by"]
        return self.write_row(reduce_importance, owner, entry_id, by=by, expected=expected, now=timezone.now())


class EntryVersions(EntryViewSet):
    """The versions of an entry's content, with their authors."""

    bodies = {"restore": VersionToRestore}
    queries = {"list": ActingFields}
    answers = {"list": VersionAnswer, "restore": EntryAnswer}
    conditional = frozenset({"restore"})
    ordering = ("number",)

    def list(self, request: Request, entry_id: UUID) -> Response:
        """List versions, the first one first and the present one last."""
        owner, now = self.owner(self.query()), timezone.now()
        entry = find_entry(owner, entry_id, now=now)
        page = self.respond_page(entry_versions(entry))
        self.log_reads(owner, [entry_reference(entry)], now=now)
        return page

    def restore(self, request: Request, entry_id: UUID, number: int) -> Response:
        """Store the content of an earlier version as the next version. Changes nothing if it equals the present one."""
        body = self.body()
        owner, expected = self.owner(body), self.expected_versions()
        version = find_version(owner, entry_id, number, now=timezone.now())
        embedded = embed_texts([version.content])

        def write() -> Response:
            now, editor = timezone.now(), choose_editor(owner, body)
            return self.answer_row(
                restore_version(owner, version, embedded=embedded, editor=editor, expected=expected, now=now)
            )

        return self.write_once(write)

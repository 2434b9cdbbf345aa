"""`/memories/search`: memories of any kind that answer a question, with the fields that `/memories/{memory_id}` has."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    Degraded,
    Fraction,
    MemoryFields,
    OwnerFields,
    QuestionText,
    TextList,
    TimeRangeFields,
    TopK,
)
from memory.api.recall import CandidateAnswer, Choices, Techniques, UsageAnswer
from memory.api.snippets import SnippetOptions
from memory.api.vectors import QUERY_HELP, QuestionFields, read_vector
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Query, Scope
from memory.services.recall.recall import RecallRequest, conclude_recall
from memory.services.recall.search import FoundMemory, search_memories, searchable_kinds
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ExternalId

SEARCHABLE = sorted(searchable_kinds())


class MemorySearch(OwnerFields, QuestionFields, SnippetOptions, TimeRangeFields):
    query = QuestionText(required=False, max_length=MAX_QUERY_CHARACTERS, help_text=QUERY_HELP)
    top_k = TopK()
    kinds = Choices([(kind.value, kind.label) for kind in SEARCHABLE], "Limit to memories of these kinds.")
    conversation_id = ExternalId(required=False, help_text="Limit to memories of this conversation.")
    techniques = Techniques()
    min_score = Fraction(required=False, help_text="Least `confidence` of results, from 0 to 1. Default: none.")


class SearchedMemory(CandidateAnswer, MemoryFields):
    """A memory that a search found."""

    text = serializers.CharField(help_text="The text, or the snippet of a longer one, unless `whole`.")
    content = serializers.CharField(help_text="Deprecated: the same as `text`.")
    truncated = serializers.BooleanField(help_text="True if `text` is not the whole text.")
    score = serializers.FloatField(help_text="Results are ordered by it. Comparable within one answer only.")
    reasons = TextList(help_text="Why it was found, for people.")
    event_time = serializers.DateTimeField(help_text="Time when it happened.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Time from which it is forgotten. Null: never.")
    importance = serializers.FloatField(help_text="Importance of a context entry, salience of other kinds: 0 to 1.")
    metadata = serializers.DictField()
    context_id = serializers.UUIDField(allow_null=True, help_text="Persistent context of an entry. Null: none.")
    key = serializers.CharField(help_text="Key of a keyed value or a context entry. Empty: none.")
    value = serializers.JSONField(allow_null=True, help_text="Value under the key. Null if there is only the text.")


class SearchedMemories(AnswerSerializer):
    results = SearchedMemory(many=True, help_text="Best first.")
    degraded = Degraded()
    usage = UsageAnswer()


def serialize_found(found: FoundMemory, *, is_whole: bool) -> dict[str, Any]:
    recalled = found.candidate
    text = recalled.text if is_whole else recalled.snippet
    given = {"text": text, "content": text, "truncated": recalled.is_cut or len(text) < len(recalled.text)}
    context_id = found.details["context_id"]
    return SearchedMemory.serialize(recalled, found.details | given | {"context_id": context_id and str(context_id)})


class MemorySearches(OwnerViewSet):
    """Search in memories of all kinds, by words and by meaning."""

    for_users = True
    operation_ids = {"search": "search_memories"}
    bodies = {"search": MemorySearch}
    answers = {"search": SearchedMemories}
    scopes = {"search": "read"}
    replica_reads = frozenset({"search"})
    rate_class = "retrieval"

    def search(self, request: Request) -> Response:
        """Find the memories that answer a question best: notes, facts, turns, keyed values and the other kinds.

        Left out are structured turns and work episodes, which `/recall` finds as far as the account's policy allows.
        `/recall` also answers open goals and the user's profile, and ranks by an active conversation;
        `/keyed-memories/search` searches an agent's keyed values alone.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        conversation_id = body.get("conversation_id", "")
        query = Query(
            text=body.get("query", ""),
            top_k=body["top_k"],
            kinds=sorted(set(body.get("kinds") or SEARCHABLE)),
            conversation_id=conversation_id,
            scopes=[Scope.SESSION] if conversation_id else [],
            since=body.get("since"),
            until=body.get("until"),
            max_snippet_tokens=body["max_snippet_tokens"],
            whole=body["whole"],
            min_score=body.get("min_score"),
        )
        asked = RecallRequest(
            query=query, own=read_vector(owner, body, "query_embedding"), techniques=body.get("techniques", [])
        )
        bundle, found = search_memories(owner, asked, now=now)
        usage = bundle.usage.with_whole_texts() if body["whole"] else bundle.usage
        answer = {
            "results": [serialize_found(each, is_whole=body["whole"]) for each in found],
            "usage": UsageAnswer.serialize(usage),
        }
        return FollowUpResponse(
            SearchedMemories.serialize(bundle, answer),
            follow_up=partial(conclude_recall, owner, asked, bundle, now=now),
        )

"""`/contexts/{context_id}/items`: keyed values under namespaces, many in one request.

An item is an entry of the context whose key is its path, such as `users.ana/prefs`; see `memory.services.items`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entry_drafts import MAX_CONTENT_CHARACTERS, choose_editor
from memory.api.fields import JsonObject, NonBlankText, OwnerFields, SearchDegraded, TextList
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.errors import Unprocessable
from memory.owner import Owner
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.items.paths import LABEL_SEPARATOR, MAX_PATH_CHARACTERS, ItemPath
from memory.services.items.query import FoundItem, ItemSearch, ItemStore, NamespaceSearch, embed_queries
from memory.services.items.store import MAX_TTL_SECONDS, ItemDraft, ItemWrites, embed_items, store_items
from memory.services.memories.store import ClientVector, validate_vector
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import (
    ActingFields,
    BoundedList,
    ExternalId,
    FiniteFloat,
    Flag,
    StrictSerializer,
    Text,
    WholeNumber,
)

MAX_ITEMS = 1_000
MAX_TEXTS = 100
MAX_LABELS = 50
MAX_SEARCHES = 50
MAX_FOUND = 1_000
MAX_OFFSET = 100_000
MAX_VERSION = 2**31 - 1
MODEL_HELP = "Name of the model that made the vectors. Default: the service makes them."


class Label(Text):
    """A label of a namespace: not empty, without dots."""

    default_error_messages = {"dot": "Labels of namespaces must not contain dots."}

    def to_internal_value(self, data: Any) -> str:
        label = super().to_internal_value(data)
        if LABEL_SEPARATOR in label:
            self.fail("dot")
        return label


class Labels(BoundedList):
    """Labels of a namespace, from the outermost."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"child": Label(max_length=MAX_PATH_CHARACTERS), "max_length": MAX_LABELS, **options})


class ItemPathFields(StrictSerializer):
    """The address of an item."""

    namespace = Labels(min_length=1, help_text='Labels from the outermost, such as `["users", "ana"]`.')
    key = Text(max_length=MAX_PATH_CHARACTERS, help_text="Name of the item, unique in its namespace.")


class ItemToWrite(ItemPathFields):
    expected_version = WholeNumber(
        required=False,
        min_value=0,
        max_value=MAX_VERSION,
        help_text="412 at another version, and nothing is written. 0: there must be no such item. "
        "400 for a path that occurs more than once.",
    )


class NewItem(ItemToWrite):
    """An item to store."""

    value = JsonObject(help_text="The value, which replaces the present one.")
    texts = BoundedList(
        child=NonBlankText(max_length=MAX_CONTENT_CHARACTERS),
        max_length=MAX_TEXTS,
        required=False,
        help_text="Texts that searches compare, each by itself. Default: none, so that no search by meaning finds it.",
    )
    embeddings = BoundedList(
        child=EmbeddingField(), max_length=MAX_TEXTS, required=False, help_text="A vector for each of `texts`."
    )
    ttl_seconds = FiniteFloat(
        required=False,
        allow_null=True,
        min_value=0.001,
        max_value=MAX_TTL_SECONDS,
        help_text="Seconds until it expires. Reads with `refresh_ttl` extend it by as much. Default: never.",
    )


class ItemsToWrite(OwnerFields):
    items = BoundedList(
        child=NewItem(),
        max_length=MAX_ITEMS,
        default=list,
        help_text="Items to store. Of the same path, the last one wins.",
    )
    deleted = BoundedList(
        child=ItemToWrite(),
        max_length=MAX_ITEMS,
        default=list,
        help_text="Items to delete. One that is in `items` too is stored.",
    )
    embedding_model = ExternalId(required=False, help_text=MODEL_HELP)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # of a path that occurs twice, one version would be ignored
        counts = Counter(path_from_body(each) for name in ("items", "deleted") for each in attrs[name])
        for name in ("items", "deleted"):
            for each in attrs[name]:
                if "expected_version" in each and counts[path_from_body(each)] > 1:
                    repeated = f"{LABEL_SEPARATOR.join(each['namespace'])}/{each['key']}"
                    reason = f"{repeated} has an `expected_version` and occurs more than once. Send it once."
                    raise serializers.ValidationError({name: [reason]})
        return attrs


class ItemToRead(ItemPathFields):
    refresh_ttl = Flag(default=False, help_text="Let it live as long again as it was stored for.")


class ItemQuestion(StrictSerializer):
    """A search in a namespace and the ones below."""

    namespace_prefix = Labels(required=False, default=list, help_text="First labels of the namespaces. Default: all.")
    query = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="Text to compare by meaning. Default: none, and the items that changed last come first.",
    )
    query_embedding = EmbeddingField(required=False, help_text="Vector of the query. Default: the service makes one.")
    filter = JsonObject(
        required=False,
        help_text='Members that values have: `{"color": "red"}`, or with `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.',
    )
    limit = WholeNumber(default=10, min_value=1, max_value=MAX_FOUND, help_text="Maximum number of items.")
    offset = WholeNumber(default=0, min_value=0, max_value=MAX_OFFSET, help_text="Number of items to skip.")
    refresh_ttl = Flag(default=False, help_text="Let what is found live as long again as it was stored for.")


class NamespaceQuestion(StrictSerializer):
    """A choice of namespaces to list. `*` stands for any label."""

    prefixes = BoundedList(child=Labels(), max_length=10, default=list, help_text="First labels: all must match.")
    suffixes = BoundedList(child=Labels(), max_length=10, default=list, help_text="Last labels: all must match.")
    max_depth = WholeNumber(
        required=False, allow_null=True, min_value=1, max_value=MAX_LABELS, help_text="Labels to keep. Default: all."
    )
    limit = WholeNumber(default=100, min_value=1, max_value=MAX_FOUND, help_text="Maximum number of namespaces.")
    offset = WholeNumber(default=0, min_value=0, max_value=MAX_OFFSET, help_text="Number of namespaces to skip.")


class ItemsQuery(ActingFields):
    reads = BoundedList(child=ItemToRead(), max_length=MAX_ITEMS, default=list, help_text="Items to read by path.")
    searches = BoundedList(child=ItemQuestion(), max_length=MAX_SEARCHES, default=list, help_text="Searches to make.")
    namespaces = BoundedList(
        child=NamespaceQuestion(), max_length=MAX_SEARCHES, default=list, help_text="Lists of namespaces to make."
    )
    embedding_model = ExternalId(required=False, help_text=MODEL_HELP)


class ItemAnswer(AnswerSerializer):
    namespace = TextList()
    key = serializers.CharField()
    value = serializers.JSONField()
    version = serializers.IntegerField(help_text="Number that grows with each change, for `expected_version`.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    score = serializers.FloatField(allow_null=True, help_text="Cosine similarity of its nearest text to the query.")


class ItemsAnswer(AnswerSerializer):
    items = ItemAnswer(many=True, help_text="Best or latest first.")
    degraded = SearchDegraded()


class ItemsFound(AnswerSerializer):
    reads = serializers.ListField(child=ItemAnswer(allow_null=True), help_text="In the order of `reads`. Null: none.")
    searches = ItemsAnswer(many=True, help_text="In the order of `searches`.")
    namespaces = serializers.ListField(
        child=serializers.ListField(child=TextList()),
        help_text="In the order of `namespaces`, each in alphabetical order.",
    )


class ItemsWritten(AnswerSerializer):
    stored = serializers.IntegerField(help_text="Number of items that are stored.")
    versions = serializers.ListField(
        child=serializers.IntegerField(), help_text="Of each item, in the order of `items`."
    )
    deleted = serializers.IntegerField(help_text="Number of items that were there to delete.")


def serialize_item(item: FoundItem | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return ItemAnswer.serialize(item, {"namespace": list(item.path.namespace), "key": item.path.key})


def path_from_body(body: dict[str, Any]) -> ItemPath:
    return ItemPath(tuple(body["namespace"]), body["key"])


def writes_from_body(body: dict[str, Any]) -> ItemWrites:
    """Make the writes of a checked body."""
    last = {path_from_body(item): item for item in body["items"]}
    drafts = [
        ItemDraft(
            path=path,
            value=item["value"],
            texts=item.get("texts", ()),
            embeddings=item.get("embeddings", ()),
            ttl_seconds=item.get("ttl_seconds"),
        )
        for path, item in last.items()
    ]
    gone = {path: item for item in body["deleted"] if (path := path_from_body(item)) not in last}
    return ItemWrites(
        drafts=drafts,
        deleted=list(gone),
        embedding_model=body.get("embedding_model", ""),
        expected={path: item["expected_version"] for path, item in (gone | last).items() if "expected_version" in item},
    )


def searches_from_body(owner: Owner, body: dict[str, Any]) -> list[ItemSearch]:
    """Make the searches of a checked body. All queries are embedded in one call."""
    made = embed_queries([each.get("query", "") for each in body["searches"] if "query_embedding" not in each])
    return [
        search_from_body(question, given_vector(owner, body, question) or made.get(question.get("query", "")))
        for question in body["searches"]
    ]


def given_vector(owner: Owner, body: dict[str, Any], question: dict[str, Any]) -> ClientVector | None:
    vector = question.get("query_embedding")
    return None if vector is None else validate_vector(owner, model=body.get("embedding_model", ""), vector=vector)


def search_from_body(question: dict[str, Any], own: ClientVector | None) -> ItemSearch:
    return ItemSearch(
        prefix=question["namespace_prefix"],
        filter=question.get("filter", {}),
        query=question.get("query", ""),
        own=own,
        limit=question["limit"],
        offset=question["offset"],
        refreshes=question["refresh_ttl"],
    )


class ContextItems(OwnerViewSet):
    """Items of a context, for agents that may read it, or write to it."""

    operation_ids = {"write": "write_items", "query_items": "query_items"}
    bodies = {"write": ItemsToWrite, "query_items": ItemsQuery}
    answers = {"write": ItemsWritten, "query_items": ItemsFound}
    scopes = {"query_items": "read"}
    problems = {"write": (412,)}
    replica_reads = frozenset({"query_items"})

    def write(self, request: Request, context_id: UUID) -> Response:
        """Store, replace and delete items, all or none.

        A replaced value stays among the versions of the entry. 409 while the context is archived, 412 where an item has
        another `expected_version`, 413 for a value that is too large, 422 for a path of more than 200 characters.
        """
        body, owner = self.body_and_owner()
        writes = writes_from_body(body)
        embedded = embed_items(owner, writes)

        def write() -> Response:
            now, editor = timezone.now(), choose_editor(owner, {})
            written = store_items(owner, context_id, writes, embedded=embedded, editor=editor, now=now)
            versions = [written.versions[path_from_body(item)] for item in body["items"]]
            answer = {"stored": len(written.versions), "versions": versions, "deleted": written.deleted}
            return Response(ItemsWritten.serialize(None, answer))

        return self.write_once(write)

    def query_items(self, request: Request, context_id: UUID) -> Response:
        """Read items by path, search them by values and meaning, and list namespaces.

        422 for an operator that filters do not have, and for `reads` and `limit`s of searches of more than 1,000 items
        altogether.
        """
        body, owner = self.body_and_owner()
        if len(body["reads"]) + sum(each["limit"] for each in body["searches"]) > MAX_FOUND:
            raise Unprocessable(f"the reads and the limits of the searches must add up to at most {MAX_FOUND} items")
        searches = searches_from_body(owner, body)
        store = ItemStore(owner, context_id, timezone.now())
        paths = [path_from_body(read) for read in body["reads"]]
        refreshed = [path for path, read in zip(paths, body["reads"], strict=True) if read["refresh_ttl"]]
        found = store.read_items(paths, refreshed=refreshed)
        answers: dict[str, list[Any]] = {
            "reads": [serialize_item(found.get(path)) for path in paths],
            "searches": [answer_search(store, each) for each in searches],
            "namespaces": [list_namespaces(store, each) for each in body["namespaces"]],
        }
        if not found and not any(each["items"] for each in answers["searches"]) and not any(answers["namespaces"]):
            store.check_context()
        return Response(answers)


def answer_search(store: ItemStore, asked: ItemSearch) -> dict[str, Any]:
    items, degraded = store.search_items(asked)
    return {"items": [serialize_item(item) for item in items], "degraded": degraded}


def list_namespaces(store: ItemStore, question: dict[str, Any]) -> list[Sequence[str]]:
    asked = NamespaceSearch(
        prefixes=question["prefixes"],
        suffixes=question["suffixes"],
        max_depth=question.get("max_depth"),
        limit=question["limit"],
        offset=question["offset"],
    )
    return [list(each) for each in store.list_namespaces(asked)]

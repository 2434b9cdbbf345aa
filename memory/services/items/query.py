"""Read items: by path, by namespace and values, by meaning; and list the namespaces.

A search compares vectors exactly, as the stores of frameworks do: the score is the cosine similarity of the nearest of
an item's texts, and every item of the namespace is compared. Recall over the context (`/recall`, `/contexts/…/search`)
finds items too, by words as well.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import (
    BooleanField,
    CharField,
    DateTimeField,
    F,
    Func,
    Min,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Coalesce
from pgvector.django import CosineDistance

from memory.errors import Unprocessable
from memory.models import ContextEntry, Kind, Vector
from memory.models.statements import half_vector
from memory.owner import Owner
from memory.retrieval.search import MODEL_UNKNOWN
from memory.services.contexts.access_log import Action, entry_reference, log_reads
from memory.services.contexts.entries import visible_entries
from memory.services.contexts.manage import find_context, keyed_identity
from memory.services.embedding.embed import embed_questions
from memory.services.items.paths import (
    LABEL_SEPARATOR,
    SEPARATOR,
    ItemPath,
    format_namespace,
    namespace_pattern,
    parse_namespace,
    parse_path,
)
from memory.services.items.store import MAX_TTL_SECONDS, TTL_SECONDS
from memory.services.memories.store import ClientVector

COMPARISONS: Mapping[str, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
EQUALITIES: Mapping[str, str] = {"$eq": "=", "$ne": "IS DISTINCT FROM"}
OPERATORS = (*EQUALITIES, *COMPARISONS)


def filter_conditions(wanted: Mapping[str, Any]) -> list[Func]:
    """Return the conditions, all of which must hold. Raises Unprocessable for an unknown operator.

    `$gt`, `$gte`, `$lt` and `$lte` hold between values of one JSON type only. A mapping without operators is contained
    in the member.
    """
    return [condition for name, value in wanted.items() for condition in conditions_of_member(name, value)]


def conditions_of_member(name: str, wanted: Any) -> Iterator[Func]:
    if not isinstance(wanted, dict):
        yield compare(member(name), "=", json_value(wanted))
    elif not any(key.startswith("$") for key in wanted):
        yield compare(member(name), "@>", json_value(wanted))
    else:
        for operator, value in wanted.items():
            yield from apply_operator(name, operator, value)


def apply_operator(name: str, operator: str, value: Any) -> Iterator[Func]:
    if operator not in OPERATORS:
        raise Unprocessable(f'"{operator[:100]}" is not an operator of filters. Allowed: {", ".join(OPERATORS)}.')
    if operator in COMPARISONS:
        yield compare(type_of(member(name)), "=", type_of(json_value(value)))
    yield compare(member(name), {**COMPARISONS, **EQUALITIES}[operator], json_value(value))


def member(name: str) -> Func:
    """Return a member of the value as JSON."""
    return Func(F("value"), Cast(Value(name), TextField()), template="(%(expressions)s)", arg_joiner="::jsonb -> ")


def json_value(value: Any) -> Func:
    return Func(Value(json.dumps(value, ensure_ascii=False)), template="(%(expressions)s)::jsonb")


def type_of(value: Func) -> Func:
    return Func(value, function="jsonb_typeof")


def compare(one: Func, operator: str, other: Func) -> Func:
    comparison = f" {operator} "
    return Func(one, other, template="(%(expressions)s)", arg_joiner=comparison, output_field=BooleanField())


QUERY_DEADLINE_SECONDS = 5.0
# of an entry that was stored by other means, it may be anything
OWN_TTL = """CASE WHEN jsonb_typeof(metadata -> %s) = 'number' THEN
    CASE WHEN (metadata ->> %s)::numeric BETWEEN 0 AND %s THEN (metadata ->> %s)::float8 END END"""
NAMESPACE = Func(F("key"), Value(SEPARATOR), Value(1), function="split_part", output_field=CharField())


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """An item that was read. `score` is the cosine similarity to the query, None without one."""

    path: ItemPath
    value: Any
    version: int
    created_at: datetime
    updated_at: datetime
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSearch:
    """A search in a namespace and the ones below. Without a query, the latest items come first."""

    prefix: Sequence[str] = ()
    filter: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    """What `own` is the vector of. Without the vector, the search is degraded."""
    own: ClientVector | None = None
    limit: int = 10
    offset: int = 0
    refreshes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSearch:
    """A choice of namespaces to list: those that begin and end with these labels, cut to `max_depth` labels."""

    prefixes: Sequence[Sequence[str]] = ()
    suffixes: Sequence[Sequence[str]] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ItemStore:
    """The items of a context that the owner may read, at a time."""

    owner: Owner
    context_id: UUID
    now: datetime

    def check_context(self) -> None:
        """Raise NotFound unless the owner may read the context. Where an item was found, it may."""
        find_context(self.owner, self.context_id)

    def rows(self) -> QuerySet[ContextEntry]:
        rows = visible_entries(self.owner, now=self.now).filter(context_id=self.context_id)
        return rows.filter(key__contains=SEPARATOR)

    def read_items(self, paths: Sequence[ItemPath], *, refreshed: Sequence[ItemPath] = ()) -> dict[ItemPath, FoundItem]:
        """Return the items under these paths, and extend the life of the `refreshed` ones."""
        identities = [keyed_identity(self.context_id, path.text) for path in paths]
        rows = list(self.rows().filter(identity__in=identities)) if identities else []
        found = {parse_path(row.key): row for row in rows}
        self.refresh([row for path, row in found.items() if path in set(refreshed)])
        self.log(rows, Action.READ)
        return {path: make_item(row) for path, row in found.items()}

    def search_items(self, asked: ItemSearch) -> tuple[list[FoundItem], list[str]]:
        """Return the items found, best or latest first, and why the search was worse than it could be.

        Raises Unprocessable for an unknown operator.
        """
        rows, degraded = self.rows().filter(*filter_conditions(asked.filter)), []
        if asked.prefix:
            begin = keyed_identity(self.context_id, format_namespace(asked.prefix))
            inside = Q(identity__startswith=begin + SEPARATOR) | Q(identity__startswith=begin + LABEL_SEPARATOR)
            rows = rows.filter(inside)
        own = asked.own
        if asked.query.strip() and own is None:
            degraded = ["embedder_unavailable"]
        elif own is not None:
            degraded = self.describe_missing_vectors(rows, own)
        page = slice(asked.offset, asked.offset + asked.limit)
        found: list[tuple[ContextEntry, float | None]]
        if own is None:
            found = [(row, None) for row in rows.order_by("-updated_at", "-id")[page]]
        else:
            found = self.nearest(rows, own, page)
        shown = [row for row, _ in found]
        if asked.refreshes:
            self.refresh(shown)
        self.log(shown, Action.SEARCH)
        return [make_item(row, score) for row, score in found], degraded

    def describe_missing_vectors(self, rows: QuerySet[ContextEntry], own: ClientVector) -> list[str]:
        """Return why items may be missing from a search by this vector: items without vectors are not found."""
        if not own.is_comparable:
            return [MODEL_UNKNOWN]
        return ["embedding_pending"] if rows.filter(embed_after__isnull=False).exists() else []

    def nearest(
        self, rows: QuerySet[ContextEntry], own: ClientVector, page: slice
    ) -> list[tuple[ContextEntry, float | None]]:
        """Return rows by the nearest vector of their passages, or of the whole where there are none. Two statements."""
        vectors = Vector.objects.visible_to(self.owner, Kind.CONTEXT_ENTRY).live(self.now)
        vectors = vectors.filter(context_id=self.context_id).of_model(own.model, len(own.vector))
        distance = CosineDistance("vector", half_vector(own.vector))
        ranked = (
            vectors.filter(is_among(F("memory_id"), rows))
            .values("memory_id")
            .annotate(distance=Coalesce(Min(distance, filter=Q(passage__gt=0)), Min(distance)))
            .order_by("distance", "memory_id")
            .values_list("memory_id", "distance")[page]
        )
        scores = {memory_id: 1.0 - distance for memory_id, distance in ranked}
        by_id = {row.id: row for row in self.rows().filter(id__in=scores)}
        return [(by_id[each], score) for each, score in scores.items() if each in by_id]

    def list_namespaces(self, asked: NamespaceSearch) -> list[tuple[str, ...]]:
        """Return the namespaces that have items, in alphabetical order."""
        rows = self.rows().annotate(namespace=NAMESPACE)
        for labels, is_prefix in [
            *((each, True) for each in asked.prefixes),
            *((each, False) for each in asked.suffixes),
        ]:
            rows = rows.filter(namespace__regex=namespace_pattern(labels, is_prefix=is_prefix))
        if asked.max_depth is not None:
            template = f"array_to_string((string_to_array(%(expressions)s, '.'))[1:{asked.max_depth:d}], '.')"
            rows = rows.annotate(shown=Func(F("namespace"), template=template, output_field=CharField()))
        else:
            rows = rows.annotate(shown=F("namespace"))
        found = rows.order_by("shown").values_list("shown", flat=True).distinct()
        return [parse_namespace(each) for each in found[asked.offset : asked.offset + asked.limit]]

    def refresh(self, rows: Sequence[ContextEntry]) -> None:
        """Let items live as long again as they were stored for. Two statements, none if nothing expires."""
        expiring = [row.id for row in rows if row.expires_at is not None]
        if not expiring:
            return
        held = ContextEntry.objects.filter(account_id=self.owner.account_id, id__in=expiring, expires_at__gt=self.now)
        own = RawSQL(OWN_TTL, [TTL_SECONDS, TTL_SECONDS, MAX_TTL_SECONDS, TTL_SECONDS])  # noqa: S611  a constant
        with transaction.atomic():
            # in the order of their ids, as all writers lock them
            list(held.order_by("id").select_for_update(no_key=True).values_list("id"))
            # from a number: a distributed database refuses to add an interval, which depends on the session's time zone
            then = Func(Value(self.now.timestamp()), own, template="to_timestamp(%(expressions)s)", arg_joiner=" + ")
            held.update(expires_at=Coalesce(then, F("expires_at"), output_field=DateTimeField()))

    def log(self, rows: Sequence[ContextEntry], action: Action) -> None:
        log_reads(self.owner, [entry_reference(row) for row in rows], action=action, now=self.now)


def is_among(memory_id: F, rows: QuerySet[ContextEntry]) -> Func:
    """Return the condition that an id is one of the rows, whose ids are read once.

    As a join, the planner would go through all rows for each vector while the tables have no statistics, in the first
    minute of an installation: 10 seconds for 3,600 items.
    """
    ids = ArraySubquery(rows.values("id"))
    return Func(memory_id, ids, template="(%(expressions)s))", arg_joiner=" = ANY(", output_field=BooleanField())


def embed_queries(queries: Sequence[str]) -> dict[str, ClientVector]:
    """Return the vectors of the queries as far as they can be made, in one call. Never inside a transaction."""
    if not any(query.strip() for query in queries):
        return {}
    made = embed_questions(queries, deadline_seconds=QUERY_DEADLINE_SECONDS)
    return {query: ClientVector(model=made.model, vector=vector) for query, vector in made.vectors.items()}


def make_item(row: ContextEntry, score: float | None = None) -> FoundItem:
    return FoundItem(
        path=parse_path(row.key),
        value=row.value,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        score=score,
    )

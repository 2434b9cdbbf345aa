"""`/conversations/{conversation_id}/turns`: a conversation's log, appended to in JSON, or as NDJSON of any length."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import IO, Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Count, Moment, OwnerFields
from memory.api.turn_drafts import MOST_TURNS, NewTurn, NewTurnList, TurnReader
from memory.api.views import OwnerViewSet
from memory.extraction.messages import message_of
from memory.models import Turn
from memory.providers.embeddings import embedding_provider
from memory.services.conversations.lifecycle import Opening
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.memories.store import Admission
from memory.services.turns.store import StoredTurns, TurnDraft, store_turn_stream, store_turns, turns_of_conversation
from memory.tasks import run_soon
from memory_project.http.bodies import is_stream
from memory_project.http.problems import Problem
from memory_project.http.serializers import ActingFields, ExternalId, refuse_unknown
from memory_project.http.streams import batches_of, spooled_lines, write_array

COLUMNS = (
    *("index", "agent_id", "user_id", "channel", "model", "client_id", "metadata", "token_count", "content_hash"),
    *("archived", "created_at"),
)
OTHERS = ("kind", "role", "name", "text", "payload", "event_time", "embed_after")
"""Columns that the answer is made of."""


class TurnStream(OwnerFields):
    """What the body says in JSON. Of NDJSON, it is the query that says it."""

    continues = ExternalId(required=False, help_text="The conversation that this one resumes.")


class NewTurns(TurnStream):
    turns = NewTurnList(help_text=f"1 to {MOST_TURNS}, in order.")


class TurnsQuery(ActingFields):
    role = serializers.ChoiceField(Turn.Role.choices, required=False)
    since = Moment(required=False, help_text="Said then or later.")
    until = Moment(required=False, help_text="Said before then.")
    after_index = Count(required=False, help_text="Those behind it.")


class PlacedTurn(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    index = serializers.IntegerField(help_text="From 0 on, without gaps.")
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class PlacedTurns(serializers.Serializer[Any]):
    turns = PlacedTurn(many=True, help_text="In the order in which they were sent; the first's where sent before.")


class TurnAnswer(PlacedTurn):
    """A chat message as it was sent, and what is known of it. Tool calls and the like: where they were sent."""

    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="The agent that stored it.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    role = serializers.ChoiceField(Turn.Role.choices)
    name = serializers.CharField(help_text="The speaker; may be empty.")
    content = serializers.JSONField(allow_null=True, help_text="A text, parts, or null beside tool calls.")
    tool_calls = serializers.JSONField(required=False)
    tool_call_id = serializers.CharField(required=False)
    function_call = serializers.JSONField(required=False)
    refusal = serializers.CharField(required=False)
    annotations = serializers.JSONField(required=False)
    audio = serializers.JSONField(required=False)
    model = serializers.CharField(help_text="The model that wrote it; may be empty.")
    client_id = serializers.CharField(help_text="May be empty.")
    metadata = serializers.DictField()
    timestamp = serializers.DateTimeField(help_text="When it was said.")
    token_count = serializers.IntegerField(help_text="An estimate.")
    content_hash = serializers.CharField(help_text="SHA-256 of its text.")
    archived = serializers.BooleanField()
    created_at = serializers.DateTimeField(help_text="When it was stored.")


def represent_place(turn: Turn) -> dict[str, Any]:
    embedding = "stored" if turn.embed_after is None else "pending"
    return {"id": str(turn.id), "index": turn.index, "embedding": embedding}


def represent_turn(turn: Turn) -> dict[str, Any]:
    message = message_of(role=turn.role, name=turn.name, text=turn.text, payload=turn.payload)
    known = {"item_key": turn.item_key, "name": turn.name, "timestamp": turn.event_time}
    return represent_place(turn) | known | message | {name: getattr(turn, name) for name in COLUMNS}


class Turns(OwnerViewSet):
    """What was said. Writing into a conversation makes it, or has the agent take part; those that do may read it."""

    bodies = {"create": NewTurns}
    streams = {"create": NewTurn}
    queries = {"create": TurnStream, "list": TurnsQuery}
    answers = {"create": PlacedTurns, "list": TurnAnswer}
    statuses = {"create": 201}
    ordering = ("index",)

    def list(self, request: Request, conversation_id: str) -> Response:
        """The log, first turn first."""
        query = self.query()
        rows = turns_of_conversation(self.owner(query), conversation_id)
        return self.page(narrowed(rows, query).only(*COLUMNS, *OTHERS), represent_turn)

    def create(self, request: Request, conversation_id: str) -> HttpResponseBase:
        """Append turns: all of them, or none. What was stored before (same client_id, or same message at its index)
        is answered again. An ended conversation is reopened.

        As `application/x-ndjson` there may be any number, one a line, in a body of any length; agent_id, user_id,
        channel and continues are query parameters then, and of JSON they are none. Vectors are made for the first
        200 texts before the answer, the rest follows soon.
        """
        if is_stream(request.META):
            return self.store_stream(conversation_id)
        refuse_unknown(set(request.query_params))
        body, now = self.body(), timezone.now()
        owner = self.agent_owner(body)
        drafts = TurnReader(now=now, vectors=Admission(owner=owner)).read_all(body["turns"])
        embedded = embed_drafts(drafts)

        def write() -> Response:
            opening = opening_of(body)
            stored = store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now, opening=opening)
            summarize_where_due(stored)
            return Response({"turns": [represent_place(turn) for turn in stored.turns]}, status=201)

        return self.once(write)

    def store_stream(self, conversation_id: str) -> HttpResponseBase:
        query, now = self.query(), timezone.now()
        owner = self.agent_owner(query)
        reader = TurnReader(now=now, vectors=Admission(owner=owner))
        with spooled_lines(self.request, reader.read) as spool, ExitStack() as stack:
            answer: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            batches = embed_first(map(reader.read_all, batches_of(spool, most=MOST_TURNS)))
            with transaction.atomic():
                stored = store_turn_stream(owner, conversation_id, batches=batches, now=now, opening=opening_of(query))
                write_array(answer, "turns", places_of(stored))
            # closed by the response from here on
            stack.pop_all()
        return FileResponse(answer, status=201, content_type="application/json")


def narrowed(rows: QuerySet[Turn], query: Mapping[str, Any]) -> QuerySet[Turn]:
    conditions = {"role": "role", "since": "event_time__gte", "until": "event_time__lt", "after_index": "index__gt"}
    return rows.filter(**{column: query[name] for name, column in conditions.items() if name in query})


def opening_of(data: Mapping[str, Any]) -> Opening:
    return Opening(continues=data.get("continues", ""))


def embed_drafts(drafts: Sequence[TurnDraft]) -> Embedded:
    """Of those that bring no vector of the current model."""
    current = embedding_provider().model
    return embed_texts([draft.message.text for draft in drafts if draft.own is None or draft.own.model != current])


def embed_first(batches: Iterator[Sequence[TurnDraft]]) -> Iterator[tuple[Sequence[TurnDraft], Embedded]]:
    """The first with its vectors, which are made at once; the others without: what is long is left to the queue."""
    first = next(batches, None)
    if first is None:
        raise Problem(400, "invalid", "At least one turn is needed.")
    embedded = embed_drafts(first)
    later = replace(embedded, vectors={}, error="")
    return chain([(first, embedded)], ((batch, later) for batch in batches))


def places_of(stored: Iterable[StoredTurns]) -> Iterator[dict[str, Any]]:
    last = None
    for last in stored:
        yield from map(represent_place, last.turns)
    if last is not None:
        summarize_where_due(last)


def summarize_where_due(stored: StoredTurns) -> None:
    if stored.summary_is_due:
        run_soon("summarize")

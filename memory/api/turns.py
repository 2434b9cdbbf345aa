"""`/conversations/{conversation_id}/turns`: a conversation's log, extended by JSON, or by NDJSON of any length."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import IO, Any
from uuid import UUID

from django.db import transaction
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import EmbeddingState, MemoryFields, OwnerFields, QueryWholeNumber, TimeRangeFields
from memory.api.filters import filter_rows
from memory.api.turn_drafts import MAX_TURNS, NewTurn, NewTurnList, TurnReader, pack_draft, unpack_drafts
from memory.api.views import OwnerViewSet
from memory.extraction.messages import message_of
from memory.models import Turn
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.custody.conversations import erase_turn
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.embedding.serving import serving_model
from memory.services.memories.store import VectorInput
from memory.services.turns import StoredTurns, TurnDraft, store_turn_stream, store_turns, turns_of_conversation
from memory.tasks import run_soon
from memory.tiers.session_stores import SessionTurn
from memory_project.http.answer_limits import CUT
from memory_project.http.answers import AnswerSerializer
from memory_project.http.problems import Problem
from memory_project.http.serializers import ActingFields, ExternalId, refuse_unknown_names
from memory_project.http.streams import batch_spooled, is_ndjson_stream, spool_lines, write_json_array

LOOKUPS = {"role": "role", "since": "event_time__gte", "until": "event_time__lt", "after_index": "index__gt"}


class TurnStream(OwnerFields):
    """The fields that apply to all turns: in the body for JSON, in the query for NDJSON."""

    continues = ExternalId(required=False, help_text="Conversation that this one resumes.")


class NewTurns(TurnStream):
    turns = NewTurnList(
        help_text=f"1 to {MAX_TURNS} turns, in order. A body without it that has a `role` is one turn itself."
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and "role" in data and "turns" not in data:
            of_all = {name: value for name, value in data.items() if name in TurnStream._declared_fields}
            data = {**of_all, "turns": [{name: value for name, value in data.items() if name not in of_all}]}
        return super().to_internal_value(data)


class TurnsQuery(ActingFields, TimeRangeFields):
    role = serializers.ChoiceField(Turn.Role.choices, required=False, help_text="Limit to this role.")
    after_index = QueryWholeNumber(required=False, help_text="Limit to greater indexes.")


class PlacedTurn(AnswerSerializer):
    id = serializers.UUIDField()
    index = serializers.IntegerField(help_text="Place in the log, from 0 without gaps.")
    embedding = EmbeddingState()


class PlacedTurns(AnswerSerializer):
    turns = PlacedTurn(many=True, help_text="Turns in the order sent. A turn that was sent before keeps its place.")


class MessageFields(AnswerSerializer):
    """A chat message as it was sent. Tool calls and the like are present if the message had them."""

    role = serializers.ChoiceField(Turn.Role.choices)
    name = serializers.CharField(help_text="Name of the speaker. May be empty.")
    content = serializers.JSONField(allow_null=True, help_text="A text, parts, or null with tool calls.")
    tool_calls = serializers.JSONField(required=False)
    tool_call_id = serializers.CharField(required=False)
    function_call = serializers.JSONField(required=False)
    refusal = serializers.CharField(required=False)
    annotations = serializers.JSONField(required=False)
    audio = serializers.JSONField(required=False)


class TurnAnswer(MemoryFields, PlacedTurn, MessageFields):
    """A chat message as it was sent, with what is known about it."""

    model = serializers.CharField(help_text="Model that wrote it. May be empty.")
    client_id = serializers.CharField(help_text="Your id of the turn. May be empty.")
    metadata = serializers.DictField()
    timestamp = serializers.DateTimeField(source="event_time", help_text="Time when it was said.")
    token_count = serializers.IntegerField(help_text="Estimated number of tokens.")
    content_hash = serializers.CharField(help_text="SHA-256 of its text.")
    archived = serializers.BooleanField()
    created_at = serializers.DateTimeField(help_text="Time when it was stored.")


COLUMNS = (*TurnAnswer.columns_in(Turn), "kind", "text", "payload")
"""The columns that an answer is made of. Others may be large."""


def message_from_turn(turn: Turn | SessionTurn) -> dict[str, Any]:
    """Return the message as it was sent, with a `name` even if it had none."""
    message = message_of(role=turn.role, name=turn.name, text=turn.text, payload=turn.payload)
    message.setdefault("name", turn.name)
    return message


class Turns(OwnerViewSet):
    """The log of a conversation. A write creates it, or makes the agent take part; those that take part may read it."""

    operation_ids = {"list": "list_turns", "create": "add_turns"}
    for_users = True
    bodies = {"create": NewTurns}
    streams = {"create": NewTurn}
    queries = {"create": TurnStream, "list": TurnsQuery}
    answers = {"create": PlacedTurns, "list": TurnAnswer}
    ordering = ("index",)

    def list(self, request: Request, conversation_id: str) -> Response:
        """List turns, first one first."""
        query = self.query()
        rows = filter_rows(turns_of_conversation(self.owner(query), conversation_id), query, LOOKUPS)
        return self.respond_page(rows.only(*COLUMNS), lambda turn: TurnAnswer.serialize(turn, message_from_turn(turn)))

    def create(self, request: Request, conversation_id: str) -> HttpResponseBase:
        """Append turns: all of them, or none.

        A turn that was stored before (same client_id, or the same message at its index) is returned again. An ended
        conversation is reopened.

        As `application/x-ndjson` the body may have any number of turns, one per line, and any length. agent_id,
        user_id, channel and continues are query parameters then; for JSON they are members of the body. Vectors are
        made for the first 200 texts before the answer, the others soon after. Sent again with its `Idempotency-Key`, a
        stream gets the first answer; one of more than 8 MiB without the turns, and with their number in `cut`.
        """
        if is_ndjson_stream(request.META):
            return self.store_stream(conversation_id)
        refuse_unknown_names(request.query_params, (), noun="query parameter")
        body, now = self.body(), timezone.now()
        owner = self.agent_owner(body)
        reader = TurnReader(now=now, vectors=VectorInput(owner=owner))
        is_turn_itself = "turns" not in request.data
        drafts = [reader.read_body(body["turns"][0], names={})] if is_turn_itself else reader.read_all(body["turns"])
        embedded = embed_drafts(drafts)

        def write() -> Response:
            defaults = defaults_from_body(body)
            stored = store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now, defaults=defaults)
            summarize_if_due(stored)
            return self.respond(stored)

        return self.write_once(write)

    def store_stream(self, conversation_id: str) -> HttpResponseBase:
        query, now = self.query(), timezone.now()
        owner = self.agent_owner(query)
        reader = TurnReader(now=now, vectors=VectorInput(owner=owner), prepare=self.mask_written)
        with (
            spool_lines(self.request, lambda turn: pack_draft(reader.read(turn))) as (spool, body_hash),
            ExitStack() as stack,
        ):
            self.refuse_repeated_stream(body_hash)
            answer: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
            batches = embed_first_batch(map(unpack_drafts, batch_spooled(spool, max_lines=MAX_TURNS)))
            with transaction.atomic():
                self.lock_stream()
                defaults = defaults_from_body(query)
                stored = store_turn_stream(owner, conversation_id, batches=batches, now=now, defaults=defaults)
                count = write_json_array(answer, "turns", serialize_stream(stored))
                self.record_stream(answer, {"turns": [], CUT: {"turns": count}})
            # the response closes the file from here on
            stack.pop_all()
        return FileResponse(answer, status=201, content_type="application/json")


class TurnErasures(OwnerViewSet):
    """Single turns, which keep their place in the conversation when they are erased."""

    for_users = True
    queries = {"destroy": ActingFields}

    def destroy(self, request: Request, conversation_id: str, turn_id: UUID) -> Response:
        """Erase what a turn says, and what was derived from it alone.

        The turn stays as an empty place, which no search finds, so that the others keep their numbers. The
        conversation is summarized again. 403 for an agent that did not store it.
        """
        erase_turn(self.owner(self.query()), conversation_id, turn_id, now=timezone.now())
        return Response(status=204)


def defaults_from_body(data: Mapping[str, Any]) -> ConversationDefaults:
    return ConversationDefaults(continues=data.get("continues", ""))


def embed_drafts(drafts: Sequence[TurnDraft]) -> EmbeddedTexts:
    """Embed the texts of drafts that have no vector of the current model."""
    current = serving_model().name
    return embed_texts([draft.message.text for draft in drafts if draft.own is None or draft.own.model != current])


def embed_first_batch(batches: Iterator[Sequence[TurnDraft]]) -> Iterator[tuple[Sequence[TurnDraft], EmbeddedTexts]]:
    """Yield batches, the first one with its vectors. The vectors of the others are left to the queue."""
    first = next(batches, None)
    if first is None:
        raise Problem(400, "invalid", "The stream is empty. Send at least one turn.")
    embedded = embed_drafts(first)
    later = replace(embedded, vectors={}, error="")
    return chain([(first, embedded)], ((batch, later) for batch in batches))


def serialize_stream(stored: Iterable[StoredTurns]) -> Iterator[dict[str, Any]]:
    last = None
    for last in stored:
        yield from map(PlacedTurn.serialize, last.turns)
    if last is not None:
        summarize_if_due(last)


def summarize_if_due(stored: StoredTurns) -> None:
    if stored.summary_is_due:
        run_soon("summarize")

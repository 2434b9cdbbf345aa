"""`/memories`: one call to remember a text, and memories of any kind by their id."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    OF_USER_HELP,
    AwareDateTimeField,
    Counts,
    EmbeddingState,
    EventTime,
    Fraction,
    MemoryFields,
    MemoryStatus,
    Metadata,
    NonBlankText,
    OwnerFields,
    QueryFlag,
    TimeRangeFields,
    changed_fields,
    draft_fields,
)
from memory.api.graph import CommaList, comma_list_schema
from memory.api.timeline import TimelineCursor
from memory.api.turn_drafts import MAX_TURNS, NewTurnList, TurnReader
from memory.api.turns import PlacedTurn, embed_drafts
from memory.api.vectors import VectorFields, read_vector
from memory.api.views import VersionedViewSet
from memory.kinds import Kind, kind_choices
from memory.models import Memory, MemoryRow
from memory.owner import Owner
from memory.retrieval.timeline import TimelineFilter, TimelineItem, read_timeline
from memory.services.embedding.embed import embed_texts
from memory.services.extraction.extract import request_extraction
from memory.services.facts.contradict import learn_consistent_fact
from memory.services.facts.learn import MAX_CLAIM_CHARACTERS, FactDraft
from memory.services.forgetting import (
    count_memories_of_user,
    find_memories,
    find_memory,
    forget_memory,
    forget_user,
    forgettable_kinds,
    readable_kinds,
)
from memory.services.goals.plan import GoalDraft, add_goal
from memory.services.memories.store import VectorInput
from memory.services.notes import DEFAULT_IMPORTANCE, MAX_NOTE_CHARACTERS, NoteDraft, change_note, store_note
from memory.services.turns import TurnDraft, store_turns
from memory.tasks import run_soon
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, Flag
from memory_project.ids import uuid7

STORED_KINDS = [Kind.NOTE.value, Kind.FACT.value, Kind.GOAL.value]
READABLE = sorted(kind.value for kind in readable_kinds())
FORGETTABLE = sorted(kind.value for kind in forgettable_kinds())
NOTE_FIELDS = ("importance", "expires_at", "conversation_id")
"""Fields that only notes have among the kinds that are stored here."""
FIELDS_OF_STORED = ("kind", "importance", "expires_at", "embedding", "embedding_model")
"""Fields that mean nothing where knowledge is inferred."""
REQUIRED = "This field is required."
EXPIRES_HELP = "Time from which it is forgotten. Null: never."


def kinds_pattern(kinds: Sequence[str]) -> str:
    return rf"({'|'.join(kinds)})"


@extend_schema_field(comma_list_schema(kinds_pattern(READABLE), len(READABLE)))
class ReadableKinds(CommaList):
    pattern, max_elements = kinds_pattern(READABLE), len(READABLE)
    default_error_messages = {"shape": f"Must be some of these, separated by commas: {', '.join(READABLE)}."}


@extend_schema_field(comma_list_schema(kinds_pattern(FORGETTABLE), len(FORGETTABLE)))
class ForgettableKinds(CommaList):
    pattern, max_elements = kinds_pattern(FORGETTABLE), len(FORGETTABLE)
    default_error_messages = {"shape": f"Must be some of these, separated by commas: {', '.join(FORGETTABLE)}."}


class NewMemory(OwnerFields, VectorFields):
    """A text to remember; with `infer`, a text or messages to learn from."""

    text = NonBlankText(
        required=False,
        max_length=MAX_NOTE_CHARACTERS,
        help_text=f"Text to remember. Required unless there are `messages`. A fact has at most {MAX_CLAIM_CHARACTERS} "
        "characters.",
    )
    messages = NewTurnList(
        required=False, help_text=f"1 to {MAX_TURNS} messages to learn from instead of a text. Only with `infer`."
    )
    infer = Flag(
        default=False,
        help_text="True to store the text or messages as turns of the conversation, and to extract what they say about "
        "the user: facts, entities and relationships. False to remember the text as it is.",
    )
    kind = serializers.ChoiceField(
        STORED_KINDS,
        default=Kind.NOTE.value,
        help_text="`note`: a text that is nothing else. `fact`: a claim that is held to be true, as `/facts` stores. "
        "`goal`: something to be done, as `/goals` stores.",
    )
    conversation_id = ExternalId(
        required=False,
        help_text="Conversation that a note belongs to. With `infer`, conversation whose turns are stored; default: a "
        "new one.",
    )
    metadata = Metadata(required=False, help_text="Facts of your own about the memory.")
    event_time = EventTime()
    importance = Fraction(
        required=False, help_text=f"Importance of a note from 0 to 1. It fades unread. Default: {DEFAULT_IMPORTANCE}."
    )
    expires_at = AwareDateTimeField(required=False, allow_null=True, help_text=EXPIRES_HELP)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        errors = self.errors_of_inference() if attrs["infer"] else self.errors_of_memory(attrs)
        if errors:
            raise serializers.ValidationError(errors)
        return attrs

    def errors_of_memory(self, attrs: dict[str, Any]) -> dict[str, list[str]]:
        errors = {} if "text" in attrs else {"text": [REQUIRED]}
        if "messages" in attrs:
            errors["messages"] = ["Set `infer` to true to learn from messages, or send a `text`."]
        if attrs["kind"] != Kind.NOTE:
            errors |= {name: ["Only a note has this field."] for name in NOTE_FIELDS if name in attrs}
        if attrs["kind"] == Kind.FACT and len(attrs.get("text", "")) > MAX_CLAIM_CHARACTERS:
            errors["text"] = [f"A fact has at most {MAX_CLAIM_CHARACTERS} characters. Store a note instead."]
        return errors

    def errors_of_inference(self) -> dict[str, list[str]]:
        sent = self.initial_data
        errors = {name: ["Has no meaning with `infer`."] for name in FIELDS_OF_STORED if name in sent}
        if ("text" in sent) == ("messages" in sent):
            errors["text"] = ["Send either a `text` or `messages`."]
        if "messages" in sent:
            in_messages = "Each message may have its own `{}` instead."
            own = {"metadata": "metadata", "event_time": "timestamp"}
            errors |= {name: [in_messages.format(own[name])] for name in own if name in sent}
        return errors


class NoteChange(OwnerFields, VectorFields):
    text = NonBlankText(required=False, max_length=MAX_NOTE_CHARACTERS, help_text="Text of the note.")
    metadata = Metadata(required=False, help_text="Facts of your own about the note. Replaces the present ones.")
    event_time = EventTime("Time when it happened, at most 5 minutes in the future.")
    importance = Fraction(required=False, help_text="Importance from 0 to 1.")
    expires_at = AwareDateTimeField(required=False, allow_null=True, help_text=EXPIRES_HELP)


class MemoriesQuery(ActingFields, TimeRangeFields):
    user_id = ExternalId(required=False, help_text=OF_USER_HELP)
    kind = ReadableKinds(required=False, help_text="Limit to these kinds, separated by commas.")
    channel = ExternalId(required=False, help_text="Limit to this channel. Default: all channels.")
    conversation_id = ExternalId(required=False, help_text="Limit to this conversation.")


class MemoriesToForget(ActingFields):
    user_id = ExternalId(required=False, help_text="User to forget. Required unless the key is bound to a user.")
    kind = ForgettableKinds(required=False, help_text="Limit to these kinds, separated by commas.")
    channel = ExternalId(required=False, help_text="Limit to this channel. Default: all channels.")
    dry_run = QueryFlag(default=False, help_text="True to only count what would be deleted.")


class MemoryAnswer(MemoryFields):
    kind = serializers.ChoiceField(kind_choices())
    columns = columns_of(Memory, "text metadata created_at updated_at")
    conversation_id = serializers.CharField(help_text="Empty: none.")
    importance = serializers.FloatField(source="salience", help_text="Importance from 0 to 1, which fades unread.")
    status = MemoryStatus()
    event_time = serializers.DateTimeField(help_text="Time when it happened.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text=EXPIRES_HELP)
    version = serializers.IntegerField(help_text="Counts changes; the ETag has it.")
    embedding = EmbeddingState()

    @staticmethod
    def compute_status(row: MemoryRow) -> str | None:
        return getattr(row, "status", None)


class InferenceAnswer(AnswerSerializer):
    conversation_id = serializers.CharField(help_text="Conversation that has the turns.")
    turns = PlacedTurn(many=True, help_text="The stored turns, in the order sent.")
    extraction = serializers.ChoiceField(
        ["queued"], help_text="Knowledge is extracted soon; `extracted_count` of the conversation shows the progress."
    )


MEMORY_OR_INFERENCE: Any = PolymorphicProxySerializer(
    component_name="RememberedOrInferred", serializers=[MemoryAnswer, InferenceAnswer], resource_type_field_name=None
)


class ForgottenAnswer(AnswerSerializer):
    dry_run = serializers.BooleanField(help_text="True if nothing was deleted.")
    deleted = Counts(help_text="Numbers of memories that were deleted, by kind; in a dry run, that would be.")
    kept = Counts(
        help_text="Numbers of the user's memories that stay, by kind: they belong to conversations or contexts."
    )
    remaining = serializers.IntegerField(help_text="Number of memories that further calls will delete.")


class Memories(VersionedViewSet):
    """Memories of any kind. Notes are changed here, other kinds by routes of their own."""

    for_users = True
    operation_ids = {"forget": "delete_memories"}
    bodies = {"create": NewMemory, "partial_update": NoteChange}
    queries = {"list": MemoriesQuery, "retrieve": OwnerFields, "destroy": OwnerFields, "forget": MemoriesToForget}
    answer = MemoryAnswer
    answers = {"create": MEMORY_OR_INFERENCE, "forget": ForgottenAnswer}
    statuses = {"create": (201, 200)}
    # the former path of keyed values takes all that is no id
    problems = {"partial_update": (405,)}
    conditional = frozenset({"partial_update"})
    pagination_class = TimelineCursor

    def list(self, request: Request) -> Response:
        """List memories, latest first.

        Left out are archived and expired memories, facts that are not believed (any more), and entries of contexts
        and reasoning, which have routes of their own. Facts that were superseded and goals that are closed are
        listed; `status` says so.
        """
        query, now = self.query(), timezone.now()
        # the channel is a filter here, not the active channel
        owner = self.owner({name: query[name] for name in ("agent_id", "user_id") if name in query})
        kinds = {"kinds": [Kind(name) for name in query.get("kind", READABLE)]}
        asked = TimelineFilter(**draft_fields(TimelineFilter, query) | kinds)

        def read(*, beyond: Any, backwards: bool, limit: int) -> Sequence[TimelineItem]:
            return read_timeline(owner, asked, beyond=beyond, newest_first=not backwards, limit=limit, now=now)

        pages: Any = read
        page: Any = self.paginate_queryset(pages) or []
        found = {row.id: row for row in find_memories(owner, [item.id for item in page])}
        status_of = {item.id: item.status for item in page}
        paginator: Any = self.paginator
        # what was deleted meanwhile keeps its place, or the next page would repeat memories of this one
        rows = [found.get(item.id) for item in page]
        answers = paginator.serialize_rows(
            rows, lambda row: row and MemoryAnswer.serialize(row, {"status": status_of[row.id]})
        )
        return self.get_paginated_response([answer for answer in answers if answer])

    def create(self, request: Request) -> Response:
        """Remember a text: one call, after which `/recall` finds it.

        201 for a new memory, 200 for a fact that is believed already. With `infer`, the text or the messages are stored
        as turns of a conversation, and what they say about the user is extracted soon after. 409 and 422 as for
        `/facts` and `/goals`.
        """
        body = self.body()
        owner = self.agent_owner(body)
        return self.infer(owner, body) if body["infer"] else self.remember(owner, body)

    def remember(self, owner: Owner, body: dict[str, Any]) -> Response:
        """Store the text as a memory of the kind that the body names."""
        now, own = timezone.now(), read_vector(owner, body)
        embedded = embed_texts([] if own else [body["text"]])

        def store(kind: str) -> tuple[MemoryRow, bool]:
            if kind == Kind.FACT:
                fact = FactDraft(**draft_fields(FactDraft, body), claim=body["text"], own=own)
                learned = learn_consistent_fact(owner, fact, embedded=embedded, now=now)
                return learned.fact, learned.is_new
            if kind == Kind.GOAL:
                goal = GoalDraft(**draft_fields(GoalDraft, body), description=body["text"], own=own)
                return add_goal(owner, goal, embedded=embedded, now=now), True
            note = NoteDraft(**draft_fields(NoteDraft, body), own=own)
            return store_note(owner, note, embedded=embedded, now=now), True

        def write() -> Response:
            memory, is_new = store(body["kind"])
            return self.answer_memory(memory, status=201 if is_new else 200)

        return self.write_once(write)

    def answer_memory(self, memory: MemoryRow, *, status: int) -> Response:
        response = Response(MemoryAnswer.serialize(memory), status=status)
        response["ETag"] = f'"{memory.version}"'
        return response

    def infer(self, owner: Owner, body: dict[str, Any]) -> Response:
        """Store turns, and queue the extraction of what they say."""
        now = timezone.now()
        conversation_id = body.get("conversation_id") or str(uuid7())
        drafts = drafts_from_body(TurnReader(now=now, vectors=VectorInput(owner=owner), field="messages"), body)
        embedded = embed_drafts(drafts)

        def write() -> Response:
            with transaction.atomic():
                stored = store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now)
                request_extraction(owner, conversation_id, now=now)
            run_soon("extract_knowledge")
            inferred = {"conversation_id": conversation_id, "extraction": "queued"}
            return Response(InferenceAnswer.serialize(stored, inferred), status=201)

        return self.write_once(write)

    def retrieve(self, request: Request, memory_id: UUID) -> Response:
        """Return a memory of any kind but entries of contexts and reasoning.

        Deprecated: instead of an id, GET, PUT and DELETE take the key of a keyed value, if it is no UUID. Use
        `/keyed-memories/{key}`.
        """
        return self.respond_with_etag(find_memory(self.owner(self.query()), memory_id, now=timezone.now()))

    def partial_update(self, request: Request, memory_id: UUID) -> Response:
        """Change a note. Equal values change nothing.

        404 for memories of other kinds, which have routes of their own, such as `/facts/{fact_id}`; 403 for a note of
        another user or agent.
        """
        body = self.body()
        owner, expected = self.owner(body), self.expected_versions()
        own = read_vector(owner, body) if "text" in body else None
        changes = changed_fields(body)
        embedded = embed_texts([changes["text"]] if "text" in changes and own is None else [])
        note = change_note(
            owner, memory_id, changes=changes, embedded=embedded, own=own, expected=expected, now=timezone.now()
        )
        return self.respond_with_etag(note)

    def destroy(self, request: Request, memory_id: UUID) -> Response:
        """Delete a memory for good, with its vectors and links.

        With it go the kept answers that name it, and what was derived from it alone, such as copies in other channels;
        GET `/erasures/preview` says what that is. What a fact superseded is believed again, as for DELETE
        `/facts/{fact_id}` with `erase=true`.

        403 for a memory of another user or agent, 422 for kinds that belong to a conversation or a context. A fact that
        should keep its history is retracted by DELETE `/facts/{fact_id}`.
        """
        forget_memory(self.owner(self.query()), memory_id, now=timezone.now())
        return Response(status=204)

    def forget(self, request: Request) -> Response:
        """Delete what is known about a user for good: notes, facts, entities, goals, strategies and artifacts.

        At most 1,000 memories a call; call it again while `remaining` is not 0.

        Call it with `dry_run=true` first: the answer then says what would be deleted, and nothing is. Conversations
        with their turns and episodes stay, and so does the profile.
        """
        query = self.query()
        owner = self.owner(query)
        if not owner.user_id:
            raise serializers.ValidationError({"user_id": [REQUIRED]})
        limits: dict[str, Any] = {
            "kinds": [Kind(name) for name in query.get("kind", ())],
            "channel": query.get("channel", ""),
        }
        if query["dry_run"]:
            forgotten = count_memories_of_user(owner, **limits)
        else:
            forgotten = forget_user(owner, **limits, now=timezone.now())
        return self.respond(forgotten, {"dry_run": query["dry_run"]})


def drafts_from_body(reader: TurnReader, body: dict[str, Any]) -> list[TurnDraft]:
    """Return the messages of a checked body, or its text as the message of a user. Raises a ValidationError."""
    if "messages" in body:
        return reader.read_all(body["messages"])
    own = {"metadata": body["metadata"]} if "metadata" in body else {}
    own |= {"timestamp": body["event_time"].isoformat()} if "event_time" in body else {}
    message = {"role": "user", "content": body["text"], **own}
    return [reader.read_body(message, names={"content": "text", "timestamp": "event_time"})]

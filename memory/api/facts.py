"""`/facts`: claims that are held to be true, with the time when they were true and the time when that was believed."""

import re
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import ChoiceFilter, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    AwareDateTimeField,
    BoundedIds,
    EmbeddingState,
    EventTime,
    Fraction,
    IdList,
    MemoryFields,
    Metadata,
    NonBlankText,
    OwnerFields,
    changed_fields,
    draft_fields,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.vectors import VectorFields, read_vector
from memory.api.views import VersionedViewSet
from memory.models import Certainty, Fact, FactVersion, Temporal
from memory.models.facts import ENDED, ValidFromSource
from memory.owner import Owner
from memory.services.custody.single import erase_fact
from memory.services.embedding.embed import embed_texts
from memory.services.entities.store import follow_merges
from memory.services.facts.contradict import OnContradiction, learn_consistent_fact
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.learn import MAX_CLAIM_CHARACTERS, FactDraft
from memory.services.facts.store import (
    filter_about_entity,
    filter_by_conversation,
    find_fact,
    list_facts,
    read_visible_history,
)
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact, supersede_fact
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import Text

MAX_ENTITIES = 100
MAX_REASON_CHARACTERS = 1_000
FRACTION = re.compile(r"0(\.[0-9]{1,17})?|1(\.0{1,17})?|\.[0-9]{1,17}")
CONFIDENCE_HELP = "Confidence from 0 to 1."
CLAIM_HELP = "Sentence that can be understood without its context."


class QueryFraction(serializers.FloatField):
    """A number from 0 to 1 in a query string: digits and a point."""

    default_error_messages = {"invalid": "Must be a number from 0 to 1, such as 0.75."}

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1, **options)

    def to_internal_value(self, data: Any) -> float:
        if not (isinstance(data, str) and FRACTION.fullmatch(data)):
            self.fail("invalid")
        return float(data)


STATUSES = [*Fact.Status.choices, (ENDED, "Ended")]


class EditableFactFields(OwnerFields, VectorFields):
    """The fields of a fact that clients set when they store it and may correct later."""

    claim = NonBlankText(required=False, max_length=MAX_CLAIM_CHARACTERS, help_text=CLAIM_HELP)
    confidence = Fraction(required=False, help_text=CONFIDENCE_HELP)
    temporal = serializers.ChoiceField(Temporal.choices, required=False)
    valid_from = AwareDateTimeField(
        required=False,
        allow_null=True,
        help_text="Time when it became true. A new fact without it begins at `event_time`, else now. Null in a "
        "correction: it has no beginning.",
    )
    valid_to = AwareDateTimeField(
        required=False,
        allow_null=True,
        help_text="Time when it ceased to be true, or null. Must be later than `valid_from`, which a correction keeps "
        "unless it has another.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        valid_from, valid_to = attrs.get("valid_from"), attrs.get("valid_to")
        if valid_from is not None and valid_to is not None and valid_to <= valid_from:
            raise serializers.ValidationError({"valid_to": ["Must be later than valid_from."]})
        return attrs


class NewFact(EditableFactFields):
    claim = NonBlankText(max_length=MAX_CLAIM_CHARACTERS, help_text=CLAIM_HELP)
    confidence = Fraction(
        required=False,
        help_text=f"{CONFIDENCE_HELP} Default: that of `certainty` (0.95, 0.85, 0.70 or 0.50), else 1.",
    )
    certainty = serializers.ChoiceField(Certainty.choices, required=False, help_text="Label that implies a confidence.")
    temporal = serializers.ChoiceField(Temporal.choices, default=Temporal.CURRENT)
    entities = BoundedIds(
        max_length=MAX_ENTITIES,
        help_text="Entities that the fact is about. One that was merged stands for the one it was merged into.",
    )
    source_turn_id = serializers.UUIDField(required=False, help_text="Turn that states the fact.")
    metadata = Metadata(required=False, help_text="Facts of your own about the claim, such as its origin.")
    event_time = EventTime(
        "Time when it was stated, at most 5 minutes in the future. Default: now. It is believed from now on."
    )


class FactToLearn(NewFact):
    on_contradiction = serializers.ChoiceField(
        [each.value for each in OnContradiction],
        required=False,
        help_text="What to do if the claim surely contradicts believed facts: end them (`supersede`), store it next to "
        "them (`keep_both`), or store it as pending and let staff decide (`review`). Default: what the account does.",
    )


class FactCorrection(EditableFactFields):
    pass


class Promotion(OwnerFields):
    reason = Text(max_length=MAX_REASON_CHARACTERS, help_text="Reason, stored in the link to the original.")


class FactsQuery(OwnerFields):
    as_of = AwareDateTimeField(required=False, help_text="Facts that were true at this time. Default: now.")
    known_at = AwareDateTimeField(required=False, help_text="Facts as they were believed at this time. Default: now.")
    min_confidence = QueryFraction(required=False, help_text="Least confidence of the facts, from 0 to 1.")
    status = serializers.ChoiceField(
        STATUSES,
        required=False,
        help_text="Limit to this status of today. `active`: it is believed, and not over. `ended`: it is over, and no "
        "other fact replaced it. Without `as_of` and `known_at`, a status also finds facts that are not true now, such "
        "as active ones that begin later.",
    )
    temporal = serializers.ChoiceField(
        Temporal.choices,
        required=False,
        help_text="Limit to this tense. `future` without `as_of`, `known_at` and `status` finds all active ones, "
        "whenever they begin.",
    )


class VersionOfFact(AnswerSerializer):
    number = serializers.IntegerField(help_text="Number of the version, from 1.")
    confidence = serializers.FloatField(help_text=CONFIDENCE_HELP)
    recorded_at = serializers.DateTimeField(help_text="Time from which it was believed.")
    retracted_at = serializers.DateTimeField(allow_null=True, help_text="Time from which it was not believed.")
    reason = serializers.ChoiceField(FactVersion.Reason.choices, help_text="Why it was believed from then on.")
    columns = columns_of(FactVersion, "claim temporal valid_from valid_to")


class FactAnswer(MemoryFields):
    claim = serializers.CharField(source="text")
    confidence = serializers.FloatField(help_text=CONFIDENCE_HELP)
    certainty = serializers.CharField(help_text="Label given when it was learned. Empty: none.")
    status = serializers.ChoiceField(
        STATUSES,
        help_text="Status today, whatever time was asked for: `active` until the fact that supersedes it begins, and "
        "`ended` after `valid_to` if no other fact replaced it.",
    )
    valid_from_source = serializers.ChoiceField(
        ValidFromSource.choices,
        allow_null=True,
        help_text="Whether `valid_from` was stated, or is the time when the fact was said. Null: no `valid_from`.",
    )
    recorded_at = serializers.DateTimeField(allow_null=True, help_text="Time from which this version is believed.")
    retracted_at = serializers.DateTimeField(allow_null=True, help_text="Time from which it is no longer believed.")
    belief_number = serializers.IntegerField(help_text="Number of this version.")
    source_turn_id = serializers.UUIDField(allow_null=True, help_text="Turn that states the fact.")
    embedding = EmbeddingState()
    columns = columns_of(
        Fact, "conversation_id temporal valid_from valid_to source metadata event_time created_at updated_at"
    )

    @staticmethod
    def compute_status(fact: Fact) -> str:
        return fact.status_at(timezone.now())


class FactHistoryAnswer(AnswerSerializer):
    """The versions and links of a fact, read from its history."""

    versions = VersionOfFact(many=True, help_text="Every belief about it, oldest first.")
    turns = IdList(help_text="Turns that are evidence for it.")
    entities = IdList(help_text="Entities that it is about.")
    supersedes = IdList()
    superseded_by = IdList(
        help_text="The facts that replaced it; or the turn that did, where nothing was learned from what it says."
    )
    promoted_from = IdList()
    promoted_to = IdList()


class FactDetail(FactAnswer, FactHistoryAnswer):
    pass


class FactToDelete(OwnerFields):
    erase = serializers.BooleanField(default=False, help_text="True to erase it for good. Default: retract it.")


def fact_draft_from_body(owner: Owner, body: dict[str, Any]) -> FactDraft:
    return FactDraft(
        **draft_fields(FactDraft, body),
        entity_ids=follow_merges(owner.account_id, body.get("entities", [])),
        turn_ids=[body["source_turn_id"]] if "source_turn_id" in body else [],
        own=read_vector(owner, body),
    )


class FactFilter(RowFilter):
    entity = UUIDFilter(
        method="filter_entity", label="Limit to facts about this entity, or about the one that it was merged into."
    )
    certainty = ChoiceFilter(choices=Certainty.choices)
    conversation_id = TextFilter(method="filter_conversation", label="Limit to facts stated in this conversation.")
    source_turn_id = UUIDFilter(field_name="source_turn_id", label="Limit to facts that this turn states.")

    def filter_entity(self, rows: QuerySet[Fact], _name: str, entity_id: UUID) -> QuerySet[Fact]:
        return filter_about_entity(rows, self.request.auth.account_id, entity_id)

    def filter_conversation(self, rows: QuerySet[Fact], _name: str, conversation_id: str) -> QuerySet[Fact]:
        return filter_by_conversation(rows, conversation_id)


class Facts(VersionedViewSet):
    """Facts of the user, those of no user that the agent learned, and the account's. Without a user, all it learned."""

    for_users = True
    bodies = {"create": FactToLearn, "partial_update": FactCorrection}
    queries = {"list": FactsQuery, "retrieve": OwnerFields, "destroy": FactToDelete}
    answer = FactAnswer
    answers = {"retrieve": FactDetail}
    statuses = {"create": (201, 200)}
    # `retrieve` is missing: the vector may be made, and the fact promoted, under the same ETag
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = FactFilter
    queryset = Fact.objects.none()

    def list(self, request: Request) -> Response:
        """List facts of the channel and of `_global` that are true now, or at `as_of`, latest first.

        Facts that begin later are listed by `as_of`, and by `status=active` and `temporal=future` without it.
        With `known_at`, claim, confidence, temporal and times are as they were believed then.
        """
        query = self.query()
        asked: dict[str, Any] = {name: query.get(name) for name in ("as_of", "known_at", "min_confidence")}
        asked |= {name: query.get(name, "") for name in ("status", "temporal")}
        rows = list_facts(self.owner(query), **asked, now=timezone.now())
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Store a fact: 201 for a new one, 200 for one that is believed already.

        The latter gains the evidence, and the greater one of both confidences. `on_contradiction` says what becomes of
        facts that the claim contradicts. 409 for a claim that was rejected or is quarantined, and for one that
        contradicts others where the account prefers old facts. 422 for entities and turns that are not the owner's.
        """
        body, owner = self.body_and_owner()
        on_contradiction = body.pop("on_contradiction", "")
        draft = fact_draft_from_body(owner, body)
        embedded = embed_texts([] if draft.own else [draft.claim])

        def write() -> Response:
            learned = learn_consistent_fact(
                owner, draft, on_contradiction=on_contradiction, embedded=embedded, now=timezone.now()
            )
            return self.respond_with_etag(learned.fact, status=201 if learned.is_new else 200)

        return self.write_once(write)

    def retrieve(self, request: Request, fact_id: UUID) -> Response:
        """Return a fact of any status and channel, with all of its versions and links."""
        owner = self.owner(self.query())
        fact = find_fact(owner, fact_id)
        return self.respond_with_etag(fact, FactHistoryAnswer.serialize(read_visible_history(owner, fact)))

    def partial_update(self, request: Request, fact_id: UUID) -> Response:
        """Correct a fact that was wrong: the new values hold for all time, and the old ones are kept as a version.

        A copy in `_global` that rests on it alone is corrected as well.
        If the world changed instead, supersede the fact. 409 for a fact that is no longer believed, for a claim that
        another fact makes, and for a superseded fact that would have no end.
        """
        body = self.body()
        owner, expected = self.owner(body), self.expected_versions()
        own = read_vector(owner, body) if "claim" in body else None
        changes = changed_fields(body)
        embedded = embed_texts([changes["claim"]] if "claim" in changes and own is None else [])
        fact = correct_fact(
            owner, fact_id, changes=changes, embedded=embedded, expected=expected, own=own, now=timezone.now()
        )
        return self.respond_with_etag(fact)

    def destroy(self, request: Request, fact_id: UUID) -> Response:
        """Retract a fact: it is no longer believed, and may be learned again. Its history stays.

        A copy in `_global` that rests on it alone is retracted as well. What it superseded is believed again, unless
        something else superseded that too.
        With `erase=true` it is erased for good, with its versions, its copies in other channels, and the kept answers
        and audited texts that quote it. Reject it first if it must not be learned again. After a 503 it may be
        retracted only: repeat the request, with the same `If-Match` if you sent one.
        """
        query, expected, now = self.query(), self.expected_versions(), timezone.now()
        owner = self.owner(query)
        if query["erase"]:
            erase_fact(owner, fact_id, expected=expected, now=now)
        else:
            retract_fact(owner, fact_id, expected=expected, now=now)
        return Response(status=204)


class FactChanges(VersionedViewSet):
    """Changes of an active fact (409 for others), by its user, the agent that learned it, or the account (403)."""

    for_users = True
    bodies = {"supersede": NewFact, "promote": Promotion, "reject": OwnerFields}
    answer = FactAnswer
    statuses = {"supersede": 201}
    conditional = frozenset({"supersede", "reject"})

    def supersede(self, request: Request, fact_id: UUID) -> Response:
        """Replace a fact because the world changed: it ends where the new one begins, and is kept.

        The new fact begins at `valid_from`, else at `event_time`, else now. It has the same user and channel, and the
        same entities if it names none. A copy in `_global` that rests on the old fact alone is replaced as well: then
        the new fact is in `_global`.
        """
        body, owner = self.body_and_owner()
        draft = fact_draft_from_body(owner, body)
        embedded = embed_texts([] if draft.own else [draft.claim])
        expected = self.expected_versions()
        return self.write_row(
            supersede_fact, owner, fact_id, draft, expected=expected, embedded=embedded, now=timezone.now()
        )

    def promote(self, request: Request, fact_id: UUID) -> Response:
        """Copy a fact to `_global`, for the same user and agent. If it is known there already, that one is linked.

        409 for a fact that is in `_global`.
        """
        body = self.body()
        owner, reason = self.owner(body), body["reason"]
        embedded = embed_texts([find_fact(owner, fact_id).text])
        return self.write_row(globalize_fact, owner, fact_id, reason=reason, embedded=embedded, now=timezone.now())

    def reject(self, request: Request, fact_id: UUID) -> Response:
        """Reject a fact: it is no longer believed, nor is the same fact in other channels, and it is not learned again.

        An old fact that is still believed can be rejected too. What it superseded is believed again, unless something
        else superseded that too.
        """
        owner = self.owner(self.body())
        return self.write_row(reject_fact, owner, fact_id, expected=self.expected_versions(), now=timezone.now())

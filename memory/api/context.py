"""`/context`: the prompt context, everything an agent should see before it answers, as one system message."""

from functools import partial

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import QuestionText, TextList, TopK
from memory.api.recall import (
    ABSTAINED_HELP,
    MAX_TOKENS,
    CandidateAnswer,
    RecallFields,
    UsageAnswer,
    recall_request_from_body,
)
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.conversations.lifecycle import join_conversation
from memory.services.prompt_context.build import PromptContextRequest, build_prompt_context, conclude_prompt_context
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import BoundedList, ExternalId, Flag, Text, WholeNumber

MAX_WORKING_FIELDS = 1_000
MIN_TOKENS = 100
"""Fewer tokens hardly leave room for the text around a memory."""


class ContextBody(RecallFields):
    conversation_id = ExternalId(help_text="Its working memory and ledger are used, and memories near it preferred.")
    query = QuestionText(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="Default: the user's latest message; without one, only working memory, the ledger and the profile of "
        "the user are shown.",
    )
    top_k = TopK(
        default=conf.CONTEXT_RESULTS,
        help_text="Maximum number of memories, without similar episodes and neighbouring turns.",
    )
    max_tokens = WholeNumber(
        default=conf.CONTEXT_TOKENS,
        min_value=MIN_TOKENS,
        max_value=MAX_TOKENS,
        help_text="Maximum number of tokens of the whole text. The greater of two counts: the estimate, and the count "
        "of the tokenizer of an embedding model on this machine.",
    )
    mark_injected = Flag(
        default=False,
        help_text="Enter the items, and items that say the same, into the ledger (scope write).",
    )
    working_fields = BoundedList(
        child=Text(max_length=MAX_NAME_CHARACTERS),
        required=False,
        max_length=MAX_WORKING_FIELDS,
        help_text="Names of the fields of working memory to show. Default: all, the documented ones first.",
    )
    explain = Flag(default=False, help_text="Add to each item what every technique made of it (`signals`).")


class ContextItem(CandidateAnswer):
    score = serializers.FloatField(
        allow_null=True,
        help_text="Comparable within one answer only. Null for a turn that is included because it is next to a result.",
    )
    signals = serializers.DictField(
        child=serializers.FloatField(), required=False, help_text="Values by technique, with `explain`."
    )

    @staticmethod
    def compute_score(item: Candidate) -> float | None:
        return item.score if item.ways else None


class ContextAnswer(AnswerSerializer):
    # the contract's name, and a serializer's attribute too
    context = serializers.CharField(help_text="Text for a first system message. May be empty.")  # type: ignore[assignment]
    items = ContextItem(many=True, help_text="The memories whose text is in `context`, in that order.")
    tokens = serializers.IntegerField(help_text="Tokens of `context`, counted as for `max_tokens`.")
    usage = UsageAnswer()
    abstained = serializers.BooleanField(help_text=ABSTAINED_HELP)
    degraded = TextList(
        help_text="Reasons as for `/recall`, and `context_truncated` (working memory was cut, or a similar episode or "
        "all of the evidence had no room), `summary_failing` (the conversation could not be summarized lately), "
        "`all_suppressed` (nothing is shown, since the conversation's ledger holds what would answer: it was injected "
        "before, maybe by another agent), `neighbours_deadline` (no time to read the turns around the turns found) and "
        "`packing_deadline` (no time to try everything that was found).",
    )


class Contexts(OwnerViewSet):
    """Reads all three layers of memory. Writes only that they were read, and the ledger if asked to."""

    operation_ids = {"gather": "build_context"}
    for_users = True
    bodies = {"gather": ContextBody}
    answers = {"gather": ContextAnswer}
    scopes = {"gather": "read"}
    replica_reads = frozenset({"gather"})
    rate_class = "retrieval"

    def may_read_from_replica(self, request: Request) -> bool:
        """Return False where the ledger is marked: that may have to store who takes part in the conversation."""
        marks = isinstance(request.data, dict) and bool(request.data.get("mark_injected"))
        return not marks and super().may_read_from_replica(request)

    def gather(self, request: Request) -> Response:
        """Lay out working memory, the most similar past conversations and the best evidence as text for the model.

        Takes all fields of `/recall`. Turns come with the turns right before and after them, which are items too.
        Without a query, a vector, or any user message in the conversation, the text is working memory, the keys in
        the injection ledger, and the user's profile.
        """
        body, now = self.body(), timezone.now()
        if body["mark_injected"]:
            self.credential.require("write")
        owner = self.agent_owner(body)
        if body["mark_injected"] and owner.is_limited:
            # the marks belong to the conversation's user and agents
            join_conversation(owner, body["conversation_id"], now=now)
        asked = PromptContextRequest(
            recall_request=recall_request_from_body(owner, body, text=body.get("query", "")),
            max_tokens=body["max_tokens"],
            mark_injected=body["mark_injected"],
            working_fields=body.get("working_fields"),
        )
        found = build_prompt_context(owner, asked, now=now)
        items = [
            ContextItem.serialize(item, {"signals": item.signals} if body["explain"] else {}) for item in found.items
        ]
        return FollowUpResponse(
            ContextAnswer.serialize(found, {"items": items}),
            follow_up=partial(conclude_prompt_context, owner, found, now=now),
        )

"""`/keyed-memories`: the memory router, one key space over four tiers: working, short_term, long_term, shared.

`/memories/{key}` is the former path of the values, for keys that are no UUID.
"""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entries import EntrySearch, FoundEntries, respond_entry_search
from memory.api.fields import TextList, TtlSeconds, draft_fields
from memory.api.views import OwnerViewSet
from memory.models import AgentShortTermMemory, ContextEntry
from memory.services.router import TIERS, MemoryRouter
from memory.services.short_term import MAX_TTL_SECONDS
from memory.tiers.base import NewValue
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId

MEMORY_TYPES = (*AgentShortTermMemory.MemoryType.values, *ContextEntry.MemoryType.values)


class PlaceFields(ActingFields):
    """Selects where the router looks or writes."""

    session_id = ExternalId(required=False, help_text="Session of the key in the tier short_term. Default: none.")
    pool_id = ExternalId(required=False, help_text="Pool that is the tier shared. Default: the agent's own pool.")


class KeyedValueQuery(PlaceFields):
    tier = serializers.ChoiceField(TIERS, required=False, help_text="Limit to this tier. Default: all.")


class KeyedValueBody(PlaceFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    tier = serializers.ChoiceField(TIERS, default="short_term", help_text="Tier to write to.")
    ttl_seconds = TtlSeconds(
        "Seconds until it expires, in the tiers working (at most 7 days) and short_term (30 days).",
        max_value=MAX_TTL_SECONDS,
    )
    memory_type = serializers.ChoiceField(
        MEMORY_TYPES,
        required=False,
        help_text="Type in the tier short_term (default: task_context), or in long_term: factual (default), "
        "experiential or working.",
    )


class SessionToConsolidate(ActingFields):
    session_id = ExternalId(allow_blank=True, help_text="Session whose entries are promoted. Empty: of no session.")


class KeyedValueAnswer(AnswerSerializer):
    key = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    tier = serializers.ChoiceField(TIERS, help_text="Tier that the value was read from or written to.")


class ConsolidatedAnswer(AnswerSerializer):
    session_id = serializers.CharField()
    promoted = serializers.IntegerField(help_text="Number of entries that are in long-term memory now.")
    keys = TextList()


class TierAnswer(AnswerSerializer):
    entries = serializers.IntegerField(help_text="Number of entries.")
    bytes = serializers.IntegerField(source="size_bytes", help_text="Size of names and values as JSON.")
    hits = serializers.IntegerField(help_text="Reads by this API that the tier answered.")
    misses = serializers.IntegerField(help_text="Reads by this API that the tier could not answer.")


class TiersAnswer(AnswerSerializer):
    """Hits and misses of an agent that reads nothing for 30 days are deleted."""

    working_memory = TierAnswer()
    short_term = TierAnswer(help_text="Entries of all sessions.")
    long_term = TierAnswer(help_text="All entries of the agent's own context.")
    shared = TierAnswer(help_text="The agent's own pool.")


DEPRECATED_SINCE = "@1795392000"
"""The day on which the path of keyed values moved and jobs were renamed, 2026-11-23, as seconds since 1970."""


class KeyedMemories(OwnerViewSet):
    """An agent's values by key, in whichever tier they are. Requires an agent."""

    operation_ids = {"consolidate": "consolidate_memories", "stats": "get_memory_stats"}
    bodies = {"update": KeyedValueBody, "consolidate": SessionToConsolidate}
    queries = {"retrieve": KeyedValueQuery, "destroy": KeyedValueQuery, "stats": ActingFields}
    answer = KeyedValueAnswer
    answers = {"consolidate": ConsolidatedAnswer, "stats": TiersAnswer}
    problems = {"retrieve": (422,)}

    def router(self, data: dict[str, Any]) -> MemoryRouter:
        return MemoryRouter(self.agent_owner(data))

    def retrieve(self, request: Request, key: str) -> Response:
        """Return the value of a key from the first tier that has one: working, short_term, long_term, shared."""
        query = self.query()
        return self.respond(self.router(query).read(key, **router_arguments(query), now=timezone.now()))

    def update(self, request: Request, key: str) -> Response:
        """Store a value under a key in one tier, replacing the present one there. Other tiers stay as they are.

        413 for a value that is too large, 422 for fields that the tier does not have.
        """
        body = self.body()
        written = NewValue(**draft_fields(NewValue, body))
        return self.respond(self.router(body).write(key, written, **router_arguments(body), now=timezone.now()))

    def destroy(self, request: Request, key: str) -> Response:
        """Delete the value of a key in every tier, or in one. 404 if no tier had it.

        In the tier short_term, only the entry of the named session is deleted, or else the entry of no session.
        """
        query = self.query()
        self.router(query).delete(key, **router_arguments(query), now=timezone.now())
        return Response(status=204)

    def consolidate(self, request: Request) -> Response:
        """Promote entries that were read three times in a session to long-term memory. Repeating it adds nothing."""
        body = self.body()
        # not in `write_once`: each batch is a transaction of its own, embedded before it, and repeating it is harmless
        done = self.router(body).consolidate(session_id=body["session_id"], now=timezone.now())
        return self.respond(done, {"promoted": len(done.keys)})

    def stats(self, request: Request) -> Response:
        """Return what the agent has in each tier, and how often its reads found a value there.

        Reads by key try the tiers in turn, so a read counts as a miss in each tier before the one that has the value.
        """
        tiers = self.router(self.query()).stats(now=timezone.now())
        return Response({name: TierAnswer.serialize(tier) for name, tier in tiers.items()})


class FormerKeyedMemories(KeyedMemories):
    """The former path of keyed values. Answers say that it is deprecated (RFC 9745), and which path to use."""

    undocumented = frozenset({"retrieve", "update", "destroy"})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        successor = request.get_full_path().partition("?")[0].replace("/memories/", "/keyed-memories/", 1)
        final["Deprecation"], final["Link"] = DEPRECATED_SINCE, f'<{successor}>; rel="successor-version"'
        return final


class KeyedMemorySearches(KeyedMemories):
    """Search in keyed values; also the value with the name of the sub-path."""

    operation_ids = {"search": "search_keyed_memories"}
    bodies = {"update": KeyedValueBody, "search": EntrySearch}
    answers = {"search": FoundEntries}
    scopes = {"search": "read"}
    replica_reads = frozenset({"search"})
    undocumented = frozenset({"retrieve", "update", "destroy"})

    def search(self, request: Request, key: str) -> Response:
        """Find the entries of the agent's long-term memory that answer the query best.

        These are keyed values and what was promoted. `/memories/search` finds memories of all kinds.
        """
        body = self.body()
        contexts = self.router(body).long_term_contexts()
        return respond_entry_search(self.owner(body), body, contexts=contexts, now=timezone.now())


def router_arguments(data: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a checked body or query that select where the router looks or writes."""
    return {name: data[name] for name in ("session_id", "pool_id", "tier") if name in data}

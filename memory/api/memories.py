"""`/memories`: the router. One key, four tiers: working, short_term, long_term, shared."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entries import EntrySearch, FoundEntries, answer_search
from memory.api.short_term import TimeToLive
from memory.api.views import OwnerViewSet
from memory.models import AgentShortTermMemory, ContextEntry
from memory.services.router.route import TIERS, MemoryRouter
from memory.tiers.base import Written
from memory_project.http.serializers import ActingFields, ExternalId

MEMORY_TYPES = (*AgentShortTermMemory.MemoryType.values, *ContextEntry.MemoryType.values)


class MemoryQueryFields(ActingFields):
    session_id = ExternalId(required=False, help_text="Whose key, in the short_term tier; else that of no session.")
    pool_id = ExternalId(required=False, help_text="Which pool is the shared tier; else the agent's own.")
    tier = serializers.ChoiceField(TIERS, required=False, help_text="This one only.")


class MemoryBody(ActingFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    tier = serializers.ChoiceField(TIERS, default="short_term")
    session_id = ExternalId(required=False, help_text="Of the short_term tier.")
    pool_id = ExternalId(required=False, help_text="Of the shared tier; the agent's own pool by default.")
    ttl_seconds = TimeToLive(help_text="Of the tiers working (at most a week) and short_term (30 days).")
    memory_type = serializers.ChoiceField(
        MEMORY_TYPES,
        required=False,
        help_text="Of short_term (task_context by default) and long_term: factual (by default), experiential, working.",
    )


class SessionToConsolidate(ActingFields):
    session_id = ExternalId(allow_blank=True, help_text="Empty for entries of no session.")


class MemoryAnswer(serializers.Serializer[Any]):
    key = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    tier = serializers.ChoiceField(TIERS, help_text="Which had it, or has it now.")


class ConsolidatedAnswer(serializers.Serializer[Any]):
    session_id = serializers.CharField()
    promoted = serializers.IntegerField(help_text="How many entries are in the long-term memory now.")
    keys = serializers.ListField(child=serializers.CharField())


class TierAnswer(serializers.Serializer[Any]):
    entries = serializers.IntegerField()
    bytes = serializers.IntegerField(help_text="Of names and values, as JSON.")
    hits = serializers.IntegerField(help_text="Reads by this API that the tier answered.")
    misses = serializers.IntegerField(help_text="Reads by this API that it was asked for in vain.")


class TiersAnswer(serializers.Serializer[Any]):
    """Hits and misses of an agent that reads nothing for 30 days are forgotten."""

    working_memory = TierAnswer()
    short_term = TierAnswer(help_text="Of all sessions.")
    long_term = TierAnswer(help_text="All entries of the agent's own context.")
    shared = TierAnswer(help_text="The agent's own pool.")


class Memories(OwnerViewSet):
    """An agent's keyed values, in whichever tier they are. Needs an agent."""

    bodies = {"update": MemoryBody, "search": EntrySearch, "consolidate": SessionToConsolidate}
    queries = {"retrieve": MemoryQueryFields, "destroy": MemoryQueryFields, "stats": ActingFields}
    answers = {
        "retrieve": MemoryAnswer,
        "update": MemoryAnswer,
        "search": FoundEntries,
        "consolidate": ConsolidatedAnswer,
        "stats": TiersAnswer,
    }
    statuses = {"destroy": 204}
    problems = {"retrieve": (422,), "destroy": (409, 422)}
    scopes = {"search": "read"}

    def router(self, data: dict[str, Any]) -> MemoryRouter:
        return MemoryRouter(self.agent_owner(data))

    def retrieve(self, request: Request, key: str) -> Response:
        """The value of the first tier that has one: working, short_term, long_term, shared."""
        query = self.query()
        found = self.router(query).read(key, **asked_for(query), now=timezone.now())
        return Response({"key": found.key, "value": found.value, "tier": found.tier})

    def update(self, request: Request, key: str) -> Response:
        """Store the value in one tier, over what is there; other tiers keep what they have.

        413 for one that is too large, 422 for what the tier knows nothing of.
        """
        body = self.body()
        given = {name: body[name] for name in ("value", "ttl_seconds", "memory_type") if name in body}
        kept = self.router(body).write(key, Written(**given), **asked_for(body), now=timezone.now())
        return Response({"key": kept.key, "value": kept.value, "tier": kept.tier})

    def destroy(self, request: Request, key: str) -> Response:
        """Delete it in every tier, or in one. 404 where none had it.

        In the short_term tier, the entry of the session that is named, or else of no session: what sessions keep under
        the key stays.
        """
        query = self.query()
        self.router(query).delete(key, **asked_for(query), now=timezone.now())
        return Response(status=204)

    def search(self, request: Request) -> Response:
        """The entries of the agent's long-term memory that answer the query best."""
        body = self.body()
        contexts = self.router(body).long_term_contexts()
        return answer_search(self.owner(body), body, contexts=contexts, now=timezone.now())

    def consolidate(self, request: Request) -> Response:
        """Keep for good what was read three times in a session. Doing it again keeps nothing twice."""
        body = self.body()
        # not in `once`: each batch is a transaction of its own, embedded before it, and done again it is done once
        done = self.router(body).consolidate(session_id=body["session_id"], now=timezone.now())
        return Response({"session_id": done.session_id, "promoted": len(done.keys), "keys": list(done.keys)})

    def stats(self, request: Request) -> Response:
        """What the agent has in each tier, and how often it found there what it asked for."""
        found = self.router(self.query()).stats(now=timezone.now())
        return Response(
            {
                name: {"entries": tier.entries, "bytes": tier.size_bytes, "hits": tier.hits, "misses": tier.misses}
                for name, tier in found.items()
            }
        )


def asked_for(data: dict[str, Any]) -> dict[str, Any]:
    """Where the router shall look, or write."""
    return {name: data[name] for name in ("session_id", "pool_id", "tier") if name in data}

"""The memory node (A7): what an agent should see before it answers, as one system message.

Stored text is written by strangers: a value stands on its label's line, further lines are indented, so that no text can
pass for a section of ours. The layout is a template.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from ledger import store as ledger
from memory import conf
from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeHit
from memory.services.layouts import fence, one_line
from memory.services.memories import OwnVector
from memory.services.searches import find_episodes
from memory.services.sessions import latest_question
from memory.tiers.working import WorkingMemory
from memory.tokens import estimate_tokens
from memory_project.redis import Place

WORKING_FIELDS = {
    "scratchpad": "Scratchpad",
    "entities": "Entities",
    "well_api": "Well API",
    "entity_id": "Entity",
    "entity_type_key": "Entity type",
}
"""The documented fields and their labels, in the order in which they are shown."""

EPISODE_PREFIX = f"{Kind.EPISODE.value}:"
CANONICAL_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """What to gather for. `query` is the latest message; empty, it is the latest one of the conversation's user."""

    conversation_id: str
    query: str = ""
    own: OwnVector | None = None
    suppress_injected: bool = False
    mark_injected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The message, the memories in it (best first), its size by estimate, and what kept it from being better."""

    context: str
    items: Sequence[EpisodeHit]
    tokens: int
    degraded: Sequence[str]


def gather_context(owner: Owner, request: ContextRequest, *, now: datetime) -> Context:
    """Working memory and the most similar episodes, laid out; marks the items in the ledger only where asked to.

    Raises Unprocessable where there is no query, no vector, and no message of a user that could be one.
    """
    query = request.query
    if not query and request.own is None:
        query = latest_question(owner, request.conversation_id)
    place = Place(account_id=owner.account_id, conversation_id=request.conversation_id)
    injected = list(ledger.get_all(place)) if request.suppress_injected else []
    fields = WorkingMemory(owner).get(request.conversation_id)
    found = find_episodes(
        owner,
        text=query,
        top_k=conf.EPISODES_IN_CONTEXT,
        own=request.own,
        without=episode_ids(injected),
        now=now,
    )
    items = mark_items(owner, place, found.hits, request) if request.mark_injected else found.hits
    text = lay_out(fields, items)
    return Context(context=text, items=items, tokens=estimate_tokens(text), degraded=found.degraded)


def episode_ids(item_keys: Iterable[str]) -> list[UUID]:
    """The episodes among the keys of a ledger, which may hold anything."""
    names = [key.removeprefix(EPISODE_PREFIX) for key in item_keys if key.startswith(EPISODE_PREFIX)]
    return [UUID(name) for name in names if CANONICAL_UUID.fullmatch(name)]


def mark_items(owner: Owner, place: Place, hits: Sequence[EpisodeHit], request: ContextRequest) -> Sequence[EpisodeHit]:
    """Enter the items into the ledger. Where injected ones are suppressed, what others marked meanwhile goes."""
    if not hits:
        return hits
    values = {hit.item_key: ledger.DEFAULT_VALUE for hit in hits}
    marks = ledger.mark_many(place, values, agent_id=owner.agent_id)
    return [hit for hit in hits if marks[hit.item_key].first or not request.suppress_injected]


def lay_out(fields: Mapping[str, Any], hits: Sequence[EpisodeHit]) -> str:
    """The documented sections; one without content is left out."""
    working = [(label, fence(fields[name])) for name, label in WORKING_FIELDS.items() if fields.get(name)]
    episodes = [replace(hit, summary=one_line(hit.summary)) for hit in hits]
    return render_to_string("context/memory_node.txt", {"working": working, "episodes": episodes}).strip()

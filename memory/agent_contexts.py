"""Contexts, entries and learnings of the in-process API (`agent_memory`), by noun, as `agent_tiers` has the others.

Texts are embedded before the transaction that stores them; reads of entries are in their context's access log.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.agent_tiers import AgentPart, Clock
from memory.models import (
    ContextEntry,
    ContextEntryVersion,
    ContextSnapshot,
    Learning,
    Level,
    PersistentContext,
)
from memory.owner import Owner
from memory.retrieval.entries import EntryResults
from memory.retrieval.learnings import LearningResults
from memory.services.accounts.access import ExpectedVersions
from memory.services.contexts.access_log import Action, entry_reference, log_reads
from memory.services.contexts.entries import (
    EntryDraft,
    EntryEdit,
    boost_importance,
    entries_of_context,
    entry_versions,
    find_entry,
    find_version,
    reduce_importance,
    remove_entry,
    restore_version,
    store_entries,
    update_entry_content,
)
from memory.services.contexts.manage import (
    ContextGrant,
    archive_context,
    change_context,
    find_context,
    grant_context,
    revoke_context,
    unarchive_context,
)
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.contexts.snapshots import (
    RestoreCounts,
    RestorePreview,
    create_snapshot,
    list_snapshots,
    preview_restore,
    restore_snapshot,
    texts_to_restore,
)
from memory.services.embedding.embed import embed_texts
from memory.services.learnings.publish import LearningDraft, find_learning, remove_learning, visible_learnings
from memory.services.memories.store import ClientVector


class AgentContext(AgentPart):
    """A persistent context, by its id: what it holds, its snapshots, who is let in.

    >>> from memory.services.contexts.manage import ContextDraft
    >>> context = memory.create_context(ContextDraft(name="garden"))
    >>> garden = memory.context_of(context.id)
    >>> [entry] = garden.store([EntryDraft(content="The roses were cut in March.", entry_type="fact")])
    >>> kept = garden.snapshot("spring")
    >>> memory.entry(entry.id).update_content(EntryEdit(content="The roses were cut in April.")).content_version
    2
    >>> [hit.content for hit in garden.search("When were the roses cut?").hits]
    ['The roses were cut in April.']
    >>> garden.restore(kept.id).changed
    1
    >>> [version.content for version in memory.entry(entry.id).versions()]
    ['The roses were cut in March.', 'The roses were cut in April.', 'The roses were cut in March.']
    """

    def __init__(self, owner: Owner, clock: Clock, *, context_id: UUID) -> None:
        super().__init__(owner, clock)
        self._context_id = context_id

    def find(self) -> PersistentContext:
        """Return the context itself. Raises NotFound."""
        return find_context(self._owner, self._context_id)

    def change(
        self, changes: Mapping[str, Any], *, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> PersistentContext:
        """Another `name`, `description`, `access_control` (as JSON), `metadata`.

        Raises NotFound, Forbidden, StaleVersion, Conflict for a name that is taken.
        """
        moment = self._clock(now)
        return change_context(self._owner, self._context_id, changes=changes, expected=expected, now=moment)

    def store(
        self, drafts: Sequence[EntryDraft], *, editor: str = "", now: datetime | None = None
    ) -> list[ContextEntry]:
        """Store entries and return them in the order of the drafts.

        A draft under an existing key becomes that entry's next version. Raises NotFound, Forbidden, TooLarge, and
        Conflict while the context is archived.
        """
        made = embed_texts([draft.text for draft in drafts if draft.own is None])
        return store_entries(
            self._owner, self._context_id, drafts=drafts, embedded=made, editor=editor, now=self._clock(now)
        )

    def entries(self, *, now: datetime | None = None) -> list[ContextEntry]:
        """Return all entries, oldest first; entries stored together are in no order. Raises NotFound."""
        moment = self._clock(now)
        found = list(entries_of_context(self._owner, self._context_id, now=moment).order_by("id"))
        log_reads(self._owner, [entry_reference(entry) for entry in found], action=Action.READ, now=moment)
        return found

    def search(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime | None = None
    ) -> EntryResults:
        """Return the entries that answer the query best; none while the context is archived. Raises NotFound."""
        asked = EntryQuestion(text=query, top_k=top_k, own=own, contexts=[self.find().id])
        return find_entries(self._owner, asked, now=self._clock(now))

    def snapshot(self, name: str = "", *, now: datetime | None = None) -> ContextSnapshot:
        """Note what it holds. Raises NotFound, Forbidden, Conflict while it is archived."""
        return create_snapshot(self._owner, self._context_id, name=name, now=self._clock(now))

    def snapshots(self) -> list[ContextSnapshot]:
        """Oldest first. Raises NotFound."""
        return list(list_snapshots(self._owner, self._context_id).order_by("id"))

    def preview(self, snapshot_id: UUID, *, now: datetime | None = None) -> RestorePreview:
        """Return what a restore would do. Raises NotFound."""
        return preview_restore(self._owner, self._context_id, snapshot_id, now=self._clock(now))

    def restore(self, snapshot_id: UUID, *, editor: str = "", now: datetime | None = None) -> RestoreCounts:
        """Make it hold what the snapshot has; history stays. Raises as `snapshot`."""
        place, moment = (self._owner, self._context_id, snapshot_id), self._clock(now)
        made = embed_texts(texts_to_restore(*place, now=moment))
        return restore_snapshot(*place, editor=editor, embedded=made, now=moment)

    def archive(self, *, expected: ExpectedVersions = None, now: datetime | None = None) -> PersistentContext:
        """Read-only from now on, and in no search. Raises NotFound, Forbidden, StaleVersion."""
        return archive_context(self._owner, self._context_id, expected=expected, now=self._clock(now))

    def unarchive(self, *, expected: ExpectedVersions = None, now: datetime | None = None) -> PersistentContext:
        """Take `archive` back. Raises as it does."""
        return unarchive_context(self._owner, self._context_id, expected=expected, now=self._clock(now))

    def grant(
        self,
        agent_id: str,
        level: Level = Level.READ,
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> PersistentContext:
        """Let an agent in. Raises NotFound, Forbidden, StaleVersion."""
        grant, moment = ContextGrant(agent_id=agent_id, level=level), self._clock(now)
        return grant_context(self._owner, self._context_id, grant, expected=expected, now=moment)

    def revoke(
        self,
        agent_id: str,
        level: Level | None = None,
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> PersistentContext:
        """Shut an agent out again; without a level, wholly. Raises as `grant`."""
        grant, moment = ContextGrant(agent_id=agent_id, level=level), self._clock(now)
        return revoke_context(self._owner, self._context_id, grant, expected=expected, now=moment)


class AgentEntry(AgentPart):
    """A context's entry, by its id.

    Writes raise NotFound, Forbidden for who may only read, Conflict while the context is archived, StaleVersion.
    """

    def __init__(self, owner: Owner, clock: Clock, *, entry_id: UUID) -> None:
        super().__init__(owner, clock)
        self._entry_id = entry_id

    def find(self, *, now: datetime | None = None) -> ContextEntry:
        """Return the current entry. Raises NotFound."""
        moment = self._clock(now)
        entry = find_entry(self._owner, self._entry_id, now=moment)
        log_reads(self._owner, [entry_reference(entry)], action=Action.READ, now=moment)
        return entry

    def update_content(
        self, edit: EntryEdit, *, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> ContextEntry:
        """Its next version; the same content again is none."""
        made = embed_texts([] if edit.own else [edit.content])
        moment = self._clock(now)
        return update_entry_content(
            self._owner, self._entry_id, edit=edit, embedded=made, expected=expected, now=moment
        )

    def boost(self, by: float = 0.1, *, expected: ExpectedVersions = None, now: datetime | None = None) -> ContextEntry:
        """More important, up to 1."""
        return boost_importance(self._owner, self._entry_id, by=by, expected=expected, now=self._clock(now))

    def reduce(
        self, by: float = 0.1, *, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> ContextEntry:
        """Less important, down to 0."""
        return reduce_importance(self._owner, self._entry_id, by=by, expected=expected, now=self._clock(now))

    def versions(self, *, now: datetime | None = None) -> list[ContextEntryVersion]:
        """First to last. Raises NotFound."""
        return list(entry_versions(self.find(now=now)).order_by("number"))

    def restore_version(
        self, number: int, *, editor: str = "", expected: ExpectedVersions = None, now: datetime | None = None
    ) -> ContextEntry:
        """Bring the content of a version back, as the next one."""
        moment, named = self._clock(now), editor or self._owner.agent_id
        version = find_version(self._owner, self._entry_id, number, now=moment)
        made = embed_texts([version.content])
        return restore_version(self._owner, version, embedded=made, editor=named, expected=expected, now=moment)

    def remove(self, *, expected: ExpectedVersions = None, now: datetime | None = None) -> None:
        """Out of reads and searches; its history stays."""
        remove_entry(self._owner, self._entry_id, expected=expected, now=self._clock(now))


class AgentFacts(AgentPart):
    """Facts of the agent: entries of type fact in its own context (see `storage.Factual`).

    >>> memory.factual.store(EntryDraft(key="capital", content="The capital of France is Paris.")).entry_type
    'fact'
    >>> memory.factual.find("capital").text
    'The capital of France is Paris.'
    """

    def store(self, draft: EntryDraft, *, now: datetime | None = None) -> ContextEntry:
        """Store a fact; under an existing key, its next version.

        Raises Conflict if the key is another entry's, TooLarge.
        """
        return self._storage.store_fact(draft, now=self._clock(now))

    def find(self, key: str, *, now: datetime | None = None) -> ContextEntry:
        """Return a fact by its key. Raises NotFound."""
        return self._storage.find_fact(key, now=self._clock(now))

    def all(self, *, now: datetime | None = None) -> list[ContextEntry]:
        """Return all facts by key, those without one first."""
        return self._storage.list_facts(now=self._clock(now))

    def search(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime | None = None
    ) -> EntryResults:
        """Return the facts nearest to the query, or to a vector of one's own."""
        return self._storage.find_facts(query, top_k=top_k, own=own, now=self._clock(now))


class AgentLearnings(AgentPart):
    """Learnings of the agent's teams.

    >>> learning = memory.learnings.publish(LearningDraft(team_id=team.id, insight="Look under the mat first."))
    >>> colleague.learnings.vote(learning.id, helpful=True).helpful_count
    1
    >>> [hit.insight for hit in colleague.learnings.search("Where to look first?").hits]
    ['Look under the mat first.']
    """

    def publish(self, draft: LearningDraft, *, now: datetime | None = None) -> Learning:
        """Publish to a team that the agent is in.

        Raises Unprocessable for another team, Conflict if its context is archived.
        """
        return self._storage.publish_learning(draft, now=self._clock(now))

    def find(self, learning_id: UUID, *, now: datetime | None = None) -> Learning:
        """Return a learning. Raises NotFound."""
        return find_learning(self._owner, learning_id, now=self._clock(now))

    def all(self, *, now: datetime | None = None) -> list[Learning]:
        """Return the learnings of all teams that the agent is in, the most helpful first."""
        return list(visible_learnings(self._owner, now=self._clock(now)).order_by("-score", "-id"))

    def vote(self, learning_id: UUID, *, helpful: bool, now: datetime | None = None) -> Learning:
        """Vote on whether a learning helped; replaces the agent's earlier vote.

        Raises NotFound, Forbidden, and Unprocessable for one's own learning.
        """
        return self._storage.vote_on_learning(learning_id, helpful=helpful, now=self._clock(now))

    def search(
        self,
        query: str,
        *,
        top_k: int = 10,
        team_id: UUID | None = None,
        own: ClientVector | None = None,
        now: datetime | None = None,
    ) -> LearningResults:
        """Return the learnings nearest to the query or vector, of one team or of all that the agent is in."""
        moment = self._clock(now)
        return self._storage.find_learnings(query, top_k=top_k, own=own, team_id=team_id, now=moment)

    def remove(self, learning_id: UUID, *, now: datetime | None = None) -> None:
        """One that the agent published. Raises NotFound, Forbidden."""
        remove_learning(self._owner, learning_id, now=self._clock(now))

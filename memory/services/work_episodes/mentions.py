"""What work episodes repeat of goals and artifacts: what a goal was, what was produced.

An episode is linked with what it names. Once staff corrects that, or it is erased, the episode is told again, at all of
its levels, and waits for its vector; once it is quarantined, so are they. What became of a goal since, by those who
work on it, leaves as it is what was told when it was done.

Conversations are locked first (`work_corrections`), then what is named together with the episodes, or those who read
both would wait for ever.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.audit import record
from memory.extraction.work_retellings import Renaming, is_told_of, tell_again, tell_produced
from memory.models import Artifact, Goal, Kind, Link, Memory, WorkEpisode
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.memories.links import PRODUCED, WORKS_ON
from memory.services.memories.store import Rewording, reword_memories
from memory.services.work_episodes.staff_edits import lock_logs

NAMED = frozenset({Kind.GOAL, Kind.ARTIFACT})
NAMING_COLUMNS = frozenset({"text", "title"})
"""Of goals and artifacts, what episodes repeat."""
EPISODES_AT_ONCE = 500
UNEMBEDDED = Embedded(model="", width=0, vectors={})

episode_rows: Any = WorkEpisode._default_manager
artifact_rows: Any = Artifact._default_manager


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How episodes name goals and artifacts from now on: `goals` by id, with an empty text where one is gone.

    `changed` are the artifacts that are called otherwise; those in `titles` are still there, by id with their URIs.
    """

    goals: Mapping[UUID, str]
    changed: Mapping[UUID, str]
    titles: Mapping[UUID, tuple[str, str]]


def mentions_of(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """The work episodes, of whatever level, that name the goals and artifacts among these. One statement, two where
    there is one among them."""
    named = Memory.objects.visible_to(owner, *sorted(NAMED)).filter(id__in=memory_ids)
    found = list(named.order_by().values_list("id", flat=True))
    if not found:
        return []
    links = Link.objects.filter(account_id=owner.account_id, target_id__in=found, type__in=(WORKS_ON, PRODUCED))
    linked = links.filter(source__kind=Kind.WORK_EPISODE).order_by().values_list("source_id")
    for_goals = episode_rows.filter(for_goal_id__in=found).order_by().values_list("pk")
    return sorted(each for (each,) in linked.union(for_goals))


def hold_mentions(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """The episodes that name these, after locking the conversations that they are of."""
    mentions = mentions_of(owner, memory_ids)
    if mentions:
        lock_logs(mentions)
    return mentions


def retell_without(owner: Owner, memory_ids: Collection[UUID], *, now: datetime) -> None:
    """Have no episode name these any more, which are locked and about to be erased."""
    retell(owner, memory_ids, are_gone=True, now=now)


def retell(owner: Owner, memory_ids: Collection[UUID], *, are_gone: bool = False, now: datetime) -> None:
    """Have the episodes that name these, which are locked, name them as they are called by now."""
    mentions = mentions_of(owner, memory_ids)
    for start in range(0, len(mentions), EPISODES_AT_ONCE):
        retell_episodes(owner, mentions[start : start + EPISODES_AT_ONCE], memory_ids, are_gone=are_gone, now=now)


def retell_episodes(
    owner: Owner, episode_ids: Sequence[UUID], memory_ids: Collection[UUID], *, are_gone: bool, now: datetime
) -> None:
    rows = episode_rows.filter(pk__in=episode_ids).order_by("pk")
    episodes: list[WorkEpisode] = list(rows.select_for_update(no_key=True, of=("memory_ptr", "self")))
    named = read_named(owner, episode_ids)
    naming = read_naming(owner, {each for ids in named.values() for each in ids}, memory_ids, are_gone=are_gone)
    changed = []
    for episode in episodes:
        names = named[episode.pk] | ({episode.for_goal_id} if episode.for_goal_id else set())
        text, data = tell_again(episode.text, episode.data, renaming_of(naming, names))
        if (text, data) != (episode.text, episode.data):
            episode.data = data
            changed.append(Rewording(row=episode, text=text))
    if changed:
        store_retold(owner, changed, now=now)


def read_named(owner: Owner, episode_ids: Sequence[UUID]) -> dict[UUID, set[UUID]]:
    """What episodes name, by episode."""
    links = Link.objects.filter(account_id=owner.account_id, source_id__in=episode_ids, type__in=(WORKS_ON, PRODUCED))
    named: dict[UUID, set[UUID]] = defaultdict(set)
    for source, target in links.values_list("source_id", "target_id"):
        named[source].add(target)
    return named


def read_naming(owner: Owner, named: Collection[UUID], memory_ids: Collection[UUID], *, are_gone: bool) -> Naming:
    goals: Any = Goal.objects.filter(account_id=owner.account_id, pk__in=memory_ids).values_list("pk", "text")
    wanted = {*named, *memory_ids}
    artifacts = artifact_rows.filter(account_id=owner.account_id, pk__in=wanted).values_list("pk", "title", "uri")
    known = {each: (title, uri) for each, title, uri in artifacts}
    return Naming(
        goals={each: "" if are_gone else text for each, text in goals},
        changed={each: known[each][1] for each in known if each in set(memory_ids)},
        titles={each: told for each, told in known.items() if not are_gone or each not in set(memory_ids)},
    )


def renaming_of(naming: Naming, names: Collection[UUID]) -> Renaming:
    """What an episode that names these tells instead of what it told."""
    goal = next((naming.goals[each] for each in names if each in naming.goals), None)
    changed = {each: naming.changed[each] for each in names if each in naming.changed}
    # another revision may be called the same
    others = {tell_produced(*naming.titles[each]) for each in names if each in naming.titles and each not in changed}

    def rename(key: str, told: str) -> str:
        if key == "goal":
            return told if goal is None else goal
        of = [each for each, uri in changed.items() if is_told_of(told, uri)]
        if not of or told in others:
            return told
        return next((tell_produced(*naming.titles[each]) for each in of if each in naming.titles), "")

    return rename


def store_retold(owner: Owner, changed: Sequence[Rewording], *, now: datetime) -> None:
    episode_rows.bulk_update([each.row for each in changed], ["data"])
    reword_memories(owner, changed, embedded=UNEMBEDDED, now=now)
    ids = [each.row.id for each in changed]
    record(owner, operation="update", memory_type="episodic", affected_ids=ids, result_count=len(ids))

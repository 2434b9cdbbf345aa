"""Reading and locking artifacts (E9), with what is around them: record, goal, links, revisions, lineage.

The revisions of one artifact (same holder, channel and path or URI) form a chain. The latest revision has the chain's
identity, each former one that and its own number: so there is at most one latest, and an index finds each of them.
Whatever creates, changes or deletes a revision first takes the chain's lock (`lock_chain`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from memory.errors import require_found
from memory.identity import digest_parts, holder_key
from memory.kinds import spec_of
from memory.models import Artifact, Goal, Kind, Link, Memory, TurnRecord
from memory.models.memory import MemoryQuerySet
from memory.models.statements import execute_statement
from memory.owner import Owner
from memory.retrieval.artifact_lineage import LINEAGE_TYPES, walk_artifact_lineage
from memory.services.accounts.access import ExpectedVersions, check_author, check_version

LOCK_CHAIN = "SELECT pg_advisory_xact_lock(hashtextextended('artifact ' || %s || ' ' || %s, 0))"

MAX_REVISIONS = 50
"""Maximum of revisions that are read with an artifact."""
MAX_LINKS = 200
"""Maximum of links that are read with an artifact."""
LABEL_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLink:
    """A link between an artifact and a memory. `is_out`: the link leads from the artifact to the memory.

    `label` is the beginning of the memory's text. It is empty for the slot of a structured turn, which only its record
    shows, as far as the policy allows.
    """

    type: str
    is_out: bool
    memory: Memory
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactView:
    """An artifact with what is around it, as far as the owner sees it.

    `revisions` have the same path or URI, newest first. `truncated`: there are more revisions or links than were read.
    """

    artifact: Artifact
    record: TurnRecord | None
    goal: Goal | None
    links: Sequence[ArtifactLink]
    revisions: Sequence[Artifact]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLineage:
    """Artifacts with their distance in steps, earliest first, and the links among them.

    A distance below zero is that of an artifact which the requested one came from.
    """

    artifacts: Sequence[tuple[int, Artifact]]
    links: Sequence[Link]
    truncated: bool


def view_artifact(owner: Owner, artifact_id: UUID, *, now: datetime) -> ArtifactView:
    """Return an artifact with what is around it. Seven statements at most. Raises NotFound."""
    artifact = find_artifact(owner, artifact_id, now=now)
    around = Link.objects.filter(Q(source_id=artifact.id) | Q(target_id=artifact.id), account_id=owner.account_id)
    links = list(around.order_by("-id")[: MAX_LINKS + 1])
    revisions = read_revisions(owner, artifact, now=now)
    record_id, goal_id = artifact.source_record_id, artifact.for_goal_id
    return ArtifactView(
        artifact=artifact,
        record=TurnRecord.objects.visible_to(owner).filter(id=record_id).first() if record_id else None,
        goal=Goal.objects.visible_to(owner, Kind.GOAL).live(now).filter(id=goal_id).first() if goal_id else None,
        links=read_linked_memories(owner, artifact, links[:MAX_LINKS], now=now),
        revisions=revisions[:MAX_REVISIONS],
        truncated=len(links) > MAX_LINKS or len(revisions) > MAX_REVISIONS,
    )


def read_linked_memories(
    owner: Owner, artifact: Artifact, links: Sequence[Link], *, now: datetime
) -> list[ArtifactLink]:
    """Return the links whose other end the owner sees, newest first."""
    others = {link.target_id if link.source_id == artifact.id else link.source_id for link in links}
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=others) if others else Memory.objects.none()
    known = {row.id: row for row in rows.defer("text").annotate(beginning=Left("text", LABEL_CHARACTERS))}
    linked = []
    for link in links:
        is_out = link.source_id == artifact.id
        row = known.get(link.target_id if is_out else link.source_id)
        if row is not None:
            # reasoning may be deeper than the account's policy allows now
            is_guarded = spec_of(row.kind).has_guarded_text
            label = "" if is_guarded else row.beginning
            linked.append(ArtifactLink(type=link.type, is_out=is_out, memory=row, label=label))
    return linked


def read_artifact_lineage(owner: Owner, artifact_id: UUID, *, now: datetime) -> ArtifactLineage:
    """Return the artifacts and revisions that an artifact came from, and those that came from it.

    Four statements. Raises NotFound.
    """
    start = find_artifact(owner, artifact_id, now=now)
    walked = walk_artifact_lineage(owner, start.id, now=now)
    rows = visible_artifacts(owner, now=now).filter(id__in=list(walked.steps))
    found = [(walked.steps[row.id], row) for row in rows]
    ids = [row.id for _, row in found]
    links = Link.objects.filter(
        account_id=owner.account_id, type__in=LINEAGE_TYPES, source_id__in=ids, target_id__in=ids
    )
    return ArtifactLineage(
        artifacts=sorted(found, key=lambda pair: (pair[0], pair[1].id)),
        links=list(links.order_by("id")),
        truncated=walked.truncated,
    )


def chain_key(owner: Owner, uri: str) -> str:
    """Return the identity of an artifact's chain: a digest of holder, channel and the path or URI as it is written."""
    return digest_parts(holder_key(owner), owner.channel, "artifact", uri)


def chain_of_artifact(artifact: Artifact) -> str:
    return artifact.identity.partition(":")[0]


def former_identity(chain: str, revision: int) -> str:
    return f"{chain}:{revision}"


def lock_chain(owner: Owner, chain: str) -> None:
    """Serialize changes to a chain with a transaction-level advisory lock."""
    execute_statement(LOCK_CHAIN, [str(owner.account_id), chain])


def artifacts_by_identity(owner: Owner, *identities: str) -> QuerySet[Artifact]:
    return Artifact.objects.filter(account_id=owner.account_id, identity__in=identities)


def visible_artifacts(owner: Owner, *, now: datetime) -> MemoryQuerySet[Artifact]:
    """Return the artifacts that the owner sees, in any channel and of any revision."""
    return Artifact.objects.visible_to(owner, Kind.ARTIFACT).live(now)


def find_artifact(owner: Owner, artifact_id: UUID, *, now: datetime) -> Artifact:
    """Return an artifact that the owner sees. Raises NotFound."""
    return require_found(visible_artifacts(owner, now=now).filter(id=artifact_id).first(), "artifact")


def lock_artifact(
    owner: Owner, artifact_id: UUID, *, others: Collection[UUID] = (), expected: ExpectedVersions = None, now: datetime
) -> Artifact:
    """Lock an artifact that the owner may change, its chain, and the `others` that change with it.

    Raises NotFound, Forbidden, StaleVersion.
    """
    # an artifact never changes its chain
    lock_chain(owner, chain_of_artifact(find_artifact(owner, artifact_id, now=now)))
    if others:
        together = Memory.objects.filter(account_id=owner.account_id, id__in=[artifact_id, *others])
        list(together.order_by("id").select_for_update(of=("self",)).values_list("id", flat=True))
    rows = visible_artifacts(owner, now=now).filter(id=artifact_id)
    artifact = require_found(rows.select_for_update().first(), "artifact")
    check_author(owner, artifact, what="artifact")
    check_version(artifact.version, expected)
    return artifact


def read_revisions(owner: Owner, artifact: Artifact, *, now: datetime) -> list[Artifact]:
    """Return the latest MAX_REVISIONS of an artifact's chain, newest first, and one more if there are more.

    They are found by identity, so that no further index is needed.
    """
    chain = chain_of_artifact(artifact)
    latest = artifacts_by_identity(owner, chain).values_list("revision", flat=True).first() or artifact.revision
    numbers = range(latest, max(latest - MAX_REVISIONS - 1, 0), -1)
    identities = [chain, *(former_identity(chain, number) for number in numbers)]
    return list(visible_artifacts(owner, now=now).filter(identity__in=identities).order_by("-revision"))


def lock_visible_memories(
    owner: Owner, ids: Collection[UUID], latest_id: UUID | None, *, now: datetime
) -> Mapping[UUID, str]:
    """Lock live memories that the owner sees, and the latest revision, live or not. Return their kinds by id."""
    if not ids and latest_id is None:
        return {}
    visible = Memory.objects.visible_to(owner)
    rows = visible.live(now).filter(id__in=ids)
    if latest_id is not None:
        rows = rows | visible.filter(id=latest_id)
    # not `no_key`: the identity of a superseded revision changes
    locked = rows.order_by("id").select_for_update(of=("self",))
    return dict(locked.values_list("id", "kind"))


def artifact_text(title: str, uri: str, description: str) -> str:
    r"""Return the searched, embedded and recalled text. Each part has its own line, so that the words of a path count.

    >>> artifact_text("Runbook", "docs/runbook.md", "")
    'Runbook\ndocs/runbook.md'
    """
    return "\n".join(filter(None, (title, uri, description)))


def artifact_description(artifact: Artifact) -> str:
    """Return what an artifact's text says after title and URI; all of it if staff have replaced it."""
    heading = artifact_text(artifact.title, artifact.uri, "")
    if artifact.text == heading:
        return ""
    return artifact.text.removeprefix(f"{heading}\n")


def changed_text(artifact: Artifact, *, title: str, description: str) -> str:
    """Return the text with another title and description. If these are unchanged, the text stays as it is."""
    if (title, description) == (artifact.title, artifact_description(artifact)):
        return artifact.text
    return artifact_text(title, artifact.uri, description)


def artifacts_in_channels(owner: Owner, *, now: datetime) -> QuerySet[Artifact]:
    """Return the artifacts in the owner's channel and in `_global`, of any revision, unordered."""
    return visible_artifacts(owner, now=now).in_channels(owner)

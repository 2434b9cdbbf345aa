"""Artifacts as rows: seen, locked, stored by who may. What is done with them is in `artifacts`.

The revisions of one artifact (same holder, channel and path or URI) are a chain. The latest has the chain's identity,
each former one that and its own number: so there is one latest at most, and each is found by an index. Whatever makes,
changes or takes a revision first takes its turn at the chain.
"""

import html
import re
import unicodedata
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from memory.audit import record as record_audit
from memory.audit import texts_kept
from memory.errors import NotFound
from memory.identity import digest_of, holder
from memory.models import Artifact, Kind, Memory
from memory.owner import Owner
from memory.services.accounts.access import Versions, check_version, refuse_reader
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import Rewording, reword_memories
from memory.unseen import UNSEEN

LONGEST_URI = 2_000

MOST_DECODINGS = 5
"""What is still escaped after so many is refused: nobody writes an address like that."""

RUN_BY_BROWSERS = ("javascript", "vbscript", "jscript", "livescript", "mocha", "data", "blob", "about", "filesystem")
WRAPPERS = ("view-source", "feed", "jar", "url", "wyciwyg")
"""Schemes that lead on to the address after them."""

RUNS = re.compile(rf"(?:(?:{'|'.join(WRAPPERS)}):)*(?:{'|'.join(RUN_BY_BROWSERS)}):")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def refusal_of(uri: str) -> str:
    """Why an artifact cannot have this path or URI; empty where it can."""
    if not 1 <= len(uri) <= LONGEST_URI:
        return f"a path or URI has 1 to {LONGEST_URI} characters"
    if CONTROL.search(uri) or any(ord(character) in UNSEEN for character in uri):
        return "a path or URI has no control characters, and none that cannot be seen"
    if uri != uri.strip():
        return "a path or URI has no blanks around it"
    plain = plain_form(uri)
    if plain is None or RUNS.match(plain):
        return "a path or URI that a browser would run is not kept"
    return ""


def plain_form(uri: str) -> str | None:
    """What it comes to with nothing escaped, in one case and without blanks; None where it is escaped too often."""
    for _ in range(MOST_DECODINGS):
        decoded = html.unescape(unquote(uri))
        if decoded == uri:
            return squeezed(uri)
        uri = decoded
    return None


def squeezed(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (character for character in folded if ord(character) not in UNSEEN and not character.isspace())
    # a byte that is no text: as good as unseen
    return CONTROL.sub("", "".join(kept)).replace("\ufffd", "")


TAKE_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('artifact ' || %s || ' ' || %s, 0))"

MOST_REVISIONS = 50
"""That come along with one that is read."""


def chain_of_uri(owner: Owner, uri: str) -> str:
    """What makes an artifact the same again: holder, channel and path or URI, as it is written."""
    return digest_of(holder(owner), owner.channel, "artifact", uri)


def chain_of(artifact: Artifact) -> str:
    return artifact.identity.partition(":")[0]


def former_identity(chain: str, revision: int) -> str:
    return f"{chain}:{revision}"


def take_turn(owner: Owner, chain: str) -> None:
    """Wait for those who are changing this chain, until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_TURN, [str(owner.account_id), chain])


def of_identity(owner: Owner, *identities: str) -> Any:
    return Artifact.objects.filter(account_id=owner.account_id, kind=Kind.ARTIFACT, identity__in=identities)


def visible_artifacts(owner: Owner, *, now: datetime) -> QuerySet[Artifact]:
    """Those that the owner sees, in whichever channel, of whatever revision."""
    rows: Any = Artifact.objects
    found: QuerySet[Artifact] = rows.visible_to(owner, Kind.ARTIFACT).live(now)
    return found


def find_artifact(owner: Owner, artifact_id: UUID, *, now: datetime) -> Artifact:
    """Raises NotFound."""
    artifact = visible_artifacts(owner, now=now).filter(id=artifact_id).first()
    if artifact is None:
        raise NotFound("no such artifact")
    return artifact


def lock_artifact(
    owner: Owner, artifact_id: UUID, *, along: Collection[UUID] = (), expected: Versions = None, now: datetime
) -> Artifact:
    """One that the owner may change, in the turn of its chain, until the transaction ends, with memories that are to be
    changed along with it.

    Raises NotFound, Forbidden, StaleVersion.
    """
    # the chain never changes
    take_turn(owner, chain_of(find_artifact(owner, artifact_id, now=now)))
    if along:
        together = Memory.objects.filter(account_id=owner.account_id, id__in=[artifact_id, *along])
        list(together.order_by("id").select_for_update(of=("self",)).values_list("id", flat=True))
    rows = visible_artifacts(owner, now=now).filter(id=artifact_id)
    # memories before what their kinds hold, as everybody locks them
    artifact = rows.select_for_update(of=("memory_ptr", "self")).first()
    if artifact is None:
        raise NotFound("no such artifact")
    refuse_reader(owner, artifact, what="artifact")
    check_version(artifact.version, expected)
    return artifact


def revisions_of(owner: Owner, artifact: Artifact, *, now: datetime) -> list[Artifact]:
    """The latest MOST_REVISIONS of its chain, and of those before it, the newest first; one more where there are more.

    By their identities: no index is needed beyond that of identities.
    """
    chain = chain_of(artifact)
    latest = of_identity(owner, chain).values_list("revision", flat=True).first() or artifact.revision
    numbers = range(latest, max(latest - MOST_REVISIONS - 1, 0), -1)
    wanted = [chain, *(former_identity(chain, number) for number in numbers)]
    return list(visible_artifacts(owner, now=now).filter(identity__in=wanted).order_by("-revision"))


def save_artifact(artifact: Artifact, *, now: datetime, **columns: Any) -> None:
    """Store columns of a locked artifact, at its next version."""
    for name, value in columns.items():
        setattr(artifact, name, value)
    artifact.version, artifact.updated_at = artifact.version + 1, now
    rows: Any = Artifact.objects.filter(pk=artifact.pk)
    # Django tells the columns of the two tables apart: a statement each
    rows.update(**columns, version=artifact.version, updated_at=now)


def lock_memories(owner: Owner, ids: Collection[UUID], latest_id: UUID | None, *, now: datetime) -> Mapping[UUID, str]:
    """Those of them that the owner sees, and that are live, with their kinds; the latest revision whatever it is."""
    if not ids and latest_id is None:
        return {}
    seen = Memory.objects.visible_to(owner)
    rows = seen.live(now).filter(id__in=ids)
    if latest_id is not None:
        rows = rows | seen.filter(id=latest_id)
    # not `no_key`: the identity of a revision that is superseded changes
    locked = rows.order_by("id").select_for_update(of=("self",))
    return dict(locked.values_list("id", "kind"))


def change_columns(
    owner: Owner,
    artifact: Artifact,
    columns: Mapping[str, Any],
    rewording: Rewording,
    *,
    embedded: Embedded,
    now: datetime,
) -> None:
    """Store other columns and another text of a locked artifact, as one change; nothing where there is none."""
    is_reworded = rewording.text != artifact.text
    if not columns and not is_reworded:
        return
    if is_reworded:
        artifact.version -= 1  # `save_artifact` counts one change
        reword_memories(owner, [rewording], embedded=embedded, now=now)
    save_artifact(artifact, now=now, **columns)
    texts = texts_kept(owner, [rewording.text] if is_reworded else [])
    record_artifacts(owner, "update", artifact, metadata={"columns": sorted(columns)} | texts)


def record_artifacts(owner: Owner, operation: str, *artifacts: Artifact, **columns: Any) -> None:
    affected = [artifact.id for artifact in artifacts]
    record_audit(owner, operation=operation, memory_type="semantic", affected_ids=affected, **columns)


def artifact_text(title: str, uri: str, description: str) -> str:
    """What is searched of an artifact, embedded, and recalled: each in a line, so that the words of a path count.

    >>> artifact_text("Runbook", "docs/runbook.md", "")
    'Runbook\\ndocs/runbook.md'
    """
    return "\n".join(filter(None, (title, uri, description)))


def description_of(artifact: Artifact) -> str:
    """What its text says beyond title and URI; all of it where staff gave it another text."""
    heading = artifact_text(artifact.title, artifact.uri, "")
    if artifact.text == heading:
        return ""
    return artifact.text.removeprefix(f"{heading}\n")


def reworded(artifact: Artifact, *, title: str, description: str) -> str:
    """Its text with this title and description; the text that there is, where they are its own already."""
    if (title, description) == (artifact.title, description_of(artifact)):
        return artifact.text
    return artifact_text(title, artifact.uri, description)

"""Artifacts as they stand in stories: what they are called, where they are, which revision of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Left

from memory.admin.text import INVISIBLE, mark_invisible, shorten
from memory.models import Artifact

URI_CHARACTERS = 2_000
MOST_ARTIFACTS = 500
LINKABLE = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCard:
    """An artifact in one of its revisions. `url` is set where it may be followed; `record_id`: the turn it came of."""

    id: UUID
    at: datetime
    title: str
    uri: str
    url: str
    type: str
    revision: str
    digest: str
    record_id: UUID | None
    is_hidden: bool


def linkable(uri: str) -> str:
    """The URI where a browser may follow it: over http or https, with nothing hidden in it. Else empty.

    Browsers read a backslash as a slash, and people read what stands before an @ as the host.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    is_plain = not INVISIBLE.search(uri) and not any(char.isspace() for char in uri)
    is_host = bool(parts.netloc) and "@" not in parts.netloc and "\\" not in uri
    return uri if is_plain and is_host and parts.scheme in LINKABLE else ""


def tell_revision(artifact: Any) -> str:
    label = f" ({shorten(artifact.label)})" if artifact.label else ""
    return f"revision {artifact.revision}{label}{'' if artifact.is_latest else ', superseded'}"


def read_artifacts(
    account_id: UUID, *, artifact_ids: Iterable[UUID] = (), record_ids: Iterable[UUID] = ()
) -> dict[UUID, ArtifactCard]:
    """Those named, and those that came of these turns, to a limit; by id, oldest first. One statement."""
    wanted = Q(pk__in=list(artifact_ids)) | Q(record_id__in=list(record_ids))
    objects: Any = Artifact.objects
    rows = objects.filter(wanted, account_id=account_id).defer("text", "metadata", "uri")
    lean = rows.annotate(uri_beginning=Left("uri", URI_CHARACTERS + 1)).order_by("pk")
    return {row.pk: artifact_card(row) for row in lean[:MOST_ARTIFACTS]}


def artifact_card(row: Any) -> ArtifactCard:
    uri: str = row.uri_beginning
    cut = "…" if len(uri) > URI_CHARACTERS else ""
    return ArtifactCard(
        id=row.pk,
        at=row.event_time,
        title=shorten(row.title),
        uri=mark_invisible(uri[:URI_CHARACTERS]) + cut,
        url="" if cut else linkable(uri),
        type=shorten(row.artifact_type),
        revision=tell_revision(row),
        digest=shorten(row.digest),
        record_id=row.record_id,
        is_hidden=row.archived or row.quarantined,
    )

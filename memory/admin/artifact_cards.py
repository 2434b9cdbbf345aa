"""Artifacts in the activity of goals: their title, place and revision."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Left

from memory.admin.text import INVISIBLE, excerpt_of, mark_invisible
from memory.models import Artifact

MAX_URI_CHARACTERS = 2_000
MAX_ARTIFACTS = 500
LINKABLE_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCard:
    """A revision of an artifact. `url` is set if it may be a link; `record_id` is the turn that produced it."""

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


def linkable_url(uri: str) -> str:
    """Return the URI if a browser may follow it: http or https, with nothing hidden in it. Else return "".

    Browsers read a backslash as a slash, and people read what precedes an @ as the host.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    is_plain = not INVISIBLE.search(uri) and not any(char.isspace() for char in uri)
    has_host = bool(parts.netloc) and "@" not in parts.netloc and "\\" not in uri
    return uri if is_plain and has_host and parts.scheme in LINKABLE_SCHEMES else ""


def format_revision(artifact: Any) -> str:
    label = f" ({excerpt_of(artifact.label)})" if artifact.label else ""
    return f"revision {artifact.revision}{label}{'' if artifact.is_latest else ', superseded'}"


def read_artifacts(
    account_id: UUID, *, artifact_ids: Iterable[UUID] = (), record_ids: Iterable[UUID] = ()
) -> dict[UUID, ArtifactCard]:
    """Return the named artifacts and those that the turns produced, up to MAX_ARTIFACTS, by id, oldest first."""
    wanted = Q(pk__in=list(artifact_ids)) | Q(source_record_id__in=list(record_ids))
    objects: Any = Artifact.objects
    rows = objects.filter(wanted, account_id=account_id).defer("text", "metadata", "uri")
    lean = rows.annotate(uri_beginning=Left("uri", MAX_URI_CHARACTERS + 1)).order_by("pk")
    return {row.pk: artifact_card(row) for row in lean[:MAX_ARTIFACTS]}


def artifact_card(row: Any) -> ArtifactCard:
    uri: str = row.uri_beginning
    is_cut = len(uri) > MAX_URI_CHARACTERS
    return ArtifactCard(
        id=row.pk,
        at=row.event_time,
        title=excerpt_of(row.title),
        uri=mark_invisible(uri[:MAX_URI_CHARACTERS]) + ("…" if is_cut else ""),
        url="" if is_cut else linkable_url(uri),
        type=excerpt_of(row.artifact_type),
        revision=format_revision(row),
        digest=excerpt_of(row.digest),
        record_id=row.source_record_id,
        is_hidden=row.archived or row.quarantined,
    )

"""Artifacts for tests, stored through the service without the embedder."""

from typing import Any

from memory.models import Artifact
from memory.owner import Owner
from memory.services.artifacts.store import ArtifactDraft, StoredRevision, store_artifact
from tests.memory.episodes import NOTHING, NOW


def keep(owner: Owner, uri: str = "docs/roses.md", **fields: Any) -> StoredRevision:
    """Store an artifact. `fields` are those of the draft, and `now`."""
    now = fields.pop("now", NOW)
    return store_artifact(owner, ArtifactDraft(uri=uri, **fields), embedded=NOTHING, now=now)


def kept(owner: Owner, uri: str = "docs/roses.md", **fields: Any) -> Artifact:
    """Store an artifact and return its revision."""
    return keep(owner, uri, **fields).artifact


def stored(artifact: Artifact) -> Artifact:
    """Return the artifact as it is stored now."""
    return Artifact.objects.get(pk=artifact.pk)

"""Artifacts: files and other results of work, in chains of revisions."""

from memory.kinds.base import KindSpec
from memory.scoring import FACT_WEIGHT

SPEC = KindSpec(
    name="artifact",
    label="artifact",
    plural="artifacts",
    model="memory.Artifact",
    recall_weight=FACT_WEIGHT,
    scopes=frozenset({"workspace", "profile"}),
    has_links=True,
    resume_quote="omitted",
    correctable=frozenset({"title", "artifact_type"}),
    not_correctable=frozenset({"user_id", "channel"}),
    lifecycles=(
        "memory.services.work_episodes.propagate.MentionLifecycle",
        "memory.services.artifacts.change.ArtifactLifecycle",
    ),
)

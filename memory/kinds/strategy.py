"""Strategies: ways to do a type of task, with the tools they call and how often they succeeded."""

from memory.kinds.base import KindSpec, Merging
from memory.scoring import PROCEDURAL_WEIGHT

SPEC = KindSpec(
    name="strategy",
    label="strategy",
    plural="strategies",
    model="memory.Strategy",
    memory_type="procedural",
    recall_weight=PROCEDURAL_WEIGHT,
    scopes=frozenset({"workspace", "profile"}),
    has_links=True,
    resume_quote="omitted",
    merging=Merging(
        key=("task_type", "tool_sequence"),
        sums=("success_count", "failure_count"),
        evidence=("success_count", "failure_count"),
        maxima=("last_used",),
        moves={"uses": "memory.services.strategies.learn.move_uses"},
    ),
    correctable=frozenset({"description", "context_pattern", "task_type", "tool_sequence"}),
    # the text follows from description and pattern
    not_correctable=frozenset({"text"}),
    lifecycles=("memory.services.strategies.learn.StrategyLifecycle",),
    admin_page="strategy",
)

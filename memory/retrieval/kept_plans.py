"""Plans of the gathering statement that the server keeps: those of small accounts.

Planning the statement takes PostgreSQL half as long as executing it. A kept plan knows neither the account nor its
agents, so it may read all rows of an account where a plan for the agent reads few. Accounts whose plans are kept are so
small that this takes no longer than a few recalls.

A statement with a kept plan names the partition of the account's vectors. A plan with all partitions would take ten
times as long to make and four times the memory, and would be made again after each change of any of them.
"""

import re
from dataclasses import replace

from memory.retrieval.plans import GatheringShape, QueryAnalysis
from memory.retrieval.queries import Query

MAX_ROWS = 20_000
"""Memories of an account up to which its plans are kept."""
MAX_PARTITIONS = 4
"""Partitions that a process keeps plans for, the first that it is asked about: each plan is 1 MB of a session."""

VECTORS = re.compile(r"\bFROM memory_vectors\b(?: AS (\w+))?")

MAX_SHAPES = 16
"""Shapes of questions that a process keeps plans for, the first that it meets: a session holds all of them."""

_partitions: set[str] = set()
_shapes: set[GatheringShape] = set()


def keeps_plan(query: Query, analysis: QueryAnalysis) -> bool:
    """Return True if the server keeps the plan of this question's gathering statement."""
    if analysis.indexed_rows or not 0 < analysis.docs <= MAX_ROWS:
        return False
    return not query.width or admit_partition(analysis.partition)


def admit_partition(partition: str) -> bool:
    """Return True if this process keeps plans for the partition. It does so from now on if there are few others."""
    if partition and len(_partitions) < MAX_PARTITIONS:
        _partitions.add(partition)
    return partition in _partitions


def admit_shape(shape: GatheringShape) -> GatheringShape:
    """Return the shape, or if this process keeps plans for many others already, one whose plan is not kept."""
    if not shape.keeps_plan or shape in _shapes:
        return shape
    if len(_shapes) >= MAX_SHAPES:
        return replace(shape, keeps_plan=False, partition="")
    _shapes.add(shape)
    return shape


def name_partition(statement: str, partition: str) -> str:
    """Return the statement with this partition in place of all of `memory_vectors`."""
    return VECTORS.sub(lambda read: f"FROM {partition} AS {read[1] or 'memory_vectors'}", statement)

"""Tables, constraints, chainable filters and methods of single rows: one module per noun.

`memory.kinds` says how to add a kind of memory.
"""

from memory.kinds import Kind

# Django copies psycopg's adapters at its first connection, so that those of binary vectors must be registered before
from memory.models import binary as binary
from memory.models.access import AccessControl, Level
from memory.models.access_log import ContextAccessLog
from memory.models.accounts import Account, Agent, ApiKey, Team, TeamMember
from memory.models.agent_working import SavedWorkingMemory
from memory.models.artifacts import Artifact
from memory.models.audit import AuditEntry
from memory.models.contexts import PersistentContext
from memory.models.conversations import Conversation, Participant
from memory.models.entities import Entity, EntityName
from memory.models.entries import ContextEntry, ContextEntryVersion
from memory.models.episodes import EpisodicMemory
from memory.models.facts import Certainty, Fact, FactReview, FactTombstone, FactVersion, Temporal
from memory.models.goals import Goal
from memory.models.idempotency import IdempotentRequest
from memory.models.jobs import JobRun
from memory.models.learnings import Learning, LearningVote
from memory.models.links import Link
from memory.models.live import LedgerAccount, WorkingMemoryAccount
from memory.models.memory import Memory
from memory.models.metrics import MetricSample
from memory.models.pools import BlackboardPosting, MemoryPool, SharedContextPool, ToolCacheEntry
from memory.models.procedures import Strategy, StrategyTool, StrategyUse, Tool, ToolInvocation
from memory.models.profiles import UserProfile
from memory.models.short_term import AgentShortTermMemory
from memory.models.snapshots import ContextSnapshot, SnapshotEntry
from memory.models.terms import TermCount
from memory.models.turn_records import ReasoningTrace, TurnRecord, TurnSlot
from memory.models.turns import Turn
from memory.models.usage import ModelUsage
from memory.models.vectors import Vector
from memory.models.work_episodes import CompressionLevel, WorkEpisode
from memory.models.workflow_runs import WorkflowRun

__all__ = [
    "AccessControl",
    "Account",
    "Agent",
    "AgentShortTermMemory",
    "ApiKey",
    "Artifact",
    "AuditEntry",
    "BlackboardPosting",
    "Certainty",
    "CompressionLevel",
    "ContextAccessLog",
    "ContextEntry",
    "ContextEntryVersion",
    "ContextSnapshot",
    "Conversation",
    "Entity",
    "EntityName",
    "EpisodicMemory",
    "Fact",
    "FactReview",
    "FactTombstone",
    "FactVersion",
    "Goal",
    "IdempotentRequest",
    "JobRun",
    "Kind",
    "Learning",
    "LearningVote",
    "LedgerAccount",
    "Level",
    "Link",
    "Memory",
    "MemoryPool",
    "MetricSample",
    "ModelUsage",
    "Participant",
    "PersistentContext",
    "ReasoningTrace",
    "SavedWorkingMemory",
    "SharedContextPool",
    "SnapshotEntry",
    "Strategy",
    "StrategyTool",
    "StrategyUse",
    "Team",
    "TeamMember",
    "Temporal",
    "TermCount",
    "Tool",
    "ToolCacheEntry",
    "ToolInvocation",
    "Turn",
    "TurnRecord",
    "TurnSlot",
    "UserProfile",
    "Vector",
    "WorkEpisode",
    "WorkflowRun",
    "WorkingMemoryAccount",
]

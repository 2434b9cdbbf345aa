"""Tables, constraints, chainable filters and methods of single rows: one module per noun.

`memory.kinds` says how to add a kind of memory.
"""

from memory.kinds import Kind

# Django copies psycopg's adapters at its first connection, so those of binary vectors must be registered before
from memory.models import statements as statements
from memory.models.access import AccessControl, Level
from memory.models.accounts import (
    Account,
    Agent,
    ApiKey,
    LedgerAccount,
    Team,
    TeamMember,
    UserProfile,
    ValueAccount,
    WorkingMemoryAccount,
)
from memory.models.bulk import BulkChange, BulkChangePage
from memory.models.contexts import ContextAccessLog, PersistentContext
from memory.models.conversations import Conversation, Participant
from memory.models.embedding_state import ReembedEntry, ServingModelState
from memory.models.entities import Entity, EntityName
from memory.models.entries import ContextEntry, ContextEntryVersion, ContextSnapshot, SnapshotEntry
from memory.models.erasures import Erasure
from memory.models.facts import Certainty, Fact, FactReview, FactTombstone, FactVersion, Temporal
from memory.models.goals import Goal
from memory.models.jobs import JobRun
from memory.models.links import Link
from memory.models.memory import Memory, MemoryRow, TermCount
from memory.models.operations import AuditEntry, EncryptionCanary, IdempotentRequest, MetricSample, ModelUsage
from memory.models.pools import BlackboardPosting, MemoryPool, SharedContextPool, ToolCacheEntry, WorkflowRun
from memory.models.procedures import Learning, LearningVote, Strategy, StrategyTool, StrategyUse, Tool, ToolInvocation
from memory.models.short_term import AgentShortTermMemory, SavedWorkingMemory
from memory.models.staff import StaffLimit
from memory.models.transfers import Transfer, TransferPart, UnstoredRow
from memory.models.turn_records import Artifact, CompressionLevel, ReasoningTrace, TurnRecord, TurnSlot, WorkEpisode
from memory.models.turns import EpisodicMemory, Turn
from memory.models.vectors import Vector

# last, since it is derived from the models of all kinds
from memory.models.table import MemoryTable as MemoryTable  # isort: skip

"""One row's truth: tables, constraints, chainable filters, one-row methods. One module a noun.

To add a kind of memory: a member of `Kind`, a child of `Memory` with what it needs more, a migration, and a service
that stores it through `write_memories`. Embedding, recall, audit and erasure need nothing new.
"""

# Django copies psycopg's adapters at its first connection: what binary vectors need must be registered by then
from memory.models import binary as binary
from memory.models.accounts import Account, Agent, ApiKey, Team, TeamMember
from memory.models.audit import AuditEntry
from memory.models.conversations import Conversation, Participant
from memory.models.episodes import EpisodicMemory
from memory.models.idempotency import IdempotentRequest
from memory.models.jobs import JobRun
from memory.models.links import Link
from memory.models.live import LedgerAccount, WorkingMemoryAccount
from memory.models.memory import Kind, Memory
from memory.models.turns import Turn
from memory.models.usage import ModelUsage
from memory.models.vectors import Vector

__all__ = [
    "Account",
    "Agent",
    "ApiKey",
    "AuditEntry",
    "Conversation",
    "EpisodicMemory",
    "IdempotentRequest",
    "JobRun",
    "Kind",
    "LedgerAccount",
    "Link",
    "Memory",
    "ModelUsage",
    "Participant",
    "Team",
    "TeamMember",
    "Turn",
    "Vector",
    "WorkingMemoryAccount",
]

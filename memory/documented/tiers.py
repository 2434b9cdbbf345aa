"""Names of the tiered service: short-term entries, pools, contexts and the services over them."""

from memory.documented.rows import DocumentedContext as PersistentContext
from memory.documented.rows import DocumentedEntry as ContextEntry
from memory.documented.rows import DocumentedPool as MemoryPool
from memory.documented.rows import DocumentedShortTermMemory as AgentShortTermMemory
from memory.documented.services import EmbeddingService, MaintenanceService, RouterService, StorageService
from memory.documented.services import TaskWorkingMemory as WorkingMemoryService
from memory.models import ContextAccessLog, ContextSnapshot, SharedContextPool, WorkflowRun

__all__ = [
    "AgentShortTermMemory",
    "ContextAccessLog",
    "ContextEntry",
    "ContextSnapshot",
    "EmbeddingService",
    "MaintenanceService",
    "MemoryPool",
    "PersistentContext",
    "RouterService",
    "SharedContextPool",
    "StorageService",
    "WorkflowRun",
    "WorkingMemoryService",
]

"""Names of the evidence document: scopes, structured turns, reasoning tiers, compression, replay and resume."""

from memory.models import Artifact, CompressionLevel, TurnRecord, TurnSlot
from memory.reasoning import ReasoningTier
from memory.retrieval.queries import Mode, Posture, Scope
from memory.services.replay.replay import ReplaySlice
from memory.services.resume.resume import ResumePacket

__all__ = [
    "Artifact",
    "CompressionLevel",
    "Mode",
    "Posture",
    "ReasoningTier",
    "ReplaySlice",
    "ResumePacket",
    "Scope",
    "TurnRecord",
    "TurnSlot",
]

"""The objects of answers, with the fields that this version knows.

Written by `generate.py`; do not edit.
"""

# fmt: off

from __future__ import annotations

from typing import Any

from agent_memory_client.results import Result


class AccessControlAnswer(Result):
    """`AccessControlAnswer` of the OpenAPI document."""

    read: list[str]
    write: list[str]
    public_read: bool


class AccessLogAnswer(Result):
    """`AccessLogAnswer` of the OpenAPI document."""

    id: str
    action: str
    accessed_at: str
    entry_id: str | None
    agent_id: str
    actor: str
    count: int


class AgentAnswer(Result):
    """`AgentAnswer` of the OpenAPI document."""

    agent_id: str
    description: str
    created_at: str


class ArtifactAround(Result):
    """`ArtifactAround` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    label: str
    digest: str
    is_latest: bool
    created_at: str
    revision: int
    uri: str
    title: str
    metadata: dict[str, Any]
    event_time: str
    updated_at: str
    conversation_id: str
    type: str
    description: str
    record_id: str | None
    goal_id: str | None
    version: int
    embedding: str
    record: ProducingRecord | None
    goal: ServedGoal | None
    links: list[LinkedMemory]
    revisions: list[RevisionAnswer]
    truncated: bool


class ArtifactName(Result):
    """`ArtifactName` of the OpenAPI document."""

    id: str
    uri: str
    title: str


class AuditAnswer(Result):
    """`AuditAnswer` of the OpenAPI document."""

    id: str
    timestamp: str
    operation: str
    memory_type: str
    user_id: str
    session_id: str
    conversation_id: str
    source_channel: str
    result_count: int | None
    success: bool
    error_message: str
    promoted_from_channel: str
    promotion_confidence: float | None
    promotion_access_count: int | None
    promotion_conversation_count: int | None
    actor: str
    agent_id: str
    affected_ids: list[str]
    target_channels: list[str]
    query_text: str
    cross_channel_count: int | None
    latency_ms: int | None
    config_snapshot: dict[str, Any]
    metadata: dict[str, Any]


class CachedAnswer(Result):
    """`CachedAnswer` of the OpenAPI document."""

    id: str
    key: str
    expires_at: str
    agent_id: str
    ttl_seconds: int
    hit_count: int
    value: Any


class CachedKeyAnswer(Result):
    """`CachedKeyAnswer` of the OpenAPI document."""

    id: str
    key: str
    expires_at: str
    agent_id: str
    ttl_seconds: int
    hit_count: int


class CheckAnswer(Result):
    """`CheckAnswer` of the OpenAPI document."""

    item_key: str
    injected: bool
    value: str | None


class CompletedGoal(Result):
    """`CompletedGoal` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    priority: int
    deadline: str | None
    description: str
    status: str
    parent_id: str | None
    completed_at: str | None
    result: str
    version: int
    event_time: str
    embedding: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    unblocked: list[str]


class ConsolidatedAnswer(Result):
    """`ConsolidatedAnswer` of the OpenAPI document."""

    session_id: str
    promoted: int
    keys: list[str]


class ContextAnswer(Result):
    """`ContextAnswer` of the OpenAPI document."""

    context: str
    items: list[ContextItem]
    tokens: int
    usage: UsageAnswer
    abstained: bool
    degraded: list[str]


class ContextItem(Result):
    """`ContextItem` of the OpenAPI document."""

    snippet: str
    snippet_start: int
    snippet_end: int
    id: str
    item_key: str
    kind: str
    conversation_id: str
    slot: str | None
    record_id: str | None
    status: str | None
    similarity: float | None
    confidence: float | None
    flags: list[str]
    superseded_by: str | None
    superseded_at: str | None
    score: float | None
    signals: dict[str, Any]


class ConversationAnswer(Result):
    """`ConversationAnswer` of the OpenAPI document."""

    conversation_id: str
    title: str
    metadata: dict[str, Any]
    started_at: str
    last_turn_at: str | None
    archived: bool
    turn_count: int
    created_at: str
    updated_at: str
    agent_id: str
    user_id: str
    channel: str
    continues: str
    outcome: str
    ended_at: str | None
    summarized_count: int
    summary: bool
    summary_state: str
    summary_error: str
    extracted_count: int
    consolidated_at: str | None
    extraction: str
    extract_error: str
    participants: list[str]


class ConversationLineageAnswer(Result):
    """`ConversationLineageAnswer` of the OpenAPI document."""

    conversation: RelatedConversation
    earlier: list[RelatedConversation]
    later: list[RelatedConversation]
    truncated: bool


class DataAnswer(Result):
    """`DataAnswer` of the OpenAPI document."""

    pool_id: str
    path: str
    version: int
    data: Any


class EndedAnswer(Result):
    """`EndedAnswer` of the OpenAPI document."""

    conversation_id: str
    status: str
    ended_at: str | None
    outcome: str
    summary: bool
    summary_state: str
    cleared: bool


class EntityAnswer(Result):
    """`EntityAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    name: str
    type: str
    description: str
    properties: dict[str, Any]
    last_accessed: str | None
    access_count: int
    aliases: list[str]
    salience: float
    first_seen: str
    version: int
    embedding: str
    merged_into: str | None


class EntriesAnswer(Result):
    """`EntriesAnswer` of the OpenAPI document."""

    entries: list[EntryAnswer]


class EntryAnswer(Result):
    """`EntryAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    context_id: str
    key: str
    value: Any
    importance: float
    confidence: float
    version: int
    entry_type: str
    source_type: str
    memory_type: str
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    content: str
    effective_relevance_score: float
    previous_version: int | None
    embedding: str
    source: str
    updated_at: str


class EpisodeRecord(Result):
    """`EpisodeRecord` of the OpenAPI document."""

    id: str
    number: int
    client_id: str
    status: str
    event_time: str
    slots: list[ExpandedSlot]


class EpisodesAnswer(Result):
    """`EpisodesAnswer` of the OpenAPI document."""

    results: list[FoundEpisode]
    degraded: list[str]


class ErasureAnswer(Result):
    """`ErasureAnswer` of the OpenAPI document."""

    id: str
    status: str
    reason: str
    requested_by: str
    requested_at: str
    started_at: str | None
    completed_at: str | None
    scope: str
    lifted_at: str | None
    step: str
    passes: int
    counts: dict[str, Any]
    receipt: dict[str, Any] | None
    signature: str


class ErasurePreviewAnswer(Result):
    """`ErasurePreviewAnswer` of the OpenAPI document."""

    counts: dict[str, Any]
    derived: dict[str, Any]
    derived_ids: list[str]


class EvictAnswer(Result):
    """`EvictAnswer` of the OpenAPI document."""

    item_key: str
    evicted: bool


class ExpandedSlot(Result):
    """`ExpandedSlot` of the OpenAPI document."""

    id: str
    slot: str
    text: str
    data: dict[str, Any]
    level: int
    tier: str
    provenance: str


class ExportAnswer(Result):
    """`ExportAnswer` of the OpenAPI document."""

    id: str
    status: str
    requested_by: str
    requested_at: str
    started_at: str | None
    completed_at: str | None
    expires_at: str | None
    size_bytes: int
    digest: str
    counts: dict[str, Any]
    error: str
    agent_id: str
    user_id: str
    include_vectors: bool


class FactAnswer(Result):
    """`FactAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    claim: str
    confidence: float
    certainty: str
    status: str
    valid_from_source: str | None
    recorded_at: str | None
    retracted_at: str | None
    belief_number: int
    source_turn_id: str | None
    embedding: str
    conversation_id: str
    temporal: str
    valid_from: str | None
    valid_to: str | None
    source: str
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    updated_at: str


class FactDetail(Result):
    """`FactDetail` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    claim: str
    confidence: float
    certainty: str
    status: str
    valid_from_source: str | None
    recorded_at: str | None
    retracted_at: str | None
    belief_number: int
    source_turn_id: str | None
    embedding: str
    conversation_id: str
    temporal: str
    valid_from: str | None
    valid_to: str | None
    source: str
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    updated_at: str
    versions: list[VersionOfFact]
    turns: list[str]
    entities: list[str]
    supersedes: list[str]
    superseded_by: list[str]
    promoted_from: list[str]
    promoted_to: list[str]


class FilterAnswer(Result):
    """`FilterAnswer` of the OpenAPI document."""

    counts: dict[str, Any]
    erasure: ErasureAnswer | None


class ForgottenAnswer(Result):
    """`ForgottenAnswer` of the OpenAPI document."""

    dry_run: bool
    deleted: dict[str, Any]
    kept: dict[str, Any]
    remaining: int


class FoundEntries(Result):
    """`FoundEntries` of the OpenAPI document."""

    results: list[FoundEntry]
    degraded: list[str]
    usage: UsageAnswer


class FoundEntry(Result):
    """`FoundEntry` of the OpenAPI document."""

    snippet: str
    snippet_start: int
    snippet_end: int
    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    context_id: str
    key: str
    content: str
    value: Any
    importance: float
    confidence: float
    version: int
    entry_type: str
    source_type: str
    memory_type: str
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    truncated: bool
    similarity: float | None
    score: float
    reasons: list[str]


class FoundEpisode(Result):
    """`FoundEpisode` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    summary: str
    summarizer: str
    conversation_id: str
    key_decisions: list[Any]
    entities_mentioned: list[Any]
    tools_called: list[Any]
    event_time: str
    created_at: str
    similarity: float | None
    confidence: float


class FoundLearning(Result):
    """`FoundLearning` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    team: str | None
    insight: str
    helpful_count: int
    unhelpful_count: int
    score: float
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    similarity: float | None


class FoundStrategy(Result):
    """`FoundStrategy` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    description: str
    success_count: int
    failure_count: int
    last_used: str | None
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    conversation_id: str
    context_pattern: str
    task_type: str
    tool_sequence: list[str]
    success_rate: float
    similarity: float | None
    confidence: float
    score: float


class GoalAnswer(Result):
    """`GoalAnswer` of the OpenAPI document."""

    goal_id: str
    description: str


class GoalBlockerAnswer(Result):
    """`GoalBlockerAnswer` of the OpenAPI document."""

    id: str
    description: str
    status: str


class GoalWithRelated(Result):
    """`GoalWithRelated` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    priority: int
    deadline: str | None
    description: str
    status: str
    parent_id: str | None
    completed_at: str | None
    result: str
    version: int
    event_time: str
    embedding: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    parent: RelatedGoal | None
    children: list[RelatedGoal]
    blocked_by: list[RelatedGoal]
    blocks: list[RelatedGoal]
    truncated: bool


class GraphAnswer(Result):
    """`GraphAnswer` of the OpenAPI document."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool


class GraphEdge(Result):
    """`GraphEdge` of the OpenAPI document."""

    id: str
    source: str
    target: str
    type: str
    weight: float
    properties: dict[str, Any]


class GraphNode(Result):
    """`GraphNode` of the OpenAPI document."""

    id: str
    item_key: str
    kind: str
    label: str
    type: str
    salience: float
    depth: int
    channel: str
    conversation_id: str
    event_time: str


class ImportAnswer(Result):
    """`ImportAnswer` of the OpenAPI document."""

    id: str
    status: str
    requested_by: str
    requested_at: str
    started_at: str | None
    completed_at: str | None
    expires_at: str | None
    size_bytes: int
    digest: str
    counts: dict[str, Any]
    error: str
    dry_run: bool
    remaps: bool | None
    existing: dict[str, Any]
    left_out: dict[str, Any]


class InferenceAnswer(Result):
    """`InferenceAnswer` of the OpenAPI document."""

    conversation_id: str
    turns: list[PlacedTurn]
    extraction: str


class InvocationAnswer(Result):
    """`InvocationAnswer` of the OpenAPI document."""

    id: str
    user_id: str
    channel: str
    conversation_id: str
    turn_index: int | None
    tool_name: str
    timestamp: str
    created_at: str
    agent_id: str
    task_type: str
    success: bool | None
    latency_ms: int | None


class InvocationInFull(Result):
    """`InvocationInFull` of the OpenAPI document."""

    id: str
    user_id: str
    channel: str
    conversation_id: str
    turn_index: int | None
    tool_name: str
    timestamp: str
    created_at: str
    agent_id: str
    task_type: str
    success: bool | None
    latency_ms: int | None
    tool_input: Any
    tool_output: Any
    error_message: str | None
    sealed: bool


class ItemAnswer(Result):
    """`ItemAnswer` of the OpenAPI document."""

    namespace: list[str]
    key: str
    value: Any
    version: int
    created_at: str
    updated_at: str
    score: float | None


class ItemsAnswer(Result):
    """`ItemsAnswer` of the OpenAPI document."""

    items: list[ItemAnswer]
    degraded: list[str]


class ItemsFound(Result):
    """`ItemsFound` of the OpenAPI document."""

    reads: list[ItemAnswer]
    searches: list[ItemsAnswer]
    namespaces: list[list[list[str]]]


class ItemsWritten(Result):
    """`ItemsWritten` of the OpenAPI document."""

    stored: int
    versions: list[int]
    deleted: int


class KeptAnswer(Result):
    """`KeptAnswer` of the OpenAPI document."""

    posted: str
    tier: str
    reason: str


class KeyAnswer(Result):
    """`KeyAnswer` of the OpenAPI document."""

    prefix: str
    scopes: list[str]
    agent_id: str
    user_id: str


class KeyedValueAnswer(Result):
    """`KeyedValueAnswer` of the OpenAPI document."""

    key: str
    value: Any
    tier: str


class LastOutcome(Result):
    """`LastOutcome` of the OpenAPI document."""

    record_id: str | None
    id: str
    status: str
    text: str
    flags: list[str]
    event_time: str


class LearningsAnswer(Result):
    """`LearningsAnswer` of the OpenAPI document."""

    results: list[FoundLearning]
    degraded: list[str]


class LeftOut(Result):
    """`LeftOut` of the OpenAPI document."""

    goals: int
    last_outcome: int
    open_ends: int
    constraints: int
    evidence: int
    artifacts: int
    strategies: int
    replay: int


class LineageAnswer(Result):
    """`LineageAnswer` of the OpenAPI document."""

    artifacts: list[LineageArtifact]
    links: list[LineageLink]
    truncated: bool


class LineageArtifact(Result):
    """`LineageArtifact` of the OpenAPI document."""

    id: str
    label: str
    digest: str
    is_latest: bool
    created_at: str
    revision: int
    step: int
    uri: str
    type: str
    title: str


class LineageLink(Result):
    """`LineageLink` of the OpenAPI document."""

    source: str
    target: str
    type: str


class LinkedMemory(Result):
    """`LinkedMemory` of the OpenAPI document."""

    type: str
    direction: str
    id: str
    item_key: str
    kind: str
    label: str


class ListedConversation(Result):
    """`ListedConversation` of the OpenAPI document."""

    conversation_id: str
    title: str
    metadata: dict[str, Any]
    started_at: str
    last_turn_at: str | None
    archived: bool
    turn_count: int
    created_at: str
    updated_at: str
    agent_id: str
    user_id: str
    channel: str
    continues: str
    outcome: str
    ended_at: str | None
    summarized_count: int
    summary: bool
    summary_state: str
    summary_error: str
    extracted_count: int
    consolidated_at: str | None
    extraction: str
    extract_error: str


class MarkAnswer(Result):
    """`MarkAnswer` of the OpenAPI document."""

    item_key: str
    value: str
    first: bool


class MemberAnswer(Result):
    """`MemberAnswer` of the OpenAPI document."""

    agent_id: str
    created_at: str


class MemoryAnswer(Result):
    """`MemoryAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    kind: str
    text: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    conversation_id: str
    importance: float
    status: str | None
    event_time: str
    expires_at: str | None
    version: int
    embedding: str


class MessageAnswer(Result):
    """`MessageAnswer` of the OpenAPI document."""

    role: str
    name: str
    content: Any
    tool_calls: Any
    tool_call_id: str
    function_call: Any
    refusal: str
    annotations: Any
    audio: Any
    id: str
    index: int
    agent_id: str
    timestamp: str


class MessagesAnswer(Result):
    """`MessagesAnswer` of the OpenAPI document."""

    messages: list[MessageAnswer]


class OpenEnd(Result):
    """`OpenEnd` of the OpenAPI document."""

    id: str
    kind: str
    text: str
    flags: list[str]
    event_time: str
    reasons: list[str]


class PacketArtifact(Result):
    """`PacketArtifact` of the OpenAPI document."""

    id: str
    uri: str
    title: str
    flags: list[str]
    type: str
    revision: int
    revision_label: str
    digest: str
    goal_id: str | None


class PacketConstraint(Result):
    """`PacketConstraint` of the OpenAPI document."""

    id: str | None
    text: str
    flags: list[str]
    source: str


class PacketEvidence(Result):
    """`PacketEvidence` of the OpenAPI document."""

    id: str
    kind: str
    note: str
    text: str
    flags: list[str]
    score: float
    reasons: list[str]
    event_time: str
    conversation_id: str
    item_key: str


class PacketGoal(Result):
    """`PacketGoal` of the OpenAPI document."""

    id: str
    description: str
    flags: list[str]
    status: str
    priority: int
    deadline: str | None
    overdue: bool
    parent_id: str | None
    depth: int
    blocked_by: list[GoalBlockerAnswer]
    result: str


class PacketStrategy(Result):
    """`PacketStrategy` of the OpenAPI document."""

    id: str
    text: str
    flags: list[str]
    task_type: str
    tool_sequence: list[str]
    success_rate: float
    success_count: int
    failure_count: int


class ParticipantAnswer(Result):
    """`ParticipantAnswer` of the OpenAPI document."""

    agent_id: str
    created_at: str


class PersistentContextAnswer(Result):
    """`PersistentContextAnswer` of the OpenAPI document."""

    id: str
    name: str
    description: str
    context_type: str
    scope: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    agent_id: str
    team: str | None
    access_control: AccessControlAnswer
    archived: bool
    version: int


class PlacedRecord(Result):
    """`PlacedRecord` of the OpenAPI document."""

    id: str
    user_id: str
    channel: str
    conversation_id: str
    first_index: int | None
    last_index: int | None
    status: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    agent_id: str
    number: int
    client_id: str
    goal_id: str | None
    episode_id: str | None
    level: int
    reasoning_tier: str
    tokens: int
    raw_tokens: int
    timestamp: str
    slots: list[PlacedSlot]
    reasoning: KeptAnswer | None


class PlacedSlot(Result):
    """`PlacedSlot` of the OpenAPI document."""

    id: str
    item_key: str
    slot: str
    level: int
    tier: str | None
    provenance: str | None
    tokens: int
    embedding: str
    timestamp: str


class PlacedTurn(Result):
    """`PlacedTurn` of the OpenAPI document."""

    id: str
    index: int
    embedding: str


class PlacedTurns(Result):
    """`PlacedTurns` of the OpenAPI document."""

    turns: list[PlacedTurn]


class PoolAnswer(Result):
    """`PoolAnswer` of the OpenAPI document."""

    pool_id: str
    pool_type: str
    scope: str
    expires_at: str | None
    created_at: str
    updated_at: str
    agent_id: str
    team: str | None
    task_id: str
    workflow_run_id: str
    access_control: AccessControlAnswer
    version: int
    entry_count: int
    size_bytes: int


class PoolStatisticsAnswer(Result):
    """`PoolStatisticsAnswer` of the OpenAPI document."""

    pool_id: str
    entry_count: int
    size_bytes: int
    limit_bytes: int
    read_count: int
    write_count: int
    last_accessed_at: str | None


class PostingAnswer(Result):
    """`PostingAnswer` of the OpenAPI document."""

    id: str
    content: Any
    created_at: str
    position: int
    agent_id: str


class PreviewAnswer(Result):
    """`PreviewAnswer` of the OpenAPI document."""

    changed: int
    returned: int
    removed: int
    unchanged: int
    missing: int
    steps: list[StepAnswer]


class ProducingRecord(Result):
    """`ProducingRecord` of the OpenAPI document."""

    id: str
    conversation_id: str
    number: int
    event_time: str
    status: str


class ProfileAnswer(Result):
    """`ProfileAnswer` of the OpenAPI document."""

    user_id: str
    preferences: dict[str, Any]
    communication_style: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    expertise_areas: list[str]
    provenance: dict[str, Any]
    version: int


class ProfileSource(Result):
    """`ProfileSource` of the OpenAPI document."""

    fact_id: str | None
    turn_ids: list[str]
    at: str


class RecallAnswer(Result):
    """`RecallAnswer` of the OpenAPI document."""

    results: list[RecalledMemory]
    goals: list[RecalledGoal]
    profile: RecalledProfile | None
    metrics: list[TechniqueMetric]
    degraded: list[str]
    abstained: bool
    usage: UsageAnswer


class RecalledGoal(Result):
    """`RecalledGoal` of the OpenAPI document."""

    id: str
    status: str
    priority: int
    deadline: str | None
    description: str


class RecalledMemory(Result):
    """`RecalledMemory` of the OpenAPI document."""

    snippet: str
    snippet_start: int
    snippet_end: int
    id: str
    item_key: str
    kind: str
    conversation_id: str
    slot: str | None
    record_id: str | None
    status: str | None
    similarity: float | None
    confidence: float | None
    flags: list[str]
    superseded_by: str | None
    superseded_at: str | None
    text: str
    truncated: bool
    score: float
    event_time: str
    channel: str
    reasons: list[str]
    also: list[str]
    found_by: list[str]
    signals: dict[str, Any]


class RecalledProfile(Result):
    """`RecalledProfile` of the OpenAPI document."""

    user_id: str
    preferences: dict[str, Any]
    expertise_areas: list[str]
    communication_style: dict[str, Any]


class RecordAnswer(Result):
    """`RecordAnswer` of the OpenAPI document."""

    id: str
    user_id: str
    channel: str
    conversation_id: str
    first_index: int | None
    last_index: int | None
    status: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    agent_id: str
    number: int
    client_id: str
    goal_id: str | None
    episode_id: str | None
    level: int
    reasoning_tier: str
    tokens: int
    raw_tokens: int
    timestamp: str
    slots: list[SlotAnswer]


class RecordInFull(Result):
    """`RecordInFull` of the OpenAPI document."""

    id: str
    user_id: str
    channel: str
    conversation_id: str
    first_index: int | None
    last_index: int | None
    status: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    agent_id: str
    number: int
    client_id: str
    goal_id: str | None
    episode_id: str | None
    level: int
    reasoning_tier: str
    tokens: int
    raw_tokens: int
    timestamp: str
    slots: list[SlotAnswer]
    produced: list[ArtifactName]
    used: list[ArtifactName]
    evidence: list[str]
    tool_invocations: list[str]
    truncated: bool


class RecordedInvocations(Result):
    """`RecordedInvocations` of the OpenAPI document."""

    ids: list[str]


class RelatedConversation(Result):
    """`RelatedConversation` of the OpenAPI document."""

    conversation_id: str
    title: str
    started_at: str
    last_turn_at: str | None
    ended_at: str | None
    turn_count: int
    step: int
    continues: str
    outcome: str


class RelatedGoal(Result):
    """`RelatedGoal` of the OpenAPI document."""

    id: str
    status: str
    priority: int
    deadline: str | None
    description: str


class RelationshipAnswer(Result):
    """`RelationshipAnswer` of the OpenAPI document."""

    id: str
    type: str
    weight: float
    properties: dict[str, Any]
    created_at: str
    source: str
    target: str


class RememberedAnswer(Result):
    """`RememberedAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    memory_type: str
    event_time: str
    summary: str
    truncated: bool
    status: str | None
    importance: float
    conversation_id: str
    access_count: int
    last_accessed: str | None
    archived: bool
    metadata: dict[str, Any]


class ReplayAnswer(Result):
    """`ReplayAnswer` of the OpenAPI document."""

    target: ReplayTarget
    posture: str
    tier: str
    allowed_tier: str
    pieces: list[ReplayPiece]
    tokens: int
    left_out: int
    degraded: list[str]


class ReplayPiece(Result):
    """`ReplayPiece` of the OpenAPI document."""

    record_id: str | None
    episode_id: str | None
    memory_id: str | None
    kind: str
    slot: str
    level: int
    tier: str
    provenance: str
    text: str
    flags: list[str]
    tokens: int
    reason: str
    event_time: str


class ReplayTarget(Result):
    """`ReplayTarget` of the OpenAPI document."""

    type: str
    id: str | None


class RestoredAnswer(Result):
    """`RestoredAnswer` of the OpenAPI document."""

    changed: int
    returned: int
    removed: int
    unchanged: int
    missing: int
    snapshot_id: str
    context_id: str


class ResumeAnswer(Result):
    """`ResumeAnswer` of the OpenAPI document."""

    conversation_id: str
    lineage: list[str]
    goals: list[PacketGoal]
    last_outcome: LastOutcome | None
    open_ends: list[OpenEnd]
    constraints: list[PacketConstraint]
    evidence: list[PacketEvidence]
    artifacts: list[PacketArtifact]
    strategies: list[PacketStrategy]
    replay: ReplayAnswer | None
    text: str
    tokens: int
    left_out: LeftOut
    degraded: list[str]
    abstained: bool
    usage: UsageAnswer


class RevisionAnswer(Result):
    """`RevisionAnswer` of the OpenAPI document."""

    id: str
    label: str
    digest: str
    is_latest: bool
    created_at: str
    revision: int


class RunAccepted(Result):
    """`RunAccepted` of the OpenAPI document."""

    job_id: str
    status: str


class RunAnswer(Result):
    """`RunAnswer` of the OpenAPI document."""

    job_id: str
    status: str
    requested_by: str
    dry_run: bool
    created_at: str
    started_at: str | None
    finished_at: str | None
    job: str
    attempts: int
    examined: int
    changed: int
    failed: int
    figures: dict[str, Any]
    cursor: str
    error: str
    duration_seconds: float | None
    at: str | None


class SavedAnswer(Result):
    """`SavedAnswer` of the OpenAPI document."""

    conversation_id: str
    saved_at: str
    turn_count: int


class SavedValuesAnswer(Result):
    """`SavedValuesAnswer` of the OpenAPI document."""

    values: int
    saved_at: str


class SearchedMemories(Result):
    """`SearchedMemories` of the OpenAPI document."""

    results: list[SearchedMemory]
    degraded: list[str]
    usage: UsageAnswer


class SearchedMemory(Result):
    """`SearchedMemory` of the OpenAPI document."""

    snippet: str
    snippet_start: int
    snippet_end: int
    id: str
    item_key: str
    kind: str
    conversation_id: str
    slot: str | None
    record_id: str | None
    status: str | None
    similarity: float | None
    confidence: float | None
    flags: list[str]
    superseded_by: str | None
    superseded_at: str | None
    agent_id: str
    user_id: str
    channel: str
    text: str
    content: str
    truncated: bool
    score: float
    reasons: list[str]
    event_time: str
    created_at: str
    expires_at: str | None
    importance: float
    metadata: dict[str, Any]
    context_id: str | None
    key: str
    value: Any


class ServedGoal(Result):
    """`ServedGoal` of the OpenAPI document."""

    id: str
    description: str
    status: str


class SessionContextAnswer(Result):
    """`SessionContextAnswer` of the OpenAPI document."""

    context: str
    summary: str
    items: list[SessionItem]
    tokens: int
    abstained: bool
    degraded: list[str]


class SessionItem(Result):
    """`SessionItem` of the OpenAPI document."""

    id: str
    item_key: str
    kind: str
    conversation_id: str
    similarity: float | None


class SharedValueAnswer(Result):
    """`SharedValueAnswer` of the OpenAPI document."""

    key: str
    ttl_seconds: int
    target_agent_id: str


class ShortTermAnswer(Result):
    """`ShortTermAnswer` of the OpenAPI document."""

    id: str
    agent_id: str
    memory_key: str
    memory_value: Any
    memory_type: str
    expires_at: str
    last_accessed_at: str | None
    created_at: str
    updated_at: str
    session_id: str
    ttl_seconds: int
    access_count: int


class SlotAnswer(Result):
    """`SlotAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    slot: str
    level: int
    tier: str | None
    provenance: str | None
    tokens: int
    embedding: str
    timestamp: str
    text: str
    data: dict[str, Any]


class SnapshotAnswer(Result):
    """`SnapshotAnswer` of the OpenAPI document."""

    id: str
    context_id: str
    created_at: str
    name: str
    agent_id: str
    entry_count: int


class SnapshotWithPreview(Result):
    """`SnapshotWithPreview` of the OpenAPI document."""

    id: str
    context_id: str
    created_at: str
    name: str
    agent_id: str
    entry_count: int
    restore: PreviewAnswer


class StepAnswer(Result):
    """`StepAnswer` of the OpenAPI document."""

    entry_id: str
    key: str
    from_version: int
    to_version: int | None
    is_reworded: bool
    is_reweighed: bool
    is_relabelled: bool


class StoredAnswer(Result):
    """`StoredAnswer` of the OpenAPI document."""

    stored: bool
    size_bytes: int
    limit_bytes: int
    memory_bytes: int
    ttl_seconds: int


class StoredArtifact(Result):
    """`StoredArtifact` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    label: str
    digest: str
    is_latest: bool
    created_at: str
    revision: int
    uri: str
    title: str
    metadata: dict[str, Any]
    event_time: str
    updated_at: str
    conversation_id: str
    type: str
    description: str
    record_id: str | None
    goal_id: str | None
    version: int
    embedding: str


class StoredEpisode(Result):
    """`StoredEpisode` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    summary: str
    summarizer: str
    conversation_id: str
    key_decisions: list[Any]
    entities_mentioned: list[Any]
    tools_called: list[Any]
    event_time: str
    created_at: str
    embedding: str


class StoredGoal(Result):
    """`StoredGoal` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    priority: int
    deadline: str | None
    description: str
    status: str
    parent_id: str | None
    completed_at: str | None
    result: str
    version: int
    event_time: str
    embedding: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str


class StoredLearning(Result):
    """`StoredLearning` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    team: str | None
    insight: str
    helpful_count: int
    unhelpful_count: int
    score: float
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    embedding: str


class StoredStrategy(Result):
    """`StoredStrategy` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    description: str
    success_count: int
    failure_count: int
    last_used: str | None
    metadata: dict[str, Any]
    event_time: str
    created_at: str
    conversation_id: str
    context_pattern: str
    task_type: str
    tool_sequence: list[str]
    success_rate: float
    embedding: str


class StoredWorkEpisode(Result):
    """`StoredWorkEpisode` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    goal_id: str | None
    level: int
    first_number: int
    last_number: int
    tier: str
    text: str
    data: dict[str, Any]
    tokens: int
    raw_tokens: int
    compressor: str
    archived: bool
    conversation_id: str
    status: str
    event_time: str
    created_at: str
    updated_at: str


class StrategiesAnswer(Result):
    """`StrategiesAnswer` of the OpenAPI document."""

    results: list[FoundStrategy]
    degraded: list[str]


class SubjectAnswer(Result):
    """`SubjectAnswer` of the OpenAPI document."""

    counts: dict[str, Any]


class TeamAnswer(Result):
    """`TeamAnswer` of the OpenAPI document."""

    id: str
    name: str
    created_at: str


class TechniqueMetric(Result):
    """`TechniqueMetric` of the OpenAPI document."""

    technique: str
    took_ms: float
    results: int


class ThoughtAnswer(Result):
    """`ThoughtAnswer` of the OpenAPI document."""

    thought: Any
    agent_id: str
    at: str


class ThoughtsAnswer(Result):
    """`ThoughtsAnswer` of the OpenAPI document."""

    thoughts: list[ThoughtAnswer]


class TierAnswer(Result):
    """`TierAnswer` of the OpenAPI document."""

    entries: int
    bytes: int
    hits: int
    misses: int


class TiersAnswer(Result):
    """`TiersAnswer` of the OpenAPI document."""

    working_memory: TierAnswer
    short_term: TierAnswer
    long_term: TierAnswer
    shared: TierAnswer


class ToolAnswer(Result):
    """`ToolAnswer` of the OpenAPI document."""

    tool_name: str
    task_type: str | None
    channel: str | None
    usage_count: int
    success_count: int
    failure_count: int
    success_rate: float | None
    avg_latency_ms: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    last_used: str


class TurnAnswer(Result):
    """`TurnAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    index: int
    embedding: str
    role: str
    name: str
    content: Any
    tool_calls: Any
    tool_call_id: str
    function_call: Any
    refusal: str
    annotations: Any
    audio: Any
    model: str
    client_id: str
    metadata: dict[str, Any]
    timestamp: str
    token_count: int
    content_hash: str
    archived: bool
    created_at: str


class UsageAnswer(Result):
    """`UsageAnswer` of the OpenAPI document."""

    candidates: int
    tokens: int
    source_tokens: int
    stages_ms: dict[str, Any]


class ValueAnswer(Result):
    """`ValueAnswer` of the OpenAPI document."""

    key: str
    value: Any
    ttl_seconds: int


class ValuesAnswer(Result):
    """`ValuesAnswer` of the OpenAPI document."""

    values: dict[str, Any]


class VerdictAnswer(Result):
    """`VerdictAnswer` of the OpenAPI document."""

    valid: bool


class VersionAnswer(Result):
    """`VersionAnswer` of the OpenAPI document."""

    version: int
    previous_version: int | None
    restored_from: int | None
    content: str
    value: Any
    editor: str
    created_at: str


class VersionOfFact(Result):
    """`VersionOfFact` of the OpenAPI document."""

    number: int
    confidence: float
    recorded_at: str
    retracted_at: str | None
    reason: str
    claim: str
    temporal: str
    valid_from: str | None
    valid_to: str | None


class WorkEpisodeAnswer(Result):
    """`WorkEpisodeAnswer` of the OpenAPI document."""

    id: str
    item_key: str
    agent_id: str
    user_id: str
    channel: str
    goal_id: str | None
    level: int
    first_number: int
    last_number: int
    tier: str
    text: str
    data: dict[str, Any]
    tokens: int
    raw_tokens: int
    compressor: str
    archived: bool
    conversation_id: str
    status: str
    event_time: str
    created_at: str
    updated_at: str
    derived_from: str | None
    records: list[EpisodeRecord]
    truncated: bool


class WorkflowRunAnswer(Result):
    """`WorkflowRunAnswer` of the OpenAPI document."""

    workflow_run_id: str
    status: str
    metadata: dict[str, Any]
    started_at: str
    ended_at: str | None
    created_at: str
    updated_at: str
    workflow: str
    agent_id: str
    agents: list[str]


class WorkingKeyAnswer(Result):
    """`WorkingKeyAnswer` of the OpenAPI document."""

    key: str
    ttl_seconds: int


class WorkingKeysAnswer(Result):
    """`WorkingKeysAnswer` of the OpenAPI document."""

    keys: list[WorkingKeyAnswer]


class WorkingValueAnswer(Result):
    """`WorkingValueAnswer` of the OpenAPI document."""

    key: str
    ttl_seconds: int
    value: Any


class WrittenAnswer(Result):
    """`WrittenAnswer` of the OpenAPI document."""

    pool_id: str
    path: str
    version: int
    size_bytes: int

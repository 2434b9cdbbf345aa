"""The keyword arguments of operations: fields of the body, or parameters of the query.

Written by `generate.py`; do not edit.
"""

# fmt: off

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Required, TypedDict
from uuid import UUID


class AddContextEntries(TypedDict, total=False):
    """Arguments of `add_context_entries`."""

    agent_id: str | None
    channel: str
    confidence: float
    content: str
    embedding: Sequence[float]
    embedding_model: str
    entries: Sequence[Mapping[str, Any]]
    entry_type: str
    importance: float
    key: str
    memory_type: str
    metadata: Mapping[str, Any]
    source_type: str
    user_id: str | None
    value: Any


class AddParticipant(TypedDict, total=False):
    """Arguments of `add_participant`."""

    agent_id: str | None
    participant_id: Required[str]


class AddTeamMember(TypedDict, total=False):
    """Arguments of `add_team_member`."""

    agent_id: str | None


class AddThought(TypedDict, total=False):
    """Arguments of `add_thought`."""

    agent_id: str | None
    channel: str
    thought: Required[Any]
    user_id: str | None


class AddTurnRecordSlots(TypedDict, total=False):
    """Arguments of `add_turn_record_slots`."""

    action: str | Mapping[str, Any]
    agent_id: str | None
    channel: str
    evidence: Sequence[str | UUID]
    first_index: int
    goal_id: str | UUID
    last_index: int
    observation: str | Mapping[str, Any]
    outcome: Mapping[str, Any]
    produced: Sequence[str | UUID]
    reasoning: Mapping[str, Any]
    timestamp: str | datetime
    tool_invocations: Sequence[str | UUID]
    used: Sequence[str | UUID]
    user_id: str | None


class AddTurns(TypedDict, total=False):
    """Arguments of `add_turns`."""

    agent_id: str | None
    channel: str
    continues: str
    turns: Required[Sequence[Mapping[str, Any]]]
    user_id: str | None


class AppendToAgentValue(TypedDict, total=False):
    """Arguments of `append_to_agent_value`."""

    task_id: str
    value: Required[Any]
    workflow_run_id: str


class ArchiveContext(TypedDict, total=False):
    """Arguments of `archive_context`."""

    agent_id: str | None


class BlockGoal(TypedDict, total=False):
    """Arguments of `block_goal`."""

    agent_id: str | None
    by: Required[str | UUID]
    channel: str
    user_id: str | None


class BoostEntry(TypedDict, total=False):
    """Arguments of `boost_entry`."""

    agent_id: str | None
    by: float


class BuildContext(TypedDict, total=False):
    """Arguments of `build_context`."""

    agent_id: str | None
    as_of: str | datetime
    channel: str
    conversation_id: Required[str]
    deadline_ms: int
    embedding_model: str
    explain: bool
    include_episodic: bool
    include_procedural: bool
    include_semantic: bool
    include_superseded: bool
    kinds: Sequence[str]
    known_at: str | datetime
    mark_injected: bool
    max_snippet_tokens: int
    max_tokens: int
    min_confidence: float
    min_score: float
    mode: str
    posture: str
    query: str
    query_embedding: Sequence[float]
    scopes: Sequence[str]
    since: str | datetime
    slots: Sequence[str]
    suppress_injected: bool
    techniques: Sequence[str]
    time_window_hours: float
    top_k: int
    until: str | datetime
    user_id: str | None
    whole: bool
    working_fields: Sequence[str]


class CheckLedgerItem(TypedDict, total=False):
    """Arguments of `check_ledger_item`."""

    agent_id: str | None
    item_key: Required[str]


class ClearActiveGoal(TypedDict, total=False):
    """Arguments of `clear_active_goal`."""

    agent_id: str | None


class ClearAgentValues(TypedDict, total=False):
    """Arguments of `clear_agent_values`."""

    task_id: str
    workflow_run_id: str


class CompleteGoal(TypedDict, total=False):
    """Arguments of `complete_goal`."""

    agent_id: str | None
    channel: str
    force: bool
    result: str
    status: str
    user_id: str | None


class ConsolidateMemories(TypedDict, total=False):
    """Arguments of `consolidate_memories`."""

    agent_id: str | None
    session_id: Required[str]


class CreateAgent(TypedDict, total=False):
    """Arguments of `create_agent`."""

    agent_id: str | None
    description: str


class CreateArtifact(TypedDict, total=False):
    """Arguments of `create_artifact`."""

    about: Sequence[str | UUID]
    agent_id: str | None
    channel: str
    derived_from: Sequence[str | UUID]
    description: str
    digest: str
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    goal_id: str | UUID
    label: str
    metadata: Mapping[str, Any]
    record_id: str | UUID
    title: str
    type: str
    uri: Required[str]
    user_id: str | None


class CreateContext(TypedDict, total=False):
    """Arguments of `create_context`."""

    access_control: Mapping[str, Any]
    agent_id: str | None
    context_type: str
    description: str
    metadata: Mapping[str, Any]
    name: Required[str]
    scope: str
    team: str | UUID | None


class CreateContextSnapshot(TypedDict, total=False):
    """Arguments of `create_context_snapshot`."""

    agent_id: str | None
    name: str


class CreateConversation(TypedDict, total=False):
    """Arguments of `create_conversation`."""

    agent_id: str | None
    channel: str
    continues: str
    conversation_id: str
    metadata: Mapping[str, Any]
    title: str
    user_id: str | None


class CreateConversationTurnRecord(TypedDict, total=False):
    """Arguments of `create_conversation_turn_record`."""

    action: str | Mapping[str, Any]
    agent_id: str | None
    channel: str
    client_id: str
    evidence: Sequence[str | UUID]
    first_index: int
    goal_id: str | UUID
    last_index: int
    metadata: Mapping[str, Any]
    observation: str | Mapping[str, Any]
    outcome: Mapping[str, Any]
    produced: Sequence[str | UUID]
    reasoning: Mapping[str, Any]
    timestamp: str | datetime
    tool_invocations: Sequence[str | UUID]
    used: Sequence[str | UUID]
    user_id: str | None


class CreateEntity(TypedDict, total=False):
    """Arguments of `create_entity`."""

    agent_id: str | None
    aliases: Sequence[str]
    channel: str
    description: str
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    name: Required[str]
    properties: Mapping[str, Any]
    salience: float
    type: Required[str]
    user_id: str | None


class CreateErasure(TypedDict, total=False):
    """Arguments of `create_erasure`."""

    agent_id: str | None
    before: str | datetime
    channel: str
    dry_run: bool
    reason: str
    user_id: str | None


class CreateExport(TypedDict, total=False):
    """Arguments of `create_export`."""

    agent_id: str
    include_vectors: bool
    user_id: str


class CreateFact(TypedDict, total=False):
    """Arguments of `create_fact`."""

    agent_id: str | None
    certainty: str
    channel: str
    claim: Required[str]
    confidence: float
    embedding: Sequence[float]
    embedding_model: str
    entities: Sequence[str | UUID]
    event_time: str | datetime
    metadata: Mapping[str, Any]
    on_contradiction: str
    source_turn_id: str | UUID
    temporal: str
    user_id: str | None
    valid_from: str | datetime | None
    valid_to: str | datetime | None


class CreateGoal(TypedDict, total=False):
    """Arguments of `create_goal`."""

    agent_id: str | None
    blocked_by: Sequence[str | UUID]
    channel: str
    deadline: str | datetime | None
    description: Required[str]
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    metadata: Mapping[str, Any]
    parent: str | UUID | None
    priority: int
    user_id: str | None


class CreateLearning(TypedDict, total=False):
    """Arguments of `create_learning`."""

    agent_id: str | None
    channel: str
    embedding: Sequence[float]
    embedding_model: str
    insight: Required[str]
    metadata: Mapping[str, Any]
    team: Required[str | UUID]
    user_id: str | None


class CreateMemory(TypedDict, total=False):
    """Arguments of `create_memory`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    expires_at: str | datetime | None
    importance: float
    infer: bool
    kind: str
    messages: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any]
    text: str
    user_id: str | None


class CreatePool(TypedDict, total=False):
    """Arguments of `create_pool`."""

    access_control: Mapping[str, Any]
    agent_id: str | None
    data: Mapping[str, Any]
    expires_at: str | datetime | None
    pool_id: str
    pool_type: str
    scope: str
    task_id: str
    team: str | UUID | None


class CreatePoolPosting(TypedDict, total=False):
    """Arguments of `create_pool_posting`."""

    agent_id: str | None
    content: Required[Any]


class CreateRelationship(TypedDict, total=False):
    """Arguments of `create_relationship`."""

    agent_id: str | None
    channel: str
    properties: Mapping[str, Any]
    source: Required[str | UUID]
    target: Required[str | UUID]
    type: Required[str | Sequence[str]]
    user_id: str | None
    weight: float


class CreateShortTermMemory(TypedDict, total=False):
    """Arguments of `create_short_term_memory`."""

    agent_id: str | None
    memory_key: Required[str]
    memory_type: str
    memory_value: Required[Any]
    session_id: str
    ttl_seconds: int


class CreateStrategy(TypedDict, total=False):
    """Arguments of `create_strategy`."""

    agent_id: str | None
    channel: str
    context_pattern: str
    conversation_id: str
    description: Required[str]
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    metadata: Mapping[str, Any]
    success: bool | None
    task_type: str
    tool_sequence: Sequence[str]
    user_id: str | None


class CreateTeam(TypedDict, total=False):
    """Arguments of `create_team`."""

    name: Required[str]


class CreateTurnRecord(TypedDict, total=False):
    """Arguments of `create_turn_record`."""

    action: str | Mapping[str, Any]
    agent_id: str | None
    channel: str
    client_id: str
    conversation_id: Required[str]
    evidence: Sequence[str | UUID]
    first_index: int
    goal_id: str | UUID
    last_index: int
    metadata: Mapping[str, Any]
    observation: str | Mapping[str, Any]
    outcome: Mapping[str, Any]
    produced: Sequence[str | UUID]
    reasoning: Mapping[str, Any]
    timestamp: str | datetime
    tool_invocations: Sequence[str | UUID]
    used: Sequence[str | UUID]
    user_id: str | None


class CreateWorkflowRun(TypedDict, total=False):
    """Arguments of `create_workflow_run`."""

    agent_id: str | None
    agents: Sequence[str]
    metadata: Mapping[str, Any]
    workflow: str
    workflow_run_id: str


class CreateWorkflowRunPool(TypedDict, total=False):
    """Arguments of `create_workflow_run_pool`."""

    access_control: Mapping[str, Any]
    agent_id: str | None
    data: Mapping[str, Any]
    expires_at: str | datetime | None
    pool_id: str
    pool_type: Required[str]
    scope: str


class DeleteAgentValue(TypedDict, total=False):
    """Arguments of `delete_agent_value`."""

    task_id: str
    workflow_run_id: str


class DeleteArtifact(TypedDict, total=False):
    """Arguments of `delete_artifact`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeleteCachedResult(TypedDict, total=False):
    """Arguments of `delete_cached_result`."""

    agent_id: str | None


class DeleteContext(TypedDict, total=False):
    """Arguments of `delete_context`."""

    agent_id: str | None


class DeleteContextSnapshot(TypedDict, total=False):
    """Arguments of `delete_context_snapshot`."""

    agent_id: str | None


class DeleteConversation(TypedDict, total=False):
    """Arguments of `delete_conversation`."""

    agent_id: str | None


class DeleteConversationTurn(TypedDict, total=False):
    """Arguments of `delete_conversation_turn`."""

    agent_id: str | None


class DeleteConversationValue(TypedDict, total=False):
    """Arguments of `delete_conversation_value`."""

    agent_id: str | None


class DeleteEntity(TypedDict, total=False):
    """Arguments of `delete_entity`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeleteEntry(TypedDict, total=False):
    """Arguments of `delete_entry`."""

    agent_id: str | None


class DeleteEpisodic(TypedDict, total=False):
    """Arguments of `delete_episodic`."""

    agent_id: str | None
    channel: str
    episode_id: str | UUID
    user_id: str | None


class DeleteFact(TypedDict, total=False):
    """Arguments of `delete_fact`."""

    agent_id: str | None
    channel: str
    erase: bool
    user_id: str | None


class DeleteGoal(TypedDict, total=False):
    """Arguments of `delete_goal`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeleteKeyedMemory(TypedDict, total=False):
    """Arguments of `delete_keyed_memory`."""

    agent_id: str | None
    pool_id: str
    session_id: str
    tier: str


class DeleteLearning(TypedDict, total=False):
    """Arguments of `delete_learning`."""

    agent_id: str | None


class DeleteMemories(TypedDict, total=False):
    """Arguments of `delete_memories`."""

    agent_id: str | None
    channel: str
    dry_run: bool
    kind: str | Sequence[str]
    user_id: str | None


class DeleteMemory(TypedDict, total=False):
    """Arguments of `delete_memory`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeletePool(TypedDict, total=False):
    """Arguments of `delete_pool`."""

    agent_id: str | None


class DeleteProfile(TypedDict, total=False):
    """Arguments of `delete_profile`."""

    agent_id: str | None
    user_id: str | None


class DeleteRelationship(TypedDict, total=False):
    """Arguments of `delete_relationship`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeleteShortTermMemory(TypedDict, total=False):
    """Arguments of `delete_short_term_memory`."""

    agent_id: str | None


class DeleteStrategy(TypedDict, total=False):
    """Arguments of `delete_strategy`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class DeleteSubject(TypedDict, total=False):
    """Arguments of `delete_subject`."""

    dry_run: bool
    reason: str


class DeleteTurnRecord(TypedDict, total=False):
    """Arguments of `delete_turn_record`."""

    agent_id: str | None


class DeleteWorkingMemory(TypedDict, total=False):
    """Arguments of `delete_working_memory`."""

    agent_id: str | None


class EndConversation(TypedDict, total=False):
    """Arguments of `end_conversation`."""

    agent_id: str | None
    event_time: str | datetime
    outcome: str


class EvictLedgerItem(TypedDict, total=False):
    """Arguments of `evict_ledger_item`."""

    agent_id: str | None
    item_key: Required[str]


class ExtractKnowledge(TypedDict, total=False):
    """Arguments of `extract_knowledge`."""

    agent_id: str | None


class FindStrategies(TypedDict, total=False):
    """Arguments of `find_strategies`."""

    agent_id: str | None
    channel: str
    embedding_model: str
    min_score: float
    query_embedding: Sequence[float]
    task_description: str
    task_type: str
    top_k: int
    user_id: str | None


class GetActiveGoal(TypedDict, total=False):
    """Arguments of `get_active_goal`."""

    agent_id: str | None


class GetAgentValue(TypedDict, total=False):
    """Arguments of `get_agent_value`."""

    task_id: str
    workflow_run_id: str


class GetArtifact(TypedDict, total=False):
    """Arguments of `get_artifact`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetArtifactLineage(TypedDict, total=False):
    """Arguments of `get_artifact_lineage`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetCachedResult(TypedDict, total=False):
    """Arguments of `get_cached_result`."""

    agent_id: str | None


class GetContext(TypedDict, total=False):
    """Arguments of `get_context`."""

    agent_id: str | None


class GetContextSnapshot(TypedDict, total=False):
    """Arguments of `get_context_snapshot`."""

    agent_id: str | None


class GetConversation(TypedDict, total=False):
    """Arguments of `get_conversation`."""

    agent_id: str | None


class GetConversationContext(TypedDict, total=False):
    """Arguments of `get_conversation_context`."""

    agent_id: str | None
    limit: int
    query: str


class GetConversationLineage(TypedDict, total=False):
    """Arguments of `get_conversation_lineage`."""

    agent_id: str | None


class GetConversationValue(TypedDict, total=False):
    """Arguments of `get_conversation_value`."""

    agent_id: str | None


class GetEntity(TypedDict, total=False):
    """Arguments of `get_entity`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetEntry(TypedDict, total=False):
    """Arguments of `get_entry`."""

    agent_id: str | None


class GetFact(TypedDict, total=False):
    """Arguments of `get_fact`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetGoal(TypedDict, total=False):
    """Arguments of `get_goal`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetKeyedMemory(TypedDict, total=False):
    """Arguments of `get_keyed_memory`."""

    agent_id: str | None
    pool_id: str
    session_id: str
    tier: str


class GetLearning(TypedDict, total=False):
    """Arguments of `get_learning`."""

    agent_id: str | None


class GetLedger(TypedDict, total=False):
    """Arguments of `get_ledger`."""

    agent_id: str | None


class GetMemory(TypedDict, total=False):
    """Arguments of `get_memory`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetMemoryStats(TypedDict, total=False):
    """Arguments of `get_memory_stats`."""

    agent_id: str | None


class GetPool(TypedDict, total=False):
    """Arguments of `get_pool`."""

    agent_id: str | None


class GetPoolData(TypedDict, total=False):
    """Arguments of `get_pool_data`."""

    agent_id: str | None
    path: str


class GetPoolStatistics(TypedDict, total=False):
    """Arguments of `get_pool_statistics`."""

    agent_id: str | None


class GetProfile(TypedDict, total=False):
    """Arguments of `get_profile`."""

    agent_id: str | None
    user_id: str | None


class GetRelationship(TypedDict, total=False):
    """Arguments of `get_relationship`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetSharedValue(TypedDict, total=False):
    """Arguments of `get_shared_value`."""

    task_id: str
    workflow_run_id: str


class GetShortTermMemory(TypedDict, total=False):
    """Arguments of `get_short_term_memory`."""

    agent_id: str | None


class GetStrategy(TypedDict, total=False):
    """Arguments of `get_strategy`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class GetToolInvocation(TypedDict, total=False):
    """Arguments of `get_tool_invocation`."""

    agent_id: str | None


class GetTurnRecord(TypedDict, total=False):
    """Arguments of `get_turn_record`."""

    agent_id: str | None
    level: str


class GetWorkEpisode(TypedDict, total=False):
    """Arguments of `get_work_episode`."""

    agent_id: str | None
    expand: str


class GetWorkflowRun(TypedDict, total=False):
    """Arguments of `get_workflow_run`."""

    agent_id: str | None


class GetWorkingMemory(TypedDict, total=False):
    """Arguments of `get_working_memory`."""

    agent_id: str | None


class GrantContextAccess(TypedDict, total=False):
    """Arguments of `grant_context_access`."""

    agent_id: str | None
    level: Required[str]


class GrantPoolAccess(TypedDict, total=False):
    """Arguments of `grant_pool_access`."""

    agent_id: str | None
    level: Required[str]


class ListAgentValues(TypedDict, total=False):
    """Arguments of `list_agent_values`."""

    task_id: str
    workflow_run_id: str


class ListAgents(TypedDict, total=False):
    """Arguments of `list_agents`."""

    cursor: str
    page_size: int


class ListArtifacts(TypedDict, total=False):
    """Arguments of `list_artifacts`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    cursor: str
    goal_id: str | UUID
    page_size: int
    record_id: str | UUID
    revisions: str
    type: str
    uri: str
    uri_prefix: str
    user_id: str | None


class ListAuditLog(TypedDict, total=False):
    """Arguments of `list_audit_log`."""

    agent_id: str | None
    conversation_id: str
    cursor: str
    memory_type: str
    operation: str
    page_size: int
    since: str | datetime
    source_channel: str
    success: bool
    until: str | datetime
    user_id: str | None


class ListCachedResults(TypedDict, total=False):
    """Arguments of `list_cached_results`."""

    agent_id: str | None
    cursor: str
    page_size: int


class ListContextAccessLog(TypedDict, total=False):
    """Arguments of `list_context_access_log`."""

    accessed_by: str
    action: str
    agent_id: str | None
    cursor: str
    entry_id: str | UUID
    page_size: int
    since: str | datetime
    until: str | datetime


class ListContextEntries(TypedDict, total=False):
    """Arguments of `list_context_entries`."""

    agent_id: str | None
    cursor: str
    entry_type: str
    key: str
    memory_type: str
    ordering: str
    page_size: int
    source_type: str


class ListContextSnapshots(TypedDict, total=False):
    """Arguments of `list_context_snapshots`."""

    agent_id: str | None
    cursor: str
    page_size: int


class ListContexts(TypedDict, total=False):
    """Arguments of `list_contexts`."""

    agent_id: str | None
    archived: bool
    context_type: str
    cursor: str
    name: str
    page_size: int
    scope: str
    team: str | UUID


class ListConversationParticipants(TypedDict, total=False):
    """Arguments of `list_conversation_participants`."""

    agent_id: str | None
    cursor: str
    page_size: int


class ListConversationTurnRecords(TypedDict, total=False):
    """Arguments of `list_conversation_turn_records`."""

    agent_id: str | None
    cursor: str
    goal_id: str | UUID
    level: str
    page_size: int
    since: str | datetime
    status: str
    until: str | datetime


class ListConversationValues(TypedDict, total=False):
    """Arguments of `list_conversation_values`."""

    agent_id: str | None


class ListConversations(TypedDict, total=False):
    """Arguments of `list_conversations`."""

    agent_id: str | None
    archived: bool
    channel: str
    continues: str
    cursor: str
    ended: bool
    page_size: int
    user_id: str | None


class ListEntities(TypedDict, total=False):
    """Arguments of `list_entities`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    cursor: str
    name: str
    ordering: str
    page_size: int
    type: str
    user_id: str | None


class ListEntryVersions(TypedDict, total=False):
    """Arguments of `list_entry_versions`."""

    agent_id: str | None
    cursor: str
    page_size: int


class ListEpisodes(TypedDict, total=False):
    """Arguments of `list_episodes`."""

    agent_id: str | None
    channel: str
    cursor: str
    page_size: int
    user_id: str | None


class ListErasures(TypedDict, total=False):
    """Arguments of `list_erasures`."""

    cursor: str
    page_size: int
    scope: str
    status: str


class ListExports(TypedDict, total=False):
    """Arguments of `list_exports`."""

    cursor: str
    page_size: int
    status: str


class ListFacts(TypedDict, total=False):
    """Arguments of `list_facts`."""

    agent_id: str | None
    as_of: str | datetime
    certainty: str
    channel: str
    conversation_id: str
    cursor: str
    entity: str | UUID
    known_at: str | datetime
    min_confidence: float
    page_size: int
    source_turn_id: str | UUID
    status: str
    temporal: str
    user_id: str | None


class ListGoals(TypedDict, total=False):
    """Arguments of `list_goals`."""

    agent_id: str | None
    channel: str
    cursor: str
    due_before: str | datetime
    ordering: str
    overdue: bool
    page_size: int
    parent: str | UUID
    status: str
    user_id: str | None


class ListImports(TypedDict, total=False):
    """Arguments of `list_imports`."""

    cursor: str
    page_size: int
    status: str


class ListJobs(TypedDict, total=False):
    """Arguments of `list_jobs`."""

    cursor: str
    job: Any
    page_size: int
    status: str


class ListLearnings(TypedDict, total=False):
    """Arguments of `list_learnings`."""

    agent_id: str | None
    cursor: str
    ordering: str
    page_size: int
    published_by: str
    team: str | UUID


class ListMemories(TypedDict, total=False):
    """Arguments of `list_memories`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    cursor: str
    kind: str | Sequence[str]
    page_size: int
    since: str | datetime
    until: str | datetime
    user_id: str | None


class ListMessages(TypedDict, total=False):
    """Arguments of `list_messages`."""

    agent_id: str | None
    limit: int


class ListPoolPostings(TypedDict, total=False):
    """Arguments of `list_pool_postings`."""

    after: int
    agent_id: str | None
    cursor: str
    page_size: int


class ListPools(TypedDict, total=False):
    """Arguments of `list_pools`."""

    agent_id: str | None
    cursor: str
    page_size: int
    pool_type: str
    scope: str
    task_id: str
    team: str | UUID


class ListRelationships(TypedDict, total=False):
    """Arguments of `list_relationships`."""

    agent_id: str | None
    channel: str
    cursor: str
    entity: str | UUID
    page_size: int
    source: str | UUID
    target: str | UUID
    type: str
    user_id: str | None


class ListShortTermMemories(TypedDict, total=False):
    """Arguments of `list_short_term_memories`."""

    agent_id: str | None
    cursor: str
    memory_key: str
    memory_type: str
    page_size: int
    session_id: str


class ListStrategies(TypedDict, total=False):
    """Arguments of `list_strategies`."""

    agent_id: str | None
    channel: str
    cursor: str
    min_success_rate: float
    page_size: int
    task_type: str
    tool: str
    user_id: str | None


class ListTeamMembers(TypedDict, total=False):
    """Arguments of `list_team_members`."""

    cursor: str
    page_size: int


class ListTeams(TypedDict, total=False):
    """Arguments of `list_teams`."""

    cursor: str
    page_size: int


class ListThoughts(TypedDict, total=False):
    """Arguments of `list_thoughts`."""

    agent_id: str | None
    limit: int


class ListTimeline(TypedDict, total=False):
    """Arguments of `list_timeline`."""

    agent_id: str | None
    archived: bool
    channel: str
    conversation_id: str
    cursor: str
    include_archived: bool
    memory_type: str | Sequence[str]
    ordering: str
    page_size: int
    since: str | datetime
    until: str | datetime
    user_id: str | None


class ListToolInvocations(TypedDict, total=False):
    """Arguments of `list_tool_invocations`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    cursor: str
    page_size: int
    since: str | datetime
    success: str
    task_type: str
    tool_name: str
    until: str | datetime


class ListTools(TypedDict, total=False):
    """Arguments of `list_tools`."""

    agent_id: str | None
    by: str
    channel: str
    cursor: str
    page_size: int
    since: str | datetime
    task_type: str


class ListTurnRecords(TypedDict, total=False):
    """Arguments of `list_turn_records`."""

    agent_id: str | None
    conversation_id: str
    cursor: str
    goal_id: str | UUID
    level: str
    page_size: int
    since: str | datetime
    status: str
    until: str | datetime


class ListTurns(TypedDict, total=False):
    """Arguments of `list_turns`."""

    after_index: int
    agent_id: str | None
    cursor: str
    page_size: int
    role: str
    since: str | datetime
    until: str | datetime


class ListWorkEpisodes(TypedDict, total=False):
    """Arguments of `list_work_episodes`."""

    agent_id: str | None
    conversation_id: str
    cursor: str
    goal_id: str | UUID
    level: int
    page_size: int
    status: str


class ListWorkflowRunPools(TypedDict, total=False):
    """Arguments of `list_workflow_run_pools`."""

    agent_id: str | None
    cursor: str
    page_size: int


class ListWorkflowRuns(TypedDict, total=False):
    """Arguments of `list_workflow_runs`."""

    agent_id: str | None
    cursor: str
    page_size: int
    status: str
    workflow: str


class LoadAgentValues(TypedDict, total=False):
    """Arguments of `load_agent_values`."""

    task_id: str
    workflow_run_id: str


class MarkLedgerItem(TypedDict, total=False):
    """Arguments of `mark_ledger_item`."""

    agent_id: str | None
    item_key: Required[str]
    value: str


MergeEntity = TypedDict("MergeEntity", {
    "agent_id": str | None,
    "channel": str,
    "from": Required[str | UUID],
    "user_id": str | None,
}, total=False)


class MergePoolData(TypedDict, total=False):
    """Arguments of `merge_pool_data`."""

    agent_id: str | None
    data: Required[Any]
    expected_version: int
    path: str


class PersistAgentValues(TypedDict, total=False):
    """Arguments of `persist_agent_values`."""

    task_id: str
    workflow_run_id: str


class PreviewErasure(TypedDict, total=False):
    """Arguments of `preview_erasure`."""

    agent_id: str | None
    conversation_id: str
    memory_id: str | UUID


class PromoteFact(TypedDict, total=False):
    """Arguments of `promote_fact`."""

    agent_id: str | None
    channel: str
    reason: Required[str]
    user_id: str | None


class QueryItems(TypedDict, total=False):
    """Arguments of `query_items`."""

    agent_id: str | None
    embedding_model: str
    namespaces: Sequence[Mapping[str, Any]]
    reads: Sequence[Mapping[str, Any]]
    searches: Sequence[Mapping[str, Any]]


class Recall(TypedDict, total=False):
    """Arguments of `recall`."""

    agent_id: str | None
    as_of: str | datetime
    channel: str
    conversation_id: str
    deadline_ms: int
    embedding_model: str
    explain: bool
    include_episodic: bool
    include_procedural: bool
    include_semantic: bool
    include_superseded: bool
    kinds: Sequence[str]
    known_at: str | datetime
    max_snippet_tokens: int
    max_tokens: int
    min_confidence: float
    min_score: float
    mode: str
    posture: str
    query: str
    query_embedding: Sequence[float]
    scopes: Sequence[str]
    since: str | datetime
    slots: Sequence[str]
    suppress_injected: bool
    techniques: Sequence[str]
    time_window_hours: float
    top_k: int
    until: str | datetime
    user_id: str | None
    whole: bool


class RecordToolInvocation(TypedDict, total=False):
    """Arguments of `record_tool_invocation`."""

    agent_id: str | None
    channel: str
    conversation_id: Required[str]
    error_message: str
    latency_ms: int | None
    success: bool | None
    task_type: str
    timestamp: str | datetime
    tool_input: Any
    tool_name: Required[str]
    tool_output: Any
    turn_index: int | None
    user_id: str | None


class RecordToolInvocations(TypedDict, total=False):
    """Arguments of `record_tool_invocations`."""

    agent_id: str | None
    channel: str
    conversation_id: Required[str]
    invocations: Required[Sequence[Mapping[str, Any]]]
    user_id: str | None


class ReduceEntry(TypedDict, total=False):
    """Arguments of `reduce_entry`."""

    agent_id: str | None
    by: float


class RefreshShortTermMemory(TypedDict, total=False):
    """Arguments of `refresh_short_term_memory`."""

    agent_id: str | None
    ttl_seconds: int


class ReinforceStrategy(TypedDict, total=False):
    """Arguments of `reinforce_strategy`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    success: Required[bool]
    user_id: str | None


class RejectFact(TypedDict, total=False):
    """Arguments of `reject_fact`."""

    agent_id: str | None
    channel: str
    user_id: str | None


class RemoveParticipant(TypedDict, total=False):
    """Arguments of `remove_participant`."""

    agent_id: str | None


class ReplacePoolData(TypedDict, total=False):
    """Arguments of `replace_pool_data`."""

    agent_id: str | None
    data: Required[Any]
    expected_version: int
    path: str


class Replay(TypedDict, total=False):
    """Arguments of `replay`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    decision: str
    episode_id: str | UUID
    goal_id: str | UUID
    max_tokens: int
    posture: str
    record_id: str | UUID
    tier: str
    user_id: str | None


class RestoreContextSnapshot(TypedDict, total=False):
    """Arguments of `restore_context_snapshot`."""

    agent_id: str | None
    editor: str


class RestoreEntryVersion(TypedDict, total=False):
    """Arguments of `restore_entry_version`."""

    agent_id: str | None
    editor: str


class Resume(TypedDict, total=False):
    """Arguments of `resume`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    deadline_ms: int
    goal_ids: Sequence[str | UUID]
    max_tokens: int
    query: str
    replay: bool
    user_id: str | None


class RevokeContextAccess(TypedDict, total=False):
    """Arguments of `revoke_context_access`."""

    agent_id: str | None
    level: str


class RevokePoolAccess(TypedDict, total=False):
    """Arguments of `revoke_pool_access`."""

    agent_id: str | None
    level: str


class RunJob(TypedDict, total=False):
    """Arguments of `run_job`."""

    dry_run: bool


class SaveConversation(TypedDict, total=False):
    """Arguments of `save_conversation`."""

    agent_id: str | None


class SearchContextEntries(TypedDict, total=False):
    """Arguments of `search_context_entries`."""

    agent_id: str | None
    channel: str
    embedding_model: str
    max_snippet_tokens: int
    min_score: float
    query: str
    query_embedding: Sequence[float]
    techniques: Sequence[str]
    top_k: int
    user_id: str | None
    whole: bool


class SearchEpisodes(TypedDict, total=False):
    """Arguments of `search_episodes`."""

    agent_id: str | None
    channel: str
    embedding_model: str
    min_score: float
    query: str
    query_embedding: Sequence[float]
    top_k: int
    user_id: str | None


class SearchKeyedMemories(TypedDict, total=False):
    """Arguments of `search_keyed_memories`."""

    agent_id: str | None
    channel: str
    embedding_model: str
    max_snippet_tokens: int
    min_score: float
    query: str
    query_embedding: Sequence[float]
    techniques: Sequence[str]
    top_k: int
    user_id: str | None
    whole: bool


class SearchLearnings(TypedDict, total=False):
    """Arguments of `search_learnings`."""

    agent_id: str | None
    channel: str
    embedding_model: str
    query: str
    query_embedding: Sequence[float]
    team: str | UUID
    top_k: int
    user_id: str | None


class SearchMemories(TypedDict, total=False):
    """Arguments of `search_memories`."""

    agent_id: str | None
    channel: str
    conversation_id: str
    embedding_model: str
    kinds: Sequence[str]
    max_snippet_tokens: int
    min_score: float
    query: str
    query_embedding: Sequence[float]
    since: str | datetime
    techniques: Sequence[str]
    top_k: int
    until: str | datetime
    user_id: str | None
    whole: bool


class SetActiveGoal(TypedDict, total=False):
    """Arguments of `set_active_goal`."""

    agent_id: str | None
    channel: str
    description: Required[str]
    goal_id: Required[str]
    user_id: str | None


class SetAgentValue(TypedDict, total=False):
    """Arguments of `set_agent_value`."""

    task_id: str
    ttl_seconds: int
    value: Required[Any]
    workflow_run_id: str


class SetCachedResult(TypedDict, total=False):
    """Arguments of `set_cached_result`."""

    agent_id: str | None
    ttl_seconds: int
    value: Required[Any]


class SetConversationValue(TypedDict, total=False):
    """Arguments of `set_conversation_value`."""

    agent_id: str | None
    channel: str
    ttl_seconds: int
    user_id: str | None
    value: Required[Any]


class SetKeyedMemory(TypedDict, total=False):
    """Arguments of `set_keyed_memory`."""

    agent_id: str | None
    memory_type: str
    pool_id: str
    session_id: str
    tier: str
    ttl_seconds: int
    value: Required[Any]


class ShareAgentValue(TypedDict, total=False):
    """Arguments of `share_agent_value`."""

    target_agent_id: Required[str]
    task_id: str
    ttl_seconds: int
    workflow_run_id: str


class SplitEntity(TypedDict, total=False):
    """Arguments of `split_entity`."""

    agent_id: str | None
    channel: str
    links: Sequence[str | UUID]
    names: Required[Sequence[str]]
    user_id: str | None


class StoreEpisode(TypedDict, total=False):
    """Arguments of `store_episode`."""

    agent_id: str | None
    channel: str
    conversation_id: Required[str]
    embedding: Sequence[float]
    embedding_model: str
    entities_mentioned: Sequence[Any]
    event_time: str | datetime
    key_decisions: Sequence[Any]
    summary: Required[str]
    tools_called: Sequence[Any]
    user_id: str | None


class SummarizeConversation(TypedDict, total=False):
    """Arguments of `summarize_conversation`."""

    agent_id: str | None


class SupersedeFact(TypedDict, total=False):
    """Arguments of `supersede_fact`."""

    agent_id: str | None
    certainty: str
    channel: str
    claim: Required[str]
    confidence: float
    embedding: Sequence[float]
    embedding_model: str
    entities: Sequence[str | UUID]
    event_time: str | datetime
    metadata: Mapping[str, Any]
    source_turn_id: str | UUID
    temporal: str
    user_id: str | None
    valid_from: str | datetime | None
    valid_to: str | datetime | None


class UnarchiveContext(TypedDict, total=False):
    """Arguments of `unarchive_context`."""

    agent_id: str | None


class UnarchiveConversation(TypedDict, total=False):
    """Arguments of `unarchive_conversation`."""

    agent_id: str | None


class UnblockGoal(TypedDict, total=False):
    """Arguments of `unblock_goal`."""

    agent_id: str | None
    by: Required[str | UUID]
    channel: str
    user_id: str | None


class UnshareAgentValue(TypedDict, total=False):
    """Arguments of `unshare_agent_value`."""

    target_agent_id: Required[str]
    task_id: str
    workflow_run_id: str


class UpdateAgent(TypedDict, total=False):
    """Arguments of `update_agent`."""

    description: Required[str]


class UpdateArtifact(TypedDict, total=False):
    """Arguments of `update_artifact`."""

    agent_id: str | None
    channel: str
    description: str
    embedding: Sequence[float]
    embedding_model: str
    goal_id: str | UUID | None
    metadata: Mapping[str, Any]
    title: str
    type: str
    user_id: str | None


class UpdateContext(TypedDict, total=False):
    """Arguments of `update_context`."""

    access_control: Mapping[str, Any]
    agent_id: str | None
    description: str
    metadata: Mapping[str, Any]
    name: str


class UpdateConversation(TypedDict, total=False):
    """Arguments of `update_conversation`."""

    agent_id: str | None
    continues: str
    metadata: Mapping[str, Any]
    title: str


class UpdateEntity(TypedDict, total=False):
    """Arguments of `update_entity`."""

    agent_id: str | None
    aliases: Sequence[str]
    channel: str
    description: str
    name: str
    properties: Mapping[str, Any]
    salience: float
    type: str
    user_id: str | None


class UpdateEntry(TypedDict, total=False):
    """Arguments of `update_entry`."""

    agent_id: str | None
    content: str
    editor: str
    embedding: Sequence[float]
    embedding_model: str
    value: Any


class UpdateFact(TypedDict, total=False):
    """Arguments of `update_fact`."""

    agent_id: str | None
    channel: str
    claim: str
    confidence: float
    embedding: Sequence[float]
    embedding_model: str
    temporal: str
    user_id: str | None
    valid_from: str | datetime | None
    valid_to: str | datetime | None


class UpdateGoal(TypedDict, total=False):
    """Arguments of `update_goal`."""

    agent_id: str | None
    channel: str
    deadline: str | datetime | None
    description: str
    embedding: Sequence[float]
    embedding_model: str
    metadata: Mapping[str, Any]
    parent: str | UUID | None
    priority: int
    user_id: str | None


class UpdateMemory(TypedDict, total=False):
    """Arguments of `update_memory`."""

    agent_id: str | None
    channel: str
    embedding: Sequence[float]
    embedding_model: str
    event_time: str | datetime
    expires_at: str | datetime | None
    importance: float
    metadata: Mapping[str, Any]
    text: str
    user_id: str | None


class UpdatePool(TypedDict, total=False):
    """Arguments of `update_pool`."""

    access_control: Mapping[str, Any]
    agent_id: str | None
    expires_at: str | datetime | None


class UpdateProfile(TypedDict, total=False):
    """Arguments of `update_profile`."""

    agent_id: str | None
    communication_style: Mapping[str, Any]
    expertise_areas: Sequence[str]
    metadata: Mapping[str, Any]
    preferences: Mapping[str, Any]
    user_id: str | None


class UpdateWorkflowRun(TypedDict, total=False):
    """Arguments of `update_workflow_run`."""

    add_agents: Sequence[str]
    agent_id: str | None
    agents: Sequence[str]
    metadata: Mapping[str, Any]
    remove_agents: Sequence[str]
    status: str


class UpdateWorkingMemory(TypedDict, total=False):
    """Arguments of `update_working_memory`."""

    agent_id: str | None
    data: Required[Mapping[str, Any]]


class VerifyErasure(TypedDict, total=False):
    """Arguments of `verify_erasure`."""

    receipt: Required[Mapping[str, Any]]
    signature: Required[str]


class VoteOnLearning(TypedDict, total=False):
    """Arguments of `vote_on_learning`."""

    agent_id: str | None
    helpful: Required[bool]


class WalkGraph(TypedDict, total=False):
    """Arguments of `walk_graph`."""

    agent_id: str | None
    channel: str
    depth: int
    ids: Required[str | Sequence[str]]
    limit: int
    types: str | Sequence[str]
    user_id: str | None


class WriteItems(TypedDict, total=False):
    """Arguments of `write_items`."""

    agent_id: str | None
    channel: str
    deleted: Sequence[Mapping[str, Any]]
    embedding_model: str
    items: Sequence[Mapping[str, Any]]
    user_id: str | None

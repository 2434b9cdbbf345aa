"""The routes below /api/v1.

`<id:…>` is an id that the client chose, `<key:…>` the key of a value, `<uuid:…>` an id of ours.
"""

from typing import Any

from django.urls import path

from memory.api.agents import Agents, Keys, TeamMembers, Teams
from memory.api.artifacts import Artifacts
from memory.api.audit_log import AuditLog
from memory.api.context import Contexts
from memory.api.contexts import AccessLogs, ContextArchiving, ContextGrants, PersistentContexts, Snapshots
from memory.api.conversations import ConversationLineages, ConversationLives, Conversations, Participants
from memory.api.custody import ErasurePreviews, Erasures, Subjects
from memory.api.entities import Entities, EntityMerges, Relationships
from memory.api.entries import ContextEntries, Entries, EntrySearches, EntryVersions
from memory.api.episodic import EpisodeErasures, Episodes, EpisodeSearches
from memory.api.facts import FactChanges, Facts
from memory.api.goals import GoalProgress, Goals
from memory.api.graph import Graphs
from memory.api.items import ContextItems
from memory.api.jobs import Jobs
from memory.api.keyed_memories import FormerKeyedMemories, KeyedMemories, KeyedMemorySearches
from memory.api.learnings import Learnings, LearningSearches, LearningVotes
from memory.api.memories import Memories
from memory.api.memory_search import MemorySearches
from memory.api.pools import PoolContents, PoolGrants, Pools
from memory.api.profiles import Profiles
from memory.api.recall import Recall
from memory.api.replay import Replays
from memory.api.resume import Resume
from memory.api.sessions import ActiveGoals, Sessions, SessionValues, Thoughts
from memory.api.short_term import ShortTermMemories
from memory.api.strategies import Strategies, StrategySearches
from memory.api.timeline import Timeline
from memory.api.tool_invocations import ToolInvocations, Tools
from memory.api.transfers import Exports, Imports
from memory.api.turn_records import ConversationRecords, TurnRecords
from memory.api.turns import TurnErasures, Turns
from memory.api.work_episodes import WorkEpisodes
from memory.api.workflow_runs import CachedResults, Postings, RunPools, WorkflowRuns
from memory.api.working_memory import (
    AgentWorkingMemories,
    AgentWorkingValues,
    PersistedWorkingMemories,
    SharedWithAgents,
    WorkingMemories,
    WorkingShares,
)

Actions = dict[str, Any]

READ: Actions = {"get": "retrieve"}
LIST: Actions = {"get": "list"}
COLLECTION: Actions = {"get": "list", "post": "create"}
READ_CHANGE: Actions = {"get": "retrieve", "patch": "partial_update"}
READ_DELETE: Actions = {"get": "retrieve", "delete": "destroy"}
READ_CHANGE_DELETE: Actions = {**READ_CHANGE, "delete": "destroy"}
READ_REPLACE_DELETE: Actions = {"get": "retrieve", "put": "update", "delete": "destroy"}

urlpatterns = [
    path("key", Keys.as_view(READ)),
    path("agents", Agents.as_view(COLLECTION)),
    path("agents/<id:agent_id>", Agents.as_view(READ_CHANGE_DELETE)),
    path("agents/<id:agent_id>/working-memory", AgentWorkingMemories.as_view({"get": "everything", "delete": "clear"})),
    # except for POST, a sub-path is the value with that key
    path(
        "agents/<id:agent_id>/working-memory/persist",
        PersistedWorkingMemories.as_view({**READ_REPLACE_DELETE, "post": "persist"}, key="persist"),
    ),
    path(
        "agents/<id:agent_id>/working-memory/load",
        PersistedWorkingMemories.as_view({**READ_REPLACE_DELETE, "post": "load"}, key="load"),
    ),
    path("agents/<id:agent_id>/working-memory/<key:key>", AgentWorkingValues.as_view(READ_REPLACE_DELETE)),
    path("agents/<id:agent_id>/working-memory/<key:key>/append", AgentWorkingValues.as_view({"post": "append"})),
    path(
        "agents/<id:agent_id>/working-memory/<key:key>/share",
        WorkingShares.as_view({"post": "share", "delete": "take_back"}),
    ),
    path("agents/<id:agent_id>/shared-memory/<id:source_agent_id>/<key:key>", SharedWithAgents.as_view(READ)),
    path("teams", Teams.as_view(COLLECTION)),
    path("teams/<uuid:team_id>", Teams.as_view(READ_DELETE)),
    path("teams/<uuid:team_id>/members", TeamMembers.as_view(COLLECTION)),
    path("teams/<uuid:team_id>/members/<id:agent_id>", TeamMembers.as_view({"delete": "destroy"})),
    path("resume", Resume.as_view({"post": "resume"})),
    path("recall", Recall.as_view({"post": "recall"})),
    path("context", Contexts.as_view({"post": "gather"})),
    path("replay", Replays.as_view({"post": "replay"})),
    # a GET on a sub-path lists the conversation with that id
    path("episodic/store", Episodes.as_view({"get": "list", "post": "store"}, conversation_id="store")),
    path("episodic/search", EpisodeSearches.as_view({"get": "list", "post": "search"}, conversation_id="search")),
    path("episodic/<id:conversation_id>", EpisodeErasures.as_view({"get": "list", "delete": "destroy"})),
    path("working-memory/<id:conversation_id>", WorkingMemories.as_view(READ_REPLACE_DELETE)),
    path("turn-records", TurnRecords.as_view(COLLECTION)),
    path("turn-records/<uuid:record_id>", TurnRecords.as_view(READ_DELETE)),
    path("turn-records/<uuid:record_id>/slots", TurnRecords.as_view({"post": "add_slots"})),
    path("conversations", Conversations.as_view(COLLECTION)),
    path("conversations/<id:conversation_id>", Conversations.as_view(READ_CHANGE_DELETE)),
    path("conversations/<id:conversation_id>/turns", Turns.as_view(COLLECTION)),
    path("conversations/<id:conversation_id>/turns/<uuid:turn_id>", TurnErasures.as_view({"delete": "destroy"})),
    path("conversations/<id:conversation_id>/turn-records", ConversationRecords.as_view(COLLECTION)),
    path("conversations/<id:conversation_id>/messages", Sessions.as_view({"get": "messages"})),
    path("conversations/<id:conversation_id>/context", Sessions.as_view({"get": "context"}, rate_class="retrieval")),
    path("conversations/<id:conversation_id>/summarize", ConversationLives.as_view({"post": "summarize"})),
    path("conversations/<id:conversation_id>/consolidate", ConversationLives.as_view({"post": "consolidate"})),
    path("conversations/<id:conversation_id>/save", ConversationLives.as_view({"post": "save"})),
    path("conversations/<id:conversation_id>/unarchive", ConversationLives.as_view({"post": "unarchive"})),
    path("conversations/<id:conversation_id>/end", ConversationLives.as_view({"post": "end"})),
    path("conversations/<id:conversation_id>/lineage", ConversationLineages.as_view(READ)),
    path("conversations/<id:conversation_id>/participants", Participants.as_view(COLLECTION)),
    path(
        "conversations/<id:conversation_id>/participants/<id:participant_id>",
        Participants.as_view({"delete": "destroy"}),
    ),
    path("conversations/<id:conversation_id>/thoughts", Thoughts.as_view({"get": "recent", "post": "create"})),
    path("conversations/<id:conversation_id>/active-goal", ActiveGoals.as_view(READ_REPLACE_DELETE)),
    path("conversations/<id:conversation_id>/values", SessionValues.as_view({"get": "everything"})),
    path("conversations/<id:conversation_id>/values/<key:key>", SessionValues.as_view(READ_REPLACE_DELETE)),
    path("memories", Memories.as_view({**COLLECTION, "delete": "forget"})),
    path("memories/<uuid:memory_id>", Memories.as_view(READ_CHANGE_DELETE)),
    path("memories/search", MemorySearches.as_view({"post": "search"})),
    path("memories/consolidate", KeyedMemories.as_view({"post": "consolidate"})),
    path("memories/stats", KeyedMemories.as_view({"get": "stats"})),
    # the former path of values, which OpenAPI cannot describe next to the ids of memories
    path("memories/<key:key>", FormerKeyedMemories.as_view(READ_REPLACE_DELETE)),
    # except for POST, the sub-path is the value with that key
    path(
        "keyed-memories/search",
        KeyedMemorySearches.as_view({**READ_REPLACE_DELETE, "post": "search"}, rate_class="retrieval"),
        {"key": "search"},
    ),
    path("keyed-memories/<key:key>", KeyedMemories.as_view(READ_REPLACE_DELETE)),
    path("short-term-memories", ShortTermMemories.as_view(COLLECTION)),
    path("short-term-memories/<uuid:short_term_id>", ShortTermMemories.as_view(READ_DELETE)),
    path("short-term-memories/<uuid:short_term_id>/refresh", ShortTermMemories.as_view({"post": "refresh"})),
    path("workflow-runs", WorkflowRuns.as_view(COLLECTION)),
    path("workflow-runs/<id:workflow_run_id>", WorkflowRuns.as_view(READ_CHANGE)),
    path("workflow-runs/<id:workflow_run_id>/pools", RunPools.as_view(COLLECTION)),
    path("pools", Pools.as_view(COLLECTION)),
    path("pools/<id:pool_id>", Pools.as_view(READ_CHANGE_DELETE)),
    path(
        "pools/<id:pool_id>/data", PoolContents.as_view({"get": "retrieve", "put": "update", "patch": "partial_update"})
    ),
    path("pools/<id:pool_id>/grant", PoolGrants.as_view({"post": "grant"})),
    path("pools/<id:pool_id>/revoke", PoolGrants.as_view({"post": "revoke"})),
    path("pools/<id:pool_id>/statistics", Pools.as_view({"get": "statistics"})),
    path("pools/<id:pool_id>/postings", Postings.as_view(COLLECTION)),
    path("pools/<id:pool_id>/cache", CachedResults.as_view(LIST)),
    path("pools/<id:pool_id>/cache/<key:key>", CachedResults.as_view(READ_REPLACE_DELETE)),
    path("learnings", Learnings.as_view(COLLECTION)),
    path("learnings/search", LearningSearches.as_view({"post": "search"})),
    path("learnings/<uuid:learning_id>", Learnings.as_view(READ_DELETE)),
    path("learnings/<uuid:learning_id>/vote", LearningVotes.as_view({"post": "vote"})),
    path("contexts", PersistentContexts.as_view(COLLECTION)),
    path("contexts/<uuid:context_id>", PersistentContexts.as_view(READ_CHANGE_DELETE)),
    path("contexts/<uuid:context_id>/archive", ContextArchiving.as_view({"post": "archive"})),
    path("contexts/<uuid:context_id>/unarchive", ContextArchiving.as_view({"post": "unarchive"})),
    path("contexts/<uuid:context_id>/grant", ContextGrants.as_view({"post": "grant"})),
    path("contexts/<uuid:context_id>/revoke", ContextGrants.as_view({"post": "revoke"})),
    path("contexts/<uuid:context_id>/entries", ContextEntries.as_view(COLLECTION)),
    path("contexts/<uuid:context_id>/items", ContextItems.as_view({"post": "write"})),
    path(
        "contexts/<uuid:context_id>/items/query",
        ContextItems.as_view({"post": "query_items"}, rate_class="retrieval"),
    ),
    path("contexts/<uuid:context_id>/search", EntrySearches.as_view({"post": "search"})),
    path("contexts/<uuid:context_id>/snapshots", Snapshots.as_view(COLLECTION)),
    path("contexts/<uuid:context_id>/snapshots/<uuid:snapshot_id>", Snapshots.as_view(READ_DELETE)),
    path("contexts/<uuid:context_id>/snapshots/<uuid:snapshot_id>/restore", Snapshots.as_view({"post": "restore"})),
    path("contexts/<uuid:context_id>/access-log", AccessLogs.as_view(LIST)),
    path("entries/<uuid:entry_id>", Entries.as_view(READ_CHANGE_DELETE)),
    path("entries/<uuid:entry_id>/boost", Entries.as_view({"post": "boost"})),
    path("entries/<uuid:entry_id>/reduce", Entries.as_view({"post": "reduce"})),
    path("entries/<uuid:entry_id>/versions", EntryVersions.as_view(LIST)),
    path("entries/<uuid:entry_id>/versions/<int:number>/restore", EntryVersions.as_view({"post": "restore"})),
    path("facts", Facts.as_view(COLLECTION)),
    path("facts/<uuid:fact_id>", Facts.as_view(READ_CHANGE_DELETE)),
    path("facts/<uuid:fact_id>/supersede", FactChanges.as_view({"post": "supersede"})),
    path("facts/<uuid:fact_id>/promote", FactChanges.as_view({"post": "promote"})),
    path("facts/<uuid:fact_id>/reject", FactChanges.as_view({"post": "reject"})),
    path("relationships", Relationships.as_view(COLLECTION)),
    path("relationships/<uuid:relationship_id>", Relationships.as_view(READ_DELETE)),
    path("graph", Graphs.as_view({"get": "walk"})),
    path("tool-invocations", ToolInvocations.as_view(COLLECTION)),
    path("tool-invocations/bulk", ToolInvocations.as_view({"post": "record_many"})),
    path("tool-invocations/<uuid:invocation_id>", ToolInvocations.as_view(READ)),
    path("tools", Tools.as_view(LIST)),
    path("strategies", Strategies.as_view(COLLECTION)),
    path("strategies/find", StrategySearches.as_view({"post": "find"})),
    path("strategies/<uuid:strategy_id>", Strategies.as_view(READ_DELETE)),
    path("strategies/<uuid:strategy_id>/reinforce", Strategies.as_view({"post": "reinforce"})),
    path("goals", Goals.as_view(COLLECTION)),
    path("goals/<uuid:goal_id>", Goals.as_view(READ_CHANGE_DELETE)),
    path("goals/<uuid:goal_id>/complete", GoalProgress.as_view({"post": "complete"})),
    path("goals/<uuid:goal_id>/block", GoalProgress.as_view({"post": "block"})),
    path("goals/<uuid:goal_id>/unblock", GoalProgress.as_view({"post": "unblock"})),
    path("artifacts", Artifacts.as_view(COLLECTION)),
    path("artifacts/<uuid:artifact_id>", Artifacts.as_view(READ_CHANGE_DELETE)),
    path("artifacts/<uuid:artifact_id>/lineage", Artifacts.as_view({"get": "lineage"})),
    path("work-episodes", WorkEpisodes.as_view(LIST)),
    path("work-episodes/<uuid:episode_id>", WorkEpisodes.as_view(READ)),
    path("profiles/<id:user_id>", Profiles.as_view(READ_CHANGE_DELETE)),
    path("entities", Entities.as_view(COLLECTION)),
    path("entities/<uuid:entity_id>", Entities.as_view(READ_CHANGE_DELETE)),
    path("entities/<uuid:entity_id>/merge", EntityMerges.as_view({"post": "merge"})),
    path("entities/<uuid:entity_id>/split", EntityMerges.as_view({"post": "split"})),
    path("subjects/<id:user_id>", Subjects.as_view(READ_DELETE)),
    path("subjects/<id:user_id>/erasure", Subjects.as_view({"get": "latest"})),
    path("subjects/<id:user_id>/readmit", Subjects.as_view({"post": "readmit"})),
    path("erasures", Erasures.as_view(COLLECTION)),
    path("erasures/preview", ErasurePreviews.as_view({"get": "retrieve"})),
    path("erasures/verify", Erasures.as_view({"post": "verify"})),
    path("erasures/<uuid:erasure_id>", Erasures.as_view(READ)),
    path("export", Exports.as_view({"get": "newest"})),
    path("exports", Exports.as_view(COLLECTION)),
    path("exports/<uuid:export_id>", Exports.as_view(READ)),
    path("exports/<uuid:export_id>/download", Exports.as_view({"get": "download"})),
    path("import", Imports.as_view({"post": "create"}, undocumented=frozenset({"create"}))),
    path("imports", Imports.as_view(COLLECTION)),
    path("imports/<uuid:import_id>", Imports.as_view(READ)),
    path("timeline", Timeline.as_view(LIST)),
    path("audit-log", AuditLog.as_view(LIST)),
    path("jobs", Jobs.as_view(LIST)),
    path("jobs/<uuid:job_id>", Jobs.as_view(READ)),
    path("jobs/<id:name>/run", Jobs.as_view({"post": "run"})),
]

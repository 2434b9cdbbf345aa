"""The operations of the service, by their ids.

Written by `generate.py`; do not edit.
"""

# fmt: off

from agent_memory_client.calls import Operation

OPERATIONS: dict[str, Operation] = {
    "add_context_entries": Operation(
        "add_context_entries", "POST", "/contexts/{context_id}/entries", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "add_participant": Operation(
        "add_participant", "POST", "/conversations/{conversation_id}/participants", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "add_team_member": Operation(
        "add_team_member", "POST", "/teams/{team_id}/members", has_body=True, owner=("agent_id",), has_key=True
    ),
    "add_thought": Operation(
        "add_thought", "POST", "/conversations/{conversation_id}/thoughts", has_body=True, owner=("agent_id",
        "user_id"), has_key=True
    ),
    "add_turn_record_slots": Operation(
        "add_turn_record_slots", "POST", "/turn-records/{record_id}/slots", has_body=True, owner=("agent_id",
        "user_id"), has_key=True
    ),
    "add_turns": Operation(
        "add_turns", "POST", "/conversations/{conversation_id}/turns", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "append_to_agent_value": Operation(
        "append_to_agent_value", "POST", "/agents/{agent_id}/working-memory/{key}/append", has_body=True, has_key=True
    ),
    "archive_context": Operation(
        "archive_context", "POST", "/contexts/{context_id}/archive", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_context"
    ),
    "block_goal": Operation(
        "block_goal", "POST", "/goals/{goal_id}/block", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_goal"
    ),
    "boost_entry": Operation(
        "boost_entry", "POST", "/entries/{entry_id}/boost", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_entry"
    ),
    "build_context": Operation(
        "build_context", "POST", "/context", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "check_ledger_item": Operation(
        "check_ledger_item", "POST", "/ledger/{conversation_id}/check", has_body=True, owner=("agent_id",), has_key=True
    ),
    "clear_active_goal": Operation(
        "clear_active_goal", "DELETE", "/conversations/{conversation_id}/active-goal", owner=("agent_id",), has_key=True
    ),
    "clear_agent_values": Operation(
        "clear_agent_values", "DELETE", "/agents/{agent_id}/working-memory", has_key=True
    ),
    "complete_goal": Operation(
        "complete_goal", "POST", "/goals/{goal_id}/complete", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "consolidate_memories": Operation(
        "consolidate_memories", "POST", "/memories/consolidate", has_body=True, owner=("agent_id",), has_key=True
    ),
    "create_agent": Operation(
        "create_agent", "POST", "/agents", has_body=True, owner=("agent_id",), has_key=True
    ),
    "create_artifact": Operation(
        "create_artifact", "POST", "/artifacts", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_artifact"
    ),
    "create_context": Operation(
        "create_context", "POST", "/contexts", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_context"
    ),
    "create_context_snapshot": Operation(
        "create_context_snapshot", "POST", "/contexts/{context_id}/snapshots", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "create_conversation": Operation(
        "create_conversation", "POST", "/conversations", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_conversation_turn_record": Operation(
        "create_conversation_turn_record", "POST", "/conversations/{conversation_id}/turn-records", has_body=True,
        owner=("agent_id", "user_id"), has_key=True
    ),
    "create_entity": Operation(
        "create_entity", "POST", "/entities", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_entity"
    ),
    "create_erasure": Operation(
        "create_erasure", "POST", "/erasures", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_export": Operation(
        "create_export", "POST", "/exports", has_body=True, has_key=True
    ),
    "create_fact": Operation(
        "create_fact", "POST", "/facts", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_fact"
    ),
    "create_goal": Operation(
        "create_goal", "POST", "/goals", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_goal"
    ),
    "create_import": Operation(
        "create_import", "POST", "/imports", query=("dry_run",), has_body=True
    ),
    "create_learning": Operation(
        "create_learning", "POST", "/learnings", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_memory": Operation(
        "create_memory", "POST", "/memories", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_memory"
    ),
    "create_pool": Operation(
        "create_pool", "POST", "/pools", has_body=True, owner=("agent_id",), has_key=True, saved_by="update_pool"
    ),
    "create_pool_posting": Operation(
        "create_pool_posting", "POST", "/pools/{pool_id}/postings", has_body=True, owner=("agent_id",), has_key=True
    ),
    "create_relationship": Operation(
        "create_relationship", "POST", "/relationships", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_short_term_memory": Operation(
        "create_short_term_memory", "POST", "/short-term-memories", has_body=True, owner=("agent_id",), has_key=True
    ),
    "create_strategy": Operation(
        "create_strategy", "POST", "/strategies", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_team": Operation(
        "create_team", "POST", "/teams", has_body=True, has_key=True
    ),
    "create_turn_record": Operation(
        "create_turn_record", "POST", "/turn-records", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "create_workflow_run": Operation(
        "create_workflow_run", "POST", "/workflow-runs", has_body=True, owner=("agent_id",), has_key=True
    ),
    "create_workflow_run_pool": Operation(
        "create_workflow_run_pool", "POST", "/workflow-runs/{workflow_run_id}/pools", has_body=True,
        owner=("agent_id",), has_key=True
    ),
    "delete_agent": Operation(
        "delete_agent", "DELETE", "/agents/{agent_id}", has_key=True
    ),
    "delete_agent_value": Operation(
        "delete_agent_value", "DELETE", "/agents/{agent_id}/working-memory/{key}", has_key=True
    ),
    "delete_artifact": Operation(
        "delete_artifact", "DELETE", "/artifacts/{artifact_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_cached_result": Operation(
        "delete_cached_result", "DELETE", "/pools/{pool_id}/cache/{key}", owner=("agent_id",), has_key=True
    ),
    "delete_context": Operation(
        "delete_context", "DELETE", "/contexts/{context_id}", owner=("agent_id",), has_key=True
    ),
    "delete_context_snapshot": Operation(
        "delete_context_snapshot", "DELETE", "/contexts/{context_id}/snapshots/{snapshot_id}", owner=("agent_id",),
        has_key=True
    ),
    "delete_conversation": Operation(
        "delete_conversation", "DELETE", "/conversations/{conversation_id}", owner=("agent_id",), has_key=True
    ),
    "delete_conversation_turn": Operation(
        "delete_conversation_turn", "DELETE", "/conversations/{conversation_id}/turns/{turn_id}", owner=("agent_id",),
        has_key=True
    ),
    "delete_conversation_value": Operation(
        "delete_conversation_value", "DELETE", "/conversations/{conversation_id}/values/{key}", owner=("agent_id",),
        has_key=True
    ),
    "delete_entity": Operation(
        "delete_entity", "DELETE", "/entities/{entity_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_entry": Operation(
        "delete_entry", "DELETE", "/entries/{entry_id}", owner=("agent_id",), has_key=True
    ),
    "delete_episodic": Operation(
        "delete_episodic", "DELETE", "/episodic/{conversation_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_fact": Operation(
        "delete_fact", "DELETE", "/facts/{fact_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_goal": Operation(
        "delete_goal", "DELETE", "/goals/{goal_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_keyed_memory": Operation(
        "delete_keyed_memory", "DELETE", "/keyed-memories/{key}", owner=("agent_id",), has_key=True
    ),
    "delete_learning": Operation(
        "delete_learning", "DELETE", "/learnings/{learning_id}", owner=("agent_id",), has_key=True
    ),
    "delete_memories": Operation(
        "delete_memories", "DELETE", "/memories", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_memory": Operation(
        "delete_memory", "DELETE", "/memories/{memory_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_pool": Operation(
        "delete_pool", "DELETE", "/pools/{pool_id}", owner=("agent_id",), has_key=True
    ),
    "delete_profile": Operation(
        "delete_profile", "DELETE", "/profiles/{user_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_relationship": Operation(
        "delete_relationship", "DELETE", "/relationships/{relationship_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_short_term_memory": Operation(
        "delete_short_term_memory", "DELETE", "/short-term-memories/{short_term_id}", owner=("agent_id",), has_key=True
    ),
    "delete_strategy": Operation(
        "delete_strategy", "DELETE", "/strategies/{strategy_id}", owner=("agent_id", "user_id"), has_key=True
    ),
    "delete_subject": Operation(
        "delete_subject", "DELETE", "/subjects/{user_id}", has_key=True
    ),
    "delete_team": Operation(
        "delete_team", "DELETE", "/teams/{team_id}", has_key=True
    ),
    "delete_turn_record": Operation(
        "delete_turn_record", "DELETE", "/turn-records/{record_id}", owner=("agent_id",), has_key=True
    ),
    "delete_working_memory": Operation(
        "delete_working_memory", "DELETE", "/working-memory/{conversation_id}", owner=("agent_id",), has_key=True
    ),
    "download_export": Operation(
        "download_export", "GET", "/exports/{export_id}/download"
    ),
    "download_newest_export": Operation(
        "download_newest_export", "GET", "/export"
    ),
    "end_conversation": Operation(
        "end_conversation", "POST", "/conversations/{conversation_id}/end", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "evict_ledger_item": Operation(
        "evict_ledger_item", "POST", "/ledger/{conversation_id}/evict", has_body=True, owner=("agent_id",), has_key=True
    ),
    "extract_knowledge": Operation(
        "extract_knowledge", "POST", "/conversations/{conversation_id}/consolidate", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "find_strategies": Operation(
        "find_strategies", "POST", "/strategies/find", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "get_active_goal": Operation(
        "get_active_goal", "GET", "/conversations/{conversation_id}/active-goal", owner=("agent_id",)
    ),
    "get_agent": Operation(
        "get_agent", "GET", "/agents/{agent_id}"
    ),
    "get_agent_value": Operation(
        "get_agent_value", "GET", "/agents/{agent_id}/working-memory/{key}"
    ),
    "get_artifact": Operation(
        "get_artifact", "GET", "/artifacts/{artifact_id}", owner=("agent_id", "user_id"), saved_by="update_artifact"
    ),
    "get_artifact_lineage": Operation(
        "get_artifact_lineage", "GET", "/artifacts/{artifact_id}/lineage", owner=("agent_id", "user_id")
    ),
    "get_cached_result": Operation(
        "get_cached_result", "GET", "/pools/{pool_id}/cache/{key}", owner=("agent_id",)
    ),
    "get_context": Operation(
        "get_context", "GET", "/contexts/{context_id}", owner=("agent_id",), saved_by="update_context"
    ),
    "get_context_snapshot": Operation(
        "get_context_snapshot", "GET", "/contexts/{context_id}/snapshots/{snapshot_id}", owner=("agent_id",)
    ),
    "get_conversation": Operation(
        "get_conversation", "GET", "/conversations/{conversation_id}", owner=("agent_id",)
    ),
    "get_conversation_context": Operation(
        "get_conversation_context", "GET", "/conversations/{conversation_id}/context", owner=("agent_id",)
    ),
    "get_conversation_lineage": Operation(
        "get_conversation_lineage", "GET", "/conversations/{conversation_id}/lineage", owner=("agent_id",)
    ),
    "get_conversation_value": Operation(
        "get_conversation_value", "GET", "/conversations/{conversation_id}/values/{key}", owner=("agent_id",)
    ),
    "get_entity": Operation(
        "get_entity", "GET", "/entities/{entity_id}", owner=("agent_id", "user_id"), saved_by="update_entity"
    ),
    "get_entry": Operation(
        "get_entry", "GET", "/entries/{entry_id}", owner=("agent_id",), saved_by="update_entry"
    ),
    "get_erasure": Operation(
        "get_erasure", "GET", "/erasures/{erasure_id}"
    ),
    "get_export": Operation(
        "get_export", "GET", "/exports/{export_id}"
    ),
    "get_fact": Operation(
        "get_fact", "GET", "/facts/{fact_id}", owner=("agent_id", "user_id"), saved_by="update_fact"
    ),
    "get_goal": Operation(
        "get_goal", "GET", "/goals/{goal_id}", owner=("agent_id", "user_id"), saved_by="update_goal"
    ),
    "get_import": Operation(
        "get_import", "GET", "/imports/{import_id}"
    ),
    "get_job": Operation(
        "get_job", "GET", "/jobs/{job_id}"
    ),
    "get_key": Operation(
        "get_key", "GET", "/key"
    ),
    "get_keyed_memory": Operation(
        "get_keyed_memory", "GET", "/keyed-memories/{key}", owner=("agent_id",)
    ),
    "get_learning": Operation(
        "get_learning", "GET", "/learnings/{learning_id}", owner=("agent_id",)
    ),
    "get_ledger": Operation(
        "get_ledger", "GET", "/ledger/{conversation_id}", owner=("agent_id",)
    ),
    "get_memory": Operation(
        "get_memory", "GET", "/memories/{memory_id}", owner=("agent_id", "user_id"), saved_by="update_memory"
    ),
    "get_memory_stats": Operation(
        "get_memory_stats", "GET", "/memories/stats", owner=("agent_id",)
    ),
    "get_pool": Operation(
        "get_pool", "GET", "/pools/{pool_id}", owner=("agent_id",), saved_by="update_pool"
    ),
    "get_pool_data": Operation(
        "get_pool_data", "GET", "/pools/{pool_id}/data", owner=("agent_id",)
    ),
    "get_pool_statistics": Operation(
        "get_pool_statistics", "GET", "/pools/{pool_id}/statistics", owner=("agent_id",)
    ),
    "get_profile": Operation(
        "get_profile", "GET", "/profiles/{user_id}", owner=("agent_id", "user_id"), saved_by="update_profile"
    ),
    "get_relationship": Operation(
        "get_relationship", "GET", "/relationships/{relationship_id}", owner=("agent_id", "user_id")
    ),
    "get_shared_value": Operation(
        "get_shared_value", "GET", "/agents/{agent_id}/shared-memory/{source_agent_id}/{key}"
    ),
    "get_short_term_memory": Operation(
        "get_short_term_memory", "GET", "/short-term-memories/{short_term_id}", owner=("agent_id",)
    ),
    "get_strategy": Operation(
        "get_strategy", "GET", "/strategies/{strategy_id}", owner=("agent_id", "user_id")
    ),
    "get_subject": Operation(
        "get_subject", "GET", "/subjects/{user_id}"
    ),
    "get_subject_erasure": Operation(
        "get_subject_erasure", "GET", "/subjects/{user_id}/erasure"
    ),
    "get_team": Operation(
        "get_team", "GET", "/teams/{team_id}"
    ),
    "get_tool_invocation": Operation(
        "get_tool_invocation", "GET", "/tool-invocations/{invocation_id}", owner=("agent_id",)
    ),
    "get_turn_record": Operation(
        "get_turn_record", "GET", "/turn-records/{record_id}", owner=("agent_id",)
    ),
    "get_work_episode": Operation(
        "get_work_episode", "GET", "/work-episodes/{episode_id}", owner=("agent_id",)
    ),
    "get_workflow_run": Operation(
        "get_workflow_run", "GET", "/workflow-runs/{workflow_run_id}", owner=("agent_id",)
    ),
    "get_working_memory": Operation(
        "get_working_memory", "GET", "/working-memory/{conversation_id}", owner=("agent_id",)
    ),
    "grant_context_access": Operation(
        "grant_context_access", "POST", "/contexts/{context_id}/grant", has_body=True, owner=("agent_id",),
        has_key=True, saved_by="update_context"
    ),
    "grant_pool_access": Operation(
        "grant_pool_access", "POST", "/pools/{pool_id}/grant", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_pool"
    ),
    "list_agent_values": Operation(
        "list_agent_values", "GET", "/agents/{agent_id}/working-memory"
    ),
    "list_agents": Operation(
        "list_agents", "GET", "/agents"
    ),
    "list_artifacts": Operation(
        "list_artifacts", "GET", "/artifacts", owner=("agent_id", "user_id")
    ),
    "list_audit_log": Operation(
        "list_audit_log", "GET", "/audit-log", owner=("agent_id", "user_id")
    ),
    "list_cached_results": Operation(
        "list_cached_results", "GET", "/pools/{pool_id}/cache", owner=("agent_id",)
    ),
    "list_context_access_log": Operation(
        "list_context_access_log", "GET", "/contexts/{context_id}/access-log", owner=("agent_id",)
    ),
    "list_context_entries": Operation(
        "list_context_entries", "GET", "/contexts/{context_id}/entries", owner=("agent_id",)
    ),
    "list_context_snapshots": Operation(
        "list_context_snapshots", "GET", "/contexts/{context_id}/snapshots", owner=("agent_id",)
    ),
    "list_contexts": Operation(
        "list_contexts", "GET", "/contexts", owner=("agent_id",)
    ),
    "list_conversation_participants": Operation(
        "list_conversation_participants", "GET", "/conversations/{conversation_id}/participants", owner=("agent_id",)
    ),
    "list_conversation_turn_records": Operation(
        "list_conversation_turn_records", "GET", "/conversations/{conversation_id}/turn-records", owner=("agent_id",)
    ),
    "list_conversation_values": Operation(
        "list_conversation_values", "GET", "/conversations/{conversation_id}/values", owner=("agent_id",)
    ),
    "list_conversations": Operation(
        "list_conversations", "GET", "/conversations", owner=("agent_id", "user_id")
    ),
    "list_entities": Operation(
        "list_entities", "GET", "/entities", owner=("agent_id", "user_id")
    ),
    "list_entry_versions": Operation(
        "list_entry_versions", "GET", "/entries/{entry_id}/versions", owner=("agent_id",)
    ),
    "list_episodes": Operation(
        "list_episodes", "GET", "/episodic/{conversation_id}", owner=("agent_id", "user_id")
    ),
    "list_erasures": Operation(
        "list_erasures", "GET", "/erasures"
    ),
    "list_exports": Operation(
        "list_exports", "GET", "/exports"
    ),
    "list_facts": Operation(
        "list_facts", "GET", "/facts", owner=("agent_id", "user_id")
    ),
    "list_goals": Operation(
        "list_goals", "GET", "/goals", owner=("agent_id", "user_id")
    ),
    "list_imports": Operation(
        "list_imports", "GET", "/imports"
    ),
    "list_jobs": Operation(
        "list_jobs", "GET", "/jobs"
    ),
    "list_learnings": Operation(
        "list_learnings", "GET", "/learnings", owner=("agent_id",)
    ),
    "list_memories": Operation(
        "list_memories", "GET", "/memories", owner=("agent_id", "user_id")
    ),
    "list_messages": Operation(
        "list_messages", "GET", "/conversations/{conversation_id}/messages", owner=("agent_id",)
    ),
    "list_pool_postings": Operation(
        "list_pool_postings", "GET", "/pools/{pool_id}/postings", owner=("agent_id",)
    ),
    "list_pools": Operation(
        "list_pools", "GET", "/pools", owner=("agent_id",)
    ),
    "list_relationships": Operation(
        "list_relationships", "GET", "/relationships", owner=("agent_id", "user_id")
    ),
    "list_short_term_memories": Operation(
        "list_short_term_memories", "GET", "/short-term-memories", owner=("agent_id",)
    ),
    "list_strategies": Operation(
        "list_strategies", "GET", "/strategies", owner=("agent_id", "user_id")
    ),
    "list_team_members": Operation(
        "list_team_members", "GET", "/teams/{team_id}/members"
    ),
    "list_teams": Operation(
        "list_teams", "GET", "/teams"
    ),
    "list_thoughts": Operation(
        "list_thoughts", "GET", "/conversations/{conversation_id}/thoughts", owner=("agent_id",)
    ),
    "list_timeline": Operation(
        "list_timeline", "GET", "/timeline", owner=("agent_id", "user_id")
    ),
    "list_tool_invocations": Operation(
        "list_tool_invocations", "GET", "/tool-invocations", owner=("agent_id",)
    ),
    "list_tools": Operation(
        "list_tools", "GET", "/tools", owner=("agent_id",)
    ),
    "list_turn_records": Operation(
        "list_turn_records", "GET", "/turn-records", owner=("agent_id",)
    ),
    "list_turns": Operation(
        "list_turns", "GET", "/conversations/{conversation_id}/turns", owner=("agent_id",)
    ),
    "list_work_episodes": Operation(
        "list_work_episodes", "GET", "/work-episodes", owner=("agent_id",)
    ),
    "list_workflow_run_pools": Operation(
        "list_workflow_run_pools", "GET", "/workflow-runs/{workflow_run_id}/pools", owner=("agent_id",)
    ),
    "list_workflow_runs": Operation(
        "list_workflow_runs", "GET", "/workflow-runs", owner=("agent_id",)
    ),
    "load_agent_values": Operation(
        "load_agent_values", "POST", "/agents/{agent_id}/working-memory/load", has_body=True, has_key=True
    ),
    "mark_ledger_item": Operation(
        "mark_ledger_item", "POST", "/ledger/{conversation_id}/mark", has_body=True, owner=("agent_id",), has_key=True
    ),
    "merge_entity": Operation(
        "merge_entity", "POST", "/entities/{entity_id}/merge", has_body=True, owner=("agent_id", "user_id"),
        has_key=True, saved_by="update_entity"
    ),
    "merge_pool_data": Operation(
        "merge_pool_data", "PATCH", "/pools/{pool_id}/data", query=("path",), has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "persist_agent_values": Operation(
        "persist_agent_values", "POST", "/agents/{agent_id}/working-memory/persist", has_body=True, has_key=True
    ),
    "preview_erasure": Operation(
        "preview_erasure", "GET", "/erasures/preview", owner=("agent_id",)
    ),
    "promote_fact": Operation(
        "promote_fact", "POST", "/facts/{fact_id}/promote", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_fact"
    ),
    "query_items": Operation(
        "query_items", "POST", "/contexts/{context_id}/items/query", has_body=True, owner=("agent_id",)
    ),
    "readmit_subject": Operation(
        "readmit_subject", "POST", "/subjects/{user_id}/readmit", has_key=True
    ),
    "recall": Operation(
        "recall", "POST", "/recall", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "record_tool_invocation": Operation(
        "record_tool_invocation", "POST", "/tool-invocations", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "record_tool_invocations": Operation(
        "record_tool_invocations", "POST", "/tool-invocations/bulk", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "reduce_entry": Operation(
        "reduce_entry", "POST", "/entries/{entry_id}/reduce", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_entry"
    ),
    "refresh_short_term_memory": Operation(
        "refresh_short_term_memory", "POST", "/short-term-memories/{short_term_id}/refresh", has_body=True,
        owner=("agent_id",), has_key=True
    ),
    "reinforce_strategy": Operation(
        "reinforce_strategy", "POST", "/strategies/{strategy_id}/reinforce", has_body=True, owner=("agent_id",
        "user_id"), has_key=True
    ),
    "reject_fact": Operation(
        "reject_fact", "POST", "/facts/{fact_id}/reject", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_fact"
    ),
    "remove_participant": Operation(
        "remove_participant", "DELETE", "/conversations/{conversation_id}/participants/{participant_id}",
        owner=("agent_id",), has_key=True
    ),
    "remove_team_member": Operation(
        "remove_team_member", "DELETE", "/teams/{team_id}/members/{agent_id}", has_key=True
    ),
    "replace_pool_data": Operation(
        "replace_pool_data", "PUT", "/pools/{pool_id}/data", query=("path",), has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "replay": Operation(
        "replay", "POST", "/replay", has_body=True, owner=("agent_id", "user_id")
    ),
    "restore_context_snapshot": Operation(
        "restore_context_snapshot", "POST", "/contexts/{context_id}/snapshots/{snapshot_id}/restore", has_body=True,
        owner=("agent_id",), has_key=True
    ),
    "restore_entry_version": Operation(
        "restore_entry_version", "POST", "/entries/{entry_id}/versions/{number}/restore", has_body=True,
        owner=("agent_id",), has_key=True, saved_by="update_entry"
    ),
    "resume": Operation(
        "resume", "POST", "/resume", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "revoke_context_access": Operation(
        "revoke_context_access", "POST", "/contexts/{context_id}/revoke", has_body=True, owner=("agent_id",),
        has_key=True, saved_by="update_context"
    ),
    "revoke_pool_access": Operation(
        "revoke_pool_access", "POST", "/pools/{pool_id}/revoke", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_pool"
    ),
    "run_job": Operation(
        "run_job", "POST", "/jobs/{name}/run", has_body=True, has_key=True
    ),
    "save_conversation": Operation(
        "save_conversation", "POST", "/conversations/{conversation_id}/save", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "search_context_entries": Operation(
        "search_context_entries", "POST", "/contexts/{context_id}/search", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "search_episodes": Operation(
        "search_episodes", "POST", "/episodic/search", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "search_keyed_memories": Operation(
        "search_keyed_memories", "POST", "/keyed-memories/search", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
    "search_learnings": Operation(
        "search_learnings", "POST", "/learnings/search", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "search_memories": Operation(
        "search_memories", "POST", "/memories/search", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "set_active_goal": Operation(
        "set_active_goal", "PUT", "/conversations/{conversation_id}/active-goal", has_body=True, owner=("agent_id",
        "user_id"), has_key=True
    ),
    "set_agent_value": Operation(
        "set_agent_value", "PUT", "/agents/{agent_id}/working-memory/{key}", has_body=True, has_key=True
    ),
    "set_cached_result": Operation(
        "set_cached_result", "PUT", "/pools/{pool_id}/cache/{key}", has_body=True, owner=("agent_id",), has_key=True
    ),
    "set_conversation_value": Operation(
        "set_conversation_value", "PUT", "/conversations/{conversation_id}/values/{key}", has_body=True,
        owner=("agent_id", "user_id"), has_key=True
    ),
    "set_keyed_memory": Operation(
        "set_keyed_memory", "PUT", "/keyed-memories/{key}", has_body=True, owner=("agent_id",), has_key=True
    ),
    "share_agent_value": Operation(
        "share_agent_value", "POST", "/agents/{agent_id}/working-memory/{key}/share", has_body=True, has_key=True
    ),
    "split_entity": Operation(
        "split_entity", "POST", "/entities/{entity_id}/split", has_body=True, owner=("agent_id", "user_id"),
        has_key=True, saved_by="update_entity"
    ),
    "store_episode": Operation(
        "store_episode", "POST", "/episodic/store", has_body=True, owner=("agent_id", "user_id"), has_key=True
    ),
    "summarize_conversation": Operation(
        "summarize_conversation", "POST", "/conversations/{conversation_id}/summarize", has_body=True,
        owner=("agent_id",), has_key=True
    ),
    "supersede_fact": Operation(
        "supersede_fact", "POST", "/facts/{fact_id}/supersede", has_body=True, owner=("agent_id", "user_id"),
        has_key=True, saved_by="update_fact"
    ),
    "unarchive_context": Operation(
        "unarchive_context", "POST", "/contexts/{context_id}/unarchive", has_body=True, owner=("agent_id",),
        has_key=True, saved_by="update_context"
    ),
    "unarchive_conversation": Operation(
        "unarchive_conversation", "POST", "/conversations/{conversation_id}/unarchive", has_body=True,
        owner=("agent_id",), has_key=True
    ),
    "unblock_goal": Operation(
        "unblock_goal", "POST", "/goals/{goal_id}/unblock", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_goal"
    ),
    "unshare_agent_value": Operation(
        "unshare_agent_value", "DELETE", "/agents/{agent_id}/working-memory/{key}/share", has_key=True
    ),
    "update_agent": Operation(
        "update_agent", "PATCH", "/agents/{agent_id}", has_body=True, has_key=True
    ),
    "update_artifact": Operation(
        "update_artifact", "PATCH", "/artifacts/{artifact_id}", has_body=True, owner=("agent_id", "user_id"),
        has_key=True, saved_by="update_artifact"
    ),
    "update_context": Operation(
        "update_context", "PATCH", "/contexts/{context_id}", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_context"
    ),
    "update_conversation": Operation(
        "update_conversation", "PATCH", "/conversations/{conversation_id}", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "update_entity": Operation(
        "update_entity", "PATCH", "/entities/{entity_id}", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_entity"
    ),
    "update_entry": Operation(
        "update_entry", "PATCH", "/entries/{entry_id}", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_entry"
    ),
    "update_fact": Operation(
        "update_fact", "PATCH", "/facts/{fact_id}", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_fact"
    ),
    "update_goal": Operation(
        "update_goal", "PATCH", "/goals/{goal_id}", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_goal"
    ),
    "update_memory": Operation(
        "update_memory", "PATCH", "/memories/{memory_id}", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_memory"
    ),
    "update_pool": Operation(
        "update_pool", "PATCH", "/pools/{pool_id}", has_body=True, owner=("agent_id",), has_key=True,
        saved_by="update_pool"
    ),
    "update_profile": Operation(
        "update_profile", "PATCH", "/profiles/{user_id}", has_body=True, owner=("agent_id", "user_id"), has_key=True,
        saved_by="update_profile"
    ),
    "update_workflow_run": Operation(
        "update_workflow_run", "PATCH", "/workflow-runs/{workflow_run_id}", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "update_working_memory": Operation(
        "update_working_memory", "PUT", "/working-memory/{conversation_id}", has_body=True, owner=("agent_id",),
        has_key=True
    ),
    "verify_erasure": Operation(
        "verify_erasure", "POST", "/erasures/verify", has_body=True, has_key=True
    ),
    "vote_on_learning": Operation(
        "vote_on_learning", "POST", "/learnings/{learning_id}/vote", has_body=True, owner=("agent_id",), has_key=True
    ),
    "walk_graph": Operation(
        "walk_graph", "GET", "/graph", owner=("agent_id", "user_id")
    ),
    "write_items": Operation(
        "write_items", "POST", "/contexts/{context_id}/items", has_body=True, owner=("agent_id", "user_id"),
        has_key=True
    ),
}

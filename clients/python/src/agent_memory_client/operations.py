"""Calls of the operations of the service, by their ids.

Written by `generate.py`; do not edit.
"""

# fmt: off

from typing import Unpack

from agent_memory_client import arguments, models
from agent_memory_client.calls import Call, Id, PageCall
from agent_memory_client.results import Result
from agent_memory_client.table import OPERATIONS


def add_context_entries(context_id: Id, /, **fields: Unpack[arguments.AddContextEntries]) -> Call[Result]:
    """Store one entry, or up to 1,000 as entries: all or none.

    Fields: agent_id, channel, confidence, content, embedding, embedding_model, entries, entry_type, importance, key,
    memory_type, metadata, source_type, user_id, value.
    """
    operation = OPERATIONS["add_context_entries"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=Result)


def add_participant(
    conversation_id: Id, /, **fields: Unpack[arguments.AddParticipant]
) -> Call[models.ParticipantAnswer]:
    """Let an agent read the conversation and write into it.

    Required: participant_id.
    Fields: agent_id.
    """
    operation = OPERATIONS["add_participant"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ParticipantAnswer)


def add_team_member(team_id: Id, /, **fields: Unpack[arguments.AddTeamMember]) -> Call[models.MemberAnswer]:
    """Add an agent to the team.

    Required: agent_id.
    """
    operation = OPERATIONS["add_team_member"]
    ids = (team_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.MemberAnswer)


def add_thought(conversation_id: Id, /, **fields: Unpack[arguments.AddThought]) -> Call[models.ThoughtAnswer]:
    """Add a thought.

    Required: thought.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["add_thought"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ThoughtAnswer)


def add_turn_record_slots(
    record_id: Id, /, **fields: Unpack[arguments.AddTurnRecordSlots]
) -> Call[models.PlacedRecord]:
    """Add slots that the turn lacks, or replace an open outcome.

    Fields: action, agent_id, channel, evidence, first_index, goal_id, last_index, observation, outcome, produced,
    reasoning, timestamp, tool_invocations, used, user_id.
    """
    operation = OPERATIONS["add_turn_record_slots"]
    ids = (record_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PlacedRecord)


def add_turns(conversation_id: Id, /, **fields: Unpack[arguments.AddTurns]) -> Call[models.PlacedTurns]:
    """Append turns: all of them, or none.

    Required: turns.
    Fields: agent_id, channel, continues, user_id.
    """
    operation = OPERATIONS["add_turns"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PlacedTurns)


def append_to_agent_value(
    agent_id: Id, key: Id, /, **fields: Unpack[arguments.AppendToAgentValue]
) -> Call[models.WorkingValueAnswer]:
    """Append an element to a list, or text to a text; without a value, start a list.

    Required: value.
    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["append_to_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkingValueAnswer)


def archive_context(
    context_id: Id, /, **fields: Unpack[arguments.ArchiveContext]
) -> Call[models.PersistentContextAnswer]:
    """Archive a context.

    Fields: agent_id.
    """
    operation = OPERATIONS["archive_context"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def block_goal(goal_id: Id, /, **fields: Unpack[arguments.BlockGoal]) -> Call[models.StoredGoal]:
    """Make the goal wait for another open goal.

    Required: by.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["block_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredGoal)


def boost_entry(entry_id: Id, /, **fields: Unpack[arguments.BoostEntry]) -> Call[models.EntryAnswer]:
    """Increase the importance, up to 1.

    Fields: agent_id, by.
    """
    operation = OPERATIONS["boost_entry"]
    ids = (entry_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntryAnswer)


def build_context(**fields: Unpack[arguments.BuildContext]) -> Call[models.ContextAnswer]:
    """Lay out working memory, the most similar past conversations and the best evidence as text for the model.

    Required: conversation_id.
    Fields: agent_id, as_of, channel, deadline_ms, embedding_model, explain, include_episodic, include_procedural,
    include_semantic, include_superseded, kinds, known_at, mark_injected, max_snippet_tokens, max_tokens,
    min_confidence, min_score, mode, posture, query, query_embedding, scopes, since, slots, suppress_injected,
    techniques, time_window_hours, top_k, until, user_id, whole, working_fields.
    """
    operation = OPERATIONS["build_context"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ContextAnswer)


def check_ledger_item(conversation_id: Id, /, **fields: Unpack[arguments.CheckLedgerItem]) -> Call[models.CheckAnswer]:
    """Return whether an item has been injected.

    Required: item_key.
    Fields: agent_id.
    """
    operation = OPERATIONS["check_ledger_item"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.CheckAnswer)


def clear_active_goal(conversation_id: Id, /, **fields: Unpack[arguments.ClearActiveGoal]) -> Call[None]:
    """Clear the active goal.

    Fields: agent_id.
    """
    operation = OPERATIONS["clear_active_goal"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def clear_agent_values(agent_id: Id, /, **fields: Unpack[arguments.ClearAgentValues]) -> Call[None]:
    """Delete all values.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["clear_agent_values"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def complete_goal(goal_id: Id, /, **fields: Unpack[arguments.CompleteGoal]) -> Call[models.CompletedGoal]:
    """Close a goal for good.

    Fields: agent_id, channel, force, result, status, user_id.
    """
    operation = OPERATIONS["complete_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.CompletedGoal)


def consolidate_memories(**fields: Unpack[arguments.ConsolidateMemories]) -> Call[models.ConsolidatedAnswer]:
    """Promote entries that were read three times in a session to long-term memory.

    Required: session_id.
    Fields: agent_id.
    """
    operation = OPERATIONS["consolidate_memories"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConsolidatedAnswer)


def create_agent(**fields: Unpack[arguments.CreateAgent]) -> Call[models.AgentAnswer]:
    """Create an agent.

    Required: agent_id.
    Fields: description.
    """
    operation = OPERATIONS["create_agent"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.AgentAnswer)


def create_artifact(**fields: Unpack[arguments.CreateArtifact]) -> Call[models.StoredArtifact]:
    """Store an artifact, or its next revision if digest or label differ from the latest one (201).

    Required: uri.
    Fields: about, agent_id, channel, derived_from, description, digest, embedding, embedding_model, event_time,
    goal_id, label, metadata, record_id, title, type, user_id.
    """
    operation = OPERATIONS["create_artifact"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredArtifact)


def create_context(**fields: Unpack[arguments.CreateContext]) -> Call[models.PersistentContextAnswer]:
    """Create a context.

    Required: name.
    Fields: access_control, agent_id, context_type, description, metadata, scope, team.
    """
    operation = OPERATIONS["create_context"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def create_context_snapshot(
    context_id: Id, /, **fields: Unpack[arguments.CreateContextSnapshot]
) -> Call[models.SnapshotAnswer]:
    """Record what the context holds.

    Fields: agent_id, name.
    """
    operation = OPERATIONS["create_context_snapshot"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SnapshotAnswer)


def create_conversation(**fields: Unpack[arguments.CreateConversation]) -> Call[models.ConversationAnswer]:
    """Create a conversation.

    Fields: agent_id, channel, continues, conversation_id, metadata, title, user_id.
    """
    operation = OPERATIONS["create_conversation"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConversationAnswer)


def create_conversation_turn_record(
    conversation_id: Id, /, **fields: Unpack[arguments.CreateConversationTurnRecord]
) -> Call[models.PlacedRecord]:
    """Store a structured turn of this conversation, as POST /turn-records does.

    Fields: action, agent_id, channel, client_id, evidence, first_index, goal_id, last_index, metadata, observation,
    outcome, produced, reasoning, timestamp, tool_invocations, used, user_id.
    """
    operation = OPERATIONS["create_conversation_turn_record"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PlacedRecord)


def create_entity(**fields: Unpack[arguments.CreateEntity]) -> Call[models.EntityAnswer]:
    """Store an entity: 201 for a new one, 200 for one whose name or alias is known, which gets what it lacked.

    Required: name, type.
    Fields: agent_id, aliases, channel, description, embedding, embedding_model, event_time, properties, salience,
    user_id.
    """
    operation = OPERATIONS["create_entity"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntityAnswer)


def create_erasure(**fields: Unpack[arguments.CreateErasure]) -> Call[models.FilterAnswer]:
    """Erase the memories that a filter finds, with what was derived from them alone.

    Fields: agent_id, before, channel, dry_run, reason, user_id.
    """
    operation = OPERATIONS["create_erasure"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FilterAnswer)


def create_export(**fields: Unpack[arguments.CreateExport]) -> Call[models.ExportAnswer]:
    """Export the account, or what belongs to an agent or a user of it.

    Fields: agent_id, include_vectors, user_id.
    """
    operation = OPERATIONS["create_export"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ExportAnswer)


def create_fact(**fields: Unpack[arguments.CreateFact]) -> Call[models.FactAnswer]:
    """Store a fact: 201 for a new one, 200 for one that is believed already.

    Required: claim.
    Fields: agent_id, certainty, channel, confidence, embedding, embedding_model, entities, event_time, metadata,
    on_contradiction, source_turn_id, temporal, user_id, valid_from, valid_to.
    """
    operation = OPERATIONS["create_fact"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactAnswer)


def create_goal(**fields: Unpack[arguments.CreateGoal]) -> Call[models.StoredGoal]:
    """Add a goal.

    Required: description.
    Fields: agent_id, blocked_by, channel, deadline, embedding, embedding_model, event_time, metadata, parent, priority,
    user_id.
    """
    operation = OPERATIONS["create_goal"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredGoal)


def create_learning(**fields: Unpack[arguments.CreateLearning]) -> Call[models.StoredLearning]:
    """Publish an insight to a team of the acting agent.

    Required: insight, team.
    Fields: agent_id, channel, embedding, embedding_model, metadata, user_id.
    """
    operation = OPERATIONS["create_learning"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredLearning)


def create_memory(**fields: Unpack[arguments.CreateMemory]) -> Call[Result]:
    """Remember a text: one call, after which /recall finds it.

    Fields: agent_id, channel, conversation_id, embedding, embedding_model, event_time, expires_at, importance, infer,
    kind, messages, metadata, text, user_id.
    """
    operation = OPERATIONS["create_memory"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=Result)


def create_pool(**fields: Unpack[arguments.CreatePool]) -> Call[models.PoolAnswer]:
    """Create a pool.

    Fields: access_control, agent_id, data, expires_at, pool_id, pool_type, scope, task_id, team.
    """
    operation = OPERATIONS["create_pool"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def create_pool_posting(pool_id: Id, /, **fields: Unpack[arguments.CreatePoolPosting]) -> Call[models.PostingAnswer]:
    """Add a posting.

    Required: content.
    Fields: agent_id.
    """
    operation = OPERATIONS["create_pool_posting"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PostingAnswer)


def create_relationship(**fields: Unpack[arguments.CreateRelationship]) -> Call[models.RelationshipAnswer]:
    """Store a relationship: 201 for a new one, 200 for one that exists.

    Required: source, target, type.
    Fields: agent_id, channel, properties, user_id, weight.
    """
    operation = OPERATIONS["create_relationship"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RelationshipAnswer)


def create_short_term_memory(**fields: Unpack[arguments.CreateShortTermMemory]) -> Call[models.ShortTermAnswer]:
    """Store an entry, replacing the one of that session and key.

    Required: memory_key, memory_value.
    Fields: agent_id, memory_type, session_id, ttl_seconds.
    """
    operation = OPERATIONS["create_short_term_memory"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ShortTermAnswer)


def create_strategy(**fields: Unpack[arguments.CreateStrategy]) -> Call[models.StoredStrategy]:
    """Store a strategy.

    Required: description.
    Fields: agent_id, channel, context_pattern, conversation_id, embedding, embedding_model, event_time, metadata,
    success, task_type, tool_sequence, user_id.
    """
    operation = OPERATIONS["create_strategy"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredStrategy)


def create_team(**fields: Unpack[arguments.CreateTeam]) -> Call[models.TeamAnswer]:
    """Create a team.

    Required: name.
    """
    operation = OPERATIONS["create_team"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.TeamAnswer)


def create_turn_record(**fields: Unpack[arguments.CreateTurnRecord]) -> Call[models.PlacedRecord]:
    """Store a structured turn, or at least one of its slots: 201 for a new turn, 200 for a known client_id.

    Required: conversation_id.
    Fields: action, agent_id, channel, client_id, evidence, first_index, goal_id, last_index, metadata, observation,
    outcome, produced, reasoning, timestamp, tool_invocations, used, user_id.
    """
    operation = OPERATIONS["create_turn_record"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PlacedRecord)


def create_workflow_run(**fields: Unpack[arguments.CreateWorkflowRun]) -> Call[models.WorkflowRunAnswer]:
    """Start a run.

    Fields: agent_id, agents, metadata, workflow, workflow_run_id.
    """
    operation = OPERATIONS["create_workflow_run"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkflowRunAnswer)


def create_workflow_run_pool(
    workflow_run_id: Id, /, **fields: Unpack[arguments.CreateWorkflowRunPool]
) -> Call[models.PoolAnswer]:
    """Create a pool, as an agent of the run.

    Required: pool_type.
    Fields: access_control, agent_id, data, expires_at, pool_id, scope.
    """
    operation = OPERATIONS["create_workflow_run_pool"]
    ids = (workflow_run_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def delete_agent(agent_id: Id, /) -> Call[None]:
    """Erase an agent with what is its alone."""
    operation = OPERATIONS["delete_agent"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=None)


def delete_agent_value(agent_id: Id, key: Id, /, **fields: Unpack[arguments.DeleteAgentValue]) -> Call[None]:
    """Delete a value, if it exists.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["delete_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_artifact(artifact_id: Id, /, **fields: Unpack[arguments.DeleteArtifact]) -> Call[None]:
    """Delete this revision for good.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_artifact"]
    ids = (artifact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_cached_result(pool_id: Id, key: Id, /, **fields: Unpack[arguments.DeleteCachedResult]) -> Call[None]:
    """Delete a result, if it exists.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_cached_result"]
    ids = (pool_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_context(context_id: Id, /, **fields: Unpack[arguments.DeleteContext]) -> Call[None]:
    """Erase a context with its entries, their history, its snapshots and its access log.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_context"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_context_snapshot(
    context_id: Id, snapshot_id: Id, /, **fields: Unpack[arguments.DeleteContextSnapshot]
) -> Call[None]:
    """Delete a snapshot.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_context_snapshot"]
    ids = (context_id, snapshot_id)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_conversation(conversation_id: Id, /, **fields: Unpack[arguments.DeleteConversation]) -> Call[None]:
    """Erase a conversation with all that it holds, its live side, and what was derived from that alone.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_conversation_turn(
    conversation_id: Id, turn_id: Id, /, **fields: Unpack[arguments.DeleteConversationTurn]
) -> Call[None]:
    """Erase what a turn says, and what was derived from it alone.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_conversation_turn"]
    ids = (conversation_id, turn_id)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_conversation_value(
    conversation_id: Id, key: Id, /, **fields: Unpack[arguments.DeleteConversationValue]
) -> Call[None]:
    """Delete a value, if it exists.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_conversation_value"]
    ids = (conversation_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_entity(entity_id: Id, /, **fields: Unpack[arguments.DeleteEntity]) -> Call[None]:
    """Delete an entity for good, with its names, its links and what was merged into it.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_entity"]
    ids = (entity_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_entry(entry_id: Id, /, **fields: Unpack[arguments.DeleteEntry]) -> Call[None]:
    """Remove an entry from reads and searches.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_entry"]
    ids = (entry_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_episodic(conversation_id: Id, /, **fields: Unpack[arguments.DeleteEpisodic]) -> Call[None]:
    """Erase the episodes of a conversation that the owner sees, or one of them: 404 if that is not there.

    Fields: agent_id, channel, episode_id, user_id.
    """
    operation = OPERATIONS["delete_episodic"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_fact(fact_id: Id, /, **fields: Unpack[arguments.DeleteFact]) -> Call[None]:
    """Retract a fact: it is no longer believed, and may be learned again.

    Fields: agent_id, channel, erase, user_id.
    """
    operation = OPERATIONS["delete_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_goal(goal_id: Id, /, **fields: Unpack[arguments.DeleteGoal]) -> Call[None]:
    """Delete a goal for good.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_keyed_memory(key: Id, /, **fields: Unpack[arguments.DeleteKeyedMemory]) -> Call[None]:
    """Delete the value of a key in every tier, or in one.

    Fields: agent_id, pool_id, session_id, tier.
    """
    operation = OPERATIONS["delete_keyed_memory"]
    ids = (key,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_learning(learning_id: Id, /, **fields: Unpack[arguments.DeleteLearning]) -> Call[None]:
    """Delete an insight, by the agent that published it or for the account.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_learning"]
    ids = (learning_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_memories(**fields: Unpack[arguments.DeleteMemories]) -> Call[models.ForgottenAnswer]:
    """Delete what is known about a user for good: notes, facts, entities, goals, strategies and artifacts.

    Fields: agent_id, channel, dry_run, kind, user_id.
    """
    operation = OPERATIONS["delete_memories"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ForgottenAnswer)


def delete_memory(memory_id: Id, /, **fields: Unpack[arguments.DeleteMemory]) -> Call[None]:
    """Delete a memory for good, with its vectors and links.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_memory"]
    ids = (memory_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_pool(pool_id: Id, /, **fields: Unpack[arguments.DeletePool]) -> Call[None]:
    """Delete a pool with its content.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_pool"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_profile(user_id: Id, /, **fields: Unpack[arguments.DeleteProfile]) -> Call[None]:
    """Delete a user's profile.

    Fields: agent_id, user_id.
    """
    operation = OPERATIONS["delete_profile"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_relationship(relationship_id: Id, /, **fields: Unpack[arguments.DeleteRelationship]) -> Call[None]:
    """Delete a relationship, by the holder of its entities or for the account.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_relationship"]
    ids = (relationship_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_short_term_memory(short_term_id: Id, /, **fields: Unpack[arguments.DeleteShortTermMemory]) -> Call[None]:
    """Delete an entry.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_short_term_memory"]
    ids = (short_term_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_strategy(strategy_id: Id, /, **fields: Unpack[arguments.DeleteStrategy]) -> Call[None]:
    """Delete a strategy, by its holder or for the account (403 for others).

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["delete_strategy"]
    ids = (strategy_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_subject(user_id: Id, /, **fields: Unpack[arguments.DeleteSubject]) -> Call[models.ErasureAnswer]:
    """Erase all that is known of the user, in every store.

    Fields: dry_run, reason.
    """
    operation = OPERATIONS["delete_subject"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ErasureAnswer)


def delete_team(team_id: Id, /) -> Call[None]:
    """Delete a team."""
    operation = OPERATIONS["delete_team"]
    ids = (team_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=None)


def delete_turn_record(record_id: Id, /, **fields: Unpack[arguments.DeleteTurnRecord]) -> Call[None]:
    """Delete a structured turn for good, with its slots of every level and its raw trace.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_turn_record"]
    ids = (record_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def delete_working_memory(conversation_id: Id, /, **fields: Unpack[arguments.DeleteWorkingMemory]) -> Call[None]:
    """Delete the fields named in the body, {'fields': ['name']}; without a body, all fields.

    Fields: agent_id.
    """
    operation = OPERATIONS["delete_working_memory"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def end_conversation(conversation_id: Id, /, **fields: Unpack[arguments.EndConversation]) -> Call[models.EndedAnswer]:
    """End the session.

    Fields: agent_id, event_time, outcome.
    """
    operation = OPERATIONS["end_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EndedAnswer)


def evict_ledger_item(conversation_id: Id, /, **fields: Unpack[arguments.EvictLedgerItem]) -> Call[models.EvictAnswer]:
    """Remove an item, so that it may be injected again.

    Required: item_key.
    Fields: agent_id.
    """
    operation = OPERATIONS["evict_ledger_item"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EvictAnswer)


def extract_knowledge(conversation_id: Id, /, **fields: Unpack[arguments.ExtractKnowledge]) -> Call[models.RunAccepted]:
    """Extract entities, facts and relationships now from the turns that were not searched for them yet.

    Fields: agent_id.
    """
    operation = OPERATIONS["extract_knowledge"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RunAccepted)


def find_strategies(**fields: Unpack[arguments.FindStrategies]) -> Call[models.StrategiesAnswer]:
    """Find the strategies that suit the task best.

    Fields: agent_id, channel, embedding_model, min_score, query_embedding, task_description, task_type, top_k, user_id.
    """
    operation = OPERATIONS["find_strategies"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StrategiesAnswer)


def get_active_goal(conversation_id: Id, /, **fields: Unpack[arguments.GetActiveGoal]) -> Call[models.GoalAnswer]:
    """Return the active goal.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_active_goal"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.GoalAnswer)


def get_agent(agent_id: Id, /) -> Call[models.AgentAnswer]:
    """Return an agent."""
    operation = OPERATIONS["get_agent"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.AgentAnswer)


def get_agent_value(
    agent_id: Id, key: Id, /, **fields: Unpack[arguments.GetAgentValue]
) -> Call[models.WorkingValueAnswer]:
    """Return a value.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["get_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkingValueAnswer)


def get_artifact(artifact_id: Id, /, **fields: Unpack[arguments.GetArtifact]) -> Call[models.ArtifactAround]:
    """Return an artifact with its record, its goal, its links and its revisions.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_artifact"]
    ids = (artifact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ArtifactAround)


def get_artifact_lineage(
    artifact_id: Id, /, **fields: Unpack[arguments.GetArtifactLineage]
) -> Call[models.LineageAnswer]:
    """Return the revisions and artifacts that it came from and those that came from it, up to 200 each way.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_artifact_lineage"]
    ids = (artifact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.LineageAnswer)


def get_cached_result(
    pool_id: Id, key: Id, /, **fields: Unpack[arguments.GetCachedResult]
) -> Call[models.CachedAnswer]:
    """Return a result, and count it as a hit.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_cached_result"]
    ids = (pool_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.CachedAnswer)


def get_context(context_id: Id, /, **fields: Unpack[arguments.GetContext]) -> Call[models.PersistentContextAnswer]:
    """Return a context without its entries.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_context"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def get_context_snapshot(
    context_id: Id, snapshot_id: Id, /, **fields: Unpack[arguments.GetContextSnapshot]
) -> Call[models.SnapshotWithPreview]:
    """Return a snapshot with what restoring it would do now.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_context_snapshot"]
    ids = (context_id, snapshot_id)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SnapshotWithPreview)


def get_conversation(
    conversation_id: Id, /, **fields: Unpack[arguments.GetConversation]
) -> Call[models.ConversationAnswer]:
    """Return a conversation with its participants.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConversationAnswer)


def get_conversation_context(
    conversation_id: Id, /, **fields: Unpack[arguments.GetConversationContext]
) -> Call[models.SessionContextAnswer]:
    """Lay out the summary of earlier turns and the most similar episodes of other conversations for the model.

    Fields: agent_id, limit, query.
    """
    operation = OPERATIONS["get_conversation_context"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SessionContextAnswer)


def get_conversation_lineage(
    conversation_id: Id, /, **fields: Unpack[arguments.GetConversationLineage]
) -> Call[models.ConversationLineageAnswer]:
    """Return the lineage: up to 200 conversations in each direction.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_conversation_lineage"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConversationLineageAnswer)


def get_conversation_value(
    conversation_id: Id, key: Id, /, **fields: Unpack[arguments.GetConversationValue]
) -> Call[models.ValueAnswer]:
    """Return a value.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_conversation_value"]
    ids = (conversation_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ValueAnswer)


def get_entity(entity_id: Id, /, **fields: Unpack[arguments.GetEntity]) -> Call[models.EntityAnswer]:
    """Return an entity, even one that was merged into another: merged_into names that one.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_entity"]
    ids = (entity_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntityAnswer)


def get_entry(entry_id: Id, /, **fields: Unpack[arguments.GetEntry]) -> Call[models.EntryAnswer]:
    """Return an entry with its present version.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_entry"]
    ids = (entry_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntryAnswer)


def get_erasure(erasure_id: Id, /) -> Call[models.ErasureAnswer]:
    """Return an erasure, with its receipt once it is completed."""
    operation = OPERATIONS["get_erasure"]
    ids = (erasure_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.ErasureAnswer)


def get_export(export_id: Id, /) -> Call[models.ExportAnswer]:
    """Return an export, with its progress."""
    operation = OPERATIONS["get_export"]
    ids = (export_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.ExportAnswer)


def get_fact(fact_id: Id, /, **fields: Unpack[arguments.GetFact]) -> Call[models.FactDetail]:
    """Return a fact of any status and channel, with all of its versions and links.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactDetail)


def get_goal(goal_id: Id, /, **fields: Unpack[arguments.GetGoal]) -> Call[models.GoalWithRelated]:
    """Return a goal with the goals around it.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.GoalWithRelated)


def get_import(import_id: Id, /) -> Call[models.ImportAnswer]:
    """Return an import, with its progress."""
    operation = OPERATIONS["get_import"]
    ids = (import_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.ImportAnswer)


def get_job(job_id: Id, /) -> Call[models.RunAnswer]:
    """Return a run."""
    operation = OPERATIONS["get_job"]
    ids = (job_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.RunAnswer)


def get_key() -> Call[models.KeyAnswer]:
    """Return what the key of this request may do, and for whom."""
    operation = OPERATIONS["get_key"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={}, answer=models.KeyAnswer)


def get_keyed_memory(key: Id, /, **fields: Unpack[arguments.GetKeyedMemory]) -> Call[models.KeyedValueAnswer]:
    """Return the value of a key from the first tier that has one: working, short_term, long_term, shared.

    Fields: agent_id, pool_id, session_id, tier.
    """
    operation = OPERATIONS["get_keyed_memory"]
    ids = (key,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.KeyedValueAnswer)


def get_learning(learning_id: Id, /, **fields: Unpack[arguments.GetLearning]) -> Call[models.StoredLearning]:
    """Return an insight.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_learning"]
    ids = (learning_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredLearning)


def get_ledger(conversation_id: Id, /, **fields: Unpack[arguments.GetLedger]) -> Call[Result]:
    """Return every injected item as an object of item keys and values; empty for an unknown conversation.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_ledger"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=Result)


def get_memory(memory_id: Id, /, **fields: Unpack[arguments.GetMemory]) -> Call[models.MemoryAnswer]:
    """Return a memory of any kind but entries of contexts and reasoning.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_memory"]
    ids = (memory_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.MemoryAnswer)


def get_memory_stats(**fields: Unpack[arguments.GetMemoryStats]) -> Call[models.TiersAnswer]:
    """Return what the agent has in each tier, and how often its reads found a value there.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_memory_stats"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.TiersAnswer)


def get_pool(pool_id: Id, /, **fields: Unpack[arguments.GetPool]) -> Call[models.PoolAnswer]:
    """Return a pool without its content.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_pool"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def get_pool_data(pool_id: Id, /, **fields: Unpack[arguments.GetPoolData]) -> Call[models.DataAnswer]:
    """Return the data at the path.

    Fields: agent_id, path.
    """
    operation = OPERATIONS["get_pool_data"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.DataAnswer)


def get_pool_statistics(
    pool_id: Id, /, **fields: Unpack[arguments.GetPoolStatistics]
) -> Call[models.PoolStatisticsAnswer]:
    """Return the present statistics.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_pool_statistics"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolStatisticsAnswer)


def get_profile(user_id: Id, /, **fields: Unpack[arguments.GetProfile]) -> Call[models.ProfileAnswer]:
    """Return a user's profile.

    Fields: agent_id, user_id.
    """
    operation = OPERATIONS["get_profile"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ProfileAnswer)


def get_relationship(
    relationship_id: Id, /, **fields: Unpack[arguments.GetRelationship]
) -> Call[models.RelationshipAnswer]:
    """Return a relationship.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_relationship"]
    ids = (relationship_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RelationshipAnswer)


def get_shared_value(
    agent_id: Id, source_agent_id: Id, key: Id, /, **fields: Unpack[arguments.GetSharedValue]
) -> Call[models.WorkingValueAnswer]:
    """Return the shared copy.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["get_shared_value"]
    ids = (agent_id, source_agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkingValueAnswer)


def get_short_term_memory(
    short_term_id: Id, /, **fields: Unpack[arguments.GetShortTermMemory]
) -> Call[models.ShortTermAnswer]:
    """Return an entry and count the access: entries read three times are worth promoting.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_short_term_memory"]
    ids = (short_term_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ShortTermAnswer)


def get_strategy(strategy_id: Id, /, **fields: Unpack[arguments.GetStrategy]) -> Call[models.StoredStrategy]:
    """Return a strategy of any channel.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["get_strategy"]
    ids = (strategy_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredStrategy)


def get_subject(user_id: Id, /) -> Call[models.SubjectAnswer]:
    """Count what erasing the user would erase or change."""
    operation = OPERATIONS["get_subject"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.SubjectAnswer)


def get_subject_erasure(user_id: Id, /) -> Call[models.ErasureAnswer]:
    """Return the latest erasure of the user."""
    operation = OPERATIONS["get_subject_erasure"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.ErasureAnswer)


def get_team(team_id: Id, /) -> Call[models.TeamAnswer]:
    """Return a team."""
    operation = OPERATIONS["get_team"]
    ids = (team_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=models.TeamAnswer)


def get_tool_invocation(
    invocation_id: Id, /, **fields: Unpack[arguments.GetToolInvocation]
) -> Call[models.InvocationInFull]:
    """Return a call with its input, output and error.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_tool_invocation"]
    ids = (invocation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.InvocationInFull)


def get_turn_record(record_id: Id, /, **fields: Unpack[arguments.GetTurnRecord]) -> Call[models.RecordInFull]:
    """Return a structured turn with its slots and references.

    Fields: agent_id, level.
    """
    operation = OPERATIONS["get_turn_record"]
    ids = (record_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RecordInFull)


def get_work_episode(episode_id: Id, /, **fields: Unpack[arguments.GetWorkEpisode]) -> Call[models.WorkEpisodeAnswer]:
    """Return an episode of any level, even an archived one, as long as retention keeps it.

    Fields: agent_id, expand.
    """
    operation = OPERATIONS["get_work_episode"]
    ids = (episode_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkEpisodeAnswer)


def get_workflow_run(
    workflow_run_id: Id, /, **fields: Unpack[arguments.GetWorkflowRun]
) -> Call[models.WorkflowRunAnswer]:
    """Return a run.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_workflow_run"]
    ids = (workflow_run_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkflowRunAnswer)


def get_working_memory(conversation_id: Id, /, **fields: Unpack[arguments.GetWorkingMemory]) -> Call[Result]:
    """Return the fields as a plain object, empty if nothing is stored.

    Fields: agent_id.
    """
    operation = OPERATIONS["get_working_memory"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=Result)


def grant_context_access(
    context_id: Id, /, **fields: Unpack[arguments.GrantContextAccess]
) -> Call[models.PersistentContextAnswer]:
    """Grant an agent access.

    Required: agent_id, level.
    """
    operation = OPERATIONS["grant_context_access"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def grant_pool_access(pool_id: Id, /, **fields: Unpack[arguments.GrantPoolAccess]) -> Call[models.PoolAnswer]:
    """Grant an agent access.

    Required: agent_id, level.
    """
    operation = OPERATIONS["grant_pool_access"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def list_agent_values(agent_id: Id, /, **fields: Unpack[arguments.ListAgentValues]) -> Call[models.WorkingKeysAnswer]:
    """List the keys of the values that have not expired.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["list_agent_values"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkingKeysAnswer)


def list_agents(**fields: Unpack[arguments.ListAgents]) -> PageCall[models.AgentAnswer]:
    """List the account's agents, latest first.

    Fields: cursor, page_size.
    """
    operation = OPERATIONS["list_agents"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.AgentAnswer)


def list_artifacts(**fields: Unpack[arguments.ListArtifacts]) -> PageCall[models.StoredArtifact]:
    """List artifacts of the channel and of _global, latest first.

    Fields: agent_id, channel, conversation_id, cursor, goal_id, page_size, record_id, revisions, type, uri, uri_prefix,
    user_id.
    """
    operation = OPERATIONS["list_artifacts"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredArtifact)


def list_audit_log(**fields: Unpack[arguments.ListAuditLog]) -> PageCall[models.AuditAnswer]:
    """List entries, latest first.

    Fields: agent_id, conversation_id, cursor, memory_type, operation, page_size, since, source_channel, success, until,
    user_id.
    """
    operation = OPERATIONS["list_audit_log"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.AuditAnswer)


def list_cached_results(
    pool_id: Id, /, **fields: Unpack[arguments.ListCachedResults]
) -> PageCall[models.CachedKeyAnswer]:
    """List the keys of results that have not expired, latest first.

    Fields: agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_cached_results"]
    ids = (pool_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.CachedKeyAnswer)


def list_context_access_log(
    context_id: Id, /, **fields: Unpack[arguments.ListContextAccessLog]
) -> PageCall[models.AccessLogAnswer]:
    """List accesses, latest first.

    Fields: accessed_by, action, agent_id, cursor, entry_id, page_size, since, until.
    """
    operation = OPERATIONS["list_context_access_log"]
    ids = (context_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.AccessLogAnswer)


def list_context_entries(
    context_id: Id, /, **fields: Unpack[arguments.ListContextEntries]
) -> PageCall[models.EntryAnswer]:
    """List entries, latest first.

    Fields: agent_id, cursor, entry_type, key, memory_type, ordering, page_size, source_type.
    """
    operation = OPERATIONS["list_context_entries"]
    ids = (context_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.EntryAnswer)


def list_context_snapshots(
    context_id: Id, /, **fields: Unpack[arguments.ListContextSnapshots]
) -> PageCall[models.SnapshotAnswer]:
    """List snapshots, latest first.

    Fields: agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_context_snapshots"]
    ids = (context_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.SnapshotAnswer)


def list_contexts(**fields: Unpack[arguments.ListContexts]) -> PageCall[models.PersistentContextAnswer]:
    """List contexts, latest first, including archived ones.

    Fields: agent_id, archived, context_type, cursor, name, page_size, scope, team.
    """
    operation = OPERATIONS["list_contexts"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.PersistentContextAnswer)


def list_conversation_participants(
    conversation_id: Id, /, **fields: Unpack[arguments.ListConversationParticipants]
) -> PageCall[models.ParticipantAnswer]:
    """List the agents that take part, latest first.

    Fields: agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_conversation_participants"]
    ids = (conversation_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ParticipantAnswer)


def list_conversation_turn_records(
    conversation_id: Id, /, **fields: Unpack[arguments.ListConversationTurnRecords]
) -> PageCall[models.RecordAnswer]:
    """List structured turns, first one first.

    Fields: agent_id, cursor, goal_id, level, page_size, since, status, until.
    """
    operation = OPERATIONS["list_conversation_turn_records"]
    ids = (conversation_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.RecordAnswer)


def list_conversation_values(
    conversation_id: Id, /, **fields: Unpack[arguments.ListConversationValues]
) -> Call[models.ValuesAnswer]:
    """Return all values that have not expired.

    Fields: agent_id.
    """
    operation = OPERATIONS["list_conversation_values"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ValuesAnswer)


def list_conversations(**fields: Unpack[arguments.ListConversations]) -> PageCall[models.ListedConversation]:
    """List conversations, latest first.

    Fields: agent_id, archived, channel, continues, cursor, ended, page_size, user_id.
    """
    operation = OPERATIONS["list_conversations"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ListedConversation)


def list_entities(**fields: Unpack[arguments.ListEntities]) -> PageCall[models.EntityAnswer]:
    """List entities of the channel and of _global.

    Fields: agent_id, channel, conversation_id, cursor, name, ordering, page_size, type, user_id.
    """
    operation = OPERATIONS["list_entities"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.EntityAnswer)


def list_entry_versions(
    entry_id: Id, /, **fields: Unpack[arguments.ListEntryVersions]
) -> PageCall[models.VersionAnswer]:
    """List versions, the first one first and the present one last.

    Fields: agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_entry_versions"]
    ids = (entry_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.VersionAnswer)


def list_episodes(conversation_id: Id, /, **fields: Unpack[arguments.ListEpisodes]) -> PageCall[models.StoredEpisode]:
    """List the episodes of a conversation.

    Fields: agent_id, channel, cursor, page_size, user_id.
    """
    operation = OPERATIONS["list_episodes"]
    ids = (conversation_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredEpisode)


def list_erasures(**fields: Unpack[arguments.ListErasures]) -> PageCall[models.ErasureAnswer]:
    """List erasures, latest first.

    Fields: cursor, page_size, scope, status.
    """
    operation = OPERATIONS["list_erasures"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ErasureAnswer)


def list_exports(**fields: Unpack[arguments.ListExports]) -> PageCall[models.ExportAnswer]:
    """List exports, latest first.

    Fields: cursor, page_size, status.
    """
    operation = OPERATIONS["list_exports"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ExportAnswer)


def list_facts(**fields: Unpack[arguments.ListFacts]) -> PageCall[models.FactAnswer]:
    """List facts of the channel and of _global that are true now, or at as_of, latest first.

    Fields: agent_id, as_of, certainty, channel, conversation_id, cursor, entity, known_at, min_confidence, page_size,
    source_turn_id, status, temporal, user_id.
    """
    operation = OPERATIONS["list_facts"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.FactAnswer)


def list_goals(**fields: Unpack[arguments.ListGoals]) -> PageCall[models.StoredGoal]:
    """List goals of the channel and of _global.

    Fields: agent_id, channel, cursor, due_before, ordering, overdue, page_size, parent, status, user_id.
    """
    operation = OPERATIONS["list_goals"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredGoal)


def list_imports(**fields: Unpack[arguments.ListImports]) -> PageCall[models.ImportAnswer]:
    """List imports, latest first.

    Fields: cursor, page_size, status.
    """
    operation = OPERATIONS["list_imports"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ImportAnswer)


def list_jobs(**fields: Unpack[arguments.ListJobs]) -> PageCall[models.RunAnswer]:
    """List runs, latest first.

    Fields: cursor, job, page_size, status.
    """
    operation = OPERATIONS["list_jobs"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.RunAnswer)


def list_learnings(**fields: Unpack[arguments.ListLearnings]) -> PageCall[models.StoredLearning]:
    """List insights of the agent's teams.

    Fields: agent_id, cursor, ordering, page_size, published_by, team.
    """
    operation = OPERATIONS["list_learnings"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredLearning)


def list_memories(**fields: Unpack[arguments.ListMemories]) -> PageCall[models.MemoryAnswer]:
    """List memories, latest first.

    Fields: agent_id, channel, conversation_id, cursor, kind, page_size, since, until, user_id.
    """
    operation = OPERATIONS["list_memories"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.MemoryAnswer)


def list_messages(conversation_id: Id, /, **fields: Unpack[arguments.ListMessages]) -> Call[models.MessagesAnswer]:
    """Return the latest messages of the session's buffer, oldest first.

    Fields: agent_id, limit.
    """
    operation = OPERATIONS["list_messages"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.MessagesAnswer)


def list_pool_postings(pool_id: Id, /, **fields: Unpack[arguments.ListPoolPostings]) -> PageCall[models.PostingAnswer]:
    """List postings, oldest first.

    Fields: after, agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_pool_postings"]
    ids = (pool_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.PostingAnswer)


def list_pools(**fields: Unpack[arguments.ListPools]) -> PageCall[models.PoolAnswer]:
    """List pools without their content, latest first.

    Fields: agent_id, cursor, page_size, pool_type, scope, task_id, team.
    """
    operation = OPERATIONS["list_pools"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.PoolAnswer)


def list_relationships(**fields: Unpack[arguments.ListRelationships]) -> PageCall[models.RelationshipAnswer]:
    """List relationships, latest first.

    Fields: agent_id, channel, cursor, entity, page_size, source, target, type, user_id.
    """
    operation = OPERATIONS["list_relationships"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.RelationshipAnswer)


def list_short_term_memories(**fields: Unpack[arguments.ListShortTermMemories]) -> PageCall[models.ShortTermAnswer]:
    """List entries, latest first.

    Fields: agent_id, cursor, memory_key, memory_type, page_size, session_id.
    """
    operation = OPERATIONS["list_short_term_memories"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ShortTermAnswer)


def list_strategies(**fields: Unpack[arguments.ListStrategies]) -> PageCall[models.StoredStrategy]:
    """List strategies of the channel and of _global, latest first.

    Fields: agent_id, channel, cursor, min_success_rate, page_size, task_type, tool, user_id.
    """
    operation = OPERATIONS["list_strategies"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredStrategy)


def list_team_members(team_id: Id, /, **fields: Unpack[arguments.ListTeamMembers]) -> PageCall[models.MemberAnswer]:
    """List the members, latest first.

    Fields: cursor, page_size.
    """
    operation = OPERATIONS["list_team_members"]
    ids = (team_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.MemberAnswer)


def list_teams(**fields: Unpack[arguments.ListTeams]) -> PageCall[models.TeamAnswer]:
    """List the account's teams, latest first.

    Fields: cursor, page_size.
    """
    operation = OPERATIONS["list_teams"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.TeamAnswer)


def list_thoughts(conversation_id: Id, /, **fields: Unpack[arguments.ListThoughts]) -> Call[models.ThoughtsAnswer]:
    """Return the latest thoughts, latest last.

    Fields: agent_id, limit.
    """
    operation = OPERATIONS["list_thoughts"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ThoughtsAnswer)


def list_timeline(**fields: Unpack[arguments.ListTimeline]) -> PageCall[models.RememberedAnswer]:
    """List memories of all kinds and channels, calls of tools and changes of pools, latest first.

    Fields: agent_id, archived, channel, conversation_id, cursor, include_archived, memory_type, ordering, page_size,
    since, until, user_id.
    """
    operation = OPERATIONS["list_timeline"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.RememberedAnswer)


def list_tool_invocations(**fields: Unpack[arguments.ListToolInvocations]) -> PageCall[models.InvocationAnswer]:
    """List calls without their input and output, latest first.

    Fields: agent_id, channel, conversation_id, cursor, page_size, since, success, task_type, tool_name, until.
    """
    operation = OPERATIONS["list_tool_invocations"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.InvocationAnswer)


def list_tools(**fields: Unpack[arguments.ListTools]) -> PageCall[models.ToolAnswer]:
    """List tools by name: how often each was called and succeeded, and how long the calls took.

    Fields: agent_id, by, channel, cursor, page_size, since, task_type.
    """
    operation = OPERATIONS["list_tools"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.ToolAnswer)


def list_turn_records(**fields: Unpack[arguments.ListTurnRecords]) -> PageCall[models.RecordAnswer]:
    """List structured turns with their slots as the policy allows them now, latest first.

    Fields: agent_id, conversation_id, cursor, goal_id, level, page_size, since, status, until.
    """
    operation = OPERATIONS["list_turn_records"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.RecordAnswer)


def list_turns(conversation_id: Id, /, **fields: Unpack[arguments.ListTurns]) -> PageCall[models.TurnAnswer]:
    """List turns, first one first.

    Fields: after_index, agent_id, cursor, page_size, role, since, until.
    """
    operation = OPERATIONS["list_turns"]
    ids = (conversation_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.TurnAnswer)


def list_work_episodes(**fields: Unpack[arguments.ListWorkEpisodes]) -> PageCall[models.StoredWorkEpisode]:
    """List episodes at their present level, latest first.

    Fields: agent_id, conversation_id, cursor, goal_id, level, page_size, status.
    """
    operation = OPERATIONS["list_work_episodes"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.StoredWorkEpisode)


def list_workflow_run_pools(
    workflow_run_id: Id, /, **fields: Unpack[arguments.ListWorkflowRunPools]
) -> PageCall[models.PoolAnswer]:
    """List the run's pools without their content, latest first.

    Fields: agent_id, cursor, page_size.
    """
    operation = OPERATIONS["list_workflow_run_pools"]
    ids = (workflow_run_id,)
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.PoolAnswer)


def list_workflow_runs(**fields: Unpack[arguments.ListWorkflowRuns]) -> PageCall[models.WorkflowRunAnswer]:
    """List runs, latest first.

    Fields: agent_id, cursor, page_size, status, workflow.
    """
    operation = OPERATIONS["list_workflow_runs"]
    ids = ()
    return PageCall(operation=operation, ids=ids, fields={**fields}, item=models.WorkflowRunAnswer)


def load_agent_values(agent_id: Id, /, **fields: Unpack[arguments.LoadAgentValues]) -> Call[models.SavedValuesAnswer]:
    """Restore the saved values, each for the time that it had left.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["load_agent_values"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SavedValuesAnswer)


def mark_ledger_item(conversation_id: Id, /, **fields: Unpack[arguments.MarkLedgerItem]) -> Call[models.MarkAnswer]:
    """Record an injection and return whether this call was the first to do so.

    Required: item_key.
    Fields: agent_id, value.
    """
    operation = OPERATIONS["mark_ledger_item"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.MarkAnswer)


def merge_entity(entity_id: Id, /, **fields: Unpack[arguments.MergeEntity]) -> Call[models.EntityAnswer]:
    """Move names and links of the entity in from to this one, and archive that one.

    Required: from.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["merge_entity"]
    ids = (entity_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntityAnswer)


def merge_pool_data(pool_id: Id, /, **fields: Unpack[arguments.MergePoolData]) -> Call[models.WrittenAnswer]:
    """Merge the data into the present data: objects member by member at every depth, all else is replaced.

    Required: data.
    Fields: agent_id, expected_version, path.
    """
    operation = OPERATIONS["merge_pool_data"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WrittenAnswer)


def persist_agent_values(
    agent_id: Id, /, **fields: Unpack[arguments.PersistAgentValues]
) -> Call[models.SavedValuesAnswer]:
    """Save all values with the time that each has left, replacing what was saved before.

    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["persist_agent_values"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SavedValuesAnswer)


def preview_erasure(**fields: Unpack[arguments.PreviewErasure]) -> Call[models.ErasurePreviewAnswer]:
    """Say what deleting a conversation, turn, episode, fact or other memory would erase.

    Fields: agent_id, conversation_id, memory_id.
    """
    operation = OPERATIONS["preview_erasure"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ErasurePreviewAnswer)


def promote_fact(fact_id: Id, /, **fields: Unpack[arguments.PromoteFact]) -> Call[models.FactAnswer]:
    """Copy a fact to _global, for the same user and agent.

    Required: reason.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["promote_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactAnswer)


def query_items(context_id: Id, /, **fields: Unpack[arguments.QueryItems]) -> Call[models.ItemsFound]:
    """Read items by path, search them by values and meaning, and list namespaces.

    Fields: agent_id, embedding_model, namespaces, reads, searches.
    """
    operation = OPERATIONS["query_items"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ItemsFound)


def readmit_subject(user_id: Id, /) -> Call[None]:
    """Lift the mark of an erased user that has come back."""
    operation = OPERATIONS["readmit_subject"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={}, answer=None)


def recall(**fields: Unpack[arguments.Recall]) -> Call[models.RecallAnswer]:
    """Find the memories of all kinds that answer the question best, with open goals and the user's profile.

    Fields: agent_id, as_of, channel, conversation_id, deadline_ms, embedding_model, explain, include_episodic,
    include_procedural, include_semantic, include_superseded, kinds, known_at, max_snippet_tokens, max_tokens,
    min_confidence, min_score, mode, posture, query, query_embedding, scopes, since, slots, suppress_injected,
    techniques, time_window_hours, top_k, until, user_id, whole.
    """
    operation = OPERATIONS["recall"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RecallAnswer)


def record_tool_invocation(**fields: Unpack[arguments.RecordToolInvocation]) -> Call[models.InvocationAnswer]:
    """Record a tool call of a conversation, and count it in the tool's statistics.

    Required: conversation_id, tool_name.
    Fields: agent_id, channel, error_message, latency_ms, success, task_type, timestamp, tool_input, tool_output,
    turn_index, user_id.
    """
    operation = OPERATIONS["record_tool_invocation"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.InvocationAnswer)


def record_tool_invocations(**fields: Unpack[arguments.RecordToolInvocations]) -> Call[models.RecordedInvocations]:
    """Record many calls of one conversation: all or none.

    Required: conversation_id, invocations.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["record_tool_invocations"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RecordedInvocations)


def reduce_entry(entry_id: Id, /, **fields: Unpack[arguments.ReduceEntry]) -> Call[models.EntryAnswer]:
    """Decrease the importance, down to 0.

    Fields: agent_id, by.
    """
    operation = OPERATIONS["reduce_entry"]
    ids = (entry_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntryAnswer)


def refresh_short_term_memory(
    short_term_id: Id, /, **fields: Unpack[arguments.RefreshShortTermMemory]
) -> Call[models.ShortTermAnswer]:
    """Restart the time to live, or set another one, from now on.

    Fields: agent_id, ttl_seconds.
    """
    operation = OPERATIONS["refresh_short_term_memory"]
    ids = (short_term_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ShortTermAnswer)


def reinforce_strategy(
    strategy_id: Id, /, **fields: Unpack[arguments.ReinforceStrategy]
) -> Call[models.StoredStrategy]:
    """Count a success or a failure of the strategy.

    Required: success.
    Fields: agent_id, channel, conversation_id, user_id.
    """
    operation = OPERATIONS["reinforce_strategy"]
    ids = (strategy_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredStrategy)


def reject_fact(fact_id: Id, /, **fields: Unpack[arguments.RejectFact]) -> Call[models.FactAnswer]:
    """Reject a fact: it is no longer believed, nor is the same fact in other channels, and it is not learned again.

    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["reject_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactAnswer)


def remove_participant(
    conversation_id: Id, participant_id: Id, /, **fields: Unpack[arguments.RemoveParticipant]
) -> Call[None]:
    """Stop an agent from reading the conversation.

    Fields: agent_id.
    """
    operation = OPERATIONS["remove_participant"]
    ids = (conversation_id, participant_id)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def remove_team_member(team_id: Id, agent_id: Id, /) -> Call[None]:
    """Remove an agent from the team."""
    operation = OPERATIONS["remove_team_member"]
    ids = (team_id, agent_id)
    return Call(operation=operation, ids=ids, fields={}, answer=None)


def replace_pool_data(pool_id: Id, /, **fields: Unpack[arguments.ReplacePoolData]) -> Call[models.WrittenAnswer]:
    """Replace the data at the path.

    Required: data.
    Fields: agent_id, expected_version, path.
    """
    operation = OPERATIONS["replace_pool_data"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WrittenAnswer)


def replay(**fields: Unpack[arguments.Replay]) -> Call[models.ReplayAnswer]:
    """Return outcomes and decisions of a goal, of a turn with what led to it, of a work episode, or of a decision.

    Fields: agent_id, channel, conversation_id, decision, episode_id, goal_id, max_tokens, posture, record_id, tier,
    user_id.
    """
    operation = OPERATIONS["replay"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ReplayAnswer)


def restore_context_snapshot(
    context_id: Id, snapshot_id: Id, /, **fields: Unpack[arguments.RestoreContextSnapshot]
) -> Call[models.RestoredAnswer]:
    """Make the context hold exactly what the snapshot has.

    Fields: agent_id, editor.
    """
    operation = OPERATIONS["restore_context_snapshot"]
    ids = (context_id, snapshot_id)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RestoredAnswer)


def restore_entry_version(
    entry_id: Id, number: Id, /, **fields: Unpack[arguments.RestoreEntryVersion]
) -> Call[models.EntryAnswer]:
    """Store the content of an earlier version as the next version.

    Fields: agent_id, editor.
    """
    operation = OPERATIONS["restore_entry_version"]
    ids = (entry_id, number)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntryAnswer)


def resume(**fields: Unpack[arguments.Resume]) -> Call[models.ResumeAnswer]:
    """Return what an agent that continues the work needs for the next move, within max_tokens.

    Fields: agent_id, channel, conversation_id, deadline_ms, goal_ids, max_tokens, query, replay, user_id.
    """
    operation = OPERATIONS["resume"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ResumeAnswer)


def revoke_context_access(
    context_id: Id, /, **fields: Unpack[arguments.RevokeContextAccess]
) -> Call[models.PersistentContextAnswer]:
    """Revoke what an agent was granted.

    Required: agent_id.
    Fields: level.
    """
    operation = OPERATIONS["revoke_context_access"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def revoke_pool_access(pool_id: Id, /, **fields: Unpack[arguments.RevokePoolAccess]) -> Call[models.PoolAnswer]:
    """Revoke what an agent was granted.

    Required: agent_id.
    Fields: level.
    """
    operation = OPERATIONS["revoke_pool_access"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def run_job(name: Id, /, **fields: Unpack[arguments.RunJob]) -> Call[models.RunAccepted]:
    """Request a run of the job over this account's rows.

    Fields: dry_run.
    """
    operation = OPERATIONS["run_job"]
    ids = (name,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RunAccepted)


def save_conversation(conversation_id: Id, /, **fields: Unpack[arguments.SaveConversation]) -> Call[models.SavedAnswer]:
    """Save the session's goal, thoughts and values to the database, from where they return if Redis loses them.

    Fields: agent_id.
    """
    operation = OPERATIONS["save_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SavedAnswer)


def search_context_entries(
    context_id: Id, /, **fields: Unpack[arguments.SearchContextEntries]
) -> Call[models.FoundEntries]:
    """Find the entries of the context that answer the query best.

    Fields: agent_id, channel, embedding_model, max_snippet_tokens, min_score, query, query_embedding, techniques,
    top_k, user_id, whole.
    """
    operation = OPERATIONS["search_context_entries"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FoundEntries)


def search_episodes(**fields: Unpack[arguments.SearchEpisodes]) -> Call[models.EpisodesAnswer]:
    """Find the agent's episodes that are most similar to the query.

    Fields: agent_id, channel, embedding_model, min_score, query, query_embedding, top_k, user_id.
    """
    operation = OPERATIONS["search_episodes"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EpisodesAnswer)


def search_keyed_memories(**fields: Unpack[arguments.SearchKeyedMemories]) -> Call[models.FoundEntries]:
    """Find the entries of the agent's long-term memory that answer the query best.

    Fields: agent_id, channel, embedding_model, max_snippet_tokens, min_score, query, query_embedding, techniques,
    top_k, user_id, whole.
    """
    operation = OPERATIONS["search_keyed_memories"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FoundEntries)


def search_learnings(**fields: Unpack[arguments.SearchLearnings]) -> Call[models.LearningsAnswer]:
    """Find the insights of the agent's teams that are most similar to the query.

    Fields: agent_id, channel, embedding_model, query, query_embedding, team, top_k, user_id.
    """
    operation = OPERATIONS["search_learnings"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.LearningsAnswer)


def search_memories(**fields: Unpack[arguments.SearchMemories]) -> Call[models.SearchedMemories]:
    """Find the memories that answer a question best: notes, facts, turns, keyed values and the other kinds.

    Fields: agent_id, channel, conversation_id, embedding_model, kinds, max_snippet_tokens, min_score, query,
    query_embedding, since, techniques, top_k, until, user_id, whole.
    """
    operation = OPERATIONS["search_memories"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SearchedMemories)


def set_active_goal(conversation_id: Id, /, **fields: Unpack[arguments.SetActiveGoal]) -> Call[models.GoalAnswer]:
    """Set the active goal.

    Required: description, goal_id.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["set_active_goal"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.GoalAnswer)


def set_agent_value(
    agent_id: Id, key: Id, /, **fields: Unpack[arguments.SetAgentValue]
) -> Call[models.WorkingValueAnswer]:
    """Store a value, replacing the present one.

    Required: value.
    Fields: task_id, ttl_seconds, workflow_run_id.
    """
    operation = OPERATIONS["set_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkingValueAnswer)


def set_cached_result(
    pool_id: Id, key: Id, /, **fields: Unpack[arguments.SetCachedResult]
) -> Call[models.CachedAnswer]:
    """Store a result, replacing the present one.

    Required: value.
    Fields: agent_id, ttl_seconds.
    """
    operation = OPERATIONS["set_cached_result"]
    ids = (pool_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.CachedAnswer)


def set_conversation_value(
    conversation_id: Id, key: Id, /, **fields: Unpack[arguments.SetConversationValue]
) -> Call[models.ValueAnswer]:
    """Store a value.

    Required: value.
    Fields: agent_id, channel, ttl_seconds, user_id.
    """
    operation = OPERATIONS["set_conversation_value"]
    ids = (conversation_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ValueAnswer)


def set_keyed_memory(key: Id, /, **fields: Unpack[arguments.SetKeyedMemory]) -> Call[models.KeyedValueAnswer]:
    """Store a value under a key in one tier, replacing the present one there.

    Required: value.
    Fields: agent_id, memory_type, pool_id, session_id, tier, ttl_seconds.
    """
    operation = OPERATIONS["set_keyed_memory"]
    ids = (key,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.KeyedValueAnswer)


def share_agent_value(
    agent_id: Id, key: Id, /, **fields: Unpack[arguments.ShareAgentValue]
) -> Call[models.SharedValueAnswer]:
    """Let another agent read the present value.

    Required: target_agent_id.
    Fields: task_id, ttl_seconds, workflow_run_id.
    """
    operation = OPERATIONS["share_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.SharedValueAnswer)


def split_entity(entity_id: Id, /, **fields: Unpack[arguments.SplitEntity]) -> Call[models.EntityAnswer]:
    """Separate another entity from this one and return it.

    Required: names.
    Fields: agent_id, channel, links, user_id.
    """
    operation = OPERATIONS["split_entity"]
    ids = (entity_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntityAnswer)


def store_episode(**fields: Unpack[arguments.StoreEpisode]) -> Call[models.StoredEpisode]:
    """Store the summary of a conversation.

    Required: conversation_id, summary.
    Fields: agent_id, channel, embedding, embedding_model, entities_mentioned, event_time, key_decisions, tools_called,
    user_id.
    """
    operation = OPERATIONS["store_episode"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredEpisode)


def summarize_conversation(
    conversation_id: Id, /, **fields: Unpack[arguments.SummarizeConversation]
) -> Call[models.RunAccepted]:
    """Request a summary of everything but the last ten messages, which stay in the session as they are.

    Fields: agent_id.
    """
    operation = OPERATIONS["summarize_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.RunAccepted)


def supersede_fact(fact_id: Id, /, **fields: Unpack[arguments.SupersedeFact]) -> Call[models.FactAnswer]:
    """Replace a fact because the world changed: it ends where the new one begins, and is kept.

    Required: claim.
    Fields: agent_id, certainty, channel, confidence, embedding, embedding_model, entities, event_time, metadata,
    source_turn_id, temporal, user_id, valid_from, valid_to.
    """
    operation = OPERATIONS["supersede_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactAnswer)


def unarchive_context(
    context_id: Id, /, **fields: Unpack[arguments.UnarchiveContext]
) -> Call[models.PersistentContextAnswer]:
    """Make an archived context usable again.

    Fields: agent_id.
    """
    operation = OPERATIONS["unarchive_context"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def unarchive_conversation(
    conversation_id: Id, /, **fields: Unpack[arguments.UnarchiveConversation]
) -> Call[models.ConversationAnswer]:
    """Bring an archived conversation and all of its turns back, as if it had been written to now.

    Fields: agent_id.
    """
    operation = OPERATIONS["unarchive_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConversationAnswer)


def unblock_goal(goal_id: Id, /, **fields: Unpack[arguments.UnblockGoal]) -> Call[models.StoredGoal]:
    """Stop the goal from waiting for another one.

    Required: by.
    Fields: agent_id, channel, user_id.
    """
    operation = OPERATIONS["unblock_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredGoal)


def unshare_agent_value(agent_id: Id, key: Id, /, **fields: Unpack[arguments.UnshareAgentValue]) -> Call[None]:
    """Stop sharing a value.

    Required: target_agent_id.
    Fields: task_id, workflow_run_id.
    """
    operation = OPERATIONS["unshare_agent_value"]
    ids = (agent_id, key)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=None)


def update_agent(agent_id: Id, /, **fields: Unpack[arguments.UpdateAgent]) -> Call[models.AgentAnswer]:
    """Change the description of an agent.

    Required: description.
    """
    operation = OPERATIONS["update_agent"]
    ids = (agent_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.AgentAnswer)


def update_artifact(artifact_id: Id, /, **fields: Unpack[arguments.UpdateArtifact]) -> Call[models.StoredArtifact]:
    """Change the given fields of this revision.

    Fields: agent_id, channel, description, embedding, embedding_model, goal_id, metadata, title, type, user_id.
    """
    operation = OPERATIONS["update_artifact"]
    ids = (artifact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredArtifact)


def update_context(
    context_id: Id, /, **fields: Unpack[arguments.UpdateContext]
) -> Call[models.PersistentContextAnswer]:
    """Change the given fields.

    Fields: access_control, agent_id, description, metadata, name.
    """
    operation = OPERATIONS["update_context"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PersistentContextAnswer)


def update_conversation(
    conversation_id: Id, /, **fields: Unpack[arguments.UpdateConversation]
) -> Call[models.ConversationAnswer]:
    """Change the title, the metadata, or the conversation that this one resumes.

    Fields: agent_id, continues, metadata, title.
    """
    operation = OPERATIONS["update_conversation"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ConversationAnswer)


def update_entity(entity_id: Id, /, **fields: Unpack[arguments.UpdateEntity]) -> Call[models.EntityAnswer]:
    """Change the given fields.

    Fields: agent_id, aliases, channel, description, name, properties, salience, type, user_id.
    """
    operation = OPERATIONS["update_entity"]
    ids = (entity_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntityAnswer)


def update_entry(entry_id: Id, /, **fields: Unpack[arguments.UpdateEntry]) -> Call[models.EntryAnswer]:
    """Store new content as the next version; equal content makes none.

    Fields: agent_id, content, editor, embedding, embedding_model, value.
    """
    operation = OPERATIONS["update_entry"]
    ids = (entry_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.EntryAnswer)


def update_fact(fact_id: Id, /, **fields: Unpack[arguments.UpdateFact]) -> Call[models.FactAnswer]:
    """Correct a fact that was wrong: the new values hold for all time, and the old ones are kept as a version.

    Fields: agent_id, channel, claim, confidence, embedding, embedding_model, temporal, user_id, valid_from, valid_to.
    """
    operation = OPERATIONS["update_fact"]
    ids = (fact_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.FactAnswer)


def update_goal(goal_id: Id, /, **fields: Unpack[arguments.UpdateGoal]) -> Call[models.StoredGoal]:
    """Change the given fields.

    Fields: agent_id, channel, deadline, description, embedding, embedding_model, metadata, parent, priority, user_id.
    """
    operation = OPERATIONS["update_goal"]
    ids = (goal_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredGoal)


def update_memory(memory_id: Id, /, **fields: Unpack[arguments.UpdateMemory]) -> Call[models.MemoryAnswer]:
    """Change a note.

    Fields: agent_id, channel, embedding, embedding_model, event_time, expires_at, importance, metadata, text, user_id.
    """
    operation = OPERATIONS["update_memory"]
    ids = (memory_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.MemoryAnswer)


def update_pool(pool_id: Id, /, **fields: Unpack[arguments.UpdatePool]) -> Call[models.PoolAnswer]:
    """Change the access control, or when the pool expires.

    Fields: access_control, agent_id, expires_at.
    """
    operation = OPERATIONS["update_pool"]
    ids = (pool_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.PoolAnswer)


def update_profile(user_id: Id, /, **fields: Unpack[arguments.UpdateProfile]) -> Call[models.ProfileAnswer]:
    """Change the given fields.

    Fields: agent_id, communication_style, expertise_areas, metadata, preferences, user_id.
    """
    operation = OPERATIONS["update_profile"]
    ids = (user_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ProfileAnswer)


def update_workflow_run(
    workflow_run_id: Id, /, **fields: Unpack[arguments.UpdateWorkflowRun]
) -> Call[models.WorkflowRunAnswer]:
    """End a run, or change its agents or metadata, as the agent that started it or for the account.

    Fields: add_agents, agent_id, agents, metadata, remove_agents, status.
    """
    operation = OPERATIONS["update_workflow_run"]
    ids = (workflow_run_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.WorkflowRunAnswer)


def update_working_memory(
    conversation_id: Id, /, **fields: Unpack[arguments.UpdateWorkingMemory]
) -> Call[models.StoredAnswer]:
    """Add or replace fields.

    Required: data.
    Fields: agent_id.
    """
    operation = OPERATIONS["update_working_memory"]
    ids = (conversation_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredAnswer)


def verify_erasure(**fields: Unpack[arguments.VerifyErasure]) -> Call[models.VerdictAnswer]:
    """Say whether a receipt is one of this account that the installation signed, and unchanged.

    Required: receipt, signature.
    """
    operation = OPERATIONS["verify_erasure"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.VerdictAnswer)


def vote_on_learning(learning_id: Id, /, **fields: Unpack[arguments.VoteOnLearning]) -> Call[models.StoredLearning]:
    """Vote on an insight, or change the vote.

    Required: helpful.
    Fields: agent_id.
    """
    operation = OPERATIONS["vote_on_learning"]
    ids = (learning_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.StoredLearning)


def walk_graph(**fields: Unpack[arguments.WalkGraph]) -> Call[models.GraphAnswer]:
    """Return the memories that links connect with the given ones, in either direction.

    Required: ids.
    Fields: agent_id, channel, depth, limit, types, user_id.
    """
    operation = OPERATIONS["walk_graph"]
    ids = ()
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.GraphAnswer)


def write_items(context_id: Id, /, **fields: Unpack[arguments.WriteItems]) -> Call[models.ItemsWritten]:
    """Store, replace and delete items, all or none.

    Fields: agent_id, channel, deleted, embedding_model, items, user_id.
    """
    operation = OPERATIONS["write_items"]
    ids = (context_id,)
    return Call(operation=operation, ids=ids, fields={**fields}, answer=models.ItemsWritten)

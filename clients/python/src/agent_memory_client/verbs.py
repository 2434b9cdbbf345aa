"""What agents do all day, as calls: the operations under short names, with their main arguments in front.

`**options` are the other fields of the operation, as the service documents them. Besides, each call takes an
`idempotency_key` of the caller's and a `timeout` in seconds for each attempt.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_memory_client import models
from agent_memory_client.calls import Call, Id, PageCall, Turn, Turns
from agent_memory_client.table import OPERATIONS


def remember(text: str, /, **options: Any) -> Call[models.MemoryAnswer]:
    """Remember a text as it is. Options: channel, kind, metadata, importance, event_time, expires_at, …."""
    fields = {"text": text, **options}
    return Call(operation=OPERATIONS["create_memory"], ids=(), fields=fields, answer=models.MemoryAnswer)


def infer(said: str | Iterable[Mapping[str, Any]], /, **options: Any) -> Call[models.InferenceAnswer]:
    """Store a text or messages as turns and have knowledge extracted. Options: conversation_id, channel, …."""
    content = {"text": said} if isinstance(said, str) else {"messages": list(said)}
    fields = {**content, "infer": True, **options}
    return Call(operation=OPERATIONS["create_memory"], ids=(), fields=fields, answer=models.InferenceAnswer)


def memories(**filters: Any) -> PageCall[models.MemoryAnswer]:
    """List memories. Filters: kind, channel, conversation_id, since, until."""
    return PageCall(operation=OPERATIONS["list_memories"], ids=(), fields=filters, item=models.MemoryAnswer)


def forget(memory_id: Id, /, **options: Any) -> Call[None]:
    """Forget a memory. Options: channel."""
    return Call(operation=OPERATIONS["delete_memory"], ids=(memory_id,), fields=options, answer=None)


def forget_all(*, dry_run: bool, **filters: Any) -> Call[models.ForgottenAnswer]:
    """Forget all memories that the filters find, or with `dry_run` count them. Filters: user_id, kind, channel."""
    fields = {"dry_run": dry_run, **filters}
    return Call(operation=OPERATIONS["delete_memories"], ids=(), fields=fields, answer=models.ForgottenAnswer)


def recall(query: str, /, **options: Any) -> Call[models.RecallAnswer]:
    """Recall what bears on a question. Options: top_k, kinds, conversation_id, max_tokens, as_of, explain, …."""
    return Call(operation=OPERATIONS["recall"], ids=(), fields={"query": query, **options}, answer=models.RecallAnswer)


def search(query: str, /, **options: Any) -> Call[models.SearchedMemories]:
    """Find memories of all kinds with their own fields. Options: top_k, kinds, conversation_id, since, until, …."""
    fields = {"query": query, **options}
    return Call(operation=OPERATIONS["search_memories"], ids=(), fields=fields, answer=models.SearchedMemories)


def context(conversation_id: str, query: str = "", /, **options: Any) -> Call[models.ContextAnswer]:
    """Build the text that goes into the next prompt. Options: max_tokens, mark_injected, suppress_injected, …."""
    fields = {"conversation_id": conversation_id, **({"query": query} if query else {}), **options}
    return Call(operation=OPERATIONS["build_context"], ids=(), fields=fields, answer=models.ContextAnswer)


def resume(**options: Any) -> Call[models.ResumeAnswer]:
    """Return what a successor must know to go on. Options: conversation_id, query, goal_ids, max_tokens, replay."""
    return Call(operation=OPERATIONS["resume"], ids=(), fields=options, answer=models.ResumeAnswer)


def add_turns(conversation_id: str, turns: Iterable[Turn], /, **options: Any) -> Call[models.PlacedTurns]:
    """Append turns to a conversation, which is created if it is new. Options: channel, continues."""
    fields = {"turns": list(turns), **options}
    return Call(operation=OPERATIONS["add_turns"], ids=(conversation_id,), fields=fields, answer=models.PlacedTurns)


def stream_turns(conversation_id: str, turns: Turns, /, **options: Any) -> Call[models.PlacedTurns]:
    """Append any number of turns as NDJSON while they are produced: all are stored, or none.

    Lists and other collections are sent again after a failure, with the same Idempotency-Key, so that they are stored
    once. An iterator is used up and is sent once. Options: channel, continues.
    """
    answer = models.PlacedTurns
    return Call(operation=OPERATIONS["add_turns"], ids=(conversation_id,), fields=options, answer=answer, turns=turns)


def turns(conversation_id: str, /, **filters: Any) -> PageCall[models.TurnAnswer]:
    """List the turns of a conversation. Filters: after_index, role, since, until."""
    return PageCall(operation=OPERATIONS["list_turns"], ids=(conversation_id,), fields=filters, item=models.TurnAnswer)


def end(conversation_id: str, /, **options: Any) -> Call[models.EndedAnswer]:
    """End a conversation: it is summarized, and its live session is cleared. Options: outcome, event_time."""
    return Call(
        operation=OPERATIONS["end_conversation"], ids=(conversation_id,), fields=options, answer=models.EndedAnswer
    )


def learn(claim: str, /, **options: Any) -> Call[models.FactAnswer]:
    """Learn a fact. Options: confidence, certainty, valid_from, valid_to, entities, on_contradiction, …."""
    return Call(
        operation=OPERATIONS["create_fact"], ids=(), fields={"claim": claim, **options}, answer=models.FactAnswer
    )


def facts(**filters: Any) -> PageCall[models.FactAnswer]:
    """List the facts that are believed. Filters: entity, status, as_of, known_at, min_confidence, …."""
    return PageCall(operation=OPERATIONS["list_facts"], ids=(), fields=filters, item=models.FactAnswer)


def add_goal(description: str, /, **options: Any) -> Call[models.StoredGoal]:
    """Open a goal. Options: priority, deadline, parent, blocked_by, metadata."""
    fields = {"description": description, **options}
    return Call(operation=OPERATIONS["create_goal"], ids=(), fields=fields, answer=models.StoredGoal)


def goals(**filters: Any) -> PageCall[models.StoredGoal]:
    """List goals. Filters: status, overdue, due_before, parent, ordering."""
    return PageCall(operation=OPERATIONS["list_goals"], ids=(), fields=filters, item=models.StoredGoal)


def complete(goal_id: Id, result: str = "", /, **options: Any) -> Call[models.CompletedGoal]:
    """Complete a goal. Options: status (`abandoned` instead of `completed`), force."""
    fields = {**({"result": result} if result else {}), **options}
    return Call(operation=OPERATIONS["complete_goal"], ids=(goal_id,), fields=fields, answer=models.CompletedGoal)


def record_tool(conversation_id: str, tool_name: str, /, **options: Any) -> Call[models.InvocationAnswer]:
    """Record the call of a tool. Options: tool_input, tool_output, success, latency_ms, error_message, task_type."""
    fields = {"conversation_id": conversation_id, "tool_name": tool_name, **options}
    return Call(operation=OPERATIONS["record_tool_invocation"], ids=(), fields=fields, answer=models.InvocationAnswer)

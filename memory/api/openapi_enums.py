"""Meanings of the values of enumerations, for the OpenAPI document, by the name of the enumeration's schema."""

from memory.kinds import all_specs

ENUMS: dict[str, dict[str | int, str]] = {
    "AccessLevelEnum": {"read": "May read.", "write": "May read and write."},
    "CertaintyEnum": {
        "explicit": "Said in these words.",
        "implied": "Follows from what was said.",
        "inferred": "Concluded from several things.",
        "uncertain": "A guess.",
    },
    "CompressionLevelEnum": {
        0: "As it was recorded.",
        1: "Each slot is summarized.",
        2: "Merged with other turns of its goal into a work episode.",
        3: "Archived: only the summary of the work episode is left.",
    },
    "ContextScopeEnum": {
        "agent": "For the agent that owns it.",
        "account": "For all agents of the account.",
        "team": "For the agents of one team.",
        "global": "For all agents of the account, in every project.",
    },
    "DegradedEnum": {
        "embedder_unavailable": "The query has no vector.",
        "embedding_pending": "Some memories have no vector yet.",
    },
    "DirectionEnum": {"out": "The link leads away from the memory.", "in": "The link leads to the memory."},
    "EmbeddingEnum": {
        "stored": "It is found by meaning.",
        "pending": "It is found by its words until its vector is made.",
    },
    "EntryMemoryTypeEnum": {
        "factual": "What is true.",
        "experiential": "What happened.",
        "working": "What is being worked on.",
    },
    "FactStatusEnum": {
        "active": "It is believed.",
        "pending": "Staff decide whether it is believed.",
        "superseded": "A later fact replaced it.",
        "retracted": "It is no longer believed.",
        "rejected": "It was wrong, and is not learned again.",
    },
    "GoalEndStatusEnum": {"completed": "It is done.", "abandoned": "It will not be done."},
    "GoalStatusEnum": {
        "active": "It can be worked on.",
        "blocked": "It waits for another goal.",
        "completed": "It is done.",
        "abandoned": "It will not be done.",
    },
    "JobStatusEnum": {
        "queued": "It waits for a worker.",
        "running": "A worker processes it.",
        "completed": "It ended.",
        "incomplete": "It ended, but some rows failed.",
        "failed": "It stopped with an error.",
    },
    "KindEnum": {spec.name: f"{spec.label.capitalize()}." for spec in all_specs()},
    "MemoryTierEnum": {
        "working": "Redis, for minutes to days.",
        "short_term": "PostgreSQL, for hours to days.",
        "long_term": "An entry of the agent's own context, found by meaning.",
        "shared": "A pool that several agents may read.",
    },
    "ModeEnum": {
        "broad": "Compare the first 64 dimensions of vectors.",
        "default": "Compare the first 256 dimensions.",
        "deep": "Compare all dimensions.",
    },
    "NewMemoryKindEnum": {
        "note": "A text that is nothing else.",
        "fact": "A claim that is held to be true.",
        "goal": "Something to be done.",
    },
    "OnContradictionEnum": {
        "supersede": "End the facts that it contradicts.",
        "keep_both": "Store it next to them.",
        "review": "Store it as pending and let staff decide.",
    },
    "OutcomeEnum": {"success": "It reached its aim.", "failure": "It did not reach its aim."},
    "PostureEnum": {
        "active_turn": "The agent answers a message.",
        "resume": "The agent goes on with interrupted work.",
        "recovery": "The agent recovers from a failure.",
        "audit": "Somebody examines what was done.",
    },
    "QueueStateEnum": {
        "none": "Nothing to do.",
        "queued": "It waits for a worker.",
        "failing": "The last attempt failed, and another one follows.",
        "parked": "It failed too often, and waits for a request.",
    },
    "ReasoningTierEnum": {
        "none": "No reasoning.",
        "decision_summary": "The reason in one sentence.",
        "structured_rationale": "Decisions, rejected options and blockers.",
        "raw_trace": "The whole trace.",
    },
    "RoleEnum": {
        "system": "Instructions to the model.",
        "developer": "Instructions of the application.",
        "user": "The user's message.",
        "assistant": "The model's message.",
        "tool": "The result of a tool call.",
        "function": "The result of a function call, in the former form.",
    },
    "ScopesEnum": {
        "turn": "The present turn.",
        "session": "The conversation.",
        "lineage": "The conversations that this one continues.",
        "workspace": "The project.",
        "profile": "What is known about the user.",
    },
    "SlotEnum": {
        "observation": "What the agent perceived.",
        "reasoning": "Why it acted.",
        "action": "What it did.",
        "outcome": "What came of it.",
    },
    "TemporalEnum": {"current": "True now.", "past": "True before.", "future": "Planned."},
    "TurnStatusEnum": {
        "open": "The outcome is not known yet.",
        "succeeded": "The action had its effect.",
        "failed": "The action failed.",
    },
    "ValidFromSourceEnum": {"said": "The time when it was said.", "stated": "The time was stated."},
    "WorkflowRunStatusEnum": {
        "running": "Agents work on it.",
        "completed": "It reached its end.",
        "failed": "It ended with an error.",
        "cancelled": "It was stopped.",
    },
}


def describe_enum(values: dict[str | int, str]) -> str:
    """Return the description of an enumeration, as a list with a line for each value."""
    return "\n".join(f"* `{value}`: {meaning}" for value, meaning in values.items())

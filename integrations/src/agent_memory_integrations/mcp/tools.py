"""The tools and resources of the profile `/mcp`. The first parameter of a tool is the client of its request."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from agent_memory_client import AsyncClient, NotFoundError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from agent_memory_integrations.mcp.callers import Callers
from agent_memory_integrations.updates import forget_with_former, update_fact

MAX_LISTED = 100
INSTRUCTIONS = (
    "This is your long-term memory. At the start of a task call `resume`. Before you answer what depends on earlier "
    "talk, call `recall`. Call `remember` for what will matter later: preferences, decisions, facts, results. When "
    "something remembered turns out to be wrong, call `correct` with its id (a note or a fact), or `remember` what is "
    "true. When asked to forget, call `recall`, and `forget` with the id of each result that says it, turns included."
)
Answer = dict[str, Any]
Query = Annotated[str, Field(description="The question in plain words, as a person would ask it.", min_length=1)]
MemoryId = Annotated[UUID, Field(description="The id of a memory, as `recall` answers it.")]
Kind = Literal["turn", "episode", "fact", "entity", "strategy", "goal", "context_entry", "artifact", "learning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """The tools of a profile. `destructive` names those that delete."""

    instructions: str
    reads: Sequence[Callable[..., Any]]
    writes: Sequence[Callable[..., Any]]
    destructive: frozenset[str] = frozenset()


async def recall(
    memory: AsyncClient,
    query: Query,
    top_k: Annotated[int, Field(description="Maximum number of memories.", ge=1, le=50)] = 8,
    kinds: Annotated[list[Kind] | None, Field(description="Limit to these kinds of memories.")] = None,
) -> Answer:
    """Find what is remembered about a question: what was said, facts, decisions, notes, earlier work.

    Each result has its id, kind, text and time, facts and goals their `status`. `superseded_by` marks what a later
    statement replaced.
    """
    found = await memory.recall(query, top_k=top_k, **({"kinds": kinds} if kinds else {}))
    return {"results": [shorten(each.to_dict()) for each in found.results], "degraded": found.degraded}


async def get_context(
    memory: AsyncClient,
    query: Query,
    conversation_id: Annotated[
        str | None, Field(description="The conversation that the text is for, to leave out what it was given before.")
    ] = None,
    max_tokens: Annotated[int, Field(description="Upper bound of the text.", ge=100, le=16_000)] = 1_500,
) -> Answer:
    """Return the evidence for a question as one text that fits a token budget, ready to be read before answering.

    With a conversation, what was already given to it is left out.
    """
    options: Answer = {"max_tokens": max_tokens}
    if conversation_id:
        # noting what was given is a write
        options |= {"suppress_injected": True, "mark_injected": "write" in (await memory.get_key()).scopes}
    made = await memory.context(conversation_id or f"mcp-{uuid4()}", query, **options)
    return {"context": made.context, "tokens": made.tokens, "abstained": made.abstained}


async def resume(
    memory: AsyncClient,
    query: Annotated[str, Field(description="What you are about to do. Empty: everything that is open.")] = "",
    max_tokens: Annotated[int, Field(description="Upper bound of the text.", ge=200, le=16_000)] = 2_000,
) -> Answer:
    """Return what a successor must know to go on: open goals, decisions, failures and open ends of earlier work."""
    packet = await memory.resume(max_tokens=max_tokens, **({"query": query} if query else {}))
    return {"text": packet.text}


async def list_goals(
    memory: AsyncClient,
    status: Annotated[
        Literal["open", "active", "blocked", "completed", "abandoned", "any"],
        Field(description="Status of the goals. `open`: active, or blocked by others."),
    ] = "open",
) -> Answer:
    """List goals with their ids, priorities and deadlines."""
    pages = memory.goals(status=status, page_size=MAX_LISTED).pages()
    page = await anext(aiter(pages))
    wanted = ("id", "description", "status", "priority", "deadline", "result")
    return {"goals": [pick(each.to_dict(), *wanted) for each in page.results]}


async def remember(
    memory: AsyncClient,
    text: Annotated[
        str, Field(description="One statement that stands on its own, with names and dates.", min_length=1)
    ],
    importance: Annotated[float | None, Field(description="From 0 to 1.", ge=0, le=1)] = None,
) -> Answer:
    """Remember a statement as it is, so that `recall` finds it in any later conversation."""
    made = await memory.remember(text, **({} if importance is None else {"importance": importance}))
    return {"id": made.id, "text": made.text}


async def remember_messages(
    memory: AsyncClient,
    messages: Annotated[
        list[dict[str, str]], Field(description="Messages in order, each with `role` and `content`.", min_length=1)
    ],
    conversation_id: Annotated[str, Field(description="The conversation that they belong to.")],
    ctx: Context[Any, Any],
) -> Answer:
    """Remember messages of a conversation word for word, and learn facts, names and decisions from them."""
    await ctx.report_progress(0, len(messages), "storing")
    made = await memory.infer(messages, conversation_id=conversation_id)
    await ctx.report_progress(len(messages), len(messages), "stored")
    return {"conversation_id": made.conversation_id, "stored": len(made.turns), "extraction": made.extraction}


async def correct(
    memory: AsyncClient,
    memory_id: MemoryId,
    text: Annotated[str, Field(description="What is true instead, as a whole statement.", min_length=1)],
    kind: Annotated[
        Literal["note", "fact"] | None, Field(description="The kind of the memory. It is looked up if it is left out.")
    ] = None,
) -> Answer:
    """Replace what a note or a fact says. A fact gets a new id, and keeps its former statement until it is forgotten.

    What was said (a turn) is not corrected: call `remember` with what is true, or `forget` it.
    """
    if kind != "note":
        held = await memory.get_memory(memory_id)
        if held.kind == "fact":
            return pick((await update_fact(memory, held, text, held.metadata)).to_dict(), "id", "claim")
        if held.kind != "note":
            raise ToolError(
                f"Only notes and facts are corrected, and this memory is of the kind {held.kind}. Call `remember` with "
                "what is true instead, and `forget` with this id if it should not be found any more."
            )
    return pick((await memory.update_memory(memory_id, text=text)).to_dict(), "id", "text")


async def forget(memory: AsyncClient, memory_id: MemoryId) -> Answer:
    """Forget a memory for good: a note, a fact, or what was said (a turn), with what was learned from it alone.

    With a fact go the statements that `correct` replaced. One that a later talk replaced is a memory of its own: it is
    believed again, and is forgotten by its own id. Summaries of a conversation (episodes) are made anew without a turn
    that is forgotten.
    """
    await forget_with_former(memory, await memory.get_memory(memory_id))
    return {"forgotten": str(memory_id)}


async def add_goal(
    memory: AsyncClient,
    description: Annotated[str, Field(description="What is to be achieved.", min_length=1)],
    priority: Annotated[int, Field(description="Higher is more urgent.")] = 0,
) -> Answer:
    """Open a goal, which `resume` shows until it is completed."""
    return pick((await memory.add_goal(description, priority=priority)).to_dict(), "id", "description", "status")


async def complete_goal(
    memory: AsyncClient,
    goal_id: Annotated[UUID, Field(description="The id of the goal, as `list_goals` answers it.")],
    result: Annotated[str, Field(description="What came out of it.")] = "",
) -> Answer:
    """Complete a goal."""
    await memory.complete(goal_id, result)
    return {"completed": str(goal_id)}


MEMORY_TOOLS = Toolset(
    instructions=INSTRUCTIONS,
    reads=(recall, get_context, resume, list_goals),
    writes=(remember, remember_messages, correct, forget, add_goal, complete_goal),
    destructive=frozenset({"forget", "correct"}),
)


def add_resources(server: MCPServer[Any], callers: Callers) -> None:
    """Add the user's profile and the open goals as resources."""

    @server.resource("memory://profile", mime_type="application/json")
    async def profile() -> str:
        """Return what is known about how the user works and speaks."""
        client = await callers.client()
        if not client.settings.user_id:
            return to_json({})
        try:
            return to_json((await client.get_profile(client.settings.user_id)).to_dict())
        except NotFoundError:
            return to_json({})

    @server.resource("memory://goals", mime_type="application/json")
    async def goals() -> str:
        """Return the open goals."""
        return to_json(await list_goals(await callers.client()))


def shorten(result: Answer) -> Answer:
    """Return what a model needs of a recalled memory."""
    wanted = ("id", "kind", "status", "text", "event_time", "conversation_id", "confidence", "superseded_by")
    return pick(result, *wanted)


def pick(answer: Answer, *names: str) -> Answer:
    """Return these members, without empty ones."""
    return {name: answer[name] for name in names if answer.get(name) not in (None, "")}


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

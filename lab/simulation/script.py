"""The script of the month, by seed alone: who talks with whom about what, and what comes of it.

Conversations follow each other evenly. The same agent, user and channel meet again every `period` conversations: what
was said there comes again then, word for word, in other words, or with another number.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

CHANNELS = ("_global", "atlas", "borealis", "cedar", "dune")
CITIES = ("Rome", "Berlin", "Porto", "Lima", "Oslo", "Kyoto", "Quito", "Turin", "Malmo", "Accra")
THINGS = ("olives", "chess", "jazz", "sailing", "coffee", "opera", "rain", "football", "baking", "poker")
FIRMS = ("Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark", "Wayne", "Tyrell", "Cyberdyne", "Soylent")
PARTS = ("pump", "valve", "boiler", "turbine", "filter", "gearbox", "sensor", "compressor", "belt", "burner")
TOOLS = ("search_docs", "read_file", "run_query", "open_ticket", "send_report", "check_stock")
TASKS = ("repair", "order", "inspection", "report")
FILLERS = (
    "How is the weather over there?",
    "Could you look at it again tomorrow?",
    "That sounds reasonable to me.",
    "What would you do first?",
    "Let us come back to this later.",
)
LONG_TURNS, MIDDLING_TURNS = 54, 34
"""Enough for a summary at once, and for one at the end."""
LONG_WORK = 14
"""Structured turns: more than compression leaves alone."""

FIRST_FORMER, FORMER_SHARE = 90_000, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSize:
    """The amount of what happens. `seed` alone decides what."""

    conversations: int
    agents: int
    days: int
    seed: int

    @property
    def period(self) -> int:
        """The number of conversations after which the same agent, user and channel meet again."""
        return 2 * self.agents * (1 if (2 * self.agents) % len(CHANNELS) == 0 else len(CHANNELS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTask:
    """A fact that the agent is taught, and how often it is read then."""

    claim: str
    certainty: str
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedEntry:
    """A short-term entry."""

    key: str
    value: str
    reads: int
    lasts: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A goal with its structured turns: a tool each, which succeeds or does not. `status` of an open goal is empty."""

    goal: str
    status: str
    task_type: str
    tools: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedConversation:
    """One conversation and all that happens in it. `outcome` None: it does not end."""

    number: int
    agent_id: str
    user_id: str
    channel: str
    messages: Sequence[str]
    outcome: str | None
    lessons: Sequence[ScriptedTask]
    notes: Sequence[ScriptedEntry]
    entries: Sequence[str]
    insight: str
    work: Work | None
    question: str
    is_unembedded: bool
    """The embedder is down meanwhile."""

    @property
    def conversation_id(self) -> str:
        return f"talk-{self.number:05}"


def talks_of_day(extent: ScriptSize, day: int) -> list[ScriptedConversation]:
    """Return the conversations of a day (from 0) in their order."""
    first, behind = (extent.conversations * each // extent.days for each in (day, day + 1))
    return [write_talk(extent, number) for number in range(first, behind)]


def former_talks(extent: ScriptSize) -> list[ScriptedConversation]:
    """Return the conversations of long before the month: one in fifty, and at least one."""
    return [write_talk(extent, FIRST_FORMER + number) for number in range(max(1, extent.conversations // FORMER_SHARE))]


def write_talk(extent: ScriptSize, number: int) -> ScriptedConversation:
    draw = random.Random(f"{extent.seed}:{number}")  # noqa: S311 - a script, no secret
    agent, place = number % extent.agents, number % extent.period
    is_nobody = number % 7 == 6
    return ScriptedConversation(
        number=number,
        agent_id=f"agent-{agent:02}",
        user_id="" if is_nobody else f"user-{number % (2 * extent.agents):02}",
        channel=CHANNELS[number % len(CHANNELS)],
        messages=list(write_messages(draw, place, number)),
        outcome=draw.choices(("success", "failure", "", None), weights=(9, 3, 5, 3))[0],
        lessons=write_lessons(draw, extent, number),
        notes=write_notes(draw, number),
        entries=write_entries(draw, place),
        insight=write_insight(number) if number % 5 == 2 else "",
        work=write_work(draw, place, steps=LONG_WORK if number % 12 == 0 else 2 + place % 3)
        if number % 2 == 0
        else None,
        question=f"What does the {PARTS[place % len(PARTS)]} need?",
        is_unembedded=number % 9 == 4,
    )


def write_messages(draw: random.Random, place: int, number: int) -> Iterator[str]:
    """Write what users say of themselves, sometimes repeated and sometimes changed, between small talk."""
    yield f"I live in {CITIES[(place + number // 200) % len(CITIES)]}."
    yield "Noted."
    yield draw.choice(
        (
            f"I work for {FIRMS[place % len(FIRMS)]}.",
            f"I like {THINGS[place % len(THINGS)]}.",
            f"I'm allergic to {THINGS[(place + 3) % len(THINGS)]}.",
            f"My sister is called {draw.choice(('Rita', 'Nina', 'Olga'))}.",
        )
    )
    yield "Thank you for telling me."
    length = LONG_TURNS if number % 40 == 3 else MIDDLING_TURNS if number % 20 == 7 else draw.randrange(4, 9)
    for turn in range(4, length):
        yield f"{draw.choice(FILLERS)} ({turn})"


def write_lessons(draw: random.Random, extent: ScriptSize, number: int) -> list[ScriptedTask]:
    """Return a fact that recurs a period later and is read often then, one in other words, one with another number."""
    place, repeat = number % extent.period, number // extent.period
    part, litres = PARTS[place % len(PARTS)], 3 + place % 5
    known = f"The {part} in hall {place} of block {repeat // 2} needs {litres} litres of oil every week"
    lessons = [ScriptedTask(claim=f"{known}.", certainty="explicit", reads=6 * (repeat % 2))]
    if number % 3 == 0:
        also = known.replace(" needs ", " also needs ")
        lessons.append(ScriptedTask(claim=f"{also}.", certainty="inferred", reads=draw.randrange(3)))
    if number % 4 == 0:
        other = known.replace(f"{litres} litres", f"{litres + 10} litres")
        lessons.append(ScriptedTask(claim=f"{other}.", certainty="inferred", reads=0))
    return lessons


def write_notes(draw: random.Random, number: int) -> list[ScriptedEntry]:
    return [
        ScriptedEntry(
            key=f"note-{number % 50}-{each}",
            value=f"Step {each} of case {number} is done.",
            reads=draw.randrange(6),
            lasts=timedelta(hours=draw.choice((1, 3, 30))),
        )
        for each in range(2)
    ]


def write_entries(draw: random.Random, place: int) -> list[str]:
    """Write the agent's long-term memory: the same with every meeting, sometimes in other words."""
    if place % 2:
        return []
    drawer = f"drawer {place % 6} of the {PARTS[place % len(PARTS)]} room"
    return [f"The manual of hall {place} is{draw.choice(('', ' also', ' now'))} kept in {drawer}."]


def write_insight(number: int) -> str:
    part = PARTS[number % len(PARTS)]
    return f"Look at the {part} before the {part} is switched on{'' if number % 2 else ' again'}."


def write_work(draw: random.Random, place: int, *, steps: int) -> Work:
    """Draw the work of a meeting: its goal, its tools in order, and how it ends."""
    tools = [TOOLS[(place + step) % len(TOOLS)] for step in range(steps)]
    return Work(
        goal=f"Get the {PARTS[place % len(PARTS)]} of hall {place} to run again.",
        status=draw.choices(("completed", "abandoned", ""), weights=(7, 2, 1))[0],
        task_type=TASKS[place % len(TASKS)],
        tools=[(tool, draw.random() < 0.85) for tool in tools],
    )

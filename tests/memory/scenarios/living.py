"""Live through a story with the real services, minute by minute, as a runtime would."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.extraction.messages import read_message
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.artifacts.store import ArtifactDraft, complete_draft, store_artifact
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.goals.plan import GoalDraft, add_goal, block_goal, complete_goal
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.records.record import RecordDraft, prepare_record, record_turn
from memory.services.resume.resume import ResumePacket, ResumeRequest, resume_work
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory.services.turns import TurnDraft, store_turns
from tests.memory.scenarios.stories import Story

BETWEEN_STEPS = timedelta(minutes=2)


Embed = Callable[[Sequence[str]], EmbeddedTexts]


def live_through(owner: Owner, story: Story, *, embed: Embed) -> Owner:
    """Store all of it, what is known of the user first; return the owner as whom it was lived through."""
    data = story.data
    owner = replace(owner, agent_id=data["agent"], user_id=data["user"], channel=data["channel"])
    began = start_of(story.conversations[0])
    write_profile(owner, owner.user_id, ProfileChanges(**data["profile"]), now=began)
    life = Life(owner, embed=embed, now=began)
    for conversation in story.conversations:
        life.talk(conversation)
    for fact in data["facts"]:
        draft = FactDraft(claim=fact["claim"], conversation_id=fact["conversation"])
        learn_fact(owner, draft, embedded=embed([draft.claim]), now=began)
    for strategy in data["strategies"]:
        learn_story_strategy(owner, strategy, embed=embed, now=story.resumed_at)
    return owner


def start_of(conversation: Mapping[str, Any]) -> datetime:
    """Return when the conversation began."""
    return datetime.fromisoformat(conversation["starts"])


def learn_story_strategy(owner: Owner, strategy: Mapping[str, Any], *, embed: Embed, now: datetime) -> None:
    draft = StrategyDraft(
        description=strategy["description"],
        context_pattern=strategy["context_pattern"],
        tool_sequence=strategy["tools"],
        success=strategy["success"],
    )
    learn_strategy(owner, draft, embedded=embed([draft.text]), now=now)


class Life:
    """The state of a runtime while it works: its conversation, and the ids of its goals and artifacts.

    Turns are sent when something else happens, like runtimes that send a whole exchange.
    """

    def __init__(self, owner: Owner, *, embed: Embed, now: datetime) -> None:
        self.owner, self.embed, self.now = owner, embed, now
        self.goals: dict[str, UUID] = {}
        self.artifacts: dict[str, UUID] = {}
        self.conversation_id, self.turn_count = "", 0
        self.unsent: list[TurnDraft] = []
        self.steps: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "record": self.record,
            "goal": self.aim,
            "done": self.finish,
            "wait": self.wait,
            "artifact": self.keep,
        }

    def talk(self, conversation: Mapping[str, Any]) -> None:
        self.conversation_id, self.turn_count = conversation["id"], 0
        self.now = start_of(conversation)
        opening = ConversationDefaults(continues=conversation.get("continues", ""))
        create_conversation(self.owner, self.conversation_id, defaults=opening, now=self.now)
        for step in conversation["log"]:
            self.now += BETWEEN_STEPS
            if isinstance(step, list):
                self.say(step)
            else:
                self.send()
                self.steps[next(iter(step))](step)
        self.send()

    def say(self, step: Sequence[str]) -> None:
        role, *name, text = step
        call = {"tool_call_id": f"call-{self.turn_count}", "name": name[0]} if name else {}
        message = read_message({"role": role, "content": text, **call})
        self.unsent.append(TurnDraft(message=message, timestamp=self.now))
        self.turn_count += 1

    def send(self) -> None:
        embedded = self.embed([draft.message.text for draft in self.unsent])
        store_turns(self.owner, self.conversation_id, drafts=self.unsent, embedded=embedded, now=self.now)
        self.unsent = []

    def record(self, step: Mapping[str, Any]) -> None:
        record = step["record"]
        draft = RecordDraft(
            slots=slots_of(record),
            goal_id=self.goals[record["goal"]],
            first_index=self.turn_count - record["of"],
            last_index=self.turn_count - 1,
            produced=[self.artifacts[key] for key in record.get("produced", ())],
        )
        prepared = prepare_record(self.owner, draft, now=self.now)
        embedded = self.embed(prepared.texts)
        record_turn(self.owner, self.conversation_id, prepared, embedded=embedded, now=self.now)

    def aim(self, step: Mapping[str, Any]) -> None:
        deadline = step.get("deadline")
        draft = GoalDraft(
            description=step["description"],
            priority=step["priority"],
            deadline=datetime.fromisoformat(deadline) if deadline else None,
            parent_id=self.goals[step["parent"]] if "parent" in step else None,
            blocked_by=[self.goals[key] for key in step.get("blocked_by", ())],
        )
        embedded = self.embed([draft.description])
        self.goals[step["goal"]] = add_goal(self.owner, draft, embedded=embedded, now=self.now).id

    def finish(self, step: Mapping[str, Any]) -> None:
        goal_id = self.goals[step["done"]]
        complete_goal(self.owner, goal_id, status="completed", result=step["result"], now=self.now)

    def wait(self, step: Mapping[str, Any]) -> None:
        block_goal(self.owner, self.goals[step["wait"]], by=self.goals[step["by"]], now=self.now)

    def keep(self, step: Mapping[str, Any]) -> None:
        draft = ArtifactDraft(
            uri=step["uri"],
            type=step["type"],
            title=step["title"],
            digest=step["digest"],
            goal_id=self.goals[step["goal"]],
        )
        embedded = self.embed([complete_draft(self.owner, draft).text])
        kept = store_artifact(self.owner, draft, embedded=embedded, now=self.now)
        self.artifacts[step["artifact"]] = kept.artifact.id


def slots_of(record: Mapping[str, Any]) -> Slots:
    """Return the slots of a structured turn that its record has."""
    points = {
        name: [Point(**point) for point in record.get(name, ())] for name in ("decisions", "rejected", "blockers")
    }
    rationale = Rationale(**points)
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    status, text = record["outcome"]
    return Slots(
        observation=Observation(text=record["observation"]) if "observation" in record else None,
        reasoning=None if rationale.is_empty else reasoning,
        action=Action(text=record["action"], calls=[Call(**call) for call in record.get("calls", ())]),
        outcome=Outcome(status=status, text=text),
    )


def resume_story(owner: Owner, story: Story, *, max_tokens: int) -> ResumePacket:
    """Return the packet for the successor, in the conversation that the story names or a new one."""
    asked = story.data["resume"]
    if "continue_as" in asked:
        opening = ConversationDefaults(continues=story.conversations[-1]["id"])
        create_conversation(owner, asked["continue_as"], defaults=opening, now=story.resumed_at)
    conversation_id = asked.get("continue_as") or asked.get("conversation_id", "")
    request = ResumeRequest(conversation_id=conversation_id, max_tokens=max_tokens)
    return resume_work(owner, request, now=story.resumed_at)

"""Lives through a story with the real services, minute by minute, as a runtime would."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.extraction.messages import read_message
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.artifacts.store import ArtifactDraft, complete_draft, keep_artifact
from memory.services.conversations.lifecycle import Opening, create_conversation
from memory.services.embedding.embed import Embedded
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.goals.plan import GoalDraft, add_goal, block_goal, complete_goal
from memory.services.profiles import ProfileChanges, update_profile
from memory.services.records.record import RecordDraft, prepare_record, record_turn
from memory.services.resume.resume import ResumePacket, ResumeRequest, resume_work
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory.services.turns.store import TurnDraft, store_turns
from tests.memory.scenarios.stories import Story

BETWEEN_STEPS = timedelta(minutes=2)


Embed = Callable[[Sequence[str]], Embedded]


def live_through(owner: Owner, story: Story, *, embed: Embed) -> Owner:
    """Store all of it: what is known of the user, then conversation by conversation. As whom it was lived through."""
    told = story.told
    owner = replace(owner, agent_id=told["agent"], user_id=told["user"], channel=told["channel"])
    began = moment(story.conversations[0])
    update_profile(owner, owner.user_id, ProfileChanges(**told["profile"]), now=began)
    life = Life(owner, embed=embed, now=began)
    for conversation in story.conversations:
        life.talk(conversation)
    for fact in told["facts"]:
        draft = FactDraft(claim=fact["claim"], conversation_id=fact["conversation"])
        learn_fact(owner, draft, embedded=embed([draft.claim]), now=began)
    for strategy in told["strategies"]:
        learn(owner, strategy, embed=embed, now=story.resumed_at)
    return owner


def moment(conversation: Mapping[str, Any]) -> datetime:
    """When it began."""
    return datetime.fromisoformat(conversation["starts"])


def learn(owner: Owner, told: Mapping[str, Any], *, embed: Embed, now: datetime) -> None:
    draft = StrategyDraft(
        description=told["description"],
        context_pattern=told["context_pattern"],
        tool_sequence=told["tools"],
        success=told["success"],
    )
    learn_strategy(owner, draft, embedded=embed([draft.text]), now=now)


class Life:
    """What a runtime knows while it works: the conversation that it is in, and its ids for goals and artifacts.

    Turns are sent when something else happens, as runtimes do that send what one exchange came to.
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
        self.now = moment(conversation)
        opening = Opening(continues=conversation.get("continues", ""))
        create_conversation(self.owner, self.conversation_id, opening=opening, now=self.now)
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
        told = step["record"]
        draft = RecordDraft(
            slots=slots_of(told),
            goal_id=self.goals[told["goal"]],
            first_index=self.turn_count - told["of"],
            last_index=self.turn_count - 1,
            produced=[self.artifacts[key] for key in told.get("produced", ())],
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
        kept = keep_artifact(self.owner, draft, embedded=embedded, now=self.now)
        self.artifacts[step["artifact"]] = kept.artifact.id


def slots_of(told: Mapping[str, Any]) -> Slots:
    """The slots of a structured turn, as far as it tells them."""
    points = {name: [Point(**point) for point in told.get(name, ())] for name in ("decisions", "rejected", "blockers")}
    rationale = Rationale(**points)
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    status, text = told["outcome"]
    return Slots(
        observation=Observation(text=told["observation"]) if "observation" in told else None,
        reasoning=None if rationale.is_empty else reasoning,
        action=Action(text=told["action"], calls=[Call(**call) for call in told.get("calls", ())]),
        outcome=Outcome(status=status, text=text),
    )


def resume(owner: Owner, story: Story, *, max_tokens: int) -> ResumePacket:
    """The packet that its successor asks for, in the conversation that the story names, or in a new one."""
    asked = story.told["resume"]
    if "continue_as" in asked:
        opening = Opening(continues=story.conversations[-1]["id"])
        create_conversation(owner, asked["continue_as"], opening=opening, now=story.resumed_at)
    conversation_id = asked.get("continue_as") or asked.get("conversation_id", "")
    request = ResumeRequest(conversation_id=conversation_id, max_tokens=max_tokens)
    return resume_work(owner, request, now=story.resumed_at)

"""Does what the script says, through the services, as of simulated times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from lab.simulation.script import ScriptedConversation, ScriptedEntry, ScriptedTask, ScriptSize, Work
from ledger import store as ledger
from memory.extraction.messages import read_message
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Slots
from memory.models import Account, ApiKey, ContextEntry, Conversation, IdempotentRequest, Team
from memory.models.short_term import ShortTermKey
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.retrieval.queries import Query
from memory.services.accounts.register import READ_WRITE_OPERATE, add_member, create_team, issue_key
from memory.services.contexts.access_log import Action as Access
from memory.services.contexts.access_log import entry_reference, log_reads
from memory.services.contexts.entries import EntryDraft, store_entries
from memory.services.contexts.manage import ensure_own_context
from memory.services.conversations.end import end_conversation
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.goals.plan import GoalDraft, add_goal, complete_goal
from memory.services.learnings import LearningDraft, publish_learning
from memory.services.memories.decay import reinforce
from memory.services.pools.data import cache_result
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.pools.workflow_runs import RunDraft, create_run_pool, start_run
from memory.services.recall.recall import RecallRequest, conclude_recall, recall
from memory.services.records.record import RecordDraft, prepare_record, record_turn
from memory.services.short_term import ShortTermDraft, read_entry, store_entry
from memory.services.tools import InvocationDraft, record_invocation
from memory.services.turns import TurnDraft, store_turns
from memory_project.redis import ConversationRef

ACTOR = "command:simulate_month"
AUDIT_LEVEL = "reads"
PATIENCE_MS = 600_000
"""Deadline of a recall: one that ran out of time would find something else in every run."""
ANSWER_LASTS = timedelta(hours=24)
POOL_LASTS = timedelta(days=5)
RESULT_LASTS_SECONDS = 7_200


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The account that all of it happens in, with a team of all its agents and a key of one client."""

    account: Account
    team: Team
    key: ApiKey


def make_world(account: Account, extent: ScriptSize, *, now: datetime) -> World:
    """Create the team, its agents with their own contexts, and a key. Reads are audited."""
    Account.objects.filter(id=account.id).update(audit_level=AUDIT_LEVEL)
    owner = Owner(account_id=account.id, actor=ACTOR)
    team = create_team(owner, name="crew")
    for number in range(extent.agents):
        member = add_member(owner, team.id, agent_id=f"agent-{number:02}")
        ensure_own_context(replace(owner, agent_id=member.agent_id), now=now)
    issued = issue_key(account, scopes=READ_WRITE_OPERATE, name="simulation", actor=ACTOR)
    return World(account=account, team=team, key=issued.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One talk, at its time."""

    world: World
    talk: ScriptedConversation
    at: datetime

    @property
    def owner(self) -> Owner:
        talk = self.talk
        return Owner(
            account_id=self.world.account.id,
            agent_id=talk.agent_id,
            user_id=talk.user_id,
            channel=talk.channel,
            actor=ACTOR,
            audit_level=AUDIT_LEVEL,
        )

    def live(self) -> None:
        """Do everything in the script, in a sensible order."""
        turns = self.say()
        self.learn(turns)
        self.note()
        self.keep_entries()
        self.share()
        self.ask()
        if self.talk.work is not None:
            self.work(self.talk.work)
        if self.talk.outcome is not None:
            end_conversation(self.owner, self.talk.conversation_id, outcome=self.talk.outcome, now=self.later(20))

    def later(self, minutes: float) -> datetime:
        return self.at + timedelta(minutes=minutes)

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        if not self.talk.is_unembedded:
            return embed_texts(texts)
        provider = embedding_provider()
        width = provider.find_width(deadline_seconds=None)
        return EmbeddedTexts(model=provider.model, width=width, vectors={}, error="provider_unreachable")

    def say(self) -> list[UUID]:
        """Store the turns and return their ids."""
        drafts = [
            TurnDraft(
                message=read_message({"role": "assistant" if number % 2 else "user", "content": text}),
                timestamp=self.later(number / 6),
                client_id=f"message-{number}",
            )
            for number, text in enumerate(self.talk.messages)
        ]
        embedded = self.embed(self.talk.messages)
        stored = store_turns(self.owner, self.talk.conversation_id, drafts=drafts, embedded=embedded, now=self.later(9))
        place = ConversationRef(account_id=self.world.account.id, conversation_id=self.talk.conversation_id)
        ledger.mark(place, f"skill:{self.talk.number % 3}", agent_id=self.talk.agent_id)
        return [turn.id for turn in stored.turns]

    def learn(self, turn_ids: Sequence[UUID]) -> None:
        """Learn the facts one after the other: which of two is older must not depend on chance."""
        for lesson in self.talk.lessons:
            draft = self.fact_of(lesson, turn_ids)
            known = learn_fact(self.owner, draft, embedded=self.embed([lesson.claim]), now=self.later(10))
            for _read in range(lesson.reads):
                reinforce(self.owner, [known.fact.id], now=self.later(11))

    def fact_of(self, lesson: ScriptedTask, turn_ids: Sequence[UUID]) -> FactDraft:
        return FactDraft(
            claim=lesson.claim,
            certainty=lesson.certainty,
            turn_ids=turn_ids[:1],
            conversation_id=self.talk.conversation_id,
        )

    def note(self) -> None:
        for note in self.talk.notes:
            self.keep_note(note)

    def keep_note(self, note: ScriptedEntry) -> None:
        session, lasts = self.talk.conversation_id, int(note.lasts.total_seconds())
        draft = ShortTermDraft(memory_key=note.key, memory_value=note.value, session_id=session, ttl_seconds=lasts)
        store_entry(self.owner, draft, now=self.later(12))
        for _read in range(note.reads):
            read_entry(self.owner, ShortTermKey(key=note.key, session_id=session), now=self.later(13))

    def keep_entries(self) -> None:
        """Store entries and read them once, so that the contexts' access log has lines."""
        drafts = [EntryDraft(content=content) for content in self.talk.entries]
        if not drafts:
            return
        context = ensure_own_context(self.owner, now=self.later(14))
        embedded = self.embed(self.talk.entries)
        stored: Sequence[ContextEntry] = store_entries(
            self.owner, context.id, drafts=drafts, embedded=embedded, now=self.later(14)
        )
        log_reads(self.owner, [entry_reference(entry) for entry in stored], action=Access.READ, now=self.later(15))

    def share(self) -> None:
        """Share with the team, with a workflow's other agents, and with a client that repeats a request."""
        talk, now = self.talk, self.later(16)
        if talk.insight:
            draft = LearningDraft(team_id=self.world.team.id, insight=talk.insight)
            publish_learning(self.owner, draft, embedded=self.embed([talk.insight]), now=now)
        if talk.number % 10 == 1:
            create_pool(self.owner, PoolDraft(pool_id=f"plan-{talk.number}", expires_at=now + POOL_LASTS), now=now)
        if talk.number % 10 == 5:
            self.share_result(now)
        if talk.number % 3 == 0:
            self.answer(now)

    def share_result(self, now: datetime) -> None:
        run = start_run(self.owner, RunDraft(workflow_run_id=f"run-{self.talk.number}"), now=now)
        pool = PoolDraft(pool_id=f"results-{self.talk.number}", pool_type="tool_cache")
        create_run_pool(self.owner, run.workflow_run_id, pool, now=now)
        cache_result(self.owner, pool.pool_id, "stock", value={"seals": 4}, ttl_seconds=RESULT_LASTS_SECONDS, now=now)

    def answer(self, now: datetime) -> None:
        """Keep an answer as the API does for a client that repeats itself."""
        IdempotentRequest.objects.create(
            account=self.world.account,
            api_key=self.world.key,
            request_hash=f"{self.talk.number:064}",
            body_hash=f"{self.talk.number:064}",
            status=201,
            content_type="application/json",
            body="{}",
            expires_at=now + ANSWER_LASTS,
        )

    def ask(self) -> None:
        """Ask the question of the script, which counts as reads."""
        request = RecallRequest(query=Query(text=self.talk.question, top_k=3), deadline_ms=PATIENCE_MS)
        bundle = recall(self.owner, request, now=self.later(17))
        conclude_recall(self.owner, request, bundle, now=self.later(17))

    def work(self, work: Work) -> None:
        """Add a goal, a structured turn for each tool, and the goal's end."""
        draft = GoalDraft(description=work.goal)
        goal = add_goal(self.owner, draft, embedded=self.embed([work.goal]), now=self.later(18))
        for number, (tool, success) in enumerate(work.tools):
            self.use_tool(work, goal.id, tool, success=success, now=self.later(18 + number / 10))
        if work.status:
            complete_goal(self.owner, goal.id, status=work.status, result="See the record.", now=self.later(19))

    def use_tool(self, work: Work, goal_id: UUID, tool: str, *, success: bool, now: datetime) -> None:
        conversation_id, task_type = self.talk.conversation_id, work.task_type
        used = InvocationDraft(
            conversation_id=conversation_id, tool_name=tool, success=success, task_type=task_type, latency_ms=20
        )
        invocation = record_invocation(self.owner, used, now=now)
        draft = RecordDraft(
            slots=slots_of_tool_use(work, tool, success=success), goal_id=goal_id, invocations=[invocation.id]
        )
        prepared = prepare_record(self.owner, draft, now=now)
        record_turn(self.owner, conversation_id, prepared, embedded=self.embed(prepared.texts), now=now)


def slots_of_tool_use(work: Work, tool: str, *, success: bool) -> Slots:
    status = "succeeded" if success else "failed"
    return Slots(
        observation=Observation(text=f"To {work.goal[0].lower()}{work.goal[1:-1]}, {tool} comes next. " * 3),
        action=Action(text=f"Called {tool} for it.", calls=[Call(tool=tool, arguments={"task": work.task_type})]),
        outcome=Outcome(status=status, text=f"{tool} {status} after a while, and said what it had to say. " * 2),
    )


def holds_anything(account: Account) -> bool:
    return Conversation.objects.filter(account=account).exists() or ApiKey.objects.filter(account=account).exists()

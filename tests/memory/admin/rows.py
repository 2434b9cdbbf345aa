"""Rows of every model that the admin lists, so many as a test asks for."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ledger.models import Injection
from memory.models import (
    Account,
    Agent,
    AgentShortTermMemory,
    ApiKey,
    AuditEntry,
    BlackboardPosting,
    BulkChange,
    ContextAccessLog,
    Conversation,
    Erasure,
    IdempotentRequest,
    JobRun,
    Learning,
    LearningVote,
    Link,
    MemoryPool,
    ModelUsage,
    Participant,
    PersistentContext,
    SavedWorkingMemory,
    Team,
    TeamMember,
    ToolCacheEntry,
    WorkflowRun,
)
from memory.owner import Owner
from memory.services.contexts.snapshots import create_snapshot
from memory.services.facts.review import open_review
from memory.services.facts.tombstones import add_tombstone
from memory.services.goals.plan import GoalDraft, add_goal
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory.services.tools import InvocationDraft, record_invocations
from memory_project.ids import uuid7
from tests.memory import stories
from tests.memory.contexts import context_of, entry, keep
from tests.memory.entities import entities_of
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import fact_draft, know
from tests.memory.learnings import learn, team_of
from tests.memory.pools import make_pool
from tests.memory.turns import talk


def make_episodes(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    store(owner, *[draft(f"episode {number}", angle=0.1) for number in numbers])


def make_links(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    rows = store(owner, *[draft(f"end {number}") for number in numbers], draft("target"))
    Link.objects.bulk_create(
        Link(account=account, source_id=row.id, target_id=rows[-1].id, type="ABOUT") for row in rows[:-1]
    )


def make_answers(account: Account, numbers: range) -> None:
    key = ApiKey.objects.create(account=account, prefix="mem", secret_hash=f"{numbers}")
    IdempotentRequest.objects.bulk_create(
        IdempotentRequest(account=account, api_key=key, request_hash=f"h{n}", body_hash="b", status=200, expires_at=NOW)
        for n in numbers
    )


def make_members(account: Account, numbers: range) -> None:
    team = Team.objects.create(account=account, name=f"team {numbers}")
    TeamMember.objects.bulk_create(TeamMember(account=account, team=team, agent_id=f"a{n}") for n in numbers)


def make_turns(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    talk(owner, len(numbers), start=numbers.start)


def make_injections(account: Account, numbers: range) -> None:
    Injection.objects.bulk_create(
        Injection(account=account, conversation_id="c", item_key="k", event="marked", at=NOW, stream_id=f"{n:041d}")
        for n in numbers
    )


def make_pools(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        make_pool(owner, f"pool {number}", data={"n": number})


def run_pool(account: Account, pool_type: str, name: object) -> MemoryPool:
    run = WorkflowRun.objects.create(account=account, workflow_run_id=f"{pool_type} {name}", started_at=NOW)
    return MemoryPool.objects.create(account=account, pool_id=f"of {run}", pool_type=pool_type, workflow_run=run)


def make_postings(account: Account, numbers: range) -> None:
    BlackboardPosting.objects.bulk_create(
        BlackboardPosting(account=account, pool=run_pool(account, "blackboard", n), position=0, content=n)
        for n in numbers
    )


def make_cached(account: Account, numbers: range) -> None:
    ToolCacheEntry.objects.bulk_create(
        ToolCacheEntry(account=account, pool=run_pool(account, "tool_cache", n), key="k", ttl_seconds=1, expires_at=NOW)
        for n in numbers
    )


def make_contexts(account: Account, numbers: range) -> list[PersistentContext]:
    owner = Owner(account_id=account.id, agent_id="assistant")
    return [context_of(owner, f"context {number}") for number in numbers]


def make_entries(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for context in make_contexts(account, numbers):
        keep(owner, context, entry("one"), entry("two", key="k"))


def make_snapshots(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for context in make_contexts(account, numbers):
        keep(owner, context, entry("one"))
        create_snapshot(owner, context.id, name="s", now=NOW)
        keep(owner, context, entry("two"))


def make_accesses(account: Account, numbers: range) -> None:
    ContextAccessLog.objects.bulk_create(
        ContextAccessLog(
            account=account, context=context, entry_id=uuid7(), action="read", accessed_at=datetime.now(UTC)
        )
        for context in make_contexts(account, numbers)
    )


def make_learnings(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        learn(owner, team_of(owner, name=f"crew {number}").id, f"insight {number}")


def make_votes(account: Account, numbers: range) -> None:
    make_learnings(account, numbers)
    LearningVote.objects.bulk_create(
        LearningVote(account=account, learning_id=learning_id, agent_id=f"voter {numbers}", helpful=True)
        for learning_id in Learning.objects.filter(account=account).values_list("pk", flat=True)
    )


def make_uses(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    drafts = [InvocationDraft(conversation_id="c", tool_name=f"tool {number}") for number in numbers]
    record_invocations(owner, drafts, now=datetime.now(UTC))


def make_strategies(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        draft = StrategyDraft(description=f"way {number}", tool_sequence=["read"], success=True)
        learn_strategy(owner, draft, embedded=NOTHING, now=NOW)


def make_tombstones(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        add_tombstone(owner, f"claim {number}", [], now=NOW)


def make_goals(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        add_goal(owner, GoalDraft(description=f"goal {number}"), embedded=NOTHING, now=NOW)


def make_profiles(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id)
    for number in numbers:
        write_profile(owner, f"u{number}", ProfileChanges(preferences={"tea": "black"}), now=NOW)


def make_entities(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    entities_of(owner, *(f"person {number}" for number in numbers))


def make_facts(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        know(owner, f"claim {number}")


def make_reviews(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        old = know(owner, f"Ana lives at {number}.")
        draft = fact_draft(f"Ana lives elsewhere than at {number}.")
        open_review(owner, old=old, draft=draft, similarity=0.9, embedded=NOTHING, now=NOW)


MAKERS: dict[str, Callable[[Account, range], Any]] = {
    "agentshorttermmemory": lambda account, numbers: AgentShortTermMemory.objects.bulk_create(
        AgentShortTermMemory(account=account, agent_id="a", memory_key=f"k{n}", ttl_seconds=1, expires_at=NOW)
        for n in numbers
    ),
    "account": lambda account, numbers: Account.objects.bulk_create(Account(name=f"n{n}") for n in numbers),
    "agent": lambda account, numbers: Agent.objects.bulk_create(
        Agent(account=account, agent_id=f"a{n}") for n in numbers
    ),
    "apikey": lambda account, numbers: ApiKey.objects.bulk_create(
        ApiKey(account=account, prefix="mem", secret_hash=f"{n}") for n in numbers
    ),
    "artifact": stories.make_artifacts,
    "auditentry": lambda account, numbers: AuditEntry.objects.bulk_create(
        AuditEntry(account_id=account.id, operation="store", memory_type="episodic") for _ in numbers
    ),
    "blackboardposting": make_postings,
    "bulkchange": lambda account, numbers: BulkChange.objects.bulk_create(
        BulkChange(account=account, model="fact", action="archive", reason="old", requested_by="staff:ana")
        for _ in numbers
    ),
    "contextaccesslog": make_accesses,
    "contextentry": make_entries,
    "contextsnapshot": make_snapshots,
    "conversation": lambda account, numbers: Conversation.objects.bulk_create(
        Conversation(account=account, conversation_id=f"c{n}", started_at=NOW) for n in numbers
    ),
    "episodicmemory": make_episodes,
    "entity": make_entities,
    "erasure": lambda account, numbers: Erasure.objects.bulk_create(
        Erasure(account=account, scope="filter", selection={"user_id": f"u{n}"}, requested_at=NOW) for n in numbers
    ),
    "fact": make_facts,
    "factreview": make_reviews,
    "facttombstone": make_tombstones,
    "goal": make_goals,
    "idempotentrequest": make_answers,
    "injection": make_injections,
    "jobrun": lambda account, numbers: JobRun.objects.bulk_create(
        JobRun(account=account, job="embed") for _ in numbers
    ),
    "learning": make_learnings,
    "learningvote": make_votes,
    "ledgeraccount": lambda account, numbers: Account.objects.bulk_create(Account(name=f"l{n}") for n in numbers),
    "link": make_links,
    "memory": make_episodes,
    "memorypool": make_pools,
    "modelusage": lambda account, numbers: ModelUsage.objects.bulk_create(
        ModelUsage(account=account, day=datetime.now(UTC), use="summary", model=f"m{n}") for n in numbers
    ),
    "participant": lambda account, numbers: Participant.objects.bulk_create(
        Participant(account=account, conversation_id=f"c{n}", agent_id="a") for n in numbers
    ),
    "persistentcontext": make_contexts,
    "savedworkingmemory": lambda account, numbers: SavedWorkingMemory.objects.bulk_create(
        SavedWorkingMemory(account=account, agent_id=f"a{n}", saved_at=NOW) for n in numbers
    ),
    "strategy": make_strategies,
    "strategyuse": make_strategies,
    "team": lambda account, numbers: Team.objects.bulk_create(Team(account=account, name=f"t{n}") for n in numbers),
    "teammember": make_members,
    "tool": make_uses,
    "toolcacheentry": make_cached,
    "toolinvocation": make_uses,
    "turn": make_turns,
    "turnrecord": stories.make_records,
    "turnslot": stories.make_records,
    "userprofile": make_profiles,
    "vector": make_episodes,
    "workepisode": stories.make_episodes,
    "workflowrun": lambda account, numbers: WorkflowRun.objects.bulk_create(
        WorkflowRun(account=account, workflow_run_id=f"r{n}", agents=["a"], started_at=NOW) for n in numbers
    ),
    "workingmemoryaccount": lambda account, numbers: Account.objects.bulk_create(
        Account(name=f"w{n}") for n in numbers
    ),
    "valueaccount": lambda account, numbers: Account.objects.bulk_create(Account(name=f"v{n}") for n in numbers),
}

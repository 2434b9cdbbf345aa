"""A small travel agency in the admin: an account with everything that the operator tasks look at and change."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from memory.models import Account, AuditEntry, Conversation, Fact, JobRun, MetricSample, ModelUsage, Turn
from memory.owner import Owner
from memory.services.accounts.register import issue_key
from memory.services.embedding.embed import embed_texts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.facts.review import open_review
from memory.services.goals.plan import GoalDraft, add_goal
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.tools import InvocationDraft, record_invocations
from memory.tiers.key_values import KeyValues
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import session_ref
from memory.tiers.working import WorkingMemory
from tests.memory.contexts import context_of, entry, keep
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING
from tests.memory.pools import make_pool
from tests.memory.turns import say, turn

NAME, PASSWORD = "ana", "correct horse battery staple"

SAID = (
    ("user", "Hello, I am Ines. We fly to Madeira on 4 May, please book it for two."),
    ("assistant", "I will look for flights from Lisbon. Do you prefer a seat?"),
    ("user", "A window seat, please. And Rui is allergic to nuts."),
    ("assistant", "Noted: a window seat for you, and a meal without nuts for Rui."),
    ("user", "Wonderful. We moved to Lisbon in March, by the way."),
    ("assistant", "Then I search from Lisbon only. TP1687 leaves at 9:40 and has seats 12A and 12B."),
)
SUMMARIES = (
    "Ines books a flight from Lisbon to Madeira on 4 May for two: window seat, no nuts.",
    "Ines asked for a hotel near the harbour of Funchal; she wants a balcony.",
    "The airline refunded the flight to Porto after the strike.",
)
CLAIMS = (
    ("Ines prefers window seats.", 0.95),
    ("Rui is allergic to nuts.", 0.99),
    ("Ines lives in Lisbon.", 0.9),
    ("TP1687 leaves Lisbon at 9:40.", 0.7),
    ("The office closes at six.", 0.6),
    ("Ines may bring her mother.", 0.4),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The rows that tasks go to."""

    account: Account
    conversation: Conversation
    fact: Fact
    context_id: UUID
    chief: User


def build_scene() -> Scene:
    """Store the scene, with vectors of the bundled model."""
    now = datetime.now(UTC)
    chief = User.objects.create_superuser(NAME, password=PASSWORD)
    User.objects.create_user("rita", is_staff=True)
    account = Account.objects.create(name="Harbour Travel")
    Account.objects.create(name="Bakery Lima")
    owner = Owner(account_id=account.id, agent_id="assistant", user_id="ines")
    say(owner, *[turn(text, role=role) for role, text in SAID], conversation_id="madeira", now=now)
    say(owner, turn("Please find a hotel in Funchal."), conversation_id="hotel", now=now)
    conversation = Conversation.objects.get(conversation_id="madeira")
    store_episodes(
        owner,
        drafts=[EpisodeDraft(conversation_id="madeira", summary=text) for text in SUMMARIES],
        embedded=embed_texts(list(SUMMARIES)),
        now=now,
    )
    facts = add_knowledge(owner, now)
    add_work(owner, now)
    context_id = add_sharing(owner)
    add_live_data(owner, conversation)
    add_operations(account, now)
    return Scene(
        account=account,
        conversation=conversation,
        fact=facts,
        context_id=context_id,
        chief=chief,
    )


def add_knowledge(owner: Owner, now: datetime) -> Fact:
    """Store facts, entities, a contradiction and a profile, and return the first fact."""
    person = entity_of(owner, "Ines Prado", aliases=["Ines"], description="A customer since 2024.")
    entity_of(owner, "Ines P.", description="Asked for a hotel.")
    entity_of(owner, "Rui Prado")
    turn_ids = list(Turn.objects.filter(conversation_id="madeira").order_by("index").values_list("pk", flat=True))
    embedded = embed_texts([claim for claim, _ in CLAIMS])
    facts = [
        learn_fact(
            owner,
            FactDraft(claim=claim, confidence=confidence, entity_ids=[person.pk], turn_ids=turn_ids[2:3]),
            embedded=embedded,
            now=now,
        ).fact
        for claim, confidence in CLAIMS
    ]
    moved = FactDraft(claim="Ines lives in Porto.", entity_ids=[person.pk], turn_ids=turn_ids[4:5])
    open_review(owner, old=facts[2], draft=moved, similarity=0.91, embedded=NOTHING, now=now)
    write_profile(owner, "ines", ProfileChanges(preferences={"seat": "window"}, expertise_areas=["sailing"]), now=now)
    return facts[0]


def add_work(owner: Owner, now: datetime) -> None:
    trip = add_goal(owner, GoalDraft(description="Book the trip to Madeira", priority=2), embedded=NOTHING, now=now)
    for part in ("Book the flight", "Find a hotel near the harbour", "Order the meal without nuts"):
        add_goal(owner, GoalDraft(description=part, parent_id=trip.pk), embedded=NOTHING, now=now)
    draft = StrategyDraft(
        description="Search all airports of a city before answering.", tool_sequence=["search_flights"], success=True
    )
    learn_strategy(owner, draft, embedded=NOTHING, now=now)
    uses = [
        InvocationDraft(
            conversation_id="madeira",
            tool_name="search_flights",
            success=number != 1,
            latency_ms=700 + 90 * number,
            error_message="timeout after 30 s" if number == 1 else "",
        )
        for number in range(4)
    ]
    record_invocations(owner, uses, now=now)


def add_sharing(owner: Owner) -> UUID:
    handbook = context_of(owner, "handbook", description="Rules of the agency.")
    keep(owner, handbook, entry("Refunds above 200 euros need the manager."), entry("Answer within a day."))
    make_pool(owner, "season", data={"destination": "Madeira", "seats": 42})
    return handbook.id


def add_live_data(owner: Owner, conversation: Conversation) -> None:
    """Store working memory and session of a conversation, and single values of the account, in Redis."""
    WorkingMemory(owner).set(conversation.conversation_id, {"plan": "Compare flights, then hotels."})
    SessionMemory(session_ref(conversation)).set("step", {"name": "compare flights", "done": 2}, ttl_seconds=7_200)
    KeyValues(owner).set("rates:eur", "1.07", ex=86_000)
    KeyValues(owner).set("greeting", "Welcome to Harbour Travel.")


def add_operations(account: Account, now: datetime) -> None:
    """Store a key, runs of jobs, the use of models, and samples of the last 24 hours."""
    issue_key(account, scopes=["read", "write"], name="website", agent_id="assistant")
    minute = timedelta(minutes=1)
    for number, job in enumerate(("embed", "summarize", "extract_knowledge", "decay", "deduplicate")):
        done: dict[str, Any] = {"started_at": now - 9 * minute, "finished_at": now - 8 * minute}
        JobRun.objects.create(job=job, status="completed", examined=40 + number, changed=number, **done)
    failure = {"error": "OperationalError: the connection was closed", "finished_at": now}
    JobRun.objects.create(job="extract_knowledge", status="failed", account=account, **failure)
    usage = {"calls": 12, "failed_calls": 1, "prompt_tokens": 9_000, "completion_tokens": 900, "cost": Decimal("0.42")}
    ModelUsage.objects.create(account=account, day=now.date(), use="summary", model="small", **usage)
    AuditEntry.objects.create(
        account_id=account.id, operation="update", memory_type="semantic", actor="key:website", agent_id="assistant"
    )
    MetricSample.objects.bulk_create(list(samples(now)))


def samples(now: datetime) -> Any:
    for slot in range(144):
        at = now - timedelta(minutes=5 + 10 * slot)
        wave = (slot * 7) % 11
        figures = [("memory_recall_window_seconds", share, 0.004 * factor + 0.0005 * wave) for share, factor in
                   (("0.5", 1), ("0.95", 3), ("0.99", 5))]  # fmt: skip
        figures += [("memory_rows", kind, count - slot) for kind, count in
                    (("turn", 900), ("fact", 300), ("episode", 120), ("entity", 80))]  # fmt: skip
        figures += [("memory_backlog", "embedding", wave), ("memory_consolidation_lag_seconds", "", 60 + 20 * wave)]
        figures += [("memory_database_bytes", "", 4e8), ("memory_redis_used_bytes", "", 2e7)]
        for name, label, value in figures:
            yield MetricSample(name=name, label=label, value=value, at=at)

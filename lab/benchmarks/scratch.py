"""An account made for measuring, and deleted with everything that was stored in it, wherever that is."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import numpy as np

from ledger import store as ledger
from ledger.journal import JOURNAL, RESTORED
from memory.models import Account, Conversation
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers import access_log, read_counts
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef, client, conversation_key, read_stream

ACTOR = "command:bench"
CONVERSATION = "bench"
AGENTS = 10
BATCH_ROWS = 1_000
CLUSTERS = 200
STANDARD_DEVIATION = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """An account to measure in: a key of it that is bound to no agent, and the model of its vectors."""

    account: Account
    secret: str
    model: str
    width: int

    @property
    def place(self) -> ConversationRef:
        return ConversationRef(account_id=self.account.id, conversation_id=CONVERSATION)

    def owner(self, number: int = 0) -> Owner:
        """Return the owner for the next agent, in turn."""
        return Owner(account_id=self.account.id, agent_id=agent_name(number), actor=ACTOR)


def agent_name(number: int) -> str:
    return f"agent-{number % AGENTS}"


@contextmanager
def scratch_account(purpose: str = "bench") -> Iterator[Scratch]:
    """Create an account named after its purpose, and delete it with its contents, also on Ctrl-C."""
    provider = embedding_provider()
    account = Account(name=f"{purpose}-{uuid4().hex[:12]}")
    try:
        # inside, or an interruption right behind it would leave the account
        account.save(force_insert=True)
        secret = issue_key(account, scopes=READ_WRITE_OPERATE, name=purpose, actor=ACTOR).secret
        yield Scratch(account=account, secret=secret, model=provider.model, width=provider.width)
    finally:
        with undisturbed():
            delete_everything(account)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run without being interrupted by Ctrl-C: signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def delete_everything(account: Account) -> None:
    """Delete the account's rows and Redis keys. Entries of the audit log stay, as always."""
    place = ConversationRef(account_id=account.id, conversation_id=CONVERSATION)
    WorkingMemory(Owner(account_id=account.id)).clear(CONVERSATION)
    ledger.end_ledger(place)
    for conversation in Conversation.objects.filter(account=account):
        SessionMemory(session_ref(conversation)).clear_session()
    delete_journal(account)
    delete_access_log(account)
    for number in range(AGENTS):
        client().delete(read_counts.read_counts_key(Owner(account_id=account.id, agent_id=agent_name(number))))
    client().srem(RESTORED, conversation_key(ledger.KEY_NAME, place))
    account.delete()


def delete_journal(account: Account) -> None:
    """Delete the journal's lines that are not rows yet; rows go with the account."""
    cursor, is_last = "", False
    while not is_last:
        entries, cursor = read_stream(JOURNAL, BATCH_ROWS, after=cursor, account_id=account.id)
        is_last = not cursor
        if entries:
            client().xdel(JOURNAL, *(at for at, _entry in entries))


def delete_access_log(account: Account) -> None:
    """Delete lines of the access log that are not yet rows."""
    cursor, is_last = "", False
    while not is_last:
        lines, cursor = access_log.read_access_lines(BATCH_ROWS, after=cursor, account_id=account.id)
        is_last = not cursor
        if lines:
            access_log.delete_access_lines(lines)


def clustered_vectors(count: int, width: int) -> Embedding:
    """Return seeded vectors of unit length around common centres, like those of texts on common topics."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(CLUSTERS, width))
    rows = centres[random.integers(CLUSTERS, size=count)] + STANDARD_DEVIATION * random.normal(size=(count, width))
    unit: Embedding = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def fill_episodes(scratch: Scratch, count: int, *, now: datetime) -> None:
    """Store episodes with given vectors, the same number for each agent."""
    vectors = clustered_vectors(count, scratch.width)
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    for number, some in enumerate(np.array_split(vectors, AGENTS)):
        for start in range(0, len(some), BATCH_ROWS):
            drafts = [
                EpisodeDraft(
                    conversation_id=CONVERSATION,
                    summary=f"Episode {row} of agent {number}: the pump in field {row % 97} was serviced.",
                    own=ClientVector(model=scratch.model, vector=vector),
                )
                for row, vector in enumerate(some[start : start + BATCH_ROWS], start=start)
            ]
            store_episodes(scratch.owner(number), drafts=drafts, embedded=nothing, now=now)

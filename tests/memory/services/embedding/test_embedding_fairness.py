"""One account cannot keep the rows of another waiting: shares of claims, and tokens of a day."""

from datetime import timedelta
from pathlib import Path

import pytest

from memory import conf
from memory.models import Account, Memory, ModelUsage, Vector
from memory.owner import Owner
from memory.services.embedding.queue import MAX_CLAIM_TOKENS, claim_due_rows, embed_pending, release_lost_claims
from memory.services.operations.alerts import find_alerts
from memory.services.operations.usage import TokenBudget, accounts_over_budget
from memory.tasks import run_scheduled_job
from memory.tokens import estimate_tokens
from memory_project.celery import app
from tests.concurrency import wait_until
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW, draft, store
from tests.memory.maintenance.workers import worker_started

LARGE = "The crane lifts one container after the other onto the ship. " * 500


@pytest.fixture
def other(stranger: Account) -> Owner:
    return Owner(account_id=stranger.id)


def store_large(owner: Owner, count: int = 56) -> None:
    store(owner, *(draft(f"{number} {LARGE}") for number in range(count)))


def waiting_rows(owner: Owner) -> int:
    return Memory.objects.filter(account_id=owner.account_id).awaiting_embedding().count()


@pytest.mark.django_db
def test_large_texts_of_one_account_leave_the_rows_of_another_their_share(
    owner: Owner, other: Owner, embedding_server: EmbeddingServer
) -> None:
    store_large(owner)
    store(other, *(draft(f"number {number}") for number in range(60)))

    claims = [embed_pending(now=NOW, limit=64) for _ in range(2)]

    assert waiting_rows(other) == 0
    assert waiting_rows(owner) == 54
    assert all(claim.has_more for claim in claims)


@pytest.mark.django_db
def test_a_claim_takes_few_tokens_of_an_account_but_at_least_one_row(owner: Owner) -> None:
    store(owner, *(draft(f"{number} " + "word " * 1_000) for number in range(20)), draft(LARGE))

    claimed = claim_due_rows(now=NOW, limit=64, account_id=None)

    tokens = estimate_tokens(claimed[0].text)
    assert len(claimed) == MAX_CLAIM_TOKENS // tokens
    assert len(claim_due_rows(now=NOW, limit=1, account_id=None)) == 1


@pytest.mark.django_db
def test_rows_of_an_account_that_spent_its_tokens_wait_for_the_next_day(
    owner: Owner, other: Owner, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "EMBEDDED_TOKENS_PER_DAY", 1_000)
    store_large(owner, 2)
    store(other, draft("a short text"))
    embed_pending(now=NOW, limit=1, account_id=owner.account_id)

    claimed = embed_pending(now=NOW, limit=64).claimed

    assert (claimed, waiting_rows(other), waiting_rows(owner)) == (1, 0, 1)
    assert accounts_over_budget(TokenBudget.EMBEDDING, now=NOW) == [owner.account_id]
    assert accounts_over_budget(TokenBudget.LANGUAGE, now=NOW) == []
    assert any(
        alert.name == "tokens_spent" and str(owner.account_id) in alert.what for alert in find_alerts(NOW, jobs=[])
    )
    assert embed_pending(now=NOW + timedelta(days=1), limit=64).stored == 1
    assert ModelUsage.objects.filter(account_id=owner.account_id, use="embedding").count() == 2


@pytest.mark.django_db
def test_rows_that_a_dead_worker_claimed_are_due_again(owner: Owner) -> None:
    store(owner, draft("claimed"), draft("failed before"))
    Memory.objects.filter(text="failed before").update(
        embed_after=NOW + timedelta(seconds=60), embed_attempts=1, embed_error="provider_unavailable"
    )
    claim_due_rows(now=NOW, limit=10, account_id=None)

    release_lost_claims(now=NOW + timedelta(seconds=1), limit=10, account_id=None)

    due = Memory.objects.filter(embed_after__lte=NOW + timedelta(seconds=1))
    assert [row.text for row in due] == ["claimed"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_worker_embeds_the_rows_of_an_account_while_another_has_many_large_ones(
    owner: Owner, other: Owner, tmp_path: Path
) -> None:
    store_large(owner)
    store(other, *(draft(f"number {number}") for number in range(60)))
    app.control.purge()

    with worker_started(tmp_path, "worker"):
        run_scheduled_job.delay("embed")
        wait_until(lambda: waiting_rows(other) == 0)

    assert waiting_rows(owner) > 0
    assert Vector.objects.filter(account_id=other.account_id).count() == 60

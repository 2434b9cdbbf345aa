"""The job `measure`: what it samples is what there is, once a minute, for as long as the setting says."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memory import conf
from memory.maintenance import JOBS, Batch, BatchReport, runner
from memory.maintenance.log_jobs import measure
from memory.models import Account, Conversation, JobRun, Link, Memory, MetricSample
from memory.owner import Owner
from memory.services.operations import samples
from memory.services.operations.samples import count_working_keys, take_samples
from memory_project import redis
from memory_project.measures import EMBEDDING_REQUESTS, FAILED, OUTCOMES, RECALL_SECONDS
from tests.memory.episodes import draft, store
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

STATEMENTS = 4


def figures(now: datetime) -> dict[str, float]:
    return {f"{sample.name} {sample.label}".strip(): sample.value for sample in take_samples(now)}


def measure_all(now: datetime, *, dry_run: bool = False) -> BatchReport:
    return measure(now=now, batch=Batch(size=100, dry_run=dry_run))


def test_a_run_stores_samples_and_reports_their_number() -> None:
    job = JobRun(job="measure")

    runner.run_at_once(JOBS["measure"], job, clock=timezone.now)

    kept = MetricSample.objects.count()
    assert kept > 20
    assert (job.status, job.failed, job.figures) == ("completed", 0, {"samples_taken": kept})


def test_a_second_run_within_the_minute_changes_nothing() -> None:
    now = timezone.now().replace(second=1)
    first = measure_all(now)

    again = measure_all(now + timedelta(seconds=58))
    later = measure_all(now + timedelta(minutes=1))

    assert (first.changed, again.changed, later.changed) == (first.examined, 0, later.examined)


def test_a_dry_run_counts_and_keeps_nothing() -> None:
    report = measure_all(timezone.now(), dry_run=True)

    assert report.changed == report.examined > 20
    assert not MetricSample.objects.exists()


def test_samples_past_their_retention_are_deleted_by_batches() -> None:
    now = timezone.now()
    ages = (conf.METRIC_RETENTION_DAYS + 1, conf.METRIC_RETENTION_DAYS + 2, conf.METRIC_RETENTION_DAYS - 1)
    MetricSample.objects.bulk_create(
        MetricSample(name="memory_links", at=now - timedelta(days=age), value=1.0) for age in ages
    )
    MetricSample.objects.create(name=samples.BUCKETS, label="1.0", at=now - timedelta(hours=2), value=1.0)

    reports = [measure(now=now, batch=Batch(size=2, cursor=cursor)) for cursor in ("samples_deleted:",)]
    while reports[-1].cursor:
        reports.append(measure(now=now, batch=Batch(size=2, cursor=reports[-1].cursor)))

    assert sum(report.figures.get("samples_deleted", 0) for report in reports) == 3
    assert MetricSample.objects.count() == 1


def test_rows_are_counted_by_kind_and_by_tier(account: Account, stranger: Account, owner: Owner) -> None:
    episodes = store(owner, draft("a"), draft("b"))
    store(Owner(account_id=stranger.id, agent_id="spy"), draft("theirs"))
    Link.objects.create(account=account, source_id=episodes[0].id, target_id=episodes[1].id, type="FOLLOWED_BY")

    found = figures(timezone.now())

    assert (found["memory_rows episode"], found["memory_rows fact"], found["memory_links"]) == (3, 0, 1)
    assert (found["memory_tier_items long_term"], found["memory_tier_items short_term"]) == (3, 0)
    assert found["memory_backlog embedding"] == Memory.objects.awaiting_embedding().count()
    assert found["memory_database_bytes"] > 1_000_000
    assert found["memory_redis_used_bytes"] > 100_000


def keys_of(account: Account, nouns: Sequence[str]) -> list[str]:
    return [f"account:{account.id}:{noun}:{{{uuid4()}}}" for noun in nouns]


def test_keys_of_working_memory_are_counted_and_no_others(account: Account) -> None:
    keys = keys_of(account, ["working_memory", "working", "agent", "skill", "value"])
    redis.client().mset(dict.fromkeys([*keys, "cache:working:x"], "1"))

    assert count_working_keys() == 3


def test_the_number_of_keys_is_estimated_from_a_sample_if_there_are_many(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_SCANNED_KEYS", 500)
    monkeypatch.setattr(samples, "SCAN_PAGE", 100)
    keys = keys_of(account, ["working"] * 1_000 + ["value"] * 1_000)
    redis.client().mset(dict.fromkeys(keys, "1"))

    assert 800 < count_working_keys() < 1_200


def test_the_lag_of_consolidation_is_the_age_of_the_oldest_unprocessed_turn(owner: Owner) -> None:
    now = timezone.now()
    talk(owner, 1, now=now)
    Memory.objects.update(created_at=now - timedelta(minutes=50), event_time=now - timedelta(days=900))

    assert figures(now)["memory_consolidation_lag_seconds"] == pytest.approx(3_000, abs=1)

    Conversation.objects.update(extract_after=None)
    assert figures(now)["memory_consolidation_lag_seconds"] == 0


def test_the_delay_of_consolidation_covers_the_last_day(account: Account) -> None:
    now = timezone.now()
    for number, (delay, done) in enumerate([(60, 1), (120, 2), (180, 3), (9_999, 30)]):
        at = now - timedelta(hours=done)
        Conversation.objects.create(
            account=account,
            conversation_id=str(number),
            started_at=now - timedelta(days=900),
            updated_at=at - timedelta(seconds=delay),
            consolidated_at=at,
        )

    assert figures(now)["memory_consolidation_delay_seconds 0.5"] == pytest.approx(120)


def test_latencies_cover_the_time_since_the_previous_sample(settings: Settings, tmp_path: Path) -> None:
    # where no web server shares its counters
    settings.DATA_DIR, now = tmp_path, timezone.now()
    for _ in range(1_000):
        RECALL_SECONDS.observe(3.0)
    measure_all(now - timedelta(minutes=5))
    for _ in range(10):
        RECALL_SECONDS.observe(0.04)

    assert 0.03 <= figures(now)["memory_recall_window_seconds 0.99"] <= 0.05

    measure_all(now)
    assert "memory_recall_window_seconds 0.99" not in figures(now + timedelta(minutes=5))


def test_counters_are_sampled_for_outcomes_that_never_occurred(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR, now = tmp_path, timezone.now()
    before = figures(now)

    EMBEDDING_REQUESTS.labels(FAILED).inc(3)

    counters = {f"{name} {outcome}" for name, outcomes in OUTCOMES.items() for outcome in outcomes}
    rose = {name: value - before[name] for name, value in figures(now).items() if name in counters}
    assert rose == dict.fromkeys(counters, 0) | {"memory_embedding_requests_total failed": 3}


def test_a_redis_that_is_down_leaves_the_other_figures(dead_redis: None) -> None:
    found = figures(timezone.now())

    assert "memory_redis_used_bytes" not in found
    assert found["memory_links"] == 0


def test_sampling_takes_a_constant_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store(owner, *(draft(str(number)) for number in range(5)))

    with django_assert_num_queries(STATEMENTS):
        take_samples(timezone.now())

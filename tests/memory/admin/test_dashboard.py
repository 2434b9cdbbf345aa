"""The first page: figures with links, charts over time, jobs and alerts, in a fixed number of queries."""

import re
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.admin import tiles
from memory.admin.dashboard import format_due
from memory.maintenance import JOBS
from memory.models import Account, Conversation, JobRun, Memory, MetricSample, ModelUsage
from memory.owner import Owner
from memory.services.operations import account_figures, alerts, backlogs
from tests.memory.admin.pages import queries_of, shown
from tests.memory.episodes import draft, store
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def url() -> str:
    return reverse("dashboard:page")


def sample(name: str, value: float, label: str = "", *, minutes_ago: float = 5) -> None:
    MetricSample.objects.create(name=name, label=label, value=value, at=timezone.now() - timedelta(minutes=minutes_ago))


def tile(page: str, name: str) -> tuple[str, str]:
    """Return the address and the text of a figure at the top of the page."""
    found = re.search(rf'<dt>{re.escape(name)}</dt><dd><a href="([^"]+)">([^<]+)</a></dd>', page)
    assert found, name
    return unescape(found[1]), found[2]


def test_without_any_figures_the_page_says_so(staff: Client, url: str) -> None:
    page = shown(staff.get(url))

    assert "There are no samples yet." in page
    assert "There was nothing on these days." in page
    assert '<path class="line"' not in page


@pytest.mark.parametrize(("hour", "due"), [(1, "03:15 UTC"), (9, "tomorrow, 03:15 UTC")])
def test_a_daily_job_that_has_run_today_is_due_tomorrow(hour: int, due: str) -> None:
    now = datetime(2026, 12, 1, hour, tzinfo=UTC)

    assert format_due(replace(JOBS["decay"], every=time(3, 15)), None, now) == due


def test_samples_are_drawn_and_shown_as_text(staff: Client, url: str) -> None:
    for minutes in (15, 5):
        sample("memory_rows", 1_200, "turn", minutes_ago=minutes)
        sample("memory_rows", 300, "fact", minutes_ago=minutes)
        sample("memory_recall_window_seconds", 0.012, "0.95", minutes_ago=minutes)
    sample("memory_backlog", 7, "embedding")

    page = shown(staff.get(url))

    assert tile(page, "all memories") == ("/admin/memory/memory/", "1.5k")
    assert tile(page, "turns") == ("/admin/memory/turn/", "1.2k")
    assert tile(page, "95th percentile") == ("#chart-recall", "12 ms")
    assert "p95 12 ms latest, 12 ms at most" in page
    assert '<path class="line" d="M' in page
    assert "embeddings 7 latest, 7 at most" in page


def test_tiers_show_their_latest_samples(staff: Client, url: str) -> None:
    sample("memory_tier_items", 12, "working", minutes_ago=45)
    for minutes, count in ((25, 9_000), (5, 2_000)):
        sample("memory_tier_items", count, "long_term", minutes_ago=minutes)

    page = shown(staff.get(url))

    rows = re.findall(r'<th scope="row">(.*?)</th><td class="bar">.*?</td><td>(.*?)</td>', page)
    assert rows == [("working", "12"), ("long-term", "2k")]


def test_cache_and_embedder_figures_cover_the_last_24_hours(staff: Client, url: str) -> None:
    """Counts of earlier days are left out, and counters that fell have been reset."""
    counted = {"hit": (7_000, 7_100, 7_160, 20), "miss": (50, 60, 70, 0)}
    for outcome, values in counted.items():
        for hours, value in zip((30, 20, 10, 1), values, strict=True):
            sample("memory_embedding_cache_lookups_total", value, outcome, minutes_ago=60 * hours)
    for outcome, before, since in (("answered", 10, 26), ("failed", 0, 4)):
        for hours, value in ((20, before), (1, since)):
            sample("memory_embedding_requests_total", value, outcome, minutes_ago=60 * hours)

    page = shown(staff.get(url))

    assert tile(page, "vectors from the cache, 24 h")[1] == "88.9% of 90"
    assert tile(page, "failed embeddings, 24 h")[1] == "4 of 20"
    assert "sessions read from Redis" not in page


def test_jobs_and_model_usage_are_shown_with_totals(staff: Client, url: str, account: Account) -> None:
    now = timezone.now()
    done = {"started_at": now - timedelta(seconds=3), "finished_at": now}
    JobRun.objects.create(job="promote_short_term", status="failed", examined=90, changed=40, failed=2, **done)
    JobRun.objects.create(job="cleanup", status="completed", examined=9, figures={"archive_conversations": 5}, **done)
    JobRun.objects.create(
        job="promote_short_term", status="completed", examined=10_000, changed=10_000, dry_run=True, **done
    )
    ModelUsage.objects.create(account=account, day=now.date(), use="summary", model="x", calls=3, prompt_tokens=900)

    page = shown(staff.get(url))

    assert "<td>3 s</td><td>90 / 40 / 2</td>" in page
    assert 'class="state state-failed"' in page
    assert "Total: decayed 0, merged 0, promoted 40, archived 5" in page
    assert "Total: examined 99, changed 40" in page
    assert "Total: sent 900, received 0" in page
    assert "Jobs whose last run failed: promote_short_term" in page


def test_the_dashboard_takes_the_same_queries_for_any_number_of_rows(staff: Client, url: str, account: Account) -> None:
    before = queries_of(staff, url)
    for number in range(5):
        sample("memory_rows", number, "turn", minutes_ago=10 * number)
        JobRun.objects.create(job="embed", status="completed", account=account, examined=3)

    assert queries_of(staff, url) == before <= 27


def test_the_dashboard_contains_no_inline_style_or_script(staff: Client, url: str) -> None:
    """The content security policy makes the browser block them."""
    sample("memory_rows", 3, "turn")

    page = shown(staff.get(url)).split('<div class="dashboard">', 1)[1].split("</main>")[0]

    assert not [word for word in ("style=", "<style", "<script", "onload", "onclick") if word in page]


def test_each_figure_leads_to_as_many_rows(staff: Client, url: str, account: Account) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    store(owner, draft("one"), draft("two"))
    talk(owner, 3)
    Memory.objects.update(embed_after=timezone.now() - timedelta(minutes=1))
    Conversation.objects.update(extract_parked_at=timezone.now(), extract_after=None)
    JobRun.objects.create(job="embed", status="failed", account=account)
    JobRun.objects.create(job="embed", status="failed", account=account, created_at=timezone.now() - timedelta(days=2))
    staff.post(reverse("switcher:switch"), {"account": account.id})

    page = shown(staff.get(url))

    for name in ("all memories", "turns", "episodes", "waiting for embedding", "extractions parked", "failed"):
        address, figure = tile(page, name)
        assert figure == str(staff.get(address).context["cl"].result_count) != "0", name
    for address, _ in re.findall(r"<dd><a href=\"([^\"]+)\">([^<]+)</a></dd>", page):
        assert staff.get(unescape(address)).status_code == 200


def test_figures_are_those_of_the_accounts_that_one_sees(limited: Client, url: str, stranger: Account) -> None:
    owner = Owner(account_id=stranger.id, agent_id="assistant")
    store(owner, draft("hidden"))
    ModelUsage.objects.create(account=stranger, day=timezone.now().date(), use="summary", model="x", calls=7, cost=3)
    JobRun.objects.create(job="embed", status="failed", account=stranger)
    sample("memory_rows", 1_200, "turn")

    page = shown(limited.get(url))

    assert "Figures of the account workshop." in page
    assert (tile(page, "all memories")[1], tile(page, "failed")[1], tile(page, "spent, 7 days")[1]) == (
        "0",
        "0",
        "0.00",
    )
    assert "1.2k" not in page
    assert "alert" not in page
    assert str(stranger.id) not in page


def test_counts_of_an_account_end_at_a_limit(
    staff: Client, url: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(Owner(account_id=account.id, agent_id="assistant"), *[draft(f"memory {number}") for number in range(9)])
    for module in (account_figures, backlogs, tiles):
        monkeypatch.setattr(module, "MAX_COUNTED", 5)
    staff.post(reverse("switcher:switch"), {"account": account.id})

    page = shown(staff.get(url))

    assert tile(page, "episodes")[1] == "5 or more"


def test_alerts_are_those_of_readiness(staff: Client, client: Client, url: str) -> None:
    JobRun.objects.create(job="embed", status="failed", finished_at=timezone.now())

    names = re.findall(r"<li><strong>([a-z_]+)</strong>", shown(staff.get(url)))

    assert "job_failed" in names
    assert names == [each.name for each in alerts.find_alerts(timezone.now(), jobs=JOBS.values())]


def test_who_may_see_nothing_gets_a_page_without_figures(newcomer: Client, client: Client, url: str) -> None:
    page = shown(newcomer.get(url))

    assert "The menu has the pages that you may open." in page
    assert "<dt>" not in page
    assert "alert" not in page
    User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename="view_jobrun"))
    allowed = shown(newcomer.get(url))
    assert "There are no alerts." in allowed or "alerts-heading" in allowed
    assert tile(allowed, "running")[1] == "0"
    assert "waiting for" not in allowed
    assert client.get(url).status_code == 302


def test_the_address_of_the_former_dashboard_leads_home(staff: Client, url: str) -> None:
    assert staff.get("/admin/dashboard/").headers["Location"] == url == "/admin/"

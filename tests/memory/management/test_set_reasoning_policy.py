"""`manage.py set_reasoning_policy`: how much reasoning is kept and returned, and destroying raw traces."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory import conf
from memory.models import Account, AuditEntry, ReasoningTrace, TurnRecord
from memory.owner import Owner
from memory.services.records.reasoning import destroy_traces
from tests.memory.reasonings import allow, thought

pytestmark = pytest.mark.django_db


def run(*arguments: str, account: str = "workshop") -> dict[str, Any]:
    output = StringIO()
    call_command("set_reasoning_policy", "--account", account, "--json", *arguments, stdout=output, stderr=StringIO())
    figures: dict[str, Any] = json.loads(output.getvalue())
    assert figures.pop("seconds") >= 0
    return figures


def policy_now() -> tuple[str, int]:
    return Account.objects.values_list("reasoning_tier", "raw_trace_tokens").get(name="workshop")


@pytest.fixture
def traced(owner: Owner) -> list[TurnRecord]:
    """Three records whose raw traces are kept; the last has no summary."""
    allow(owner, "raw_trace")
    kept = [thought(owner, trace=f"secret {number}", summary="Went on.") for number in range(2)]
    return [*kept, thought(owner, trace="secret 2")]


def test_the_policy_is_set_and_reported(owner: Owner) -> None:
    report = run("--tier", "raw_trace", "--trace-tokens", "4000")

    assert policy_now() == ("raw_trace", 4000)
    assert report == {
        "account": "workshop", "tier": "raw_trace", "was": "structured_rationale", "trace_tokens": 4000,
        "traces_forgotten": 0, "dry_run": False,
    }  # fmt: skip


def test_without_options_the_policy_is_reported_and_not_audited(owner: Owner) -> None:
    assert run()["tier"] == "structured_rationale"
    assert not AuditEntry.objects.filter(memory_type="account").exists()


def test_forgetting_traces_lowers_the_tier_of_their_records(traced: list[TurnRecord]) -> None:
    assert run("--tier", "decision_summary", "--forget-traces")["traces_forgotten"] == 3

    assert not ReasoningTrace.objects.exists()
    left = TurnRecord.objects.order_by("number").values_list("reasoning_tier", flat=True)
    assert list(left) == ["decision_summary", "decision_summary", "none"]


def test_a_dry_run_reports_and_changes_nothing(traced: list[TurnRecord]) -> None:
    report = run("--tier", "none", "--forget-traces", "--dry-run")

    assert (report["tier"], report["traces_forgotten"], report["dry_run"]) == ("none", 3, True)
    assert (policy_now()[0], ReasoningTrace.objects.count()) == ("raw_trace", 3)


def test_an_interrupted_destruction_of_traces_is_finished_by_the_next_run(
    owner: Owner, traced: list[TurnRecord]
) -> None:
    next(destroy_traces(owner, size=2))

    assert ReasoningTrace.objects.count() == 1
    assert run("--forget-traces")["traces_forgotten"] == 1


def test_traces_of_other_accounts_stay(stranger: Account, traced: list[TurnRecord]) -> None:
    theirs = Owner(account_id=stranger.id, agent_id="assistant")
    allow(theirs, "raw_trace")
    thought(theirs, trace="another's")

    run("--forget-traces")

    assert ReasoningTrace.objects.get().account_id == stranger.id


def test_policy_and_destruction_are_audited_without_the_text_of_traces(
    traced: list[TurnRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    run("--tier", "none", "--forget-traces")

    set_row = AuditEntry.objects.get(memory_type="account")
    gone = AuditEntry.objects.get(memory_type="reasoning_trace")
    assert set_row.metadata["policy"]["tier"] == "none"
    assert sorted(gone.affected_ids) == sorted(str(record.id) for record in traced)
    assert "secret" not in str(AuditEntry.objects.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tier", "everything"], "the tier must be one of"),
        (["--trace-tokens", "-1"], "0 to"),
        (["--trace-tokens", "1000001"], "0 to"),
    ],
    ids=["unknown tier", "less than none", "too many"],
)
def test_an_invalid_policy_is_refused(owner: Owner, arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*arguments)

    assert policy_now()[0] == "structured_rationale"


def test_an_unknown_account_is_an_error(db: None) -> None:
    with pytest.raises(CommandError, match="no account 'nobody'"):
        run(account="nobody")

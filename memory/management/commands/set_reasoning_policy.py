"""`manage.py set_reasoning_policy`: how deep an account's reasoning is stored and returned."""

import time
from argparse import ArgumentParser
from typing import Any

from memory.management.base import OperatorCommand, count_until_interrupted, end_interrupted, find_account
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.records.reasoning import (
    MAX_TRACE_TOKENS,
    check_policy,
    count_traces,
    destroy_traces,
    policy_of_account,
    set_policy,
)

EPILOG = f"""
The tiers, the shallowest first: {", ".join(ReasoningTier)}.

An account stores and returns no deeper tier than its policy allows. A lower policy also hides what is stored already,
and a higher one shows it again. Only deep replay returns raw traces, to keys with the scope deep_replay
(`manage.py create_api_key --deep-replay`); --forget-traces destroys them for good, after the policy is set.

  manage.py set_reasoning_policy --account workshop --tier raw_trace --trace-tokens 4000
  manage.py set_reasoning_policy --account workshop --tier decision_summary --forget-traces --dry-run
  manage.py set_reasoning_policy --account workshop

The last one changes nothing and prints the policy. If it is stopped while it destroys traces, run it again to continue.

Exit status: 0, or 1 where there is no such account, tier or number of tokens, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Set how deep the reasoning is that an account stores and returns; optionally destroy its stored raw traces."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", metavar="NAME", required=True, help="name of the account")
        parser.add_argument("--tier", metavar="TIER", help="deepest tier that is stored and returned")
        parser.add_argument(
            "--trace-tokens",
            type=int,
            metavar="N",
            help=f"maximum length of a stored raw trace in tokens, 0 to {MAX_TRACE_TOKENS}",
        )
        parser.add_argument("--forget-traces", action="store_true", help="destroy every stored raw trace")
        parser.add_argument("--dry-run", action="store_true", help="print what would be done, and change nothing")
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        account = find_account(options["account"])
        asked = {"tier": options["tier"], "trace_tokens": options["trace_tokens"]}
        check_policy(**asked)
        owner, was = Owner(account_id=account.id, actor="command"), policy_of_account(account)
        started = time.monotonic()
        if not options["dry_run"]:
            set_policy(owner, **asked)
        forgotten, interrupted = self.forget(owner, options)
        figures = {
            "account": account.name,
            "tier": options["tier"] or was.tier.value,
            "was": was.tier.value,
            "trace_tokens": was.trace_tokens if asked["trace_tokens"] is None else asked["trace_tokens"],
            "traces_forgotten": forgotten,
            "dry_run": options["dry_run"],
            "seconds": round(time.monotonic() - started, 1),
        }
        self.report(figures, options)
        if interrupted:
            end_interrupted(self, "What is destroyed stays so; run the same command again to go on.")

    def forget(self, owner: Owner, options: dict[str, Any]) -> tuple[int, bool]:
        """Destroy the raw traces, or count them; return how many, and whether Ctrl-C ended it."""
        if not options["forget_traces"]:
            return 0, False
        if options["dry_run"]:
            return count_traces(owner).rows, False
        return count_until_interrupted(batch.rows for batch in destroy_traces(owner))

    def report(self, figures: dict[str, Any], options: dict[str, Any]) -> None:
        report = "{account}: {was} -> {tier}, raw traces of at most {trace_tokens} tokens".format(**figures)
        if options["forget_traces"]:
            done = "would be destroyed" if options["dry_run"] else "destroyed"
            report += f", {figures['traces_forgotten']} of them {done}"
        self.print_figures(figures, report, options)

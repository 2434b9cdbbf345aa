"""Rows on every list of the admin, with texts that try to break out of the page and words that do not break."""

from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memory.models import Account
from memory.owner import Owner
from memory.services.goals.plan import GoalDraft, add_goal
from tests.memory.admin.rows import MAKERS
from tests.memory.entities import entities_of
from tests.memory.episodes import NOTHING
from tests.memory.turns import talk

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>' {{ 7*7 }} " + "unbroken" * 30
HOSTILE_ID = '"><img src=x onerror=alert(1)>&' + "a-long-id-" * 5

HOSTILE_COLUMNS = {
    "memories": {"text": HOSTILE, "agent_id": HOSTILE_ID},
    "conversations": {"title": HOSTILE[:190], "user_id": HOSTILE_ID, "agent_id": HOSTILE_ID},
    "tool_invocations": {"tool_name": HOSTILE_ID},
    "job_runs": {"error": HOSTILE, "requested_by": HOSTILE_ID},
    "workflow_runs": {"workflow": HOSTILE_ID, "agent_id": HOSTILE_ID},
    "bulk_changes": {"reason": HOSTILE},
}
"""Texts that replace those of all rows, by table and column."""


def fill_world() -> Account:
    """Make three rows for each list, each list in an account of its own, and return another account."""
    # the maker of votes makes learnings too, and votes on all that there are
    done: set[Any] = {MAKERS["learning"]}
    for name, make in MAKERS.items():
        if make not in done:
            make(Account.objects.create(name=f"the account of {name}"), range(3))
            done.add(make)
    account = Account.objects.create(name="workshop <b>&amp;</b>" + "x" * 50)
    owner = Owner(account_id=account.id, agent_id="assistant")
    talk(owner, 3)
    entities_of(owner, "Ana Bosch", "Ana Bosh")
    goal = add_goal(owner, GoalDraft(description="mend the roof"), embedded=NOTHING, now=datetime.now(UTC))
    add_goal(owner, GoalDraft(description="buy tiles", parent_id=goal.pk), embedded=NOTHING, now=datetime.now(UTC))
    with connection.cursor() as cursor:
        for table, columns in HOSTILE_COLUMNS.items():
            places = ", ".join(f'"{column}" = %s' for column in columns)
            cursor.execute(f'UPDATE "{table}" SET {places}', list(columns.values()))
    return account

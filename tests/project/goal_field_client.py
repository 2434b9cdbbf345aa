"""A client that uses a new field of goals: over HTTP, in the OpenAPI document and in the admin.

tests/project/test_goal_field_recipe.py runs it by `manage.py shell` in a copy of the project that has the field.
"""

import json
import sys
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import setup_test_environment

from memory.models import Account, Goal
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.embedding.embed import embed_texts
from memory.services.goals.plan import GoalDraft, add_goal
from tests.api_client import ServiceClient
from tests.memory.admin.pages import form_values, page_url

ACTING = {"agent_id": "planner"}


def store_goal() -> None:
    """Store a goal before there is a field."""
    owner = Owner(account_id=Account.objects.create(name="garden").id, agent_id="planner")
    add_goal(owner, GoalDraft(description="Weed the beds."), embedded=embed_texts([]), now=datetime.now(UTC))


def use_field(name: str, *, stored: Any, changed: Any, corrected: Any) -> None:
    """Store a goal with the field, change it by PATCH, correct it as staff, and print what each place shows as JSON."""
    # templates then keep their context, and the test client's host is allowed
    setup_test_environment()
    account = Account.objects.create(name="workshop")
    api = ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE).secret)
    created = api.post("/goals", {**ACTING, "description": "Plant the roses.", name: stored}).json()
    goal_url = f"/goals/{created['id']}"
    read = api.get(f"{goal_url}?agent_id=planner").json()
    patched = api.patch(goal_url, {**ACTING, name: changed}).json()
    listed = api.get("/goals?agent_id=planner").json()["results"][0]
    refused = api.patch(goal_url, {**ACTING, name: "many"})
    without = api.post("/goals", {**ACTING, "description": "Water the roses."}).json()

    staff = Client()
    staff.force_login(User.objects.create_superuser("chief"))
    page_of_goal = page_url("goal", created["id"])
    form = form_values(staff.get(page_of_goal))
    saved = staff.post(page_of_goal, {**form, name: corrected})
    schemas = api.get("/api/schema?format=json").json()["components"]["schemas"]
    json.dump(
        {
            "created": created[name],
            "read": read[name],
            "patched": patched[name],
            "listed": listed[name],
            "refused": refused.status_code,
            "default": without[name],
            "older": getattr(Goal.objects.get(text="Weed the beds."), name),
            "form": form[name],
            "saved": saved.status_code,
            "row": getattr(Goal.objects.get(pk=created["id"]), name),
            "documented": sorted(each for each in schemas if name in schemas[each].get("properties", {})),
            "required": sorted(each for each in schemas if name in schemas[each].get("required", [])),
        },
        sys.stdout,
    )

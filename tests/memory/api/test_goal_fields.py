"""Each field that a goal's API declares is stored, answered and changed: a forgotten place fails here."""

from typing import Any

import pytest
from rest_framework import serializers

from memory.api.fields import AwareDateTimeField, Metadata, NonBlankText, OwnerFields
from memory.api.goals import EditableGoalFields, NewGoal, Priority, StoredGoal
from memory.api.vectors import VectorFields
from memory.models import Goal
from memory.services.goals.plan import OWN_COLUMNS
from memory_project.http.serializers import WholeNumber
from tests.api_client import ServiceClient
from tests.memory.goal_requests import ACTING, added
from tests.memory.goal_requests import _embedder as _embedder

pytestmark = pytest.mark.django_db

FIELDS = {
    name: field
    for name, field in EditableGoalFields().fields.items()
    if name not in {*OwnerFields().fields, *VectorFields().fields}
}


def two_values(api: ServiceClient, field: serializers.Field[Any, Any, Any, Any]) -> tuple[Any, Any]:
    """Return two different values for a field of this type."""
    match field:
        case NonBlankText():
            return "Plant the roses.", "Water the roses."
        case Priority():
            return 3, -4
        case WholeNumber():
            return 3, 4
        case AwareDateTimeField():
            return "2031-01-02T03:04:05Z", "2032-02-03T04:05:06Z"
        case serializers.UUIDField():
            return added(api, "Mend the fence."), added(api, "Paint the fence.")
        case Metadata():
            return {"season": "spring"}, {"season": "autumn"}
    raise AssertionError(f"a value for {field!r} is missing here")


@pytest.mark.parametrize("name", FIELDS)
def test_every_declared_field_is_stored_returned_and_changed(api: ServiceClient, name: str) -> None:
    first, second = two_values(api, FIELDS[name])
    shown = name if name in StoredGoal().fields else f"{name}_id"

    goal = api.post("/goals", ACTING | {"description": "Plant the roses.", name: first}).json()
    read = api.get(f"/goals/{goal['id']}?agent_id=planner").json()
    changed = api.patch(f"/goals/{goal['id']}", ACTING | {name: second}).json()

    assert (goal[shown], read[shown], changed[shown]) == (first, first, second)
    assert Goal.objects.get(pk=goal["id"]).version == 2


def test_every_column_that_a_draft_fills_is_set_and_returned_over_http() -> None:
    declared = set(NewGoal().fields) & set(StoredGoal().fields)

    assert OWN_COLUMNS - declared == set()

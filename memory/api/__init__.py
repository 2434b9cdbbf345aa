"""The HTTP API: one module per family of resources, with the serializers of bodies, queries and answers, and the views.

`urls.py` lists the routes, `fields.py`, `filters.py` and `vectors.py` hold shared shapes, and `memory_project.http` is
the general contract. Serializers check the shape of a request, services check the rules.

To add a field to a resource, for example to goals, change four places:

1. the model (`memory/models/goals.py`),
2. its migration,
3. the declaration in `memory/api/goals.py`: a field of `EditableGoalFields` if clients may set and change it (of
   `NewGoal` if they set it only once), and of `StoredGoal` if answers have it. The OpenAPI document, the validation and
   the JSON of all answers follow from there. A field whose name is not the row's attribute gets a `source`, a computed
   one a method `compute_<field>`;
4. the service (`memory/services/goals/plan.py`): the dataclass `GoalDraft`, `CHANGEABLE` if the field may change, and
   the row that `add_goal` makes. `draft_fields` and `changed_fields` pass the members of a body on by name.

To add a resource: a module with its serializers and one view per group of actions, based on `views.OwnerViewSet` (on
`views.VersionedViewSet` if its rows have an ETag), whose class attributes declare what each action takes and answers; a
line per path in `urls.py`; a test module.
"""

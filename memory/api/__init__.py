"""The HTTP API: one module per family of resources, with the serializers of bodies, queries and answers, and the views.

`urls.py` lists the routes, `fields.py`, `filters.py` and `vectors.py` hold shared shapes, and `memory_project.http` is
the general contract. Serializers check the shape of a request, services check the rules.

To add a field to a resource, for example to goals, change these places; docs/contributing.md shows them as a diff:

1. the model (`memory/models/goals.py`); `makemigrations` writes the migration,
2. the draft in the service (`memory/services/goals/plan.py`): the dataclass `GoalDraft`. The row that `add_goal` makes
   and `CHANGEABLE` follow from it. `changed_fields` passes the members of a body on by name,
3. the declaration in `memory/api/goals.py`: a field of `GoalColumns` if clients set and change it and answers have it,
   of `NewGoal` and `StoredGoal` if clients set it only once, of `StoredGoal` alone if only answers have it. The OpenAPI
   document, the validation and the JSON of all answers follow from there. A field whose name is not the row's attribute
   gets a `source`, a computed one a method `compute_<field>`,
4. `correctable` in `memory/kinds/goal.py` if staff may edit it in the admin.

To add a resource: a module with its serializers and one view per group of actions, based on `views.OwnerViewSet` (on
`views.VersionedViewSet` if its rows have an ETag), whose class attributes declare what each action takes and answers; a
line per path in `urls.py`; a test module.
"""

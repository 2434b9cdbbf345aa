"""The table `memories`, derived from the models of all kinds: their columns, constraints and indexes.

A column that only some kinds have is NULL in the rows of the others. Kinds that have a column of the same name share
it, so it must be of the same type in each. What the model of a kind requires of its rows (columns that are not NULL,
constraints, indexes) the table requires of the rows of this kind alone. An index or a unique constraint that has a
condition of its own keeps it as it is: it should not hold for rows of other kinds unless that is intended.

`makemigrations` takes the table from `MemoryTable`. Queries use it where they read columns of several kinds.
"""

from typing import Any

from django.apps import apps
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from memory.kinds import all_specs
from memory.models.memory import DEDUPLICATED, IN_CONTEXTS, TABLE, Memory, MemoryRow
from memory_project.constraints import FilledColumns
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

PREFIX = "memory_"
"""What the names of a kind's constraints and indexes have in front in the table: Django wants each name once."""


def kind_models() -> dict[str, type[MemoryRow]]:
    """Return the models of the kinds that have columns of their own, by kind."""
    # the registry refuses `get_model` until all models are loaded
    models_by_kind: dict[str, Any] = {
        spec.name: apps.get_registered_model(*spec.model.split(".")) for spec in all_specs()
    }
    return {kind: model for kind, model in models_by_kind.items() if model is not Memory}


def own_fields(model: type[MemoryRow]) -> "list[models.Field[Any, Any]]":
    """Return the fields that the model has besides those of every memory."""
    shared = {field.name for field in Memory._meta.concrete_fields}
    return [field for field in model._meta.concrete_fields if field.name not in shared]


def nullable_column(field: "models.Field[Any, Any]") -> "models.Field[Any, Any]":
    """Return the field as a column that is NULL where the kind has none. It has no default, choices or help text."""
    if isinstance(field, AccountForeignKey):
        # DO_NOTHING, since Django goes through the models of kinds when it deletes
        return AccountForeignKey(field.remote_field.model, models.DO_NOTHING, null=True, related_name="+")
    *_, args, options = field.deconstruct()
    kept = {name: options[name] for name in options.keys() & {"max_length", "encoder", "decoder"}}
    return type(field)(*args, **kept | {"null": True})


def merged_columns() -> "dict[str, models.Field[Any, Any]]":
    """Return the columns of all kinds by name. Raises TypeError if two kinds have one name with different types."""
    columns: dict[str, models.Field[Any, Any]] = {}
    for kind, model in kind_models().items():
        for field in own_fields(model):
            column, other = nullable_column(field), columns.get(field.name)
            if other is not None and type(column) is not type(other):
                raise TypeError(
                    f"{field.name} of the kind {kind} has another type in another kind. Rename one of them."
                )
            if other is None or (column.max_length or 0) > (other.max_length or 0):
                columns[field.name] = column
    return columns


def of_kind(kind: str, condition: Q) -> Q:
    """Return the condition that holds for rows of other kinds, and for rows of this kind if `condition` does."""
    return ~Q(kind=kind) | condition


def kind_constraints(kind: str, model: type[MemoryRow]) -> list[models.BaseConstraint]:
    """Return what the table checks of rows of a kind: columns that are not NULL, and the constraints of its model."""
    filled = [field for field in own_fields(model) if not field.null]
    defaults = {field.name: field.get_default() if field.has_default() else None for field in filled}
    found: list[models.BaseConstraint] = [FilledColumns(kind=kind, defaults=defaults, name=f"{kind}_has_its_columns")]
    for constraint in model._meta.constraints:
        name = f"{PREFIX}{constraint.name}"
        if isinstance(constraint, models.CheckConstraint):
            found.append(models.CheckConstraint(condition=of_kind(kind, Q(constraint.condition)), name=name))
        elif isinstance(constraint, models.UniqueConstraint):
            rows = constraint.condition or Q(kind=kind)
            found.append(models.UniqueConstraint(fields=("account", *constraint.fields), condition=rows, name=name))
    return found


def references() -> list[ReferenceInAccount]:
    """Return the foreign keys of all kinds. Kinds that share a column share its foreign key."""
    found = {"context": ReferenceInAccount("context", name="memories_context_in_account", cascades=True)}
    for model in kind_models().values():
        for constraint in model._meta.constraints:
            if isinstance(constraint, ReferenceInAccount):
                field: Any = model._meta.get_field(constraint.field)
                cascades = field.remote_field.on_delete is models.CASCADE
                name = f"memories_{constraint.field}_in_account"
                found[constraint.field] = ReferenceInAccount(constraint.field, name=name, cascades=cascades)
    return list(found.values())


def kind_indexes(kind: str, model: type[MemoryRow]) -> list[models.Index]:
    """Return the indexes of a kind's model, each over the rows of this kind alone."""
    return [
        type(index)(
            fields=[f"{order}{name}" if order else name for name, order in index.fields_orders],
            name=f"{PREFIX}{index.name}",
            condition=index.condition or Q(kind=kind),
        )
        for index in model._meta.indexes
    ]


class MemoryTable(MemoryRow):
    """One row of `memories` with the columns of all kinds."""

    vars().update(merged_columns())

    class Meta:
        db_table = TABLE
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["account", "kind", "identity"], name="memory_identity"),
            models.UniqueConstraint(fields=["account", "id"], name="memory_of_account"),
            models.CheckConstraint(condition=Q(salience__range=(0, 1)), name="memory_salience_in_range"),
            models.CheckConstraint(condition=Q(trust__range=(0, 1)), name="memory_trust_in_range"),
            models.CheckConstraint(condition=~Q(text=""), name="memory_has_text"),
            models.CheckConstraint(
                condition=Q(context__isnull=False, kind__in=IN_CONTEXTS) | (Q(context=None) & ~Q(kind__in=IN_CONTEXTS)),
                name="memory_in_context_by_kind",
            ),
            *references(),
            *(constraint for item in kind_models().items() for constraint in kind_constraints(*item)),
        ]
        indexes = [
            models.Index(fields=["account", "conversation_id", "kind", "event_time"], name="memory_conversation"),
            models.Index(fields=["account", "agent_id", "kind", "event_time"], name="memory_agent"),
            models.Index(fields=["account", "user_id", "channel", "kind"], name="memory_user_channel"),
            models.Index(fields=["account", "channel", "kind"], name="memory_channel"),
            models.Index(
                # in the order of lists
                fields=["account", "context", "kind", "id"],
                name="memory_context",
                condition=Q(context__isnull=False),
            ),
            BrinIndex(fields=["event_time"], name="memory_event_time"),
            # for timelines of archived memories
            models.Index(fields=["account", "kind", "event_time"], name="memory_archived", condition=Q(archived=True)),
            # for the latest memories of a kind: BRIN has no order and knows no account
            models.Index(fields=["account", "kind", "event_time"], name="memory_latest"),
            models.Index(
                fields=["account", "embed_after", "id"],
                name="memory_to_embed",
                condition=Q(embed_after__isnull=False),
            ),
            # no index has counted or decaying columns, so that updating them rewrites no index
            models.Index(
                fields=["account", "wording", "user_id", "agent_id"],
                name="memory_wording",
                condition=Q(wording__isnull=False),
            ),
            # for rows that are older than the column
            models.Index(
                fields=["account", "id"],
                name="memory_unworded",
                condition=Q(wording=None, kind__in=DEDUPLICATED),
            ),
            models.Index(fields=["account", "id"], name="memory_pinned", condition=Q(pinned=True)),
            # turns that wait for staff, of all accounts
            models.Index(
                fields=["id"], name="memory_to_forget", condition=Q(metadata__contains={"forget_request": "open"})
            ),
            models.Index(fields=["account", "agent_id"], name="memory_pending", condition=Q(embed_after__isnull=False)),
            *(index for item in kind_models().items() for index in kind_indexes(*item)),
        ]

"""Rows of any table that has an account, for tests: with the columns and the other rows that the table requires."""

from typing import Any
from uuid import UUID

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from memory.models import Kind, Memory, MemoryPool, MemoryRow, PersistentContext, Vector
from memory.models.memory import IN_CONTEXTS, kind_of
from memory.models.table import MemoryTable, kind_models
from memory_project.fields import SealedJSONField
from memory_project.ids import uuid7
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount
from tests.memory.episodes import NOW, WIDTH, direction
from tests.memory.rows import row_of

SPECIAL: dict[type[models.Model], dict[str, Any]] = {Vector: {"width": WIDTH}}
"""What constraints require of rows besides columns that are not NULL, by model."""


def managed_models() -> list[type[models.Model]]:
    """Return the models that make tables: those of kinds do not, but `MemoryTable`."""
    found = [model for app in ("memory", "ledger") for model in apps.get_app_config(app).get_models()]
    return [model for model in found if model._meta.managed and not model._meta.proxy]


def references_of(model: type[models.Model]) -> dict[str, ReferenceInAccount]:
    """Return the declared references of a table, by field."""
    return {each.field: each for each in model._meta.constraints if isinstance(each, ReferenceInAccount)}


def model_with(model: type[models.Model], field: str) -> type[models.Model]:
    """Return the model whose rows have the field: of `memories`, the first kind that has it."""
    if model is not MemoryTable:
        return model
    of_kinds = [kind_model for kind_model in kind_models().values() if field in references_of(kind_model)]
    # every memory has the column `context`, but few kinds use it
    return next(iter(of_kinds), kind_models()[IN_CONTEXTS[0]])


def store_row(model: type[models.Model], account_id: UUID, **given: Any) -> Any:
    """Store a row of the account and return it. What it refers to is stored with it, unless it is given."""
    if issubclass(model, MemoryRow):
        return store_memory(model, account_id, **given)
    if model is MemoryPool and "workflow_run" in given:
        given["pool_type"] = "shared_memory"
    wanted = [field for field in required_fields(model) if field.name not in given]
    columns = {field.name: required_value(field, account_id) for field in wanted}
    return model._default_manager.create(account_id=account_id, **columns | SPECIAL.get(model, {}) | given)


def store_memory(model: type[MemoryRow], account_id: UUID, **given: Any) -> MemoryRow:
    """Store a memory of the kind whose model it is, or a fact for `Memory`."""
    kind = kind_of(model) or Kind.FACT
    if kind in IN_CONTEXTS and "context" not in given:
        given["context"] = store_row(PersistentContext, account_id)
    row = row_of(kind, account_id=account_id, **given)
    row.save(force_insert=True)
    return Memory.objects.get(id=row.id) if model is Memory else row


def required_fields(model: type[models.Model]) -> "list[models.Field[Any, Any]]":
    fields = [field for field in model._meta.concrete_fields if field.name != "account" and not field.null]
    return [field for field in fields if not field.has_default() and field.db_default is models.NOT_PROVIDED]


def required_value(field: "models.Field[Any, Any]", account_id: UUID) -> Any:
    """Return a value that the column takes. Texts are different each time."""
    if isinstance(field, AccountForeignKey):
        return store_row(field.related_model, account_id)
    if field.choices:
        return field.flatchoices[0][0]
    values: dict[type[models.Field[Any, Any]], Any] = {
        SealedJSONField: {},
        HalfVectorField: direction(0),
        models.CharField: str(uuid7()),
        models.TextField: str(uuid7()),
        models.BooleanField: True,
        models.IntegerField: 1,
        models.FloatField: 0.5,
        models.DateTimeField: NOW,
        models.UUIDField: uuid7(),
        ArrayField: [],
    }
    return next(value for known, value in values.items() if isinstance(field, known))

"""Fields that Django does not have."""

import json
from functools import partial
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.json import Json

from memory_project import encryption


class VerbatimJSONField(models.JSONField):
    """JSON as it was sent: the type `json` keeps the order of names and the spelling of numbers, `jsonb` neither."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        # no NaN and no infinity: they are no JSON, and PostgreSQL's complaint would quote what stands around them
        return (
            value
            if value is None or hasattr(value, "as_sql")
            else Json(value, dumps=partial(json.dumps, allow_nan=False))
        )

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        # read by psycopg already: Django leaves only jsonb to its fields
        return value


class SealedJSONField(models.BinaryField):  # type: ignore[type-arg]  # not generic when it runs
    """JSON, encrypted at rest (`memory_project.encryption`). Nothing can be looked up by it."""

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        sealed = value if value is None else encryption.seal(json.dumps(value, allow_nan=False).encode())
        return super().get_db_prep_value(sealed, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return value if value is None else json.loads(encryption.unseal(bytes(value)))

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))

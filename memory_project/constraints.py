"""Constraints that Django does not have."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models
from django.db.backends.ddl_references import Statement
from django.db.models import Q


class FilledColumns(models.CheckConstraint):
    """The columns that are not NULL in rows of one kind, in a table of many kinds.

    `defaults` has the default of each column by field name, None for a column without one. A migration that adds the
    constraint stores the defaults in existing rows of the kind, as Django does when it adds a column that is not NULL.
    """

    def __init__(self, *, kind: str, defaults: Mapping[str, Any], name: str) -> None:
        filled = Q(**{f"{field}__isnull": False for field in defaults})
        super().__init__(condition=~Q(kind=kind) | filled, name=name)
        self.kind, self.defaults = kind, dict(defaults)

    def create_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]
        check = super().create_sql(model, schema_editor)
        updates = "".join(self.update_sql(model, schema_editor, name) for name in self.defaults)
        return Statement("%(updates)s%(check)s", updates=updates, check=str(check))

    def update_sql(self, model: Any, schema_editor: Any, name: str) -> str:
        """Return the statement that stores the default of a column where there is no value, if it has a default."""
        if self.defaults[name] is None:
            return ""
        field = model._meta.get_field(name)
        value = field.get_db_prep_save(self.defaults[name], schema_editor.connection)
        table, column = (schema_editor.quote_name(each) for each in (model._meta.db_table, field.column))
        kind, default = schema_editor.quote_value(self.kind), schema_editor.quote_value(value)
        return f"UPDATE {table} SET {column} = {default} WHERE kind = {kind} AND {column} IS NULL; "  # noqa: S608

    def deconstruct(self) -> tuple[str, Sequence[Any], dict[str, Any]]:
        path, args, options = super().deconstruct()
        del options["condition"]
        return path, args, options | {"kind": self.kind, "defaults": self.defaults}

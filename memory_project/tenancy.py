"""Tenant isolation: every table belongs to accounts or to the installation, and nothing refers across accounts.

A table of accounts has `account_id` in its primary key and in every unique constraint, and its references are declared
with `AccountForeignKey` and `ReferenceInAccount`. So PostgreSQL itself refuses a row that refers to another account,
and the table can be partitioned, or distributed over machines, by account. Tables of the installation are listed in
`INSTALLATION_TABLES`. `tests/memory/models/test_tenant_tables.py` reads the catalogue and fails for other tables.

Querysets of tables that are looked up by key start at `in_account`. Memories, whose visibility depends on more than the
account, start at `visible_to(owner)` instead.
"""

from typing import Any, Self, TypeVar
from uuid import UUID

from django.db import models
from django.db.backends.ddl_references import Statement

M = TypeVar("M", bound=models.Model)

INSTALLATION_TABLES = {
    "accounts": "the accounts themselves",
    "api_keys": "a request names its key before its account is known, and the hash of a secret is unique everywhere",
    "embedding_state": "one row for the whole installation: searches of all accounts use one model",
    "encryption_canary": "one row for the whole installation",
    "job_runs": "the queue of jobs, most of which work for all accounts",
    "memory_audit_late": "audit entries of a transaction whose partition does not exist yet; empty after each commit",
    "metric_samples": "metrics of the installation",
    "staff_limits": "which accounts a member of staff sees",
}
"""Tables that are the same on every machine (reference tables) and why.

Tables of Django and of django-otp are such tables as well.
"""

LOCAL_TABLES = {
    "memory_audit_late": "its trigger makes partitions, which a trigger of a worker may not",
}
"""Tables of the installation that are on one machine alone, the coordinator, and why."""


class AccountQuerySet(models.QuerySet[M]):
    """Rows that belong to an account."""

    def in_account(self, account_id: UUID) -> Self:
        return self.filter(account_id=account_id)


class RowInAccount(models.Model):
    """A row whose own statements name its account besides its id, so that they find it in one partition."""

    account_id: UUID

    class Meta:
        abstract = True

    def _do_update(self, base_qs: Any, *args: Any) -> Any:
        return super()._do_update(base_qs.filter(account_id=self.account_id), *args)

    def refresh_from_db(self, using: Any = None, fields: Any = None, from_queryset: Any = None) -> None:
        rows: Any = type(self)._base_manager.using(using) if from_queryset is None else from_queryset
        if "account_id" in self.__dict__:  # or it is what is to be loaded
            rows = rows.filter(account_id=self.account_id)
        super().refresh_from_db(using, fields, rows)

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete the row in one statement. The database deletes what refers to it, by each `ReferenceInAccount`.

        References that are to be cleared (SET_NULL) are cleared first.
        """
        relations: Any = self._meta.get_fields(include_hidden=True)
        for relation in relations:
            if getattr(relation, "on_delete", None) is models.SET_NULL:
                column, referring = relation.field.attname, relation.related_model._base_manager.using(using)
                referring.filter(account_id=self.account_id, **{column: self.pk}).update(**{column: None})
        own: Any = type(self)._base_manager.using(using)
        gone = own.filter(account_id=self.account_id, pk=self.pk)._raw_delete(own.db)
        return gone, {self._meta.label: gone} if gone else {}


class AccountForeignKey(models.ForeignKey):  # type: ignore[type-arg]  # not generic when it runs
    """A reference to a row of the same account. Joins over it, and loading the row, compare the accounts too.

    Both models have a field `account`. The foreign key of the database, which includes the account, is a
    `ReferenceInAccount` in the model's constraints.
    """

    def __init__(self, to: Any, on_delete: Any, **options: Any) -> None:
        super().__init__(to, on_delete, **{"db_index": False, "db_constraint": False} | options)

    def get_joining_fields(self, reverse_join: bool = False) -> tuple[tuple[Any, Any], ...]:
        ours, theirs = self.model._meta.get_field("account"), self.related_model._meta.get_field("account")
        accounts = (theirs, ours) if reverse_join else (ours, theirs)
        return (*super().get_joining_fields(reverse_join), accounts)

    def get_extra_descriptor_filter(self, instance: Any) -> dict[str, Any]:
        # for `row.field`, which loads the row referred to
        return {"account_id": instance.account_id}


class ReferenceInAccount(models.BaseConstraint):
    """The foreign key of an `AccountForeignKey`: (account_id, column) refers to (account_id, id) of its target.

    If it cascades, by default if the field's `on_delete` is CASCADE, the database deletes the row with its target.
    Otherwise it refuses, at the end of the transaction, to delete a target that is still referred to: code clears such
    references first, because a distributed database cannot.
    """

    def __init__(self, field: str, *, name: str, cascades: bool | None = None) -> None:
        super().__init__(name=name)
        self.field = field
        self.cascades = cascades

    def constraint_sql(self, model: Any, schema_editor: Any) -> str:
        # at the end of the migration: the target may be made later, and has its key by account later still
        schema_editor.deferred_sql.append(self.create_sql(model, schema_editor))
        return ""

    def create_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]  # stubs: str
        field = model._meta.get_field(self.field)
        cascades = field.remote_field.on_delete is models.CASCADE if self.cascades is None else self.cascades
        quote = schema_editor.quote_name
        return Statement(
            "ALTER TABLE %(table)s ADD CONSTRAINT %(name)s FOREIGN KEY (account_id, %(column)s)"
            " REFERENCES %(target)s (account_id, id) %(rule)s",
            table=quote(model._meta.db_table),
            name=quote(self.name),
            column=quote(field.column),
            target=quote(field.related_model._meta.db_table),
            rule="ON DELETE CASCADE" if cascades else "DEFERRABLE INITIALLY DEFERRED",
        )

    def remove_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]  # stubs: str
        quote = schema_editor.quote_name
        return Statement(
            "ALTER TABLE %(table)s DROP CONSTRAINT %(name)s",
            table=quote(model._meta.db_table),
            name=quote(self.name),
        )

    def validate(self, model: Any, instance: Any, exclude: Any = None, using: Any = None) -> None:
        """Check nothing: forms offer rows of the account alone, and the database refuses others."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReferenceInAccount) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((self.field, self.name))

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, _, options = super().deconstruct()
        return path, (self.field,), options if self.cascades is None else options | {"cascades": self.cascades}

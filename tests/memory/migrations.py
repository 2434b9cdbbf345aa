"""Migrations over data of a former version: in a database of their own, since they do not go back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor


@contextmanager
def empty_database() -> Iterator[None]:
    """Connect to a new database without tables. For tests that commit."""
    with new_database("migrated") as name, connected_to(name):
        yield


@contextmanager
def new_database(suffix: str, *, template: str = "template1") -> Iterator[str]:
    """Create a database as a copy of another, and yield its name. It is dropped at the end of the block."""
    name = f"{connection.settings_dict['NAME']}_{suffix}"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """Use the database of this name within the block."""
    settings: Any = connection.settings_dict
    former = settings["NAME"]
    connect_to(name)
    try:
        yield
    finally:
        connect_to(former)


def connect_to(name: str) -> None:
    database: Any = connection
    database.close()
    database.close_pool()
    database.settings_dict["NAME"] = name


def migrate_to(name: str, **others: str) -> Any:
    """Migrate to a migration, and to those of other apps by their labels. Return the models."""
    targets = [("memory", name), *others.items()]
    MigrationExecutor(connection).migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


def migrate_forward() -> None:
    """Migrate to the latest version."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())

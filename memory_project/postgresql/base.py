"""The backend that `DATABASES` names as its ENGINE."""

from typing import Any

from django.db.backends.postgresql import base
from django.db.utils import OperationalError
from psycopg_pool import ConnectionPool

from memory_project.postgresql.hangs import SERVER, WATCHES, WatchedConnection

SERVER_ENDED = ("08", "57P")
"""Beginnings of the codes of errors that end a connection, not a statement."""


class OutcomeUnknownError(OperationalError):
    """The connection ended during a commit: what was written may be stored, or not."""


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes no connection while the server is known to hang, and says when it is not known whether a commit came in."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection of the pool. Raises OperationalError immediately while the server hangs."""
        WATCHES.get(self.alias, SERVER).refuse_if_hanging()
        if self.pool is not None:
            self.pool._check = check_unless_heard
        return super().get_new_connection(conn_params)

    def chunked_cursor(self) -> Any:
        """Return a server-side cursor; behind a pooler only within a transaction, which alone keeps its session."""
        if self.settings_dict.get("IS_POOLED") and not self.in_atomic_block:
            return self.cursor()
        return super().chunked_cursor()

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]  # the stubs do not know it
        except OperationalError as err:
            code = getattr(err.__cause__, "sqlstate", None)
            if code is None or code.startswith(SERVER_ENDED):
                raise OutcomeUnknownError(*err.args) from err.__cause__
            raise


def check_unless_heard(connection: WatchedConnection) -> None:
    """Ask the server whether a connection of the pool works, unless it has just answered by it and not closed it.

    Raises what the driver does if it does not: the pool replaces it. To ask before each request takes half a
    millisecond, a third of a read by key.
    """
    if not connection.has_just_answered():
        ConnectionPool.check_connection(connection)

"""The constraint that a refused statement broke."""

import re

import psycopg

NAMED = re.compile(r'constraint "([^"]+?)(?:_\d{6,})?"')


def broken_constraint(err: BaseException) -> str | None:
    """Return the name of the constraint of which Django's error tells, or None.

    The machines of a distributed database name it in their message alone, with the number of the shard.
    """
    if not isinstance(err.__cause__, psycopg.Error):
        return None
    if name := err.__cause__.diag.constraint_name:
        return name
    named = NAMED.search(str(err.__cause__))
    return named and named[1]

"""The lines of the log: those of the supervisor, and what other packages may say in it."""

import logging

from memory_project.logs import PoolFilter, configure_logging

REFUSED = 'connection to server at "127.0.0.1", port 1 failed: Connection refused\n\tIs the server running?\n'


def complain(template: str, *args: object, seconds: float) -> logging.LogRecord:
    record = logging.LogRecord("psycopg.pool", logging.WARNING, "", 0, template, args, None)
    record.created = seconds
    return record


def test_a_pool_whose_connections_fail_at_once_says_so_once_in_one_line() -> None:
    pool = PoolFilter()
    first = complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=0.0)

    assert pool.filter(first)
    assert first.getMessage() == (
        "error connecting in 'pool-1': connection to server at \"127.0.0.1\", port 1 failed: Connection refused "
        "Is the server running?"
    )
    assert not any(pool.filter(complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=at)) for at in (1, 9))
    assert pool.filter(complain("discarding broken connection: %s", "BAD", seconds=2.0))
    assert pool.filter(complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=11.0))


def test_the_managers_of_mcp_do_not_say_that_each_of_them_started() -> None:
    loggers = configure_logging("text", level="INFO", task_level="WARNING")["loggers"]

    assert loggers["mcp.server.streamable_http_manager"] == {"level": "WARNING"}

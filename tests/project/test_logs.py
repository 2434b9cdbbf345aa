"""The lines of the log: those of the supervisor, and what other packages may say in it."""

import json
import logging
import re

import pytest

from memory_project.logs import RepeatFilter, configure_logging
from memory_project.supervisor.log import Log

REFUSED = 'connection to server at "127.0.0.1", port 1 failed: Connection refused\n\tIs the server running?\n'


def complain(template: str, *args: object, seconds: float) -> logging.LogRecord:
    record = logging.LogRecord("psycopg.pool", logging.WARNING, "", 0, template, args, None)
    record.created = seconds
    return record


def test_a_pool_whose_connections_fail_at_once_says_so_once_in_one_line() -> None:
    pool = RepeatFilter()
    first = complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=0.0)

    assert pool.filter(first)
    assert first.getMessage() == (
        "error connecting in 'pool-1': connection to server at \"127.0.0.1\", port 1 failed: Connection refused "
        "Is the server running?"
    )
    assert not any(pool.filter(complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=at)) for at in (1, 9))
    assert pool.filter(complain("discarding broken connection: %s", "BAD", seconds=2.0))
    assert pool.filter(complain("error connecting in %r: %s", "pool-1", REFUSED, seconds=11.0))


def test_a_pool_that_fails_does_not_silence_another_one() -> None:
    pools = RepeatFilter()
    complaints = [complain("error connecting in %r: %s", name, REFUSED, seconds=0.0) for name in ("pool-1", "pool-2")]
    broken = [complain("discarding closed connection: %s", connection, seconds=0.0) for connection in (1, 2)]

    assert [pools.filter(each) for each in complaints] == [True, True]
    assert [pools.filter(each) for each in broken] == [True, False]


def test_the_managers_of_mcp_do_not_say_that_each_of_them_started() -> None:
    loggers = configure_logging("text", level="INFO", task_level="WARNING")["loggers"]

    assert loggers["mcp.server.streamable_http_manager"] == {"level": "WARNING"}


def test_a_line_of_the_supervisor_has_its_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    Log({}).say("up", "PostgreSQL stopped; starting again", level="WARNING")

    line = capsys.readouterr().out
    assert re.fullmatch(
        r"up       \| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING PostgreSQL stopped; .* again\n", line
    )


def test_a_line_of_the_supervisor_has_its_level_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    Log({"MEMORY_LOG_FORMAT": "json"}).say("up", "PostgreSQL stopped; starting again", level="WARNING")

    line = json.loads(capsys.readouterr().out)
    assert (line["part"], line["level"], line["message"]) == ("up", "WARNING", "PostgreSQL stopped; starting again")
    assert line["time"]


def test_a_line_of_a_part_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Log({}).write("node", "2026-12-01 00:05:00,123 INFO web: listening")

    assert capsys.readouterr().out == "node     | 2026-12-01 00:05:00,123 INFO web: listening\n"

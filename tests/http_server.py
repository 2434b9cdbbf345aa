"""The server at hand of `pytest_httpserver`, one for all tests of a process."""

import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from urllib.error import HTTPError

import pytest
from pytest_httpserver import HTTPServer


@pytest.fixture
def httpserver(make_httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """Takes no answer of one test along to the next.

    It answers one request after the other, so once a last one is answered nobody waits any more, nor those who gave up.
    Whoever lets a handler wait for the end of the test must release it before.
    """
    make_httpserver.clear()
    yield make_httpserver
    make_httpserver.clear()
    with suppress(HTTPError):
        urllib.request.urlopen(make_httpserver.url_for("/last"), timeout=60).close()

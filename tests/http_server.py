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

    It answers one request after the other, so once a last one is answered, none is waiting, not even an abandoned one.
    A test whose handler waits for its end must release the handler before.
    """
    make_httpserver.clear()
    yield make_httpserver
    make_httpserver.clear()
    with suppress(HTTPError):
        urllib.request.urlopen(make_httpserver.url_for("/last"), timeout=60).close()

"""Proxies that may say that a request came over HTTPS, and parts of the service that need not."""

from collections.abc import Iterable
from typing import Any

import pytest

from memory_project.http.hosts import own_hosts
from memory_project.http.proxies import believe_proxies
from memory_project.web.channels import plain_address

OWN = own_hosts({"MEMORY_HOST": "10.0.0.5"})


def scheme_of(environ: dict[str, str], *, secure_inside: Iterable[str] = ()) -> str:
    """Return the scheme of a request, as the application sees it, with 192.0.2.1 as the proxy."""
    seen: dict[str, Any] = {}

    def application(environ: dict[str, Any], _start_response: object) -> list[bytes]:
        seen.update(environ)
        return []

    wrapped = believe_proxies(application, ["192.0.2.1"], secure_inside=list(secure_inside))
    wrapped({"wsgi.url_scheme": "http", **environ}, lambda *_: None)
    return str(seen["wsgi.url_scheme"])


@pytest.mark.parametrize(
    ("address", "forwarded", "scheme"),
    [
        ("192.0.2.1", "https", "https"),
        ("192.0.2.1", "http", "http"),
        ("192.0.2.2", "https", "http"),
        (plain_address("::ffff:192.0.2.1"), "https", "https"),
    ],
)
def test_only_a_known_proxy_says_that_a_request_came_over_https(address: str, forwarded: str, scheme: str) -> None:
    assert scheme_of({"REMOTE_ADDR": address, "HTTP_X_FORWARDED_PROTO": forwarded}) == scheme


@pytest.mark.parametrize(
    ("host", "is_inside"),
    [
        *[(host, True) for host in ("127.0.0.1:8002", "localhost", "[::1]:8002", "10.0.0.5:8002", "web:8002")],
        *[(host, False) for host in ("memory.example", "10.0.0.6", "[2001:db8::1]:8002", "")],
    ],
)
def test_parts_of_the_service_are_not_redirected_to_https(host: str, is_inside: bool) -> None:
    environ = {"REMOTE_ADDR": "10.0.0.7", "HTTP_HOST": host}

    assert scheme_of(environ, secure_inside=OWN) == ("https" if is_inside else "http")
    assert scheme_of(environ) == "http"


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::"])
def test_a_listener_of_all_addresses_adds_no_host(address: str) -> None:
    assert own_hosts({"MEMORY_HOST": address}) == ("127.0.0.1", "localhost", "[::1]")
    assert own_hosts({"MEMORY_HOST": "::2"})[-1] == "[::2]"

"""Proxies that we know: only they may say that a request came over HTTPS. The parts of the service need not use it."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.http.request import split_domain_port

from memory_project.http.paths import WSGIApplication


def is_called_inside(environ: dict[str, Any], own: Collection[str]) -> bool:
    """Return whether the request names a host that only parts of the service use: an own one, or one without a dot.

    Such is the MCP server, which calls the web server without a proxy.
    """
    host, _ = split_domain_port(environ.get("HTTP_HOST", ""))
    return host in own or (bool(host) and not {".", ":"} & {*host})


def believe_proxies(
    application: WSGIApplication, trusted: Collection[str], *, secure_inside: Collection[str] = ()
) -> WSGIApplication:
    """Wrap a WSGI application so that `X-Forwarded-Proto` of the addresses in `trusted` (`*`: all) is the scheme.

    With own hosts in `secure_inside`, calls from inside count as HTTPS, so that they are not redirected to it.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_trusted = "*" in trusted or environ.get("REMOTE_ADDR") in trusted
        came_over_https = environ.get("HTTP_X_FORWARDED_PROTO", "").strip().lower() == "https"
        if (is_trusted and came_over_https) or (secure_inside and is_called_inside(environ, secure_inside)):
            environ["wsgi.url_scheme"] = "https"
        return application(environ, start_response)

    return serve

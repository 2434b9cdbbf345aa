"""Proxies that we know: only they may say that a request came over HTTPS."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from memory_project.http.paths import WSGIApplication


def believe_proxies(application: WSGIApplication, trusted: Collection[str]) -> WSGIApplication:
    """Wrap a WSGI application so that `X-Forwarded-Proto` of the addresses in `trusted` (`*`: all) is the scheme."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_trusted = "*" in trusted or environ.get("REMOTE_ADDR") in trusted
        if is_trusted and environ.get("HTTP_X_FORWARDED_PROTO", "").strip().lower() == "https":
            environ["wsgi.url_scheme"] = "https"
        return application(environ, start_response)

    return serve

"""`/health/live`, `/health/ready` and `/metrics` of the MCP server, for probes and scrapes: no key, any Host."""

from collections import Counter
from collections.abc import Sequence

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TIMEOUT_SECONDS = 2.0
METRIC = "memory_mcp_requests_total"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class RequestCounts:
    """Counts answers by path and status. Paths that nobody serves count as `other`: clients can invent them."""

    def __init__(self, app: ASGIApp, *, paths: Sequence[str]) -> None:
        self._app, self._paths = app, tuple(paths)
        self._counts: Counter[tuple[str, int]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"]).rstrip("/")
        name = next((known for known in self._paths if path == known or path.startswith(f"{known}/")), "other")

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts[name, message["status"]] += 1
            await send(message)

        await self._app(scope, receive, count)

    def format(self) -> str:
        """Return the counts in the text format of Prometheus."""
        lines = [f"# HELP {METRIC} Requests answered by the MCP server.", f"# TYPE {METRIC} counter"]
        counts = sorted(self._counts.items())
        lines += [f'{METRIC}{{path="{path}",status="{status}"}} {count}' for (path, status), count in counts]
        return "".join(f"{line}\n" for line in lines)


class CountedApplication:
    """An application with its counts, and the paths at which probes and scrapes ask."""

    def __init__(self, app: ASGIApp, *, base_url: str, paths: Sequence[str]) -> None:
        self._base_url = base_url
        self._counted = RequestCounts(app, paths=paths)
        self._routes = {
            route.path: route
            for route in (
                Route("/health/live", self._answer_live),
                Route("/health/ready", self._answer_ready),
                Route("/metrics", self._answer_metrics),
            )
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get(scope["path"]) if scope["type"] == "http" else None
        await (self._counted if route is None else route.app)(scope, receive, send)

    async def _answer_live(self, _: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def _answer_ready(self, _: Request) -> Response:
        """Answer 503 while the service behind this server does not answer."""
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
                answer = await client.get(f"{self._base_url}/health/live")
        except httpx2.HTTPError as err:
            return JSONResponse({"status": "unavailable", "checks": {"service": type(err).__name__}}, status_code=503)
        is_ready = answer.status_code == 200
        checks = {"service": "ok" if is_ready else f"answers {answer.status_code}"}
        return JSONResponse(
            {"status": "ready" if is_ready else "unavailable", "checks": checks}, status_code=200 if is_ready else 503
        )

    async def _answer_metrics(self, _: Request) -> Response:
        return PlainTextResponse(self._counted.format(), media_type=TEXT_FORMAT)

"""The parameters of a scenario, and its result."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from lab.benchmarks.web import web_server
from lab.chaos.watching import Asker
from memory_project.supervisor.parts import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The place of a scenario: a key of an account of its own, and the seconds of an observation."""

    secret: str
    seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the web server."""

    def web_server(self, **variables: str) -> AbstractContextManager[Address]:
        """Run a web server with the variables of the stage and these."""
        return web_server({**self.variables, **variables})

    def asker(self, address: Address, method: str, path: str, body: Any = None) -> Asker:
        """Return a client with the key of the stage. A body that is a function makes a new one for each request."""
        return Asker(address.port, method, f"/api/v1{path}", key=self.secret, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The figures that a scenario measured, and the targets that it missed, in sentences."""

    figures: Mapping[str, Any]
    missed: Sequence[str]

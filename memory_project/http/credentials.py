"""Who calls: what a valid API key says, what it may do, and for which agent it acts."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from memory_project.http.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """`request.auth` of every authenticated request. An empty `agent_id` is bound to no agent."""

    key_id: UUID
    account_id: UUID
    agent_id: str
    scopes: frozenset[str]
    prefix: str
    audit_level: str = ""
    """What the audit log keeps, as the account says; empty: as the installation does."""

    @property
    def actor(self) -> str:
        """Who is answerable in the audit log."""
        return f"key:{self.prefix}"

    def acting_agent(self, agent_id: str) -> str:
        """The agent that acts: the one named, else the one that the key is bound to; "" acts for the account.

        Raises a 403 problem when the key is bound to another agent than the one named.
        """
        if self.agent_id and agent_id not in ("", self.agent_id):
            raise Problem(403, "wrong_agent", "This key is bound to another agent.")
        return agent_id or self.agent_id

    def require(self, scope: str) -> None:
        """Raises a 403 problem when the key lacks the scope."""
        if scope not in self.scopes:
            raise Problem(403, "missing_scope", f"This key lacks the scope {scope}.")


def credential_of(request: Request) -> Credential | None:
    """Who calls; None where nobody had to say."""
    credential: Any = request.auth
    return credential if isinstance(credential, Credential) else None


class HasScope(BasePermission):
    """The key has the scope of the action: as the view's `scopes` say, else read for reads and write for the rest."""

    def has_permission(self, request: Request, view: Any) -> bool:
        credential = credential_of(request)
        if credential is None:
            raise NotAuthenticated
        credential.require(scope_of(view, request.method or "GET"))
        return True


def scope_of(view: Any, method: str) -> str:
    """The scope that the view's current action needs."""
    action = getattr(view, "action", None) or method.lower()
    default = "read" if method in SAFE_METHODS else "write"
    return str(getattr(view, "scopes", {}).get(action, default))

"""Credentials: the account, agent and scopes of a valid API key."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from memory_project.http.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The `request.auth` of every authenticated request.

    With an empty `agent_id` the key is bound to no agent, and with an empty `user_id` to no user.
    """

    key_id: UUID
    account_id: UUID
    agent_id: str
    scopes: frozenset[str]
    prefix: str
    user_id: str = ""
    audit_level: str = ""
    """Level of the account's audit log. Empty: the installation's default."""
    has_erasures: bool = False
    """True if users of the account were erased, whom nothing may name."""
    secrets: str = "off"
    """What the account does with secrets in what is written: off, mark or mask."""

    @property
    def actor(self) -> str:
        """The name of the key in the audit log."""
        return f"key:{self.prefix}"

    def acting_agent(self, agent_id: str) -> str:
        """Return the acting agent: the named one, else the one that the key is bound to. "" acts for the account.

        Raises a 403 problem when the key is bound to another agent than the named one.
        """
        if self.agent_id and agent_id not in ("", self.agent_id):
            detail = "This key is bound to another agent. Leave agent_id out, or use a key of that agent."
            raise Problem(403, "wrong_agent", detail)
        return agent_id or self.agent_id

    def acting_user(self, user_id: str) -> str:
        """Return the user to act for: the named one, else the one that the key is bound to. "" is no user.

        Raises a 403 problem when the key is bound to another user than the named one.
        """
        if self.user_id and user_id not in ("", self.user_id):
            detail = "This key is bound to another user. Leave user_id out, or use a key of that user."
            raise Problem(403, "wrong_user", detail)
        return user_id or self.user_id

    def require(self, scope: str) -> None:
        """Raise a 403 problem if the key lacks the scope."""
        if scope not in self.scopes:
            raise Problem(403, "missing_scope", f"This key lacks the scope {scope}.")


def get_credential(request: Request) -> Credential | None:
    """Return the caller's credential; None for a request that needs no key."""
    credential: Any = request.auth
    return credential if isinstance(credential, Credential) else None


class HasScope(BasePermission):
    """Requires the scope that the view's `scopes` name for the action. Default: `read` for reads, else `write`.

    A key that is bound to a user may use only views that are `for_users`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        credential = get_credential(request)
        if credential is None:
            raise NotAuthenticated
        credential.require(required_scope(view, request.method or "GET"))
        if credential.user_id and not getattr(view, "for_users", False):
            detail = (
                "This key is bound to a user, and what this operation works on belongs to no user. Use another key."
            )
            raise Problem(403, "bound_to_user", detail)
        return True


def required_scope(view: Any, method: str) -> str:
    """Return the scope that the view's current action requires."""
    action = getattr(view, "action", None) or method.lower()
    default = "read" if method in SAFE_METHODS else "write"
    return str(getattr(view, "scopes", {}).get(action, default))
